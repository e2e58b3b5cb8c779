//go:build !race

package ui_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/ui/uitest"
)

// looks takes pictures of a page as people look at it, where somebody wants pictures, after axe-core has looked.
func looks(p *uitest.Page, name string) {
	p.Axe()
	shoot(p, name+"-light.png", uitest.View{Width: 1440, Height: 900, Whole: true})
	shoot(p, name+"-dark.png", uitest.View{Width: 1440, Height: 900, Dark: true, Whole: true})
	shoot(p, name+"-narrow.png", uitest.View{Width: 360, Height: 740, Whole: true})
	p.Set(uitest.View{Width: 1440, Height: 900})
}

// press presses what is there, or soon will be.
func press(p *uitest.Page, selector string) {
	p.Until(fmt.Sprintf(`((e) => e && (e.click(), true))(document.querySelector(%q))`, selector))
}

// run runs a pipeline as an agent, and returns the reply and the name of the run.
func run(t *testing.T, g *uitest.Gateway, pipeline string) (text, request string) {
	t.Helper()
	result := g.Call(t, "", "execute_pipeline", `{"pipeline": `+pipeline+`}`)
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
	g := uitest.Serve(t)
	p := uitest.Open(t, g.URL+"runs")
	p.See("#run-list", "Nothing has run yet")
	looks(p, "runs-empty")
	_, request := run(t, g, regions)
	_, failed := run(t, g, failing)
	run(t, g, noting)
	p.See("#run-list", "demo/get_customer")
	p.See("#run-list", "TOOL_ERROR")
	looks(p, "runs")
	uitest.Value[bool](p, `((e) => (e.value = "failed", e.dispatchEvent(new Event("change", {bubbles: true}))))(document.querySelector("select[name=state]"))`)
	p.Until(`document.querySelectorAll("#run-list tbody tr").length === 1 && location.search.includes("state=failed")`)
	p.Go(g.URL + "runs/" + request + "?stage=3#stage")
	p.See("#stage", "demo/get_customer")
	p.See("#output", "region")
	p.See(".time-line", "5 parallel")
	looks(p, "run")
	if got := uitest.Value[string](p, `fetch("runs/`+request+`/output?of=3").then((r) => r.headers.get("Content-Disposition"))`); !strings.HasPrefix(got, "attachment") {
		t.Errorf("the output is sent as %q", got)
	}
	p.Go(g.URL + "runs/" + failed + "?stage=2")
	p.See("#stage", "NotFound")
	looks(p, "run-failed")
	if got := uitest.Value[string](p, `document.querySelector("[data-copy^=mcsh]").dataset.copy`); !strings.HasPrefix(got, "mcsh run '[\n") {
		t.Errorf("the plan as a command is %q", got)
	}
	press(p, `a[href*="from=resume"]`)
	p.Until(`(document.querySelector("#editor")?.value || "").includes('"resume": true')`)
}

// inside is the editor's own document.
const inside = `document.querySelector("#editor").shadowRoot`

// write puts a text with the cursor where it has a "|" into the editor, and asks what can be written there.
func write(p *uitest.Page, text string) {
	before, behind, _ := strings.Cut(text, "‸")
	uitest.Value[bool](p, fmt.Sprintf(`(() => { const e = document.querySelector("#editor"); e.value = %q; e.view.dispatch({selection: {anchor: %d}}); e.focus(); e.complete(); return true })()`,
		before+behind, len(before)))
}

// TestPlaygroundStory: a person writes a pipeline with the help of the editor, and has a mistake corrected.
func TestPlaygroundStory(t *testing.T) {
	g := uitest.Serve(t)
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
	write(p, `[{"type": "tool", "server": "demo", "name": "list_order"}, {"type": "command", "command": "jq", "args": ["-c", ".orders | {text: \"seen\"}"]}, {"type": "tool", "server": "demo", "name": "add_note"}]`)
	p.See("#plan", "list_orders")
	p.Until(inside + `.querySelector(".cm-lintRange-error")`)
	looks(p, "playground-mistake")
	press(p, "[data-fix]")
	p.Until(`document.querySelectorAll("#plan .box").length === 3 && document.querySelector("#plan .effect")`)
}

// report is a saved pipeline with a parameter and an example.
const report = `{"description": "Orders with a state", "parameters": {"type": "object", "properties": {"state": {"enum": ["open", "paid"], "default": "open"}, "top": {"type": "integer", "minimum": 1, "default": 3}}},
 "pipeline": [{"type": "tool", "server": "demo", "name": "list_orders", "args": {"status": {"$param": "state"}}},
  {"type": "command", "command": "jq", "args": ["-c", "[.orders[:$params.top][] | {id, total}]"]}],
 "examples": [{"args": {"top": 2}, "expect": {"jq": "length == 2"}}]}`

// TestPipelinesPage: broken ones have their reason; one is run with values, tested, edited in two tabs and removed.
func TestPipelinesPage(t *testing.T) {
	saved := t.TempDir()
	g := uitest.Serve(t, "--pipelines", saved)
	p := uitest.Open(t, g.URL+"pipelines")
	p.See("#saved-list", "Nothing is saved yet")
	looks(p, "pipelines-empty")
	for name, text := range map[string]string{
		"orders":  report,
		"broken":  `{"description": "<img src=x onerror=alert(1)>", "pipeline": [{"type": "tool", "server": "demo", "name": "gone"}]}`,
		"no_json": `{"pipeline": [`,
	} {
		if err := os.WriteFile(filepath.Join(saved, name+".json"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	p.See("#saved-list", "gone")
	p.See("#saved-list", "Orders with a state")
	looks(p, "pipelines")
	p.Go(g.URL + "pipelines/orders")
	p.See(".picture", "demo/list_orders")
	uitest.Value[bool](p, `(document.querySelector("#editor").value = '{"state": "paid", "top": 1}', true)`)
	press(p, "[data-mod-enter]")
	p.See("#result #output", "total")
	press(p, "#tests button")
	p.See("#tests", "ok")
	looks(p, "pipeline-run")
	p.Go(g.URL + "pipelines/orders/edit")
	p.Until(`document.querySelector("#editor").value?.includes("Orders with a state")`)
	if err := os.WriteFile(filepath.Join(saved, "orders.json"), []byte(strings.Replace(report, "Orders with", "Somebody's orders with", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	uitest.Value[bool](p, `((e) => (e.value = e.value.replace("Orders with", "My orders with"), true))(document.querySelector("#editor"))`)
	press(p, "#edit-form button.primary")
	p.See("#saving", "Somebody else has changed it")
	p.See("#saving", "Somebody's orders")
	looks(p, "pipeline-conflict")
	p.Until(`document.querySelector("#editor").value.includes("My orders with")`) // nothing is lost
	press(p, "#edit-form button.primary")
	p.See("main", "My orders with")
	p.See("#diff", "Somebody's orders")
	looks(p, "pipeline-diff")
	press(p, `form[hx-post$="/remove"] button`)
	press(p, "#sure[open] button.danger")
	p.Until(`location.pathname.endsWith("/pipelines") && !document.querySelector("#saved-list").innerText.includes("orders")`)
}
