package upstream_test

//lint:file-ignore SA1019 servers of the older era use what the newer one deprecates

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
)

var askingChildren = map[string]func(){
	"interviewer": func() { _ = interviewer().Run(context.Background(), &mcp.StdioTransport{}) },
	"blunt":       blunt,
}

// form is a question with a text.
func form(message string) *mcp.ElicitParams {
	return &mcp.ElicitParams{Mode: "form", Message: message, RequestedSchema: json.RawMessage(
		`{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`)}
}

// interviews are the tools of an interviewer. Each gets its arguments, what was answered so far, and the state.
var interviews = map[string]func(args map[string]string, said mcp.InputResponseMap, state string) *mcp.CallToolResult{
	"ask": func(args map[string]string, said mcp.InputResponseMap, _ string) *mcp.CallToolResult {
		if r, ok := said["q"].(*mcp.ElicitResult); ok {
			return says("%s: %s %v", args["secret"], r.Action, r.Content["name"])
		}
		return asks("", mcp.InputRequestMap{"q": form("the secret is " + args["secret"])})
	},
	"sample": func(_ map[string]string, said mcp.InputResponseMap, _ string) *mcp.CallToolResult {
		switch r := said["q"].(type) {
		case *mcp.CreateMessageResult:
			return says("%s", r.Content.(*mcp.TextContent).Text)
		case *mcp.CreateMessageWithToolsResult:
			return says("%s", r.Content[0].(*mcp.TextContent).Text)
		}
		return asks("", mcp.InputRequestMap{"q": &mcp.CreateMessageParams{MaxTokens: 10, Messages: []*mcp.SamplingMessage{
			{Role: "user", Content: &mcp.TextContent{Text: "a poem"}},
		}}})
	},
	"roots": func(_ map[string]string, said mcp.InputResponseMap, _ string) *mcp.CallToolResult {
		if r, ok := said["q"].(*mcp.ListRootsResult); ok && len(r.Roots) > 0 {
			return says("%s", r.Roots[0].URI)
		}
		return asks("", mcp.InputRequestMap{"q": &mcp.ListRootsParams{}})
	},
	"open": func(_ map[string]string, said mcp.InputResponseMap, _ string) *mcp.CallToolResult {
		if r, ok := said["q"].(*mcp.ElicitResult); ok {
			return says("%s", r.Action)
		}
		return asks("", mcp.InputRequestMap{"q": &mcp.ElicitParams{Mode: "url", Message: "sign in", URL: "https://example.com/in", ElicitationID: "e1"}})
	},
}

// newerInterviews ask in a way that only the newer era has.
var newerInterviews = map[string]func(args map[string]string, said mcp.InputResponseMap, state string) *mcp.CallToolResult{
	"three": func(_ map[string]string, said mcp.InputResponseMap, state string) *mcp.CallToolResult {
		if state == "kept \"exactly\" <&>" {
			return says("%v %v %v", accepted(said, "a b"), accepted(said, `"`), accepted(said, "é"))
		}
		return asks("kept \"exactly\" <&>", mcp.InputRequestMap{"a b": form("1"), `"`: form("2"), "é": form("3")})
	},
	"rounds": func(_ map[string]string, _ mcp.InputResponseMap, state string) *mcp.CallToolResult {
		if len(state) == 5 {
			return says("after %d", len(state))
		}
		return asks(state+"x", mcp.InputRequestMap{"q": form("again")})
	},
	"loop": func(map[string]string, mcp.InputResponseMap, string) *mcp.CallToolResult {
		return asks("x", mcp.InputRequestMap{"q": form("again")})
	},
	"busy": func(map[string]string, mcp.InputResponseMap, string) *mcp.CallToolResult {
		return asks("x", mcp.InputRequestMap{})
	},
	"crowd": func(map[string]string, mcp.InputResponseMap, string) *mcp.CallToolResult {
		all := mcp.InputRequestMap{}
		for i := range 17 {
			all[fmt.Sprint(i)] = form("one of many")
		}
		return asks("", all)
	},
	"long": func(map[string]string, mcp.InputResponseMap, string) *mcp.CallToolResult {
		return asks("", mcp.InputRequestMap{"q": form(strings.Repeat("x", 100<<10))})
	},
	"state": func(map[string]string, mcp.InputResponseMap, string) *mcp.CallToolResult {
		return asks(strings.Repeat("x", 1<<20), mcp.InputRequestMap{"q": form("?")})
	},
}

