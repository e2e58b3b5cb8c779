package gateway_test

//lint:file-ignore SA1019 the newer revision deprecates sampling, and clients of the older one have it

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/gateway/stdio"
	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/stages"
)

// curious are tools of a server that asks in the middle of each call: the arguments say what and how often.
type curious struct {
	gateway.Unwatched
	upstream stages.Tools
}

// Tools implements [gateway.Watch].
func (c *curious) Tools(next stages.Tools) stages.Tools {
	c.upstream = next
	return c
}

// Tool implements [stages.Tools].
func (c *curious) Tool(_ context.Context, server, name string) (*stages.Tool, error) {
	return &stages.Tool{Server: server, Name: name, ReadOnly: true, Annotated: true}, nil
}

// CallTool implements [stages.Tools].
func (c *curious) CallTool(ctx context.Context, call stages.Call) (stages.Result, error) {
	args := struct {
		Method string
		Params json.RawMessage
		Times  int
		List   json.RawMessage
		Lost   bool // the question comes in a context that does not know the call
	}{Method: "elicitation/create", Times: 1}
	if err := json.Unmarshal(call.Args, &args); err != nil {
		return stages.Result{}, err
	}
	if !call.MaySend() {
		return stages.Result{}, ctx.Err()
	}
	if args.List != nil {
		return stages.Result{Data: args.List, Kind: stages.Values}, nil
	}
	if call.Asker == nil {
		return stages.Result{Data: []byte("nobody can be asked")}, nil
	}
	var answer json.RawMessage
	from := ctx
	if args.Lost {
		from = context.Background()
	}
	for range args.Times {
		var err error
		answer, err = call.Asker.Ask(from, stages.Question{Server: call.Server, Tool: call.Name, Item: call.Item, Method: args.Method, Params: args.Params})
		if ctx.Err() != nil {
			return stages.Result{}, ctx.Err()
		}
		if err != nil {
			return stages.Result{Data: []byte("refused: " + err.Error())}, nil
		}
	}
	return stages.Result{Data: answer, Kind: stages.Values}, nil
}

// curiousGateway is a gateway over curious tools.
func curiousGateway(t testing.TB, o gateway.Options) *gateway.Gateway {
	t.Helper()
	o.Upstream, o.Watch = mcptest.Pool(t, map[string]*mcptest.Upstream{"shop": mcptest.New()}), &curious{}
	g := gateway.New(o)
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		g.Close(ctx)
	})
	return g
}

// A way connects a client to a gateway.
type way = func(t testing.TB, g *gateway.Gateway, c *mcp.Client) *mcp.ClientSession

// ways are the ways of a client to a gateway, in both eras of the protocol. With another content type the gateway leaves all
// messages to the SDK.
var ways = map[string]way{
	"2025-11-25 HTTP":          overHTTP("2025-11-25", "application/json"),
	"2026-07-28 HTTP":          overHTTP("", "application/json"),
	"2025-11-25 HTTP, the SDK": overHTTP("2025-11-25", "application/json; charset=utf-8"),
	"2026-07-28 HTTP, the SDK": overHTTP("", "application/json; charset=utf-8"),
	"2025-11-25 stdio":         overStdio("2025-11-25"),
	"2026-07-28 stdio":         overStdio(""),
	"2025-11-25 in memory":     inMemory("2025-11-25"),
	"2026-07-28 in memory":     inMemory(""),
}

// typed sends a content type with each message.
type typed string

// RoundTrip implements [http.RoundTripper].
func (c typed) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if r.Method == http.MethodPost {
		r.Header.Set("Content-Type", string(c))
	}
	return http.DefaultTransport.RoundTrip(r)
}

func overHTTP(version, kind string) way {
	return func(t testing.TB, g *gateway.Gateway, c *mcp.Client) *mcp.ClientSession {
		server := httptest.NewServer(gateway.WithDeadlines(g.Handler()))
		t.Cleanup(server.Close)
		return open(t, c, &mcp.StreamableClientTransport{
			Endpoint: server.URL + "/mcp", DisableStandaloneSSE: true, HTTPClient: &http.Client{Transport: typed(kind)},
		}, version)
	}
}

func overStdio(version string) way {
	return func(t testing.TB, g *gateway.Gateway, c *mcp.Client) *mcp.ClientSession {
		in, out := io.Pipe()
		answers, answered := io.Pipe()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- stdio.Serve(ctx, stdio.Options{Server: g.Server(), In: in, Out: answered, Direct: g.Direct, Answered: g.Answered})
		}()
		t.Cleanup(func() { cancel(); out.Close(); <-ended })
		return open(t, c, &mcp.IOTransport{Reader: answers, Writer: out}, version)
	}
}

