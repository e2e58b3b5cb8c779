package cli

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/signintest"
)

// TestLoginAsked: a client that can show addresses is asked to open the page of a sign-in, and its call goes on after that; a
// client that refuses has the error with the command.
func TestLoginAsked(t *testing.T) {
	for name, c := range map[string]struct{ version, action, want string }{
		"older era":            {"2025-11-25", "accept", "hello"},
		"newer era":            {"2026-07-28", "accept", "hello"},
		"older era, a refusal": {"2025-11-25", "decline", "signed out: run mcsh login box"},
		"newer era, a refusal": {"2026-07-28", "decline", "signed out: run mcsh login box"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newAuthorizationServer(t)
			p := newPerson(t, `{"mcpServers": {"box": {"url": "`+s.URL+`/mcp"}}}`)
			path, err := exec.LookPath("mcsh")
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(path, "serve")
			cmd.Env = p.env
			var asked atomic.Int32
			client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
				Capabilities: &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{URL: &mcp.URLElicitationCapabilities{}}},
				ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					asked.Add(1)
					if r.Params.Mode != "url" || !strings.Contains(r.Params.Message, `"box"`) {
						t.Errorf("the question is %+v", r.Params)
					}
					if c.action == "accept" {
						alongside(t, func() { // after the answer, as a person does
							if _, page := signintest.Browser(t, r.Params.URL, ""); !strings.Contains(page, "You are signed in to box") {
								t.Errorf("the browser ends at %s", page)
							}
						})
					}
					return &mcp.ElicitResult{Action: c.action}, nil
				},
			})
			session, err := client.Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, &mcp.ClientSessionOptions{ProtocolVersion: c.version})
			if err != nil {
				t.Fatal(err)
			}
			defer session.Close()
			result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "execute_pipeline", Arguments: map[string]any{
				"pipeline": []any{map[string]any{"type": "tool", "server": "box", "name": "hello"}},
			}})
			if err != nil {
				t.Fatal(err)
			}
			if text := fmt.Sprint(result.Content[len(result.Content)-1].(*mcp.TextContent).Text); !strings.Contains(text, c.want) || asked.Load() != 1 {
				t.Errorf("asked %d times: %s; want %q", asked.Load(), text, c.want)
			}
		})
	}
}