func says(format string, args ...any) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf(format, args...)}}}
}

func asks(state string, questions mcp.InputRequestMap) *mcp.CallToolResult {
	return &mcp.CallToolResult{RequestState: state, InputRequests: questions}
}

func accepted(said mcp.InputResponseMap, key string) any {
	if r, ok := said[key].(*mcp.ElicitResult); ok {
		return r.Content["name"]
	}
	return nil
}

// interviewer is a server whose tools ask: of the newer era in their results; in the older era the SDK asks for them.
func interviewer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "interviewer", Version: "1"}, nil)
	for _, tools := range []map[string]func(map[string]string, mcp.InputResponseMap, string) *mcp.CallToolResult{interviews, newerInterviews} {
		for name, interview := range tools {
			s.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				args := map[string]string{}
				if err := json.Unmarshal(req.Params.Arguments, &args); err != nil {
					return nil, err
				}
				return interview(args, req.Params.InputResponses, req.Params.RequestState), nil
			})
		}
	}
	s.AddTool(&mcp.Tool{Name: "first", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, &jsonrpc.Error{Code: -32042, Message: "sign in first", Data: json.RawMessage(
			`{"elicitations":[{"mode":"url","url":"https://example.com/in?a=1","elicitationId":"e"},{"url":"javascript:alert(1)"},{"url":"https://a:b@example.com/"}]}`)}
	})
	s.AddTool(&mcp.Tool{Name: "aside", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		args := map[string]string{}
		if err := json.Unmarshal(req.Params.Arguments, &args); err != nil {
			return nil, err
		}
		r, err := req.Session.Elicit(context.Background(), form("the secret is "+args["secret"])) // on no call's stream
		if err != nil {
			return nil, err
		}
		return says("%s: %s %v", args["secret"], r.Action, r.Content["name"]), nil
	})
	s.AddTool(&mcp.Tool{Name: "pid", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return says("%d", os.Getpid()), nil
	})
	s.AddPrompt(&mcp.Prompt{Name: "p"}, func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		if name := accepted(req.Params.InputResponses, "q"); name != nil {
			return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: fmt.Sprint("for ", name)}}}}, nil
		}
		return &mcp.GetPromptResult{InputRequests: mcp.InputRequestMap{"q": form("for whom?")}}, nil
	})
	s.AddResource(&mcp.Resource{URI: "x:r", Name: "r"}, func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		if name := accepted(req.Params.InputResponses, "q"); name != nil {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "x:r", Text: fmt.Sprint("read by ", name)}}}, nil
		}
		return &mcp.ReadResourceResult{InputRequests: mcp.InputRequestMap{"q": form("who reads?")}}, nil
	})
	s.AddTool(&mcp.Tool{Name: "declared", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		c := req.ClientCapabilities()
		if c == nil {
			return says("nothing"), nil
		}
		e := c.Elicitation
		return says("form %v, url %v, sampling %v", e != nil && e.Form != nil, e != nil && e.URL != nil, c.Sampling != nil), nil
	})
	return s
}

// A medium is a way to an interviewer.
type medium struct {
	name     string
	newer    bool
	dial     func(t *testing.T) upstream.Server
	inOrders bool // questions name no call
}

func media() []medium {
	child := func(t *testing.T) upstream.Server {
		return upstream.Server{Name: "s", Dial: upstream.Stdio(mcptest.Child(t, "interviewer"))}
	}
	serve := func(handler func(*mcp.Server) http.Handler, e upstream.Endpoint) func(t *testing.T) upstream.Server {
		return func(t *testing.T) upstream.Server {
			web := httptest.NewServer(handler(interviewer()))
			t.Cleanup(func() { web.CloseClientConnections(); web.Close() })
			own := e // tests that share it run at the same time
			own.URL = web.URL
			return upstream.Server{Name: "s", Dial: upstream.HTTP(own)}
		}
	}
	streamable := func(stateless bool) func(s *mcp.Server) http.Handler {
		return func(s *mcp.Server) http.Handler {
			return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Stateless: stateless})
		}
	}
	sse := func(s *mcp.Server) http.Handler {
		return mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return s }, nil)
	}
	return []medium{
		{"stdio, newer era", true, child, false},
		{"stdio, older era", false, child, true},
		{"streamable HTTP, newer era", true, serve(streamable(true), upstream.Endpoint{}), false},
		{"streamable HTTP, older era", false, serve(streamable(false), upstream.Endpoint{}), false},
		{"HTTP with SSE", false, serve(sse, upstream.Endpoint{LegacySSE: true}), true},
	}
}

