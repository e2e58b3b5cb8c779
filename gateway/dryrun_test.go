package gateway_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/runs"
	"github.com/mcsh-dev/mcsh/schemas"
	"github.com/mcsh-dev/mcsh/stages"
)

// TestDryRunText: what would be called, how often, with what, and what was left.
func TestDryRunText(t *testing.T) {
	w := newWorld(t)
	got, result := w.execute(t, `[{"type":"tool","server":"shop","name":"list_orders"},
		{"type":"command","command":"jq","args":["-c","range(1;201) | {id: .}"]},
		{"type":"tool","server":"shop","name":"delete_item","for_each":true},
		{"type":"command","command":"jq","args":["length"]}]`, "mode", "dry_run")
	const want = `Dry run: stage 3 (tool shop/delete_item) may change something, so nothing of it was called. Stages 1 to 2 before it only read and were run.
Stage 3 (tool shop/delete_item) would be called 200 times, the first 3 times with
  | {"id":1}
  | {"id":2}
  | {"id":3}
All that it would be called with:
  | === PREVIEW`
	if !strings.Contains(got, want) || !strings.Contains(got, "200 documents") || !strings.Contains(got, "Stage 4 behind it was not run.\n") || result.IsError {
		t.Errorf("got:\n%s", got)
	}
	if n := w.shop.Calls("delete_item"); n != 0 {
		t.Errorf("%d calls were made", n)
	}
	for _, budget := range []int{1, 100, 500, 1000} {
		got, _ := w.execute(t, `[{"type":"tool","server":"shop","name":"list_orders"},{"type":"preview"},
			{"type":"command","command":"jq","args":["-c","range(1;41) | {id: .}"]},{"type":"tool","server":"shop","name":"delete_item","for_each":true}]`,
			"mode", "dry_run", "max_output", budget)
		if n := len([]rune(strings.ReplaceAll(got, "\n--\n", ""))); n > budget {
			t.Errorf("budget %d: %d characters", budget, n)
		}
	}
}

// TestDryRunMistakes: an item that the tool does not take is found before anything was called.
func TestDryRunMistakes(t *testing.T) {
	w := newWorld(t)
	got, result := w.execute(t, `[{"type":"command","command":"jq","args":["-n","range(1;7) | {id: .}"]},{"type":"command","command":"sed","args":["s/6/\"six\"/"]},
		{"type":"command","command":"jq","args":["-c","."]},{"type":"tool","server":"shop","name":"delete_item","for_each":true}]`, "mode", "dry_run")
	if !strings.HasPrefix(got, "Stage 4 (tool shop/delete_item) failed at item 6") || !strings.Contains(got, "INVALID_ARGUMENTS") || !result.IsError {
		t.Errorf("got:\n%s", got)
	}
}

// TestDryRunOfExamples: whichever tools of the examples may change something, a dry run calls none of them.
func TestDryRunOfExamples(t *testing.T) {
	pipelines := map[string]string{}
	files, err := filepath.Glob("../examples/*/pipeline.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		pipelines[file] = string(text)
	}
	for _, k := range stages.Kinds() {
		pipelines[k.Name] = "[" + k.Example + "]"
	}
	sandbox := sharedSandbox(t)
	for name, pipeline := range pipelines {
		for _, readOnly := range []bool{true, false} { // the first tool alone, or none
			servers, first := recorded(t, pipeline, readOnly)
			pool := mcptest.Pool(t, servers)
			p, errs := stages.CompileFed(t.Context(), []byte(pipeline), stages.Deps{Tools: pool, Commands: sandbox, Schemas: schemas.Stages()})
			if errs != nil {
				continue // it continues from a run, or saves into a workspace, that there is not
			}
			report, err := p.Run(t.Context(), strings.NewReader(`[{"id":1,"url":"u","customer_id":"c"}]`), &strings.Builder{}, stages.RunOptions{DryRun: true})
			for server, u := range servers {
				allowed := 0
				if readOnly && strings.HasPrefix(first, server+"/") {
					allowed = u.Calls(strings.TrimPrefix(first, server+"/"))
				}
				if n := u.Calls(); n != allowed {
					t.Errorf("%s: %d calls of %s, %d of them reading (%v)", name, n, server, allowed, err)
				}
			}
			if err == nil && report.DryRun == nil {
				t.Errorf("%s: the dry run says nothing", name)
			}
		}
	}
}

