package upstream_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
)

func TestNames(t *testing.T) {
	p := mcptest.Pool(t, map[string]*mcptest.Upstream{
		"github": mcptest.New(mcptest.Tool{Name: "list_issues"}, mcptest.Tool{Name: "get issue (form)"}),
		"files":  mcptest.New(mcptest.Tool{Name: "list_directory"}, mcptest.Tool{Name: "list_directory_with_sizes"}),
	})
	p.Catalog(t.Context()) // so that the lists are known
	for _, c := range []struct {
		server, tool string
		code         stages.Code
		msg, hint    string
	}{
		{"githab", "x", stages.UnknownServer, `there is no server "githab"`, `did you mean "github"?`},
		{"zzz", "x", stages.UnknownServer, `"zzz"`, `there are "files", "github"`},
		{"files", "list_dir", stages.UnknownTool, `server "files" has no tool "list_dir"`, `did you mean "list_directory"`},
		{"files", "list_issues", stages.UnknownTool, "", `server "github" has a tool of that name`},
		{"github", "zzz", stages.UnknownTool, "", `it has "get issue (form)", "list_issues"`},
	} {
		_, err := p.Tool(t.Context(), c.server, c.tool)
		wantError(t, err, c.code, c.msg, c.hint)
		_, err = p.CallTool(t.Context(), stages.Call{Server: c.server, Name: c.tool})
		wantError(t, err, c.code, c.msg, c.hint)
	}
	if _, err := p.Tool(t.Context(), "github", "get issue (form)"); err != nil {
		t.Error(err)
	}
}

func TestPolicy(t *testing.T) {
	s := mcptest.New(
		mcptest.Tool{Name: "get_a", ReadOnly: true}, mcptest.Tool{Name: "get_b"}, mcptest.Tool{Name: "put_a/b"},
		mcptest.Tool{Name: "put_c", Idempotent: true}, mcptest.Tool{Name: "long", ReadOnly: true, Extra: `"execution":{"taskSupport":"required"}`},
	)
	type server = upstream.Server
	for _, c := range []struct {
		name     string
		options  upstream.Options
		server   server
		listed   string
		denied   string
		readOnly string
	}{
		{"one", upstream.Options{}, server{Deny: []string{"get_b"}}, "get_a long put_a/b put_c", "get_b", "get_a long"},
		{"deny", upstream.Options{}, server{Deny: []string{"put*"}}, "get_a get_b long", "put_a/b", "get_a long"},
		{"allow", upstream.Options{}, server{Allow: []string{"*_?", "put_a*"}, Deny: []string{"get_b"}}, "get_a put_a/b put_c", "get_b", "get_a"},
		{"read-only", upstream.Options{ReadOnly: true}, server{ReadOnly: []string{"put_[c]", "get_b"}}, "get_a get_b long", "put_c", "get_a get_b long"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.server.Name, c.server.Dial = "s", s.Dial
			p := staticPool(t, c.options, c.server)
			var listed, readOnly []string
			for _, tool := range p.Catalog(t.Context())[0].Tools {
				listed = append(listed, tool.Name)
				if tool.ReadOnly {
					readOnly = append(readOnly, tool.Name)
				}
				if tool.ReadOnly != tool.Tool.ReadOnly || tool.Denied != "" {
					t.Errorf("got %+v", tool)
				}
			}
			if got := strings.Join(listed, " "); got != c.listed {
				t.Errorf("listed %s, want %s", got, c.listed)
			}
			if got := strings.Join(readOnly, " "); got != c.readOnly {
				t.Errorf("read-only %s, want %s", got, c.readOnly)
			}
			calls := s.Calls()
			_, err := p.Tool(t.Context(), "s", c.denied)
			wantError(t, err, stages.Denied, c.denied, "")
			_, err = p.CallTool(t.Context(), stages.Call{Server: "s", Name: c.denied})
			wantError(t, err, stages.Denied, c.denied, "")
			if s.Calls() != calls {
				t.Error("a denied tool was called")
			}
		})
	}
}

