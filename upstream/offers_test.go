package upstream_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
	"github.com/mcsh-dev/mcsh/upstream/state"
)

// scripted is a server over HTTP, of the older era, whose answers a test writes. An answer is the result as JSON.
func scripted(t *testing.T, answer func(w io.Writer, method string, params json.RawMessage)) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q struct {
			ID     json.RawMessage
			Method string
			Params json.RawMessage
		}
		if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&q) != nil || q.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		out := bufio.NewWriter(w)
		defer out.Flush()
		if q.Method == "server/discover" {
			fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`, q.ID)
			return
		}
		fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":`, q.ID)
		switch q.Method {
		case "initialize":
			io.WriteString(out, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"resources":{},"prompts":{}},"serverInfo":{"name":"s","version":"1"}}`)
		case "tools/list":
			io.WriteString(out, `{"tools":[]}`)
		default:
			answer(out, q.Method, q.Params)
		}
		io.WriteString(out, "}")
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// offersOf are the keys of what a pool knows of a kind, when it knows anything.
func offersOf(t *testing.T, pool *upstream.Pool, kind upstream.Kind) []string {
	t.Helper()
	list, err := pool.OffersOf(t.Context(), "s", kind)
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, o := range list {
		keys = append(keys, o.Key)
	}
	return keys
}

// TestHostileOffers: lists of a hostile server end, are bounded, and have only what clients can read.
func TestHostileOffers(t *testing.T) {
	page := func(entries ...string) string { return `{"resources":[` + strings.Join(entries, ",") + `]}` }
	var pages atomic.Int64
	for _, test := range []struct {
		name   string
		answer func(w io.Writer)
		most   int // of the resources that are listed
		want   []string
	}{
		{"control characters, other types and repetitions", func(w io.Writer) {
			io.WriteString(w, page(`{"uri":"a:\u0001","name":"x"}`, `{"uri":"a:\n","name":"x"}`, `{"uri":7,"name":"x"}`, `{"uri":"","name":"x"}`, `5`, `{}`, `null`,
				`{"uri":"a:1"}`, `{"uri":"a:1","name":"again"}`, `{"uri":"a:2","name":7}`, `{"uri":"a:3","name":"x","size":"big"}`,
				`{"uri":"a:`+strings.Repeat("x", 5000)+`","name":"x"}`, `{"uri":"mcsh://servers/other/a:1","name":"x"}`, `{"uri":"a:4","name":"x","_meta":{"x":[`+strings.Repeat("{},", 1<<20)+`{}]}}`))
		}, 10, []string{"a:1", "mcsh://servers/other/a:1"}},
		{"a cursor that never ends", func(w io.Writer) {
			n := pages.Add(1)
			fmt.Fprintf(w, `{"resources":[{"uri":"a:%d","name":"x"}],"nextCursor":"c%d"}`, n, n)
		}, 100, nil},
		{"the same cursor", func(w io.Writer) { io.WriteString(w, `{"resources":[{"uri":"a:1","name":"x"}],"nextCursor":"c"}`) }, 1, []string{"a:1"}},
		{"very many resources", func(w io.Writer) {
			io.WriteString(w, `{"resources":[{"uri":"a:","name":"x"}`)
			for i := range parttest.Times(200_000, 1_000_000) {
				io.WriteString(w, `,{"uri":"a:`+strconv.Itoa(i)+`"}`)
			}
			io.WriteString(w, `]}`)
		}, upstream.DefaultTools, nil},
		{"no list", func(w io.Writer) { io.WriteString(w, `{"resources":"all of them"}`) }, 0, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			url := scripted(t, func(w io.Writer, method string, _ json.RawMessage) {
				if method == "resources/list" {
					test.answer(w)
				} else {
					io.WriteString(w, `{}`)
				}
			})
			pool := mcptest.NewPool(t, upstream.Options{Sources: []upstream.Source{upstream.Static{{Name: "s", Dial: upstream.HTTP(upstream.Endpoint{URL: url})}}}})
			if test.most == 0 {
				if list, err := pool.OffersOf(t.Context(), "s", upstream.Resources); err == nil {
					t.Errorf("it lists %v", list)
				}
				return
			}
			keys := offersOf(t, pool, upstream.Resources)
			if len(keys) > test.most || len(keys) == 0 || test.want != nil && !slices.Equal(keys, test.want) {
				t.Errorf("%d resources are listed, at most %d: %.200q, want %q", len(keys), test.most, keys, test.want)
			}
		})
	}
}

// TestHostileContents: a resource that is too long, endless or broken is refused while it is read.
func TestHostileContents(t *testing.T) {
	const most = 1 << 20
	for _, test := range []struct {
		name   string
		answer func(w io.Writer)
		code   stages.Code
	}{
		{"two gigabytes", func(w io.Writer) {
			io.WriteString(w, `{"contents":[{"uri":"a:1","text":"`)
			part := strings.Repeat("x", 1<<20)
			for range 2048 {
				if _, err := io.WriteString(w, part); err != nil {
					return
				}
			}
			io.WriteString(w, `"}]}`)
		}, stages.LimitExceeded},
		{"a little more than the limit", func(w io.Writer) {
			io.WriteString(w, `{"contents":[{"uri":"a:1","text":"`+strings.Repeat("x", most)+`"}]}`)
		}, stages.LimitExceeded},
		{"a question", func(w io.Writer) {
			io.WriteString(w, `{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create"}}}`)
		}, stages.ToolError},
		{"no object", func(w io.Writer) { io.WriteString(w, `[1]`) }, stages.ToolError},
		{"no contents", func(w io.Writer) { io.WriteString(w, `{}`) }, stages.ToolError},
		{"a number as contents", func(w io.Writer) { io.WriteString(w, `{"contents":5}`) }, stages.ToolError},
		{"contents of numbers", func(w io.Writer) { io.WriteString(w, `{"contents":[{"uri":"a:1"},5]}`) }, stages.ToolError},
		{"many contents", func(w io.Writer) {
			io.WriteString(w, `{"contents":[`+strings.Repeat(`{},`, 200_000)+`{}]}`)
		}, stages.LimitExceeded},
	} {
		t.Run(test.name, func(t *testing.T) {
			url := scripted(t, func(w io.Writer, method string, _ json.RawMessage) {
				if method == "resources/read" {
					test.answer(w)
				} else {
					io.WriteString(w, `{}`)
				}
			})
			pool := mcptest.NewPool(t, upstream.Options{ResultMax: most, Sources: []upstream.Source{upstream.Static{{Name: "s", Dial: upstream.HTTP(upstream.Endpoint{URL: url})}}}})
			_, err := pool.CallTool(t.Context(), stages.Call{Server: "resources", Name: "read", Args: json.RawMessage(`{"server":"s","uri":"a:1"}`)})
			if e, ok := err.(*stages.Error); !ok || e.Code != test.code {
				t.Errorf("got %v, want %s", err, test.code)
			}
		})
	}
}