func inMemory(version string) way {
	return func(t testing.TB, g *gateway.Gateway, c *mcp.Client) *mcp.ClientSession {
		server, client := mcp.NewInMemoryTransports()
		if _, err := g.Server().Connect(t.Context(), server, nil); err != nil {
			t.Fatal(err)
		}
		return open(t, c, client, version)
	}
}

func open(t testing.TB, c *mcp.Client, transport mcp.Transport, version string) *mcp.ClientSession {
	t.Helper()
	session, err := c.Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	return session
}

// person answers the questions of a client, and keeps them.
type person struct {
	mu     sync.Mutex
	seen   []*mcp.ElicitParams
	answer func(*mcp.ElicitParams) (*mcp.ElicitResult, error)
}

func (p *person) client() *mcp.Client {
	return mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{}}},
		ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			p.mu.Lock()
			p.seen = append(p.seen, req.Params)
			p.mu.Unlock()
			return p.answer(req.Params)
		},
		CreateMessageHandler: func(_ context.Context, req *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			text := req.Params.SystemPrompt + "|" + req.Params.Messages[0].Content.(*mcp.TextContent).Text
			return &mcp.CreateMessageResult{Role: "assistant", Model: "m", Content: &mcp.TextContent{Text: text}}, nil
		},
	})
}

// ran runs a pipeline, and returns the text of the reply's last block.
func ran(t testing.TB, s *mcp.ClientSession, pipeline string) string {
	t.Helper()
	result, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "execute_pipeline", Arguments: json.RawMessage(`{"pipeline":` + pipeline + `}`)})
	if err != nil {
		t.Fatal(err)
	}
	return replyText(result)
}

func replyText(r *mcp.CallToolResult) string {
	if len(r.Content) == 0 {
		return ""
	}
	return strings.TrimSpace(r.Content[len(r.Content)-1].(*mcp.TextContent).Text)
}

// asks is a pipeline whose only stage asks.
func asks(args string) string {
	return `[{"type":"tool","server":"shop","name":"buy","args":` + args + `}]`
}

const (
	nameForm = `{"params":{"message":"Who are\u001b[2J you?\nReally?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"},"n":{"type":"integer"}},"required":["name"]}}}`
	pageURL  = `{"params":{"mode":"url","message":"Pay","url":"https://pay.example.com/x?y=1","elicitationId":"e1"}}`
)

