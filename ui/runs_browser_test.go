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
	report, _ := result.Meta["mcsh/report"].(map[string]any)
	request, _ = report["request"].(string)
	return texts(result), request
}

// texts is what a model reads of a result.
func texts(result *mcp.CallToolResult) (text string) {
	for _, block := range result.Content {
		if block, ok := block.(*mcp.TextContent); ok {
			text += block.Text
		}
	}
	return text
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
	document(p, "run.png", false)
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

// confirm presses what asks a question, and answers yes.
func confirm(p *uitest.Page, selector string) {
	p.Until(fmt.Sprintf(`document.querySelector("#sure[open]") || (document.querySelector(%q)?.click(), false)`, selector))
	press(p, "#sure[open] button.danger")
}

// endless is a pipeline that works until somebody cancels it.
const endless = `[{"type": "command", "command": "jq", "args": ["-n", "range(1; 1000000000000)"], "timeout": 600},
  {"type": "command", "command": "jq", "args": ["-c", "select(. < 0)"], "timeout": 600}]`

// TestCancelRun: a run is seen while it goes on, and the open page says that it has ended when somebody has cancelled it.
func TestCancelRun(t *testing.T) {
	g := uitest.Serve(t, "--limit", "command=10m")
	p := uitest.Open(t, g.URL+"runs")
	replies := make(chan string, 1)
	go func() {
		text, _ := run(t, g, endless)
		replies <- text
	}()
	p.See("#run-list", "running")
	press(p, "#run-list tbody a")
	p.See("#run", "Cancel")
	p.Until(`document.querySelector(".box.running")`)
	looks(p, "run-live")
	confirm(p, "#run button.danger")
	p.See("#run", "cancelled")
	if text := <-replies; !strings.Contains(text, "the operator of the gateway has cancelled it") {
		t.Errorf("the agent reads %q", text)
	}
}

// holding keeps the answers that the page gets until release is called.
const holding = `(() => { const send = XMLHttpRequest.prototype.send; window.held = [];
XMLHttpRequest.prototype.send = function (...body) { const done = this.onload; this.onload = (e) => held.push(() => done.call(this, e)); send.apply(this, body); };
window.release = () => { XMLHttpRequest.prototype.send = send; held.forEach((answer) => answer()); return true; };
window.news = 0; new EventSource("events?topic=runs").addEventListener("changed", () => news++); return true })()`

// TestLateAnswer: a page whose answer is older than the end of the run asks once more, although nothing more happens.
func TestLateAnswer(t *testing.T) {
	g := uitest.Serve(t, "--limit", "command=10m")
	p := uitest.Open(t, g.URL+"runs")
	ended := make(chan bool)
	go func() {
		run(t, g, endless)
		close(ended)
	}()
	p.See("#run-list", "running")
	press(p, "#run-list tbody a")
	p.See("#run", "Cancel")
	uitest.Value[bool](p, holding)
	p.Until("held.length > 0") // it says that the run goes on
	uitest.Value[int](p, `fetch(location.pathname + "/cancel", {method: "POST", headers: JSON.parse(document.body.getAttribute("hx-headers"))}).then((r) => r.status)`)
	<-ended
	uitest.Value[bool](p, `(window.before = news, true)`)
	run(t, g, `[{"type": "command", "command": "jq", "args": ["-n", "1"]}]`)
	p.Until("news > before") // the page hears of the last change before it has the answer
	uitest.Value[bool](p, "release()")
	p.See("#run", "cancelled")
}

// report is a saved pipeline with a parameter and an example.
const report = `{"description": "Orders with a state", "parameters": {"type": "object", "properties": {"state": {"enum": ["open", "paid"], "default": "open", "description": "The state of the orders"}, "top": {"type": "integer", "minimum": 1, "default": 3, "description": "How many, at most"}}},
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
	choose(p, `[name="a/state"]`, `"paid"`)
	choose(p, `[name="a/top"]`, "1")
	press(p, "#run")
	p.See("#result #output", "total")
	press(p, "#run-tests")
	p.See("#tests", "ok")
	looks(p, "pipeline-run")
	uitest.Value[bool](p, `(scrollTo(0, 0), true)`)
	document(p, "pipeline.png", false)
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
	confirm(p, `form[hx-post$="/remove"] button`)
	p.Until(`location.pathname.endsWith("/pipelines") && !document.querySelector("#saved-list").innerText.includes("orders")`)
}

// TestTwoTabs: of two tabs that edit one pipeline the second one to save is shown what the first has changed, and keeps its text.
func TestTwoTabs(t *testing.T) {
	saved := t.TempDir()
	if err := os.WriteFile(filepath.Join(saved, "orders.json"), []byte(report), 0o644); err != nil {
		t.Fatal(err)
	}
	g := uitest.Serve(t, "--pipelines", saved)
	one, two := uitest.Open(t, g.URL+"pipelines/orders/edit"), uitest.Open(t, g.URL+"pipelines/orders/edit")
	for tab, name := range map[*uitest.Page]string{one: "First", two: "Second"} {
		tab.Until(`document.querySelector("#editor").value?.includes("Orders with")`)
		uitest.Value[bool](tab, fmt.Sprintf(`((e) => (e.value = e.value.replace("Orders with", "%s orders with"), true))(document.querySelector("#editor"))`, name))
	}
	press(one, "#edit-form button.primary")
	one.See("main", "First orders with")
	press(two, "#edit-form button.primary")
	two.See("#saving", "Somebody else has changed it")
	two.See("#saving .diff", "First orders with")
	two.Until(`document.querySelector("#editor").value.includes("Second orders with")`)
	if text, err := os.ReadFile(filepath.Join(saved, "orders.json")); err != nil || !strings.Contains(string(text), "First orders with") {
		t.Errorf("the file is %q (%v)", text, err)
	}
	press(two, "#edit-form button.primary")
	two.See("main", "Second orders with")
	two.See("#diff", "First orders with")
}

// TestRestartWhileWriting: a page with a text that nobody has saved says that the gateway has restarted, and keeps the text.
func TestRestartWhileWriting(t *testing.T) {
	saved := t.TempDir()
	if err := os.WriteFile(filepath.Join(saved, "orders.json"), []byte(report), 0o644); err != nil {
		t.Fatal(err)
	}
	g := uitest.Serve(t, "--pipelines", saved)
	p := uitest.Open(t, g.URL+"pipelines/orders/edit")
	p.Allow("ERR_")  // requests to a gateway that has ended
	p.Allow("htmx:") // its words about them
	p.Until(`document.querySelector("#editor").value?.includes("Orders with")`)
	uitest.Value[bool](p, `((e) => (e.value = e.value.replace("Orders with", "My orders with"), true))(document.querySelector("#editor"))`)
	form := uitest.Open(t, g.URL+"pipelines/orders")
	form.Allow("ERR_")
	form.Allow("htmx:") // its words about them
	enter(form, `[name="a/top"]`, "7")
	g.End()
	p.See("#banner", "does not answer")
	uitest.ServeAt(t, strings.TrimSuffix(strings.TrimPrefix(g.URL, "http://"), "/"), g.State, "--pipelines", saved)
	p.See("#banner", "has restarted")
	p.Until(`document.querySelector("#editor").value.includes("My orders with")`)
	form.See("#banner", "has restarted")
	form.Until(`document.querySelector('[name="a/top"]').value === "7"`)
}