// pool makes a pool with the server.
func (m medium) pool(t *testing.T, o upstream.Options, set func(*upstream.Server)) *upstream.Pool {
	t.Helper()
	s := m.dial(t)
	s.Protocol = choice(m.newer, upstream.NewerFirst, upstream.OnlyOlder)
	if set != nil {
		set(&s)
	}
	return staticPool(t, o, s)
}

func choice[T any](first bool, a, b T) T {
	if first {
		return a
	}
	return b
}

// A person answers questions and keeps them.
type person struct {
	mu   sync.Mutex
	seen []stages.Question
}

func (p *person) questions() []stages.Question {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen
}

// asker answers everything with a name.
func (p *person) asker(name string) *stages.Asker {
	return &stages.Asker{Form: true, Ask: func(_ context.Context, q stages.Question) (json.RawMessage, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.seen = append(p.seen, q)
		if q.Method != "elicitation/create" {
			return json.RawMessage(`{"role":"assistant","model":"m","content":{"type":"text","text":"` + name + `"}}`), nil
		}
		return json.RawMessage(`{"action":"accept",` + "\n" + `"content":{"name":"` + name + `"}}`), nil
	}}
}

func message(q stages.Question) string {
	var p struct{ Message string }
	_ = json.Unmarshal(q.Params, &p) // an empty one is not the one that is wanted
	return p.Message
}

// TestQuestions: what a server asks in the middle of a call comes to the caller of the call, and the answer to the server.
func TestQuestions(t *testing.T) {
	for _, m := range media() {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			p := m.pool(t, upstream.Options{}, func(s *upstream.Server) { s.Roots = []string{"file:///srv/a"} })
			for _, c := range []struct {
				tool, args string
				can        stages.Asker
				want, err  string
				asked      int
			}{
				{"ask", `{"secret":"s1"}`, stages.Asker{Form: true}, "s1: accept Ada", "", 1},
				{"ask", `{"secret":"s1"}`, stages.Asker{URL: true}, "", "", 0},
				{"sample", `{}`, stages.Asker{Sampling: true}, "Ada", "", 1},
				{"sample", `{}`, stages.Asker{Form: true}, "", "sampling", 0},
				{"open", `{}`, stages.Asker{URL: true}, "accept", "", 1},
				{"open", `{}`, stages.Asker{Form: true}, "", "", 0},
				{"roots", `{}`, stages.Asker{}, "file:///srv/a", "", 0},
				{"declared", `{}`, stages.Asker{Form: true, Sampling: true}, "form true, url false, sampling true", "", 0},
				{"declared", `{}`, stages.Asker{URL: true}, "form false, url true, sampling false", "", 0},
			} {
				who := &person{}
				c.can.Ask = who.asker("Ada").Ask
				res, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: c.tool, Item: "7", Args: json.RawMessage(c.args), Asker: &c.can})
				if c.want != "" && (err != nil || string(res.Data) != c.want) || err != nil && !strings.Contains(err.Error(), c.err) {
					t.Errorf("%s: got %q, %v; want %q, %q", c.tool, res.Data, err, c.want, c.err)
				}
				seen := who.questions()
				if len(seen) != c.asked {
					t.Errorf("%s: %d questions, want %d", c.tool, len(seen), c.asked)
				}
				for _, q := range seen {
					if q.Params = nil; q.Server != "s" || q.Tool != c.tool || q.Item != "7" {
						t.Errorf("%s: asked as %+v", c.tool, q)
					}
				}
			}
		})
	}
}

