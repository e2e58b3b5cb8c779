//go:build !race

package ui_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sync/errgroup"

	"github.com/mcsh-dev/mcsh/ui/uitest"
)

const (
	// oneRun is a small run.
	oneRun = `{"pipeline": [{"type": "tool", "server": "demo", "name": "get_customer", "args": {"id": "%s"}}]}`
	// lastNumber ends an output of 50 MB: the numbers from 1, a line each.
	lastNumber = 6_600_000
)

// TestLargeRuns: with 1,000 kept runs, one of 100,000 items and one with an output of 50 MB all pages stay small, and so does the browser.
func TestLargeRuns(t *testing.T) {
	g := uitest.Serve(t, "--limit", "command=5m", "--limit", "run=10m")
	agent, many := g.Agent(t, ""), errgroup.Group{}
	many.SetLimit(8)
	for i := range 1000 {
		many.Go(func() error {
			id := "c-001"
			if i == 500 {
				id = "c-none"
			}
			_, err := agent.CallTool(t.Context(), &mcp.CallToolParams{Name: "execute_pipeline", Arguments: json.RawMessage(fmt.Sprintf(oneRun, id))})
			return err
		})
	}
	if err := many.Wait(); err != nil {
		t.Fatal(err)
	}
	p := uitest.Open(t, g.URL+"runs")
	small := func(what string) {
		t.Helper()
		if n := uitest.Value[int](p, `document.querySelectorAll("*").length`); n > 4000 {
			t.Errorf("%s: the page has %d elements", what, n)
		}
		if n := uitest.Value[int](p, `document.documentElement.outerHTML.length`); n > 1<<20 {
			t.Errorf("%s: the page has %d characters", what, n)
		}
		if n := uitest.Value[int](p, `performance.memory.usedJSHeapSize`); n > 64<<20 {
			t.Errorf("%s: the scripts of the page hold %d bytes", what, n)
		}
	}
	p.Until(`document.querySelectorAll("#run-list tbody tr").length === 50`)
	small("1,000 runs")
	click(p, `#run-list a[href*="page=2"]`)
	p.Until(`location.search.includes("page=2") && document.querySelectorAll("#run-list tbody tr").length === 50`)
	enter(p, "[data-search]", "TOOL_ERROR")
	p.Until(`document.querySelectorAll("#run-list tbody tr").length === 1`)
	seen, v, name := map[string]bool{}, g.Visit(t, ""), regexp.MustCompile(`href="runs/(q_[a-z0-9]+)"`)
	for page := 1; page <= 21; page++ {
		_, text := v.Get(t, "runs?page="+strconv.Itoa(page))
		for _, m := range name.FindAllStringSubmatch(text, -1) {
			seen[m[1]] = true
		}
		if len(text) > 512<<10 {
			t.Errorf("page %d has %d bytes", page, len(text))
		}
	}
	if len(seen) != 1000 {
		t.Errorf("the pages have %d runs", len(seen))
	}
	manyItems(t, g, p, small)
	bigOutput(t, g, p, v, small)
	if most := resident(t, g); most > 700<<20 {
		t.Errorf("the gateway has taken %d bytes", most)
	}
}

// manyItems looks at a run of 100,000 items while it goes and when it has ended.
func manyItems(t *testing.T, g *uitest.Gateway, p *uitest.Page, small func(what string)) {
	done := make(chan string, 1)
	go func() {
		text, _ := run(t, g, `[{"type":"command","command":"jq","args":["-n","-c","range(100000) | {id: \"c-001\"}"]},
			{"type":"tool","server":"demo","name":"get_customer","for_each":true},{"type":"command","command":"jq","args":["length"]}]`)
		done <- text
	}()
	p.Go(g.URL + "runs?tool=get_customer&state=live")
	p.Until(`document.querySelector("#run-list tbody a")`)
	press(p, "#run-list tbody a")
	p.See("#run", "demo/get_customer")
	small("a live run of 100,000 items")
	if text := <-done; !strings.Contains(text, "100000") {
		t.Errorf("the run of 100,000 items returns %q", text)
	}
	p.Until(`document.querySelector("#run").innerText.includes("100\u202f000 items")`)
	click(p, `#run .box-name[href*="stage=2"]`)
	p.See("#stage", "Items")
	small("a run of 100,000 items")
}

// bigOutput looks at an output of 50 MB in each view, and downloads it.
func bigOutput(t *testing.T, g *uitest.Gateway, p *uitest.Page, v *uitest.Visitor, small func(what string)) {
	_, request := run(t, g, fmt.Sprintf(`[{"type": "command", "command": "jq", "args": ["-n", "range(1; %d)"]}]`, lastNumber+1))
	p.Go(g.URL + "runs/" + request)
	p.See("#output", "49.")
	for _, view := range []string{"preview", "text", "tree"} {
		click(p, fmt.Sprintf(`#output [hx-get*="view=%s"]`, view))
		p.Until(fmt.Sprintf(`document.querySelector("#output [aria-current]")?.innerText.toLowerCase() === %q`, view))
		small("an output of 50 MB as " + view)
	}
	click(p, "#output .tree > div:last-child button")
	p.Until(`document.querySelectorAll("#output .nodes > li").length === 200`)
	_, window := v.Get(t, "runs/"+request+"/result?view=text&from=40000000")
	if len(window) > 512<<10 || !strings.Contains(window, "from byte 40") {
		t.Errorf("a window in the middle has %d bytes", len(window))
	}
	want := make([]byte, 0, 52<<20)
	for n := int64(1); n <= lastNumber; n++ {
		want = append(strconv.AppendInt(want, n, 10), '\n')
	}
	if status, got := v.Get(t, "runs/"+request+"/output"); status != 200 || !bytes.Equal([]byte(got), want) {
		t.Errorf("the download has status %d and %d bytes, want %d", status, len(got), len(want))
	}
	if size := uitest.Value[string](p, fmt.Sprintf(`fetch(%q, {method: "GET"}).then((r) => (r.body.cancel(), r.headers.get("Content-Length")))`, "runs/"+url.PathEscape(request)+"/output")); size != strconv.Itoa(len(want)) {
		t.Errorf("the browser is promised %s bytes", size)
	}
}

// resident returns the most memory that a gateway has held, in bytes; 0 where the system does not say it.
func resident(t *testing.T, g *uitest.Gateway) int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", g.Command.Process.Pid))
	if err != nil {
		t.Logf("the memory of the gateway is not known: %v", err)
		return 0
	}
	found := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	if found == nil {
		return 0
	}
	kilobytes, err := strconv.ParseInt(string(found[1]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the gateway has held %d KiB", kilobytes)
	return kilobytes << 10
}