// TestOffersPolicy: what the operator does not allow is neither listed nor read. Where only tools are allowed by name,
// resources and prompts stay closed.
func TestOffersPolicy(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*upstream.Server)
		listed []string
		read   string // the URIs that are read
	}{
		{"everything", func(*upstream.Server) {}, []string{"a:1", "a:2", "b:1"}, "a:1 a:2 b:1 c:1"},
		{"only tools", func(s *upstream.Server) { s.Allow = []string{"x"} }, nil, ""},
		{"denied tools", func(s *upstream.Server) { s.Deny = []string{"x"} }, []string{"a:1", "a:2", "b:1"}, "a:1 a:2 b:1 c:1"},
		{"tools and resources", func(s *upstream.Server) { s.Allow, s.Resources.Allow = []string{"x"}, []string{"a:*"} }, []string{"a:1", "a:2"}, "a:1 a:2"},
		{"fixed arguments, which resources do not have", func(s *upstream.Server) { s.With = map[string]json.RawMessage{"x": json.RawMessage(`1`)} }, []string{"a:1", "a:2", "b:1"}, "a:1 a:2 b:1 c:1"},
		{"denied", func(s *upstream.Server) { s.Resources.Deny = []string{"a:*"} }, []string{"b:1"}, "b:1 c:1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			url := scripted(t, func(w io.Writer, method string, _ json.RawMessage) {
				switch method {
				case "resources/list":
					io.WriteString(w, `{"resources":[{"uri":"a:1"},{"uri":"a:2"},{"uri":"b:1"}]}`)
				case "resources/read":
					io.WriteString(w, `{"contents":[{"uri":"a:1","text":"t"}]}`)
				default:
					io.WriteString(w, `{}`)
				}
			})
			s := upstream.Server{Name: "s", Dial: upstream.HTTP(upstream.Endpoint{URL: url})}
			test.change(&s)
			pool := mcptest.NewPool(t, upstream.Options{Sources: []upstream.Source{upstream.Static{s}}})
			if got := offersOf(t, pool, upstream.Resources); !slices.Equal(got, test.listed) {
				t.Errorf("listed are %q, want %q", got, test.listed)
			}
			var read []string
			for _, uri := range []string{"a:1", "a:2", "b:1", "c:1"} {
				c, err := pool.Read(t.Context(), stages.Call{Server: "s", Name: uri})
				if e, ok := err.(*stages.Error); ok && e.Code != stages.Denied {
					t.Errorf("%s: %v", uri, err)
				}
				if err == nil {
					read = append(read, uri)
					c.Memory.Close()
				}
			}
			if got := strings.Join(read, " "); got != test.read {
				t.Errorf("read are %q, want %q", got, test.read)
			}
		})
	}
}