// TestNobodyToAsk: a server that asks gets no answer from a caller who has declared nothing.
func TestNobodyToAsk(t *testing.T) {
	for _, m := range media() {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			p := m.pool(t, upstream.Options{}, nil)
			if _, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: "ask", Args: json.RawMessage(`{"secret":"s1"}`)}); err == nil {
				t.Error("the call has worked")
			} else if m.newer && !strings.Contains(err.Error(), "asks for input from a person") {
				t.Errorf("got %v", err)
			}
			res, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: "declared"})
			if got := string(res.Data); err != nil || got != "form false, url false, sampling false" && got != "nothing" {
				t.Errorf("declared %q, %v", got, err)
			}
		})
	}
}

// TestTwoCallersOneServer: of two callers with eight calls each at the same time, neither sees a question of the other. Where
// questions name no call and nobody has said that the server asks, some are declined.
func TestTwoCallersOneServer(t *testing.T) {
	for _, m := range media() {
		for _, known := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, asks %v", m.name, known), func(t *testing.T) {
				t.Parallel()
				p := m.pool(t, upstream.Options{}, func(s *upstream.Server) { s.Asks = choice(known, upstream.Asks, upstream.MayAsk) })
				twice := choice(known, 1, 2)
				for round := range twice {
					certain := known || !m.inOrders || round > 0
					askTwice(t, p, "ask", certain)
				}
			})
		}
	}
}

// askTwice makes the calls of both callers. certain says that each question comes to its caller.
func askTwice(t *testing.T, p *upstream.Pool, tool string, certain bool) {
	t.Helper()
	var wg sync.WaitGroup
	for _, caller := range []string{"alice", "bob"} {
		for i := range 8 {
			wg.Go(func() {
				who, secret := &person{}, fmt.Sprintf("%s-%d", caller, i)
				res, err := p.CallTool(t.Context(), stages.Call{
					Server: "s", Name: tool, Args: json.RawMessage(`{"secret":"` + secret + `"}`), Asker: who.asker("to " + secret),
				})
				seen := who.questions()
				for _, q := range seen {
					if message(q) != "the secret is "+secret {
						t.Errorf("%s has seen %q", secret, message(q))
					}
				}
				answered := err == nil && string(res.Data) == secret+": accept to "+secret && len(seen) == 1
				declined := err == nil && string(res.Data) == secret+": cancel <nil>" && len(seen) == 0
				if !answered && (certain || !declined) {
					t.Errorf("%s: got %q, %v, after %d questions", secret, res.Data, err, len(seen))
				}
			})
		}
	}
	wg.Wait()
}

// TestQuestionsInResults: what only the newer era has, and its bounds.
func TestQuestionsInResults(t *testing.T) {
	t.Parallel() // it waits
	for _, m := range media() {
		if !m.newer {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			p := m.pool(t, upstream.Options{}, nil)
			for _, c := range []struct {
				tool, want, err string
				asked           int
			}{
				{"three", "Ada Ada Ada", "", 3},
				{"rounds", "after 5", "", 5},
				{"loop", "", "again and again", 9},
				{"busy", "", "the server is busy", 0},
				{"crowd", "", "more than 16 things at once", 0},
				{"long", "", "more than 65536 bytes", 0},
				{"state", "", "no text of at most 1048576 bytes", 0},
			} {
				who := &person{}
				res, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: c.tool, Asker: who.asker("Ada")})
				if c.err == "" && (err != nil || string(res.Data) != c.want) || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
					t.Errorf("%s: got %q, %v; want %q, %q", c.tool, res.Data, err, c.want, c.err)
				}
				if n := len(who.questions()); n != c.asked {
					t.Errorf("%s: %d questions, want %d", c.tool, n, c.asked)
				}
			}
		})
	}
}

// TestOpenFirst: the error of a server that wants addresses opened first says which, and keeps its data for other clients.
func TestOpenFirst(t *testing.T) {
	p := media()[1].pool(t, upstream.Options{}, nil)
	_, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: "first"})
	e, ok := errors.AsType[*stages.Error](err)
	if !ok || !e.Answered || !strings.Contains(e.Hint, "open https://example.com/in?a=1 in a browser") || strings.Contains(e.Hint, "alert") || strings.Contains(e.Hint, "a:b") {
		t.Fatalf("got %+v", err)
	}
	if wire, ok := errors.AsType[*jsonrpc.Error](err); !ok || wire.Code != -32042 || !strings.Contains(string(wire.Data), "elicitations") {
		t.Errorf("got %+v", wire)
	}
}

