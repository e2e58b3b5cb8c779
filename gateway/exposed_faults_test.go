package gateway_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/upstream"
)

// TestExposedFaults: an error of a server's protocol comes to clients as a result with isError, with a code and without secrets.
func TestExposedFaults(t *testing.T) {
	wrong := func(code int, data string) string {
		return fmt.Sprintf(`"error":{"code":%d,"message":"the key s3cret-word is bad","data":%s}`, code, data)
	}
	type request = mcptest.TaskRequest
	fail := func(method string, code int, data string) func(request) string {
		return func(r request) string {
			if r.Method == method {
				return wrong(code, data)
			}
			return ""
		}
	}
	// The first session lists the tools, and ends with the first call.
	again := func(method, first, reply string) func(request) string {
		return func(r request) string {
			switch {
			case r.Method == "tools/call":
				return first
			case r.Method == method && r.N > 1:
				return reply
			}
			return ""
		}
	}
	const data = `{"token":"s3cret-word"}`
	const pages = `{"elicitations":[{"mode":"url","url":"https://example.com/in","elicitationId":"s3cret-word"}]}`
	for name, test := range map[string]struct {
		reply func(request) string
		want  string // a part of one of the results
	}{
		"a refused call":    {fail("tools/call", -32000, data), "TOOL_ERROR\n  | the key *** is bad"},
		"pages to open":     {fail("tools/call", -32042, pages), "Try: the server asks somebody who trusts it to open https://example.com/in in a browser"},
		"a refused state":   {fail("tasks/get", -32000, data), "the key ***"},
		"a refused result":  {fail("tasks/result", -32603, data), "the key ***"},
		"a refused session": {fail("initialize", -32000, data), "refused the session: the key ***"},
		"a refused list":    {again("tools/list", wrong(-32602, data), wrong(-32000, data)), "the key ***"},
		"a lost connection": {again("initialize", mcptest.Drop, mcptest.Drop), "SERVER_UNAVAILABLE"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &mcptest.Tasks{Reply: test.reply}
			server := s.Serve(t)
			server.Secrets = []string{"s3cret-word"}
			first := mcptest.New(mcptest.Tool{Name: "look", ReadOnly: true})
			if name == "a refused session" { // not the first one, in which the gateway reads the list
				var dials atomic.Int32
				second := server.Dial
				server.Dial = func(ctx context.Context) (mcp.Transport, error) {
					if dials.Add(1) == 1 {
						return first.Dial(ctx)
					}
					return second(ctx)
				}
			}
			agent := connect(t, exposing(t, upstream.Static{server}, nil), newClient())
			for session := range first.MCP().Sessions() {
				session.Close()
			}
			var all []string
			for range 3 {
				res, err := agent.CallTool(t.Context(), &mcp.CallToolParams{Name: "tasks__look"})
				if err != nil {
					t.Fatalf("the client gets the error %v", err)
				}
				text := replyText(res)
				if !res.IsError || !strings.HasPrefix(text, "tasks__look failed: ") || strings.Contains(text, "s3cret") {
					t.Errorf("got %q", text)
				}
				all = append(all, text)
			}
			if text := strings.Join(all, "\n"); !strings.Contains(text, test.want) {
				t.Errorf("got %q, want %q", text, test.want)
			}
		})
	}
}