// TestListChanges: a tool that is new is found at once, and one that has gone is not listed for long.
func TestListChanges(t *testing.T) {
	s := mcptest.New(mcptest.Tool{Name: "a"})
	p := mcptest.Pool(t, map[string]*mcptest.Upstream{"s": s})
	if _, err := p.Tool(t.Context(), "s", "a"); err != nil {
		t.Fatal(err)
	}
	s.Add(mcptest.Tool{Name: "b", Text: "new"})
	eventually(t, "the new tool can be called", func() bool {
		res, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: "b"})
		return err == nil && string(res.Data) == "new"
	})
	s.Remove("a")
	eventually(t, "the old tool is not listed", func() bool {
		tools := p.Catalog(t.Context())[0].Tools
		return len(tools) == 1 && tools[0].Name == "b"
	})
}

// TestListChangesAllTheTime: a server that changes its list ten times a second has it fetched less and less often, and as
// soon as before once it has been calm for a while. So has one whose tools refuse their arguments.
func TestListChangesAllTheTime(t *testing.T) {
	t.Parallel() // it waits
	refusing := func(context.Context, json.RawMessage) (string, error) {
		return "", &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "no"}
	}
	for name, change := range map[string]func(s *mcptest.Upstream, p *upstream.Pool){
		"says so": func(s *mcptest.Upstream, _ *upstream.Pool) { s.Add(mcptest.Tool{Name: "b"}) },
		"refuses": func(_ *mcptest.Upstream, p *upstream.Pool) {
			_, _ = p.CallTool(context.Background(), stages.Call{Server: "s", Name: "a"}) // it fails
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := mcptest.New(mcptest.Tool{Name: "a", Raw: refusing})
				var lists atomic.Int32
				s.MCP().AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
					return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
						if method == "tools/list" {
							lists.Add(1)
						}
						return next(ctx, method, req)
					}
				})
				p := upstream.NewPool(upstream.Options{Sources: []upstream.Source{upstream.Static{{Name: "s", Dial: s.Dial}}}, ListTTL: time.Hour})
				defer p.Close()
				use := func() {
					change(s, p)
					time.Sleep(100 * time.Millisecond)
					for _, name := range []string{"a", "missing"} {
						_, _ = p.Tool(t.Context(), "s", name) // the second is an error
					}
					synctest.Wait()
				}
				for range 600 {
					use()
				}
				if got := lists.Load(); got < 5 || got > 50 {
					t.Errorf("it was asked for its list %d times in a minute", got)
				}
				time.Sleep(5 * time.Minute)
				before := lists.Load()
				use()
				if lists.Load() == before {
					t.Error("a change after a calm time does not count")
				}
			})
		})
	}
}

// TestPages lists real tools, page by page, and wants each schema byte for byte.
func TestPages(t *testing.T) {
	b, err := os.ReadFile("testdata/tools.json")
	if err != nil {
		t.Fatal(err)
	}
	var tools []json.RawMessage
	if err := json.Unmarshal(b, &tools); err != nil {
		t.Fatal(err)
	}
	s := handMadeList(t, tools)
	p := httpPool(t, upstream.Endpoint{URL: s})
	l := p.Catalog(t.Context())[0]
	if l.Err != nil || len(l.Tools) != len(tools) {
		t.Fatalf("got %d tools, %v; want %d", len(l.Tools), l.Err, len(tools))
	}
	for i, tool := range l.Tools {
		var want struct{ InputSchema, OutputSchema, Annotations json.RawMessage }
		if err := json.Unmarshal(tools[i], &want); err != nil {
			t.Fatal(err)
		}
		for _, pair := range [][2]json.RawMessage{{want.InputSchema, tool.InputSchema}, {want.OutputSchema, tool.OutputSchema}, {want.Annotations, tool.Annotations}} {
			if diff := cmp.Diff(string(pair[0]), string(pair[1])); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tool.Name, diff)
			}
		}
		if tool.Tool.Signature == "" || tool.Flaw != "" {
			t.Errorf("%s: signature %q, flaw %q", tool.Name, tool.Tool.Signature, tool.Flaw)
		}
	}
}