// TestDeclinedAnswers: an answer that cannot be one, and an error, cancel the question.
func TestDeclinedAnswers(t *testing.T) {
	for _, m := range media() {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			p := m.pool(t, upstream.Options{}, nil)
			for _, answer := range []string{"", "null", "[]", "{", `{"action":"maybe"}`, `{"action":"accept","content":{"name":"` + strings.Repeat("x", 1<<20) + `"}}`} {
				ask := &stages.Asker{Form: true, Ask: func(context.Context, stages.Question) (json.RawMessage, error) {
					if answer == "" {
						return nil, errors.New("the caller has gone")
					}
					return json.RawMessage(answer), nil
				}}
				res, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: "ask", Args: json.RawMessage(`{"secret":"x"}`), Asker: ask})
				if diff := cmp.Diff("x: cancel <nil>", string(res.Data)); err != nil || diff != "" {
					t.Errorf("answer %.40s: got %v, %s", answer, err, diff)
				}
			}
		})
	}
}

// TestOffersAsk: reading a resource and getting a prompt may ask, too.
func TestOffersAsk(t *testing.T) {
	for _, m := range media() {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			p, who := m.pool(t, upstream.Options{}, nil), &person{}
			gets := map[string]func() (upstream.Contents, error){
				"read by Ada": func() (upstream.Contents, error) {
					return p.Read(t.Context(), stages.Call{Server: "s", Name: "x:r", Asker: who.asker("Ada")})
				},
				"for Ada": func() (upstream.Contents, error) {
					return p.Prompt(t.Context(), stages.Call{Server: "s", Name: "p", Asker: who.asker("Ada")})
				},
			}
			if !m.newer {
				delete(gets, "read by Ada") // the server's SDK refuses to ask then
			}
			for want, get := range gets {
				c, err := get()
				if err != nil || !strings.Contains(string(c.Result), want) {
					t.Errorf("got %s, %v; want %q", c.Result, err, want)
				}
			}
			if n := len(who.questions()); n != len(gets) {
				t.Errorf("%d questions", n)
			}
			if _, err := p.Prompt(t.Context(), stages.Call{Server: "s", Name: "p"}); err == nil {
				t.Error("a prompt that asks works for who cannot be asked")
			}
		})
	}
}

// TestSessions: a server of the older era has a process for each kind of callers who call it, and only one where there is one
// kind, where the server never asks, or in the newer era.
func TestSessions(t *testing.T) {
	for _, c := range []struct {
		name string
		m    medium
		asks upstream.Asking
		want int
	}{
		{"older era", media()[1], upstream.MayAsk, 3},
		{"older era, never asks", media()[1], upstream.NeverAsks, 1},
		{"newer era", media()[0], upstream.MayAsk, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := c.m.pool(t, upstream.Options{}, func(s *upstream.Server) { s.Asks = c.asks })
			pids := map[string]bool{}
			pid := func(ctx context.Context, a *stages.Asker) string {
				t.Helper()
				res, err := p.CallTool(ctx, stages.Call{Server: "s", Name: "pid", Asker: a})
				if err != nil {
					t.Fatal(err)
				}
				pids[string(res.Data)] = true
				return string(res.Data)
			}
			form, url := &stages.Asker{Form: true}, &stages.Asker{URL: true}
			if l := p.Catalog(upstream.ForCaller(t.Context(), form)); l[0].Err != nil {
				t.Fatal(l[0].Err)
			}
			first := pid(t.Context(), form)
			p.Catalog(t.Context()) // by nobody in particular
			if again := pid(t.Context(), nil); again != first || len(pids) != 1 {
				t.Errorf("one kind of callers has the processes %v", pids)
			}
			pid(t.Context(), url)
			pid(upstream.ForCaller(t.Context(), nil), nil)
			if again := pid(t.Context(), form); again != first || len(pids) != c.want {
				t.Errorf("there are %d processes, want %d; the first one was %s, and is now %s", len(pids), c.want, first, again)
			}
		})
	}
}