// recorded makes the servers that a pipeline names, whose tools may all change something, but for the first.
func recorded(t *testing.T, pipeline string, readOnly bool) (servers map[string]*mcptest.Upstream, first string) {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(pipeline), &v); err != nil {
		t.Fatal(err)
	}
	servers = map[string]*mcptest.Upstream{}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, x := range v {
				walk(x)
			}
		case map[string]any:
			if v["type"] == "tool" {
				server, name := fmt.Sprint(v["server"]), fmt.Sprint(v["name"])
				if servers[server] == nil {
					servers[server] = mcptest.New()
				}
				reads := readOnly && (first == "" || first == server+"/"+name)
				if reads {
					first = server + "/" + name
				}
				servers[server].Add(mcptest.Tool{Name: name, ReadOnly: reads, Destructive: !reads, Text: `[{"id":1,"path":"a.md"}]`})
			}
			for _, x := range v {
				walk(x)
			}
		}
	}
	walk(v)
	return servers, first
}

// TestDryRunReadsAgain: the way to make the calls says what it reads again: tools within the stage that changes something,
// and stages whose output was too long to be kept.
func TestDryRunReadsAgain(t *testing.T) {
	const list = `{"type":"tool","server":"shop","name":"list_orders"}`
	const ids = `{"type":"command","command":"jq","args":["-c",".[] | {id}"]}`
	const read, write = `{"type":"tool","server":"shop","name":"get_item"}`, `{"type":"tool","server":"shop","name":"delete_item"}`
	const id = `{"type":"command","command":"jq","args":["-c","{id}"]}`
	for _, tt := range []struct {
		name, pipeline, want string
		keep                 int64
	}{
		{"nothing", "[" + list + "," + ids + "," + strings.Replace(write, "}", `,"for_each":true}`, 1) + "]", `To make the calls without reading again, run {"type": "from", "run": "RUN", "resume": true}`, 1 << 20},
		{
			"within a for_each", "[" + list + "," + ids + `,{"type":"for_each","stages":[` + read + "," + id + "," + write + `]},{"type":"command","command":"jq","args":["length"]}]`,
			"To make the calls, run {\"type\": \"from\", \"run\": \"RUN\", \"resume\": true}\nThat reads again: shop/get_item (2 times now).\n", 1 << 20,
		},
		{
			"within a branch", "[" + list + `,{"type":"parallel","branches":{"a":[{"type":"command","command":"jq","args":["-c","{limit: 1}"]},` + list + `],"b":[` + ids + "," + strings.Replace(write, "}", `,"for_each":true}`, 1) + "]}}]",
			"run {\"type\": \"from\", \"run\": \"RUN\", \"resume\": true}\nThat reads again: shop/list_orders (once now).\n", 1 << 20,
		},
		{"nothing is kept", "[" + list + "," + ids + "," + strings.Replace(write, "}", `,"for_each":true}`, 1) + "]", "To make the calls, run the pipeline.\n", 4},
	} {
		t.Run(tt.name, func(t *testing.T) {
			store := runs.New(runs.Options{Dir: t.TempDir(), Output: tt.keep})
			t.Cleanup(func() { store.Close() })
			w := newWorldThat(t, store)
			got, result := w.execute(t, tt.pipeline, "mode", "dry_run")
			if got = runIDs.ReplaceAllString(got, "RUN"); result.IsError || !strings.Contains(got, tt.want) {
				t.Errorf("got:\n%s\nwant %s", got, tt.want)
			}
		})
	}
}

var runIDs = regexp.MustCompile(`r_[a-z2-7]{26}`)

// TestDryRunWithoutReport: a dry run whose report lacks the stage at which it ended is still described.
func TestDryRunWithoutReport(t *testing.T) {
	text := gateway.DryRunText(stages.Report{Run: "r_1", DryRun: &stages.DryRun{Place: "2", Label: "tool demo/post", Before: 1, Resume: true}})
	if !strings.Contains(text, `"run": "r_1", "resume": true`) {
		t.Errorf("got %q", text)
	}
}