// TestAsks: a question of a server reaches the client in the middle of the call, says who asks, and its answer comes back.
func TestAsks(t *testing.T) {
	t.Parallel() // it waits
	accept := func(content map[string]any) func(*mcp.ElicitParams) (*mcp.ElicitResult, error) {
		return func(*mcp.ElicitParams) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: content}, nil
		}
	}
	say := func(action string) func(*mcp.ElicitParams) (*mcp.ElicitResult, error) {
		return func(*mcp.ElicitParams) (*mcp.ElicitResult, error) { return &mcp.ElicitResult{Action: action}, nil }
	}
	tests := map[string]struct {
		args    string
		answer  func(*mcp.ElicitParams) (*mcp.ElicitResult, error)
		want    string
		message string // that the client has shown
	}{
		"form":                 {nameForm, accept(map[string]any{"name": "Ann", "n": 7}), `{"action":"accept","content":{"n":7,"name":"Ann"}}`, "The server \"shop\" asks for input in a call of its tool \"buy\". These are its own words:\n  | Who are\\x1b[2J you?\n  | Really?"},
		"from nowhere":         {strings.Replace(nameForm, `{"params"`, `{"lost":true,"params"`, 1), say("decline"), `{"action":"decline"}`, "The server \"shop\" asks"},
		"declined":             {nameForm, say("decline"), `{"action":"decline"}`, "The server \"shop\" asks"},
		"cancelled":            {nameForm, say("cancel"), `{"action":"cancel"}`, "The server \"shop\" asks"},
		"wrong answer":         {nameForm, accept(map[string]any{"name": 7}), `{"action":"cancel"}`, "The server \"shop\" asks"},
		"other fields":         {nameForm, accept(map[string]any{"name": "Ann", "password": "x"}), `{"action":"cancel"}`, "The server \"shop\" asks"},
		"long answer":          {nameForm, accept(map[string]any{"name": strings.Repeat("x", 65<<10)}), `{"action":"cancel"}`, "The server \"shop\" asks"},
		"failing client":       {nameForm, func(*mcp.ElicitParams) (*mcp.ElicitResult, error) { return nil, io.EOF }, `{"action":"cancel"}`, "The server \"shop\" asks"},
		"page":                 {pageURL, say("accept"), `{"action":"accept"}`, "The server \"shop\" asks you to open a page of pay.example.com in a call"},
		"page without TLS":     {`{"params":{"mode":"url","message":"Pay","url":"http://pay.example.com/"}}`, nil, "refused: the URL does not begin with https:// and a host", ""},
		"page with a user":     {`{"params":{"mode":"url","message":"Pay","url":"https://mcsh.dev@evil.example/"}}`, nil, "refused: the URL has a user's name before its host", ""},
		"page of homographs":   {`{"params":{"mode":"url","message":"Pay","url":"https://p\u0430y.example.com/"}}`, nil, "refused: the URL is not one of visible ASCII characters", ""},
		"page of a script":     {`{"params":{"mode":"url","message":"Pay","url":"javascript:alert(1)"}}`, nil, "refused: the URL does not begin with https:// and a host", ""},
		"long page":            {`{"params":{"mode":"url","message":"Pay","url":"https://x.example/` + strings.Repeat("x", 2048) + `"}}`, nil, "refused: the URL has 2066 bytes, more than 2048", ""},
		"nested form":          {`{"params":{"message":"x","requestedSchema":{"type":"object","properties":{"a":{"type":"object"}}}}}`, nil, `refused: the field "a" has the type "object"; a form has strings, numbers, integers, booleans and arrays of choices`, ""},
		"long question":        {`{"params":{"message":"` + strings.Repeat("x", 64<<10) + `"}}`, nil, "refused: the question has 65550 bytes, more than 65536", ""},
		"no parameters":        {`{}`, nil, "refused: the parameters of the question are not a JSON object", ""},
		"unknown method":       {`{"method":"roots/list","params":{}}`, nil, `refused: there are no questions of the method "roots/list" and the mode ""`, ""},
		"sampling without yes": {`{"method":"sampling/createMessage","params":{"maxTokens":5,"messages":[]}}`, nil, `refused: the client takes no questions of the method sampling/createMessage and the mode ""`, ""},
		"asked in a loop":      {strings.Replace(nameForm, `{"params"`, `{"times":80,"params"`, 1), say("decline"), `{"action":"cancel"}`, "The server \"shop\" asks"},
	}
	for era, connect := range ways {
		t.Run(era, func(t *testing.T) {
			for name, test := range tests {
				t.Run(name, func(t *testing.T) {
					if part := clientRefuses[name]; part != "" && strings.Contains(era, part) {
						t.Skip("the client of this test refuses by itself; TestAnswers sends the messages")
					}
					if strings.HasPrefix(test.want, "refused") && !strings.HasSuffix(era, "in memory") && !parttest.Night() {
						return // a question that the gateway refuses goes no way
					}
					g := curiousGateway(t, gateway.Options{})
					p := &person{answer: test.answer}
					got := ran(t, connect(t, g, p.client()), asks(test.args))
					if got != test.want {
						t.Errorf("got %s, want %s", got, test.want)
					}
					if (test.message == "") != (len(p.seen) == 0) || len(p.seen) > 0 && !strings.HasPrefix(p.seen[0].Message, test.message) {
						t.Errorf("the client has seen %d questions: %+v", len(p.seen), p.seen)
					}
					if name == "asked in a loop" && len(p.seen) != 64 {
						t.Errorf("the client has seen %d questions", len(p.seen))
					}
				})
			}
		})
	}
}

// clientRefuses names the eras in which the client of the SDK does not send an answer.
var clientRefuses = map[string]string{"wrong answer": "2026", "failing client": "2026", "asked in a loop": "2026", "long answer": "2025-11-25 HTTP"}

// TestAsksNobody: a client that has declared nothing is not asked, nor is anybody if the operator forbids it.
func TestAsksNobody(t *testing.T) {
	mute := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil)
	for era, connect := range ways {
		t.Run(era, func(t *testing.T) {
			if got := ran(t, connect(t, curiousGateway(t, gateway.Options{}), mute), asks(nameForm)); got != "nobody can be asked" {
				t.Errorf("got %s", got)
			}
			p := &person{}
			if got := ran(t, connect(t, curiousGateway(t, gateway.Options{AskTimeout: -1}), p.client()), asks(nameForm)); got != "nobody can be asked" {
				t.Errorf("got %s", got)
			}
		})
	}
}

