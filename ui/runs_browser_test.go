package ui_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/ui/uitest"
)

// shots takes pictures of a page where a person wants them.
func shots(p *uitest.Page, name string) {
	dir := os.Getenv("UITEST_SHOTS")
	if dir == "" {
		return
	}
	p.Screenshot(filepath.Join(dir, name+"-light.png"), uitest.View{Width: 1440, Height: 900, Whole: true})
	p.Screenshot(filepath.Join(dir, name+"-dark.png"), uitest.View{Width: 1440, Height: 900, Dark: true, Whole: true})
	p.Screenshot(filepath.Join(dir, name+"-narrow.png"), uitest.View{Width: 360, Height: 740, Whole: true})
	p.Set(uitest.View{Width: 1440, Height: 900})
}

// agent is an MCP client of a gateway.
func agent(t *testing.T, g *uitest.Gateway) *mcp.ClientSession {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: g.MCP}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	return session
}

// run runs a pipeline as an agent, and returns the reply and the name of the run.
func run(ctx context.Context, t *testing.T, s *mcp.ClientSession, pipeline string) (text, request string) {
	t.Helper()
	result, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "execute_pipeline", Arguments: map[string]any{"pipeline": json.RawMessage(pipeline)}})
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range result.Content {
		if block, ok := block.(*mcp.TextContent); ok {
			text += block.Text
		}
	}
	report, _ := result.Meta["mcsh/report"].(map[string]any)
	request, _ = report["request"].(string)
	return text, request
}

const (
	regions = `[{"type": "tool", "server": "demo", "name": "list_orders"},
  {"type": "command", "command": "jq", "args": ["-c", "[.orders[:30][] | {id: .customer_id}]"]},
  {"type": "tool", "server": "demo", "name": "get_customer", "for_each": true, "on_error": "skip", "retries": 1},
  {"type": "preview"},
  {"type": "parallel", "branches": {"regions": [{"type": "command", "command": "jq", "args": ["-c", "group_by(.region) | map({region: .[0].region, count: length})"]}], "count": [{"type": "command", "command": "jq", "args": ["length"]}]}}]`
	failing = `[{"type": "command", "command": "jq", "args": ["-n", "\"c-001\", \"c-999\", \"c-002\""]},
  {"type": "tool", "server": "demo", "name": "get_customer", "for_each": true, "concurrency": 1}, {"type": "command", "command": "jq", "args": ["length"]}]`
	noting = `[{"type": "command", "command": "jq", "args": ["-n", "range(3) | {text: \"note \\(.)\"}"]},
  {"type": "for_each", "stages": [{"type": "tool", "server": "demo", "name": "add_note"}, {"type": "command", "command": "jq", "args": [".id"]}]}]`
)

// TestRunsPage: the list shows runs as they come, filters them, and leads to one, whose stages can be looked at.
func TestRunsPage(t *testing.T) {
	g := uitest.Serve(t, "--console-results")
	p := uitest.Open(t, g.URL+"runs")
	p.See("#run-list", "Nothing has run yet")
	p.Axe()
	shots(p, "runs-empty")
	a := agent(t, g)
	_, request := run(t.Context(), t, a, regions)
	_, failed := run(t.Context(), t, a, failing)
	run(t.Context(), t, a, noting)
	p.See("#run-list", "demo/get_customer")
	p.See("#run-list", "TOOL_ERROR")
	p.Axe()
	shots(p, "runs")
	p.Go(g.URL + "runs?state=failed")
	p.Until(`document.querySelectorAll("#run-list tbody tr").length === 1`)
	p.Go(g.URL + "runs/" + request)
	p.See("#run", "demo/list_orders")
	p.Axe()
	shots(p, "run")
	p.Go(g.URL + "runs/" + request + "?stage=3&as=table#stage")
	p.See("#stage", "demo/get_customer")
	p.Axe()
	shots(p, "run-stage")
	p.Go(g.URL + "runs/" + failed + "?stage=2")
	p.See("#stage", "NotFound")
	p.Axe()
	shots(p, "run-failed")
	if got := uitest.Value[string](p, `document.querySelector("[data-copy^=mcsh]").dataset.copy`); !strings.HasPrefix(got, "mcsh run '[\n") {
		t.Errorf("the plan as a command is %q", got)
	}
}

// TestPlaygroundPage: a mistake and its fix, a dry run, a run.
func TestPlaygroundPage(t *testing.T) {
	g := uitest.Serve(t)
	p := uitest.Open(t, g.URL+"playground")
	p.See("#plan", "demo/list_orders")
	p.Axe()
	shots(p, "playground")
	uitest.Value[bool](p, `document.querySelector("#editor").value = '[{"type": "tool", "server": "demo", "name": "add_nate", "args": {"text": "x"}}]', true`)
	p.See("#plan", `did you mean "add_note"?`)
	p.Axe()
	shots(p, "playground-mistake")
	uitest.Value[bool](p, `document.querySelector("[data-fix]").click(), true`)
	p.See("#plan", "changes")
	uitest.Value[bool](p, `document.querySelector("[data-mod-enter]").click(), true`)
	p.See("#result", "may change something")
	p.Axe()
	shots(p, "playground-ask")
	uitest.Value[bool](p, `document.querySelector("#result button.primary").click(), true`)
	p.See("#result", `"text":"x"`)
	p.Axe()
	shots(p, "playground-result")
}
