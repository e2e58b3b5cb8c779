//go:build !race

package ui_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/ui/uitest"
)

// hostileServer returns the address of a server whose every text is hostile.
func hostileServer(t testing.TB) string {
	s := mcp.NewServer(&mcp.Implementation{Name: "hostile", Title: evil, Version: evil}, &mcp.ServerOptions{Instructions: evil})
	text := func(make func(args string) string) mcp.ToolHandler {
		return func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: make(string(req.Params.Arguments))}}}, nil
		}
	}
	reads := &mcp.ToolAnnotations{ReadOnlyHint: true, Title: evil}
	s.AddTool(&mcp.Tool{Name: "echo", Title: evil, Description: "Says it again. " + evil, InputSchema: json.RawMessage(wide), Annotations: reads},
		text(func(args string) string {
			return fmt.Sprintf(`[{"said":%s,"evil":%q},{"said":null,"evil":"<b>"}]`, args, evil)
		}))
	s.AddTool(&mcp.Tool{Name: "evil_text", Description: evil, InputSchema: json.RawMessage(`{"type":"object"}`), Annotations: reads}, text(func(string) string { return evil }))
	s.AddTool(&mcp.Tool{Name: "big", Description: "Twenty megabytes", InputSchema: json.RawMessage(`{"type":"object"}`), Annotations: reads}, text(func(string) string {
		return "[" + strings.Repeat(`{"name":"a row of many","values":[1,2,3],"nested":{"deep":{"deeper":"text"}}},`, 260_000) + `{"name":"the last"}]`
	}))
	s.AddTool(&mcp.Tool{Name: "wipe", Description: "Deletes everything", InputSchema: json.RawMessage(`{"type":"object"}`)}, text(func(string) string { return "wiped" }))
	s.AddResource(&mcp.Resource{URI: "file:///evil", Name: evil, Description: evil, MIMEType: "text/html"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "file:///evil", MIMEType: "text/html", Text: evil}}}, nil
	})
	s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "file:///{path}", Name: "files", Description: "Any file"}, nil)
	s.AddPrompt(&mcp.Prompt{Name: "greet", Description: evil, Arguments: []*mcp.PromptArgument{{Name: "who", Description: evil, Required: true}}},
		func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{
				{Role: "user", Content: &mcp.TextContent{Text: "Greet " + req.Params.Arguments["who"]}}, {Role: "assistant", Content: &mcp.TextContent{Text: evil}},
			}}, nil
		})
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
	t.Cleanup(web.Close)
	return web.URL
}

// serveHostile starts a gateway with the demo server, a hostile one, and one that does not start.
func serveHostile(t testing.TB, args ...string) *uitest.Gateway {
	config := filepath.Join(t.TempDir(), "servers.json")
	body := fmt.Sprintf(`{"mcpServers": {"demo": {"builtin": "demo"}, "hostile": {"url": %q},
		"a-server-with-quite-a-long-name-that-somebody-has-generated": {"command": "/nowhere/to/be/found", "args": ["--token", "s3cretword"]}}}`, hostileServer(t))
	if err := os.WriteFile(config, []byte(body), 0o600); err != nil {
		t.Fatal(err)
	}
	return uitest.Serve(t, append([]string{"--config", config}, args...)...)
}
