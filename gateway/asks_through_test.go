package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/upstream"
)

// dialing makes a transport to a server.
type dialing = func(ctx context.Context) (mcp.Transport, error)

// childServers are the programs that tests start.
var childServers = map[string]func(){
	"host": func() { _ = host().Run(context.Background(), &mcp.StdioTransport{}) },
}

// host is a server whose tool asks for a name: of the newer era in its result, of the older one in the middle of the call.
func host() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "host", Version: "1"}, nil)
	object := json.RawMessage(`{"type":"object"}`)
	s.AddTool(&mcp.Tool{Name: "pid", InputSchema: object, Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint(os.Getpid())}}}, nil
	})
	s.AddTool(&mcp.Tool{Name: "ask", InputSchema: object}, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		var args struct{ Secret string }
		if err := json.Unmarshal(req.Params.Arguments, &args); err != nil {
			return nil, err
		}
		if r, ok := req.Params.InputResponses["q"].(*mcp.ElicitResult); ok {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf("%s: %s %v", args.Secret, r.Action, r.Content["name"])}}}, nil
		}
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"q": &mcp.ElicitParams{
			Mode: "form", Message: args.Secret,
			RequestedSchema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`),
		}}}, nil
	})
	return s
}

// hostOver reaches a host in one way.
func hostOver(protocol upstream.Protocol, dial func(t testing.TB) dialing) func(t testing.TB) upstream.Server {
	return func(t testing.TB) upstream.Server {
		return upstream.Server{Name: "host", Protocol: protocol, Asks: upstream.Asks, Dial: dial(t)}
	}
}

func hostProgram(t testing.TB) dialing { return upstream.Stdio(mcptest.Child(t, "host")) }

func hostHTTP(stateless bool) func(t testing.TB) dialing {
	return func(t testing.TB) dialing {
		s := host()
		server := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Stateless: stateless}))
		t.Cleanup(func() {
			for session := range s.Sessions() {
				session.Close() // it waits for its stream
			}
			server.CloseClientConnections()
			server.Close()
		})
		return upstream.HTTP(upstream.Endpoint{URL: server.URL})
	}
}

// TestAsksThrough: two callers with several calls each, of pipelines and of a tool by its own name, see only their own questions,
// whatever the eras of the clients and of the server are. By day clients in memory and over stdio meet a server that is a program,
// and those over HTTP one over HTTP.
func TestAsksThrough(t *testing.T) {
	t.Parallel() // it waits
	calls := parttest.Times(4, 8)
	for name, server := range map[string]func(t testing.TB) upstream.Server{
		"a program, 2025-11-25": hostOver(upstream.OnlyOlder, hostProgram),
		"a program, 2026-07-28": hostOver(upstream.NewerFirst, hostProgram),
		"HTTP, 2025-11-25":      hostOver(upstream.OnlyOlder, hostHTTP(false)),
		"HTTP, 2026-07-28":      hostOver(upstream.NewerFirst, hostHTTP(true)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for era, connect := range ways {
				if strings.Contains(era, "HTTP") != strings.HasPrefix(name, "HTTP") && !parttest.Night() {
					continue
				}
				t.Run(era, func(t *testing.T) {
					g := exposing(t, upstream.Static{server(t)}, func(_ *upstream.Options, o *gateway.Options) { o.CallerRuns = 2 * calls })
					twoCallers(t, g, connect, calls, 1, func(s *mcp.ClientSession, name string, n int) { askThrough(t, s, name, n%2 == 0) })
				})
			}
		})
	}
}

// askThrough makes the host ask, in a pipeline or by the tool's own name, and compares the answer.
func askThrough(t *testing.T, s *mcp.ClientSession, secret string, pipeline bool) {
	args := fmt.Sprintf(`{"secret":%q}`, secret)
	params := &mcp.CallToolParams{Name: "host__ask", Arguments: json.RawMessage(args)}
	if pipeline {
		params.Name, params.Arguments = "execute_pipeline", json.RawMessage(`{"pipeline":[{"type":"tool","server":"host","name":"ask","args":`+args+`}]}`)
	}
	result, err := s.CallTool(t.Context(), params)
	if err != nil {
		t.Errorf("%s: %v", params.Name, err)
		return
	}
	if got, want := replyText(result), fmt.Sprintf("%s: accept %s", secret, secret); got != want {
		t.Errorf("%s: got %s, want %s", params.Name, got, want)
	}
}

// TestOneProcess: for one client, a server is one process: its lists, pipelines, resources and prompts share it.
func TestOneProcess(t *testing.T) {
	for era, connect := range map[string]way{"2025-11-25": overStdio("2025-11-25"), "2026-07-28": overStdio("")} {
		t.Run(era, func(t *testing.T) {
			var starts atomic.Int32
			server := hostOver(upstream.OnlyOlder, hostProgram)(t)
			dial := server.Dial
			server.Dial = func(ctx context.Context) (mcp.Transport, error) { starts.Add(1); return dial(ctx) }
			g := gateway.New(gateway.Options{Upstream: mcptest.NewPool(t, upstream.Options{Sources: []upstream.Source{upstream.Static{server}}})})
			t.Cleanup(func() { g.Close(context.Background()) })
			p := &person{answer: func(*mcp.ElicitParams) (*mcp.ElicitResult, error) {
				return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "y"}}, nil
			}}
			s := connect(t, g, p.client())
			for _, c := range []struct{ tool, args, want string }{
				{"list_all_tools", `{}`, "ask"},
				{"get_tool_details", `{"tools":"host/ask"}`, "ask"},
				{"execute_pipeline", `{"mode":"check","pipeline":[{"type":"tool","server":"host","name":"ask"}]}`, "host/ask"},
				{"execute_pipeline", `{"pipeline":[{"type":"tool","server":"host","name":"ask","args":{"secret":"x"}}]}`, "x: accept y"},
			} {
				result, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: c.tool, Arguments: json.RawMessage(c.args)})
				if err != nil || !strings.Contains(replyText(result), c.want) {
					t.Errorf("%s: got %+v, %v", c.tool, result, err)
				}
			}
			_, _ = s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "mcsh://servers/host/x:1"}) // there is none
			_, _ = s.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "host__none"})
			if n := starts.Load(); n != 1 {
				t.Errorf("%d processes have started", n)
			}
		})
	}
}