// TestOffersAreKept: the next process knows what a server offers without starting it.
func TestOffersAreKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	var starts atomic.Int64
	open := func() *upstream.Pool {
		dir, err := state.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		s := mcptest.New()
		s.MCP().AddResource(&mcp.Resource{URI: "a:1", Name: "one"}, nil)
		dial := func(ctx context.Context) (mcp.Transport, error) {
			starts.Add(1)
			return s.Dial(ctx)
		}
		return mcptest.NewPool(t, upstream.Options{State: dir, Sources: []upstream.Source{upstream.Static{{Name: "s", Dial: dial}}}})
	}
	first := open()
	if got := offersOf(t, first, upstream.Resources); !slices.Equal(got, []string{"a:1"}) {
		t.Fatalf("listed are %q", got)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if n := starts.Swap(0); n == 0 {
		t.Fatal("the server was not started")
	}
	if got := open().Offers(t.Context(), upstream.Resources); len(got) != 1 || got[0].Key != "a:1" || got[0].Server != "s" {
		t.Errorf("kept are %v", got)
	}
	if n := starts.Load(); n != 0 {
		t.Errorf("the lists started the server %d times", n)
	}
	if files, err := os.ReadDir(path); err != nil || len(files) == 0 {
		t.Errorf("%d files (%v)", len(files), err)
	}
}

// TestKeptOffersPolicy: the next process may allow what this one does not, and shows it without starting the server.
func TestKeptOffersPolicy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	open := func(allowed upstream.Filter) *upstream.Pool {
		dir, err := state.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		s := mcptest.New()
		s.MCP().AddResource(&mcp.Resource{URI: "a:1", Name: "one"}, nil)
		return mcptest.NewPool(t, upstream.Options{State: dir, Sources: []upstream.Source{upstream.Static{{Name: "s", Dial: s.Dial, Resources: allowed}}}})
	}
	first := open(upstream.Filter{Deny: []string{"*"}})
	if got := offersOf(t, first, upstream.Resources); got != nil {
		t.Errorf("listed are %q", got)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if got := open(upstream.Filter{}).Offers(t.Context(), upstream.Resources); len(got) != 1 || got[0].Key != "a:1" {
		t.Errorf("kept are %v", got)
	}
}

// TestFixedArgumentsOfPrompts: prompts do not get the arguments of the operator, so they are closed where there are any.
func TestFixedArgumentsOfPrompts(t *testing.T) {
	for _, test := range []struct {
		allow []string
		want  []string
	}{{nil, nil}, {[]string{"p"}, []string{"p"}}} {
		s := mcptest.New()
		s.MCP().AddPrompt(&mcp.Prompt{Name: "p"}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{}}, nil
		})
		pool := mcptest.NewPool(t, upstream.Options{Sources: []upstream.Source{upstream.Static{{
			Name: "s", Dial: s.Dial, With: map[string]json.RawMessage{"tenant": json.RawMessage(`"a"`)}, Prompts: upstream.Filter{Allow: test.allow},
		}}}})
		if got := offersOf(t, pool, upstream.Prompts); !slices.Equal(got, test.want) {
			t.Errorf("allowed are %q: listed are %q", test.allow, got)
		}
		_, err := pool.Prompt(t.Context(), stages.Call{Server: "s", Name: "p"})
		if e, ok := err.(*stages.Error); test.want == nil && (!ok || e.Code != stages.Denied) || test.want != nil && err != nil {
			t.Errorf("allowed are %q: got %v", test.allow, err)
		}
	}
}

