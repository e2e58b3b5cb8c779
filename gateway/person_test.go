package gateway_test

import (
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/runs"
)

// TestPerson: a person has the runs, groups and slots of a client with the same identity.
func TestPerson(t *testing.T) {
	pool := mcptest.Pool(t, map[string]*mcptest.Upstream{"one": mcptest.New(mcptest.Tool{Name: "echo", Text: `{"said":"yes"}`, ReadOnly: true})})
	g := gateway.New(gateway.Options{Upstream: pool, Kept: runs.New(runs.Options{}), GroupsOf: func(info *auth.TokenInfo) ([]string, bool) { return nil, info.UserID == "bob" }})
	ann, bob := g.Person(&auth.TokenInfo{UserID: "ann"}, false), g.Person(&auth.TokenInfo{UserID: "bob"}, false)
	call := map[string]any{"pipeline": []any{map[string]any{"type": "tool", "server": "one", "name": "echo"}}}
	result, err := ann.Call(t.Context(), "execute_pipeline", call)
	if err != nil || result.IsError {
		t.Fatalf("%v, %v", result, err)
	}
	result, err = bob.Call(t.Context(), "execute_pipeline", call)
	if err != nil || !result.IsError || !strings.Contains(result.Content[0].(*mcp.TextContent).Text, "one") {
		t.Errorf("a person without groups calls a tool: %v, %v", result, err)
	}
	if _, err := bob.Read(t.Context(), "mcsh://servers/one/file:///x"); err == nil {
		t.Error("a person without groups reads a resource")
	}
}