// handMadeList serves a tool list in pages of two.
func handMadeList(t *testing.T, tools []json.RawMessage) string {
	t.Helper()
	return pagesServer(t, func(cursor string) string {
		from := 0
		_, _ = fmt.Sscan(cursor, &from)
		to := min(from+2, len(tools))
		page := map[string]any{"tools": tools[from:to]}
		if to < len(tools) {
			page["nextCursor"] = fmt.Sprint(to)
		}
		b, err := json.Marshal(page)
		if err != nil {
			t.Error(err)
		}
		return string(b)
	})
}

// pagesServer is a server that answers with the pages of a tool list as they are.
func pagesServer(t *testing.T, page func(cursor string) string) string {
	t.Helper()
	s := mcptest.New()
	s.MCP().AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			list, ok := req.(*mcp.ListToolsRequest)
			if !ok {
				return next(ctx, method, req)
			}
			cursor := ""
			if list.Params != nil {
				cursor = list.Params.Cursor
			}
			return &page2{json: json.RawMessage(page(cursor))}, nil
		}
	})
	return s.HTTP(t, nil).URL
}

type page2 struct {
	mcp.ResultBase
	json json.RawMessage
}

func (p *page2) MarshalJSON() ([]byte, error) { return p.json, nil }

// TestSlowServerDelaysNobody: a server that never starts has no effect on the others.
func TestSlowServerDelaysNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := func(ctx context.Context) (mcp.Transport, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		good := mcptest.New(mcptest.Tool{Name: "hi", Text: "hi"})
		p := staticPool(t, upstream.Options{}, upstream.Server{Name: "good", Dial: good.Dial}, upstream.Server{Name: "stuck", Dial: stuck})
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		l := p.Catalog(ctx)
		if l[0].Status != upstream.StatusReady || l[1].Status != upstream.StatusStarting || !errors.Is(l[1].Err, context.DeadlineExceeded) {
			t.Errorf("got %s, %s %v", l[0].Status, l[1].Status, l[1].Err)
		}
		wantError(t, l[1].Err, stages.ServerUnavailable, "is still starting", "")
		if res, err := p.CallTool(t.Context(), stages.Call{Server: "good", Name: "hi"}); err != nil || string(res.Data) != "hi" {
			t.Errorf("got %q, %v", res.Data, err)
		}
	})
}

// TestOneStart: many callers at once start a server once, and a server that fails is not started again at once.
func TestOneStart(t *testing.T) {
	s := mcptest.New(mcptest.Tool{Name: "hi", Text: "hi"})
	var mu sync.Mutex
	good, bad := 0, 0
	p := staticPool(t, upstream.Options{},
		upstream.Server{Name: "good", Dial: func(ctx context.Context) (mcp.Transport, error) {
			mu.Lock()
			good++
			mu.Unlock()
			return s.Dial(ctx)
		}},
		upstream.Server{Name: "bad", Dial: func(context.Context) (mcp.Transport, error) {
			mu.Lock()
			bad++
			mu.Unlock()
			return nil, errors.New("no luck")
		}})
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if _, err := p.CallTool(t.Context(), stages.Call{Server: "good", Name: "hi"}); err != nil {
				t.Error(err)
			}
			_, err := p.CallTool(t.Context(), stages.Call{Server: "bad", Name: "hi"})
			wantError(t, err, stages.ServerUnavailable, "no luck", "")
		})
	}
	wg.Wait()
	mu.Lock()
	defer mu.Unlock()
	if good != 1 || bad < 1 || bad > 5 {
		t.Errorf("started the good one %d times and the bad one %d times, want once and a few", good, bad)
	}
}

func TestConcurrencyLimit(t *testing.T) {
	s := mcptest.New(mcptest.Tool{Name: "nap", Latency: 20 * time.Millisecond})
	p := staticPool(t, upstream.Options{}, upstream.Server{Name: "s", Dial: s.Dial, Concurrency: 3})
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if _, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: "nap"}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if s.Peak() != 3 || s.Calls() != 20 {
		t.Errorf("%d calls, %d at once; want 20, 3", s.Calls(), s.Peak())
	}
}

