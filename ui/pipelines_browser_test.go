//go:build !race

package ui_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/mcsh-dev/mcsh/ui/uitest"
)

// parametersOf is a saved pipeline with these parameters, which gives them back.
func parametersOf(t *testing.T, description string, parameters map[string]any, required []string, examples ...any) string {
	t.Helper()
	var uses []string
	for name := range parameters {
		uses = append(uses, "$params."+name)
	}
	list := append([]any{}, examples...)
	data, err := json.Marshal(map[string]any{
		"description": description, "parameters": map[string]any{"type": "object", "required": required, "properties": parameters}, "examples": list,
		"pipeline": []any{map[string]any{"type": "command", "command": "jq", "args": []string{"-n", "-c", "[" + strings.Join(uses, ", ") + "] | length as $n | $params"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// keep writes saved pipelines into a directory.
func keep(t *testing.T, texts map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range texts {
		if err := os.WriteFile(filepath.Join(dir, name+".json"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// lookNarrow takes pictures of a page on narrow screens, and fails if it is wider than one of them.
func lookNarrow(t *testing.T, p *uitest.Page, name string) {
	t.Helper()
	looks(p, name)
	for _, width := range []int64{360, 640} {
		view := uitest.View{Width: width, Height: 740, Whole: true}
		p.Set(view)
		if wide := uitest.Value[string](p, `[...document.querySelectorAll("main *")].filter((e) => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".scroll, pre, .tabs"))
			.slice(0, 3).map((e) => e.tagName + "." + e.className + " " + e.innerText.slice(0, 40)).join("; ")`); wide != "" {
			t.Errorf("%s is wider than %d pixels: %s", name, width, wide)
		}
		shoot(p, fmt.Sprintf("%s-%d.png", name, width), view)
	}
	p.Set(uitest.View{Width: 1440, Height: 900})
}

// entered are the values that the run of the page has had, as text.
const entered = `document.querySelector("#result pre, #result .tree, #result table")?.innerText`

// TestParametersForm: somebody gives the parameters of a saved pipeline in a form, or as text; mistakes stand at their fields.
func TestParametersForm(t *testing.T) {
	dir := keep(t, map[string]string{"send": parametersOf(t, "Send a summary", map[string]any{
		"urgent": map[string]any{"type": "boolean", "description": "Whether it is sent at once"},
		"draft":  map[string]any{"type": "boolean"},
		"top":    map[string]any{"type": "integer", "minimum": 1, "default": 3, "description": "How many"},
		"state":  map[string]any{"enum": []string{"open", "paid"}},
		"labels": map[string]any{"type": "array", "items": map[string]any{"type": "string"}},
		"near":   map[string]any{"type": "object", "required": []string{"x"}, "properties": map[string]any{"x": map[string]any{"type": "number"}, "y": map[string]any{"type": "number"}}},
		"rows":   map[string]any{"type": "array", "items": map[string]any{"type": "object"}},
	}, []string{"urgent"}, map[string]any{"args": map[string]any{"urgent": true, "top": 2}}, map[string]any{"args": map[string]any{"urgent": "soon"}})})
	g := uitest.Serve(t, "--pipelines", dir)
	p := uitest.Open(t, g.URL+"pipelines/send")
	p.See("#pipeline-call", "required")
	p.See("#tests", "does not fit")
	p.Axe()
	click(p, "#run")
	p.Until(`document.querySelector('[name="a/urgent"]').getAttribute("aria-invalid") === "true"`) // not silently false
	p.Until(`document.activeElement.id === "run"`)
	choose(p, `[name="a/urgent"]`, "false")
	enter(p, `[name="a/top"]`, "0")
	click(p, "#run")
	p.Until(`document.querySelector('[name="a/top"]').closest(".field").querySelector(".wrong")?.innerText.includes("1")`)
	looks(p, "pipeline-form-wrong")
	enter(p, `[name="a/top"]`, "5")
	enter(p, `[name="a/labels"]`, "one\ntwo")
	p.Do(chromedp.KeyEvent("\t"))
	enter(p, `[name="a/near/x"]`, "1.5")
	enter(p, `[name="a/rows"]`, `[{"a":1}]`)
	click(p, "#as-json")
	p.Until(`document.querySelector("#args-json")?.value`)
	if got := uitest.Value[string](p, `JSON.stringify(JSON.parse(document.querySelector("#args-json").value))`); got != `{"urgent":false,"labels":["one","two"],"near":{"x":1.5},"rows":[{"a":1}],"top":5}` {
		t.Errorf("the form gives %s", got)
	}
	looks(p, "pipeline-json")
	choose(p, "#args-json", `{"urgent": true, "top": 4, "more": 1}`)
	click(p, "#as-form")
	p.See("#pipeline-call", "cannot show these arguments") // nothing is lost
	choose(p, "#args-json", `{"urgent": true, "near": {"x": 2}}`)
	click(p, "#as-form")
	p.Until(`document.querySelector('[name="a/near/x"]')?.value === "2"`)
	click(p, "#run")
	p.Until(entered)
	if got := uitest.Value[string](p, entered); !strings.Contains(got, "true") || !strings.Contains(got, "3") || strings.Contains(got, "draft") {
		t.Errorf("the run has the values %s", got)
	}
	looks(p, "pipeline-form")
}

// TestExamplesAreRuns: examples that are run from the page are runs of the person; one that does not fit fails alone.
func TestExamplesAreRuns(t *testing.T) {
	dir := keep(t, map[string]string{"count": parametersOf(t, "Count", map[string]any{"top": map[string]any{"type": "integer"}}, []string{},
		map[string]any{"args": map[string]any{"top": "many"}}, map[string]any{"args": map[string]any{"top": 2}, "expect": map[string]any{"jq": ".top == 2"}})})
	g := uitest.Serve(t, "--pipelines", dir)
	p := uitest.Open(t, g.URL+"pipelines/count")
	p.See("#tests", "does not fit")
	press(p, "#run-tests")
	p.See("#tests", "ok")
	p.See("#tests", "failed")
	p.Axe()
	looks(p, "pipeline-examples")
	press(p, `#tests a[href^="runs/q_"]`)
	p.See("#run", "jq")
	p.See("#output", "top")
	p.Go(g.URL + "runs")
	p.Until(`document.querySelectorAll("#run-list tbody tr").length === 1`)
	p.Go(g.URL + "pipelines/count")
	press(p, `#tests tr:nth-child(2) a[href*="args="]`)
	p.Until(`document.querySelector('[name="a/top"]')?.value === "2"`)
}

// TestBrokenPipelinePage: a broken pipeline says why, and is edited and not run.
func TestBrokenPipelinePage(t *testing.T) {
	dir := keep(t, map[string]string{"gone": `{"description": "It was good", "pipeline": [{"type": "tool", "server": "demo", "name": "gone"}], "examples": [{}]}`, "no_json": `{"pipeline": [`})
	g := uitest.Serve(t, "--pipelines", dir)
	for name, why := range map[string]string{"gone": `no tool "gone"`, "no_json": "no_json.json:1"} {
		p := uitest.Open(t, g.URL+"pipelines/"+name)
		p.See(".failure", why)
		if buttons := uitest.Value[string](p, `[...document.querySelectorAll("main button")].map((b) => b.innerText.trim()).join()`); buttons != "Remove" {
			t.Errorf("%s has the buttons %s", name, buttons)
		}
		lookNarrow(t, p, "pipeline-broken-"+name)
		press(p, `main a[href$="/edit"]`)
		p.Until(`document.querySelector("#editor")?.value?.includes("pipeline")`)
	}
}

// TestLargeParametersForm: long names, long descriptions, a hundred parameters and objects in objects fit every screen.
func TestLargeParametersForm(t *testing.T) {
	long := strings.Repeat("a_long_name_", 4)
	text := strings.TrimSpace(strings.Repeat("Some words about it, and "+evil+" more. ", 24))[:2000]
	inner := map[string]any{"type": "object", "description": text, "required": []string{"deep_" + long}, "properties": map[string]any{
		"deep_" + long: map[string]any{"type": "string", "description": "Within"}, "list": map[string]any{"type": "array", "items": map[string]any{"type": "integer"}},
		"inner": map[string]any{"type": "object", "properties": map[string]any{"x": map[string]any{"type": "number"}, "kind": map[string]any{"enum": []string{"one", strings.Repeat("long value ", 12)}}}},
	}}
	many := map[string]any{
		long: map[string]any{"type": "string", "description": text, "default": strings.Repeat("d", 300)}, "object": inner,
		"rows": map[string]any{"type": "array", "items": inner}, "any": map[string]any{},
	}
	for i := len(many); i < 100; i++ {
		many[fmt.Sprintf("p%02d", i)] = []any{map[string]any{"type": "string"}, map[string]any{"type": "integer", "description": "A number"}, map[string]any{"type": "boolean"}}[i%3]
	}
	dir := keep(t, map[string]string{long[:48]: parametersOf(t, text, many, []string{"object"})})
	g := uitest.Serve(t, "--pipelines", dir)
	p := uitest.Open(t, g.URL+"pipelines/"+long[:48])
	p.Until(`document.querySelectorAll("#pipeline-call .field").length >= 100`)
	harmless(t, p)
	lookNarrow(t, p, "pipeline-large")
	uitest.Value[bool](p, `document.querySelectorAll("details").forEach((d) => (d.open = true)) ?? true`)
	lookNarrow(t, p, "pipeline-large-open")
	p.Go(g.URL + "pipelines")
	p.See("#saved-list", long[:40])
	lookNarrow(t, p, "pipelines-large")
}