// TestCallEndsQuestions: the end of a call ends its questions, and the next call sees nothing of them.
func TestCallEndsQuestions(t *testing.T) {
	for _, m := range media() {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			p := m.pool(t, upstream.Options{}, func(s *upstream.Server) { s.Asks = upstream.Asks })
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan struct{})
			never := &stages.Asker{Form: true, Ask: func(ctx context.Context, _ stages.Question) (json.RawMessage, error) {
				defer close(ended)
				cancel()
				<-ctx.Done()
				return nil, ctx.Err()
			}}
			call := stages.Call{Server: "s", Name: "ask", Args: json.RawMessage(`{"secret":"one"}`), Asker: never}
			if _, err := p.CallTool(ctx, call); !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
			<-ended
			askTwice(t, p, "ask", true)
		})
	}
}

// TestCloseEndsQuestions: a pool that closes ends the questions of its calls, and leaves nothing running.
func TestCloseEndsQuestions(t *testing.T) {
	for _, m := range media() {
		t.Run(m.name, func(t *testing.T) {
			p := m.pool(t, upstream.Options{}, nil)
			asked, done := make(chan struct{}), make(chan string)
			never := &stages.Asker{Form: true, Ask: func(ctx context.Context, _ stages.Question) (json.RawMessage, error) {
				close(asked)
				<-ctx.Done()
				return nil, ctx.Err()
			}}
			go func() {
				res, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: "ask", Args: json.RawMessage(`{"secret":"one"}`), Asker: never})
				done <- choice(err == nil, string(res.Data), "an error")
			}()
			<-asked
			if err := p.Close(); err != nil {
				t.Error(err)
			}
			if got := <-done; got != "an error" && got != "one: cancel <nil>" { // the server may answer the refusal
				t.Errorf("the call has the result %q", got)
			}
		})
	}
}

// TestAside: a server that asks on no call's stream is understood too, once it is known; until then, what is not certain is
// declined.
func TestAside(t *testing.T) {
	for _, m := range media() {
		if m.newer {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			p := m.pool(t, upstream.Options{}, nil)
			askTwice(t, p, "aside", false)
			askTwice(t, p, "aside", true)
			askTwice(t, p, "ask", true)
		})
	}
}

// TestOneStandingStream: servers allow one standing stream a session. Questions and updates of resources share it, and it lasts
// while either needs it.
func TestOneStandingStream(t *testing.T) {
	s := mcp.NewServer(&mcp.Implementation{Name: "both", Version: "1"}, &mcp.ServerOptions{
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
	})
	s.AddResource(&mcp.Resource{URI: "x:r", Name: "r"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{}, nil
	})
	s.AddTool(&mcp.Tool{Name: "aside", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		r, err := req.Session.Elicit(context.Background(), form("who?"))
		if err != nil {
			return nil, err
		}
		return says("%v", r.Content["name"]), nil
	})
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil)
	var streams atomic.Int32
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			streams.Add(1)
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { web.CloseClientConnections(); web.Close() })
	p := staticPool(t, upstream.Options{}, upstream.Server{Name: "s", Protocol: upstream.OnlyOlder, Dial: upstream.HTTP(upstream.Endpoint{URL: web.URL})})
	asked := func() {
		t.Helper()
		res, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: "aside", Asker: (&person{}).asker("Ada")})
		if err != nil || string(res.Data) != "Ada" {
			t.Errorf("got %q, %v", res.Data, err)
		}
	}
	asked()
	var r reports
	for range 2 {
		_, cancel, err := p.Subscribe(t.Context(), "mcsh://servers/s/x:r", r.of("r"))
		if err != nil {
			t.Fatal(err)
		}
		asked()
		before := r.count("r")
		if err := s.ResourceUpdated(t.Context(), &mcp.ResourceUpdatedNotificationParams{URI: "x:r"}); err != nil {
			t.Fatal(err)
		}
		r.await(t, "r", before)
		cancel()
		asked()
	}
	if n := streams.Load(); n != 1 {
		t.Errorf("there were %d standing streams", n)
	}
}