// TestQueueingIsNotTheTools: a call's time begins when it is sent, however long it has waited for others.
func TestQueueingIsNotTheTools(t *testing.T) {
	s := mcptest.New(mcptest.Tool{Name: "nap", Latency: 50 * time.Millisecond}, mcptest.Tool{Name: "sleep", Latency: time.Minute})
	p := staticPool(t, upstream.Options{}, upstream.Server{Name: "s", Dial: s.Dial, Concurrency: 1})
	var wg sync.WaitGroup
	for range 30 {
		wg.Go(func() {
			if _, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: "nap", Timeout: time.Second}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	_, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: "sleep", Timeout: 100 * time.Millisecond})
	wantError(t, err, stages.Timeout, "the tool did not answer within 100ms", "ask the tool for less")
}

// TestServerTimeout: what is configured for a server counts where a stage says nothing, and is known beforehand.
func TestServerTimeout(t *testing.T) {
	s := mcptest.New(mcptest.Tool{Name: "sleep", Latency: time.Minute})
	p := staticPool(t, upstream.Options{CallTimeout: time.Hour}, upstream.Server{Name: "s", Dial: s.Dial, Timeout: 50 * time.Millisecond})
	if tool, err := p.Tool(t.Context(), "s", "sleep"); err != nil || tool.Timeout != 50*time.Millisecond {
		t.Errorf("got %+v, %v", tool, err)
	}
	_, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: "sleep"})
	wantError(t, err, stages.Timeout, "within 50ms", "")
}

// TestTooLargeForStdio: a message over the limit fails its call, and the session goes on.
func TestTooLargeForStdio(t *testing.T) {
	c := mcptest.Child(t, "suite")
	p := staticPool(t, upstream.Options{ResultMax: 1000}, upstream.Server{Name: "s", Dial: upstream.Stdio(c)})
	_, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: "big", Args: json.RawMessage(`{"bytes":3000000}`)})
	wantError(t, err, stages.LimitExceeded, "has 3000083 bytes, and at most 1051576 are taken for results of up to 1000 bytes (limit result)", "--limit result=SIZE")
	_, err = p.CallTool(t.Context(), stages.Call{Server: "s", Name: "die"}) // tells the processes apart: the first is still there
	wantError(t, err, stages.ServerUnavailable, "exit status 3", "")
}

// TestResultLimit: a result may be as large as the limit says, however many bytes its message has: there it is text with
// escapes, and structured content. One that is larger is refused with the limit and its size.
func TestResultLimit(t *testing.T) {
	size := parttest.Times(1<<15, 1<<20)
	limit := int64(30 * size)
	big := `{"list":[` + strings.Repeat(`"",`, 26*size/3) + `""]}`
	text, err := json.Marshal(big)
	if err != nil {
		t.Fatal(err)
	}
	raw := `{"content":[{"type":"text","text":` + string(text) + `}],"structuredContent":` + big + `}`
	s := mcptest.New(mcptest.Tool{Name: "big", ReadOnly: true, Raw: func(context.Context, json.RawMessage) (string, error) { return raw, nil }})
	if len(raw) < 64*size {
		t.Fatalf("the message has %d bytes only", len(raw))
	}
	for name, dial := range map[string]func(context.Context) (mcp.Transport, error){
		"in process": s.Dial, "http": upstream.HTTP(upstream.Endpoint{URL: s.HTTP(t, nil).URL}),
	} {
		for max, says := range map[int64]string{
			limit:         "",
			math.MaxInt64: "",
			limit * 5 / 6: fmt.Sprintf("more than the limit of %d (limit result)", limit*5/6),
			100 << 10:     "and at most 1355776 are taken for results of up to 102400 bytes (limit result)",
		} {
			p := staticPool(t, upstream.Options{ResultMax: max}, upstream.Server{Name: "s", Dial: dial})
			res, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: "big"})
			switch {
			case says != "":
				wantError(t, err, stages.LimitExceeded, says, "--limit result=SIZE")
			case err != nil || len(bytes.TrimSpace(res.Data)) != len(big):
				t.Errorf("%s, limit %d: %d bytes, %v", name, max, len(res.Data), err)
			}
			res.Memory.Close()
		}
	}
}

