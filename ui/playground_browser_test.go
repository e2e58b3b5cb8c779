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

// inside is the editor's own document.
const inside = `document.querySelector("#editor").shadowRoot`

// write puts a text with the cursor where it has a "‸" into the editor, and asks what can be written there.
func write(p *uitest.Page, text string) {
	before, behind, _ := strings.Cut(text, "‸")
	uitest.Value[bool](p, fmt.Sprintf(`(() => { const e = document.querySelector("#editor"); e.value = %q; e.view.dispatch({selection: {anchor: %d}}); e.focus(); e.complete(); return true })()`,
		before+behind, len(before)))
}

// serveDesk starts a gateway with the demo server and one whose tool publishes a text. It answers when open is closed.
func serveDesk(t *testing.T, args ...string) (g *uitest.Gateway, open chan struct{}) {
	open = make(chan struct{})
	s := mcp.NewServer(&mcp.Implementation{Name: "desk", Version: "1"}, nil)
	s.AddTool(&mcp.Tool{Name: "publish", Description: "Publishes a text", InputSchema: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`)},
		func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			select {
			case <-open:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(req.Params.Arguments)}}}, nil
		})
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
	t.Cleanup(web.CloseClientConnections)
	config := filepath.Join(t.TempDir(), "servers.json")
	if err := os.WriteFile(config, fmt.Appendf(nil, `{"mcpServers": {"demo": {"builtin": "demo"}, "desk": {"url": %q}}}`, web.URL), 0o600); err != nil {
		t.Fatal(err)
	}
	return uitest.Serve(t, append([]string{"--config", config}, args...)...), open
}

// regionsOf is the first pipeline of the README with a mistake in it. At its end it changes something.
const regionsOf = `[{"type": "tool", "server": "demo", "name": "list_orders", "args": {"status": "open"}},
 {"type": "command", "command": "jq", "args": ["-c", ".orders | group_by(.customer_id)[] | {id: .[0].customer_id, open: length}"]},
 {"type": "command", "command": "jq", "args": ["-c", "select(.open >= 4)"]},
 {"type": "tool", "server": "demo", "name": "get_custmer", "for_each": true},
 {"type": "command", "command": "jq", "args": ["-r", ".[] | \"\\(.region) \\(.name)\""]},
 {"type": "command", "command": "sort"},
 {"type": "command", "command": "jq", "args": ["-R", "-s", "-c", "{text: .}"]},
 {"type": "tool", "server": "desk", "name": "publish"}]`

// TestPlaygroundStory: a person writes a pipeline with the help of the editor, has a mistake corrected, tries and runs it, watches
// it, looks at a stage and saves it. An agent calls it as a tool.
func TestPlaygroundStory(t *testing.T) {
	saved := t.TempDir()
	g, open := serveDesk(t, "--pipelines", saved, "--pipeline-tools", "all")
	p := uitest.Open(t, g.URL+"playground")
	p.See("#plan", "demo/list_orders")
	looks(p, "playground")
	for _, test := range []struct{ text, want string }{
		{`[‸`, "for_each"},
		{`[{"type": "‸"}]`, "parallel"},
		{`[{"type": "tool", "server": "‸"}]`, "demo"},
		{`[{"type": "tool", "server": "demo", "name": "‸"}]`, "list_orders"},
		{`[{"type": "tool", "server": "demo", "name": "list_orders", "args": {"‸"}}]`, "status"},
		{`[{"type": "tool", "server": "demo", "name": "list_orders", "args": {"status": "‸"}}]`, "shipped"},
		{`[{"type": "command", "command": "‸"}]`, "jq"},
	} {
		write(p, test.text)
		p.Until(fmt.Sprintf(`[...`+inside+`.querySelectorAll(".cm-tooltip-autocomplete li")].some((e) => e.textContent.includes(%q))`, test.want))
	}
	shoot(p, "playground-complete.png", uitest.View{Width: 1440, Height: 900})
	write(p, regionsOf)
	p.See("#plan", "get_customer")
	p.Until(inside + `.querySelector(".cm-lintRange-error")`)
	looks(p, "playground-mistake")
	press(p, "[data-fix]")
	p.Until(`document.querySelector("#editor").value.includes("get_customer")`)
	p.Until(`document.querySelectorAll("#plan .box").length >= 8 && document.querySelector("#plan .effect")`)
	press(p, "button[name=dry]")
	p.See("#result", "Dry run: stage 8")
	looks(p, "playground-dry")
	press(p, "[data-mod-enter]")
	p.See("#result", "may change something")
	looks(p, "playground-ask")
	press(p, "#result button.primary")
	p.Until(`document.querySelector("#result .box.running")?.innerText.includes("desk/publish")`)
	looks(p, "playground-live")
	close(open)
	p.See("#result", "Ben Moreau")
	looks(p, "playground-result")
	document(p, "playground.png", true)
	uitest.Value[bool](p, `(location.reload(), true)`)
	p.Until(`(document.querySelector("#editor")?.value || "").includes("desk")`) // it survives
	p.Go(g.URL + "runs")
	press(p, "#run-list tbody tr:nth-child(1) a")
	p.See("#run", "desk/publish")
	press(p, `#run .box-name[href*="stage=4"]`)
	p.See("#stage", "demo/get_customer")
	p.See("#stage", "Ben Moreau")
	press(p, `a[href^="pipelines-new"]`)
	p.Until(`document.querySelector("#editor")?.value?.includes('"description": ""')`)
	looks(p, "pipeline-new")
	uitest.Value[bool](p, `((e) => (e.value = e.value.replace('"description": ""', '"description": "Publish the regions of customers"'), document.querySelector("#new-name").value = "publish_regions", true))(document.querySelector("#editor"))`)
	press(p, "#edit-form button.primary")
	p.See("#tests", "It has no examples")
	looks(p, "pipeline")
	reply := g.Call(t, "", "publish_regions", `{}`)
	if text := texts(reply); reply.IsError || !strings.Contains(text, "Ben Moreau") {
		t.Errorf("an agent that calls it reads %q", text)
	}
	p.Go(g.URL + "runs")
	p.See("#run-list", "publish_regions")
}