// TestOffersChange: a list that the server reports as changed is fetched again, and the change is reported.
func TestOffersChange(t *testing.T) {
	t.Parallel() // it waits
	s := mcptest.New()
	s.MCP().AddResource(&mcp.Resource{URI: "a:1", Name: "one"}, nil)
	pool := mcptest.Pool(t, map[string]*mcptest.Upstream{"s": s})
	changed := make(chan struct{}, 100)
	pool.OnOffers(func() { changed <- struct{}{} })
	offersOf(t, pool, upstream.Resources)
	<-changed
	s.MCP().AddResource(&mcp.Resource{URI: "a:2", Name: "two"}, nil)
	select {
	case <-changed:
	case <-time.After(time.Minute):
		t.Fatal("no change is reported")
	}
	if got := offersOf(t, pool, upstream.Resources); !slices.Equal(got, []string{"a:1", "a:2"}) {
		t.Errorf("listed are %q", got)
	}
}

// TestFaultyList: a list that hangs or is none does not lose the others, and a note says what is wrong.
func TestFaultyList(t *testing.T) {
	t.Parallel() // it waits
	done := make(chan struct{})
	for name, broken := range map[string]func(io.Writer){
		"hangs":   func(io.Writer) { <-done },
		"no list": func(w io.Writer) { io.WriteString(w, `{"resourceTemplates":"all of them"}`) },
	} {
		t.Run(name, func(t *testing.T) {
			url := scripted(t, func(w io.Writer, method string, _ json.RawMessage) {
				switch method {
				case "resources/list":
					io.WriteString(w, `{"resources":[{"uri":"a:1","name":"n"}]}`)
				case "prompts/list":
					io.WriteString(w, `{"prompts":[{"name":"p"}]}`)
				default:
					broken(w)
				}
			})
			if name == "hangs" {
				t.Cleanup(func() { close(done) })
			}
			pool := mcptest.NewPool(t, upstream.Options{
				ListTimeout: 10 * time.Second,
				Sources:     []upstream.Source{upstream.Static{{Name: "s", Dial: upstream.HTTP(upstream.Endpoint{URL: url})}}},
			})
			for kind, want := range map[upstream.Kind]string{upstream.Resources: "a:1", upstream.Prompts: "p"} {
				if got := offersOf(t, pool, kind); !slices.Equal(got, []string{want}) {
					t.Errorf("listed are %q, want %q", got, want)
				}
			}
			if list, err := pool.OffersOf(t.Context(), "s", upstream.Templates); err == nil {
				t.Errorf("the faulty list is %v", list)
			}
			const want = "the list of its templates cannot be read"
			if note := pool.Catalog(t.Context(), "s")[0].Note; !strings.Contains(note, want) {
				t.Errorf("the note is %q, want %q", note, want)
			}
		})
	}
}

// TestChangeDuringFetch: a change that the server reports while its lists are read is not lost.
func TestChangeDuringFetch(t *testing.T) {
	t.Parallel() // it waits
	s := mcptest.New()
	s.MCP().AddResource(&mcp.Resource{URI: "a:1", Name: "one"}, nil)
	var once sync.Once
	s.MCP().AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			res, err := next(ctx, method, req)
			if method == "resources/list" {
				once.Do(func() { s.MCP().AddResource(&mcp.Resource{URI: "a:2", Name: "two"}, nil) })
			}
			return res, err
		}
	})
	pool := mcptest.Pool(t, map[string]*mcptest.Upstream{"s": s})
	changed := make(chan struct{}, 100)
	pool.OnOffers(func() { changed <- struct{}{} })
	offersOf(t, pool, upstream.Resources)
	for range 2 { // nobody asks meanwhile
		select {
		case <-changed:
		case <-time.After(time.Minute):
			t.Fatal("no change is reported")
		}
	}
	if got := offersOf(t, pool, upstream.Resources); !slices.Equal(got, []string{"a:1", "a:2"}) {
		t.Errorf("listed are %q", got)
	}
}

// TestReservedNames: a server with a name of ours is an error that says how to rename it.
func TestReservedNames(t *testing.T) {
	for _, name := range []string{"resources", "pipelines"} {
		s := mcptest.New()
		pool := upstream.NewPool(upstream.Options{Sources: []upstream.Source{upstream.Static{{Name: name, Dial: s.Dial, Where: "mcp.json:3"}}}})
		err := pool.Load(t.Context())
		if want := fmt.Sprintf(`the server %q at mcp.json:3 has a reserved name: rename it, for example to "%s-server"`, name, name); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		if err := pool.Close(); err != nil {
			t.Error(err)
		}
	}
}