func TestBadArguments(t *testing.T) {
	s := mcptest.New(mcptest.Tool{
		Name: "get", Schema: `{"type":"object","properties":{"id":{"type":"integer"}},"required":["id"]}`,
		Do: func(map[string]any) (string, error) {
			return "", errors.New("MCP error -32602: Input validation error: id")
		},
	})
	p := mcptest.Pool(t, map[string]*mcptest.Upstream{"s": s})
	_, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: "get", Args: json.RawMessage(`{}`)})
	wantError(t, err, stages.ToolError, "Input validation error: id", "get(id: integer)")
	_, err = p.CallTool(t.Context(), stages.Call{Server: "s", Name: "get", Args: json.RawMessage(`{`)})
	wantError(t, err, stages.InvalidArguments, "not valid JSON", "")
}

func TestSources(t *testing.T) {
	s := mcptest.New(mcptest.Tool{Name: "hi", Text: "hi"})
	p := mcptest.NewPool(t, upstream.Options{Sources: []upstream.Source{
		upstream.Static{{Name: "a", Dial: s.Dial}, {Name: "", Dial: s.Dial}},
		upstream.Static{{Name: "a", Dial: s.Dial}, {Name: "b"}},
		sourceFunc(func(context.Context) ([]upstream.Server, error) { return nil, errors.New("x.json:1: it is broken") }),
	}})
	err := p.Load(t.Context())
	for _, want := range []string{"a server has no name", `server "a" is defined twice`, `server "b" has no way`, "x.json:1: it is broken"} {
		if err == nil || !contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
	if res, err := p.CallTool(t.Context(), stages.Call{Server: "a", Name: "hi"}); err != nil || string(res.Data) != "hi" {
		t.Errorf("got %q, %v", res.Data, err)
	}
	if again := p.Load(t.Context()); again == nil || again.Error() != err.Error() {
		t.Errorf("got %v the second time", again)
	}
}

// TestEverything runs server-everything, which is an npm package.
func TestEverything(t *testing.T) {
	const everything = "@modelcontextprotocol/server-everything"
	script := filepath.Join(parttest.Packages(t, everything), everything, "dist", "index.js")
	p := staticPool(t, upstream.Options{}, upstream.Server{Name: "e", Dial: upstream.Stdio(upstream.Command{
		Name: "node", Args: []string{script, "stdio"}, Lookup: os.LookupEnv,
	})})
	l := p.Catalog(t.Context())[0]
	if l.Err != nil || len(l.Tools) < 10 {
		t.Fatalf("got %d tools, %v, stderr %s", len(l.Tools), l.Err, l.Stderr)
	}
	for _, c := range []struct{ tool, args, want string }{
		{"echo", `{"message":"hé"}`, "Echo: hé"},
		{"get-sum", `{"a":1,"b":2.5}`, "The sum of 1 and 2.5 is 3.5."},
		{"get-structured-content", `{"location":"Chicago"}`, `{"temperature":36,"conditions":"Light rain / drizzle","humidity":82}`},
	} {
		res, err := p.CallTool(t.Context(), stages.Call{Server: "e", Name: c.tool, Args: json.RawMessage(c.args)})
		if err != nil || string(res.Data) != c.want {
			t.Errorf("%s: got %q, %v; want %q", c.tool, res.Data, err, c.want)
		}
	}
	_, err := p.CallTool(t.Context(), stages.Call{Server: "e", Name: "echo"})
	wantError(t, err, stages.ToolError, "-32602", "echo(message: string)")
	res, err := p.CallTool(t.Context(), stages.Call{Server: "e", Name: "get-tiny-image"})
	if err != nil || len(res.Blocks) != 3 {
		t.Errorf("got %d blocks, %v", len(res.Blocks), err)
	}
}