// TestAsksModels: with sampling a server may ask the model of a client, without tools and without the client's context.
func TestAsksModels(t *testing.T) {
	const params = `"maxTokens":5,"systemPrompt":"Obey","includeContext":"allServers","messages":[{"role":"user","content":{"type":"text","text":"Hi\u001b[0m"}}]`
	tests := map[string]struct{ params, want string }{
		"text":         {params, `{"content":{"type":"text","text":"The server \"shop\" asks a model in a call of its tool \"buy\". These are its own words:\n  | Obey|Hi\\x1b[0m"},"model":"m","role":"assistant"}`},
		"with tools":   {params + `,"tools":[{"name":"x","inputSchema":{"type":"object"}}]`, "refused: a model cannot be given tools here"},
		"no messages":  {`"maxTokens":5,"messages":[]`, "refused: messages or maxTokens are missing"},
		"used tools":   {`"maxTokens":5,"messages":[{"role":"user","content":{"type":"tool_result","toolUseId":"1","content":[]}}]`, "refused: the messages have other content than texts, images and audio"},
		"not messages": {`"maxTokens":"x"`, "refused: the parameters are not those of sampling/createMessage"},
	}
	for era, connect := range ways {
		for name, test := range tests {
			if strings.HasPrefix(test.want, "refused") && !strings.HasSuffix(era, "in memory") && !parttest.Night() {
				continue
			}
			t.Run(era+" "+name, func(t *testing.T) {
				s := connect(t, curiousGateway(t, gateway.Options{Sampling: true}), (&person{}).client())
				got := ran(t, s, asks(`{"method":"sampling/createMessage","params":{`+test.params+`}}`))
				if got != test.want {
					t.Errorf("got %s\nwant %s", got, test.want)
				}
			})
		}
	}
}

// TestAsksApart: two callers with several calls of several items each see only their own questions, and each item gets its own
// answer.
func TestAsksApart(t *testing.T) {
	calls, items := parttest.Times(4, 8), parttest.Times(4, 8)
	for era, connect := range ways {
		t.Run(era, func(t *testing.T) {
			g := curiousGateway(t, gateway.Options{CallerRuns: 2 * calls})
			people := twoCallers(t, g, connect, calls, items, func(s *mcp.ClientSession, name string, _ int) { askEach(t, s, name, items) })
			for caller, p := range people {
				for _, q := range p.seen {
					if !strings.Contains(q.Message, "(item ") {
						t.Errorf("%s has seen %s", caller, q.Message)
					}
				}
			}
		})
	}
}

// twoCallers make calls at the same time, in whose middle a server asks each so many questions. The clients answer with the server's
// own words. Each sees the questions of its own calls, which begin with its name, and no others.
func twoCallers(t *testing.T, g *gateway.Gateway, connect way, calls, each int, call func(s *mcp.ClientSession, name string, n int)) map[string]*person {
	t.Helper()
	var all sync.WaitGroup
	people := map[string]*person{}
	for _, caller := range []string{"ann", "bob"} {
		p := &person{answer: func(q *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			_, own, _ := strings.Cut(q.Message, "  | ")
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": own}}, nil
		}}
		people[caller] = p
		s := connect(t, g, p.client())
		for n := range calls {
			all.Go(func() { call(s, fmt.Sprintf("%s %d", caller, n), n) })
		}
	}
	all.Wait()
	for caller, p := range people {
		for _, q := range p.seen {
			if !strings.Contains(q.Message, "  | "+caller+" ") {
				t.Errorf("%s has seen %s", caller, q.Message)
			}
		}
		if len(p.seen) != calls*each {
			t.Errorf("%s has seen %d questions", caller, len(p.seen))
		}
	}
	return people
}

// askEach runs a pipeline whose items ask, and compares the answers.
func askEach(t *testing.T, s *mcp.ClientSession, name string, items int) {
	var list, want []string
	for i := range items {
		own := fmt.Sprintf("%s %d", name, i)
		list = append(list, strings.Replace(nameForm, `Who are\u001b[2J you?\nReally?`, own, 1))
		want = append(want, fmt.Sprintf(`{"action":"accept","content":{"name":%q}}`, own))
	}
	got := ran(t, s, `[{"type":"tool","server":"shop","name":"list","args":{"list":[`+strings.Join(list, ",")+`]}},
		{"type":"tool","server":"shop","name":"buy","for_each":true}]`)
	if got != "["+strings.Join(want, ",\n")+"]" {
		t.Errorf("got %s", got)
	}
}
