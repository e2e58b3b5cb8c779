package observe_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/observe"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/store/storetest"
	"github.com/mcsh-dev/mcsh/upstream"
)

const list = `{"type":"tool","server":"shop","name":"numbers"}`

// A sum of what workers say may have overflown: it is not counted, and the run is.
func TestOverflow(t *testing.T) {
	w := newWorld(t, observe.Watch{}, nil)
	_, _, end := (&observe.Watch{Metrics: w.metrics}).Run(t.Context(), "q", "", stages.RunOptions{})
	end(stages.Report{Stages: []stages.StageReport{{Label: stages.Label{Kind: "command", Name: "jq"}, BytesIn: math.MinInt64, BytesOut: -1}}}, 0, false, nil)
	if got, _ := w.scrape(); got["mcsh_stages_total{type=command}"] != 1 || got["mcsh_stage_output_bytes_total{type=command}"] != 0 {
		t.Errorf("got %v", got)
	}
}

// The metrics after real runs, over HTTP, count exactly what has happened.
func TestMetrics(t *testing.T) {
	w := newWorld(t, observe.Watch{}, nil)
	agent := w.connect(nil)
	each := list + `,{"type":"tool","server":"shop","name":"echo","for_each":true,"args":{},"on_error":"skip"}`
	for _, p := range []struct {
		pipeline string
		more     []any
		failed   bool
	}{
		{pipeline: `[` + list + `]`},
		{pipeline: `[` + strings.ReplaceAll(each, `"args":{}`, `"args":{"x":1},"map":{"id":"."}`) + `]`, failed: true}, // no such field
		{pipeline: `[` + list + `,{"type":"parallel","branches":{"a":[{"type":"preview"}],"b":[{"type":"preview"}]}}]`},
		{pipeline: `[{"type":"tool","server":"shop","name":"long"}]`},
		{pipeline: `[{"type":"tool","server":"shop","name":"echo","args":{"id":2}}]`, failed: true},
		{pipeline: `[{"type":"tool","server":"shop","name":"slow","timeout":0.05}]`, failed: true},
		{pipeline: `[{"type":"tool","server":"nowhere","name":"echo"}]`, failed: true},
		{pipeline: `[` + list + `]`, more: []any{"mode", "dry_run"}},
		{pipeline: `[` + list + `]`, more: []any{"mode", "check"}},
		{pipeline: `[` + list + `]`, more: []any{"timeout", 1e9}, failed: true},
	} {
		if _, failed := w.run(agent, p.pipeline, p.more...); failed != p.failed {
			t.Errorf("%s: failed: %v", p.pipeline, failed)
		}
	}
	if res, err := http.Get(w.url + "/nothing"); err != nil {
		t.Fatal(err)
	} else {
		res.Body.Close()
	}
	got, _ := w.scrape()
	want := map[string]float64{
		`mcsh_build_info{goversion=go,revision=r,version=test}`: 1,
		`mcsh_runs_started_total{mode=run}`:                     5,
		`mcsh_runs_started_total{mode=dry_run}`:                 1,
		`mcsh_runs_finished_total{code=OK,mode=run}`:            3,
		`mcsh_runs_finished_total{code=OK,mode=dry_run}`:        1,
		`mcsh_runs_finished_total{code=TOOL_ERROR,mode=run}`:    1,
		`mcsh_runs_finished_total{code=TIMEOUT,mode=run}`:       1,
		`mcsh_runs_active`:                                                      0,
		`mcsh_run_duration_seconds{mode=run}`:                                   5,
		`mcsh_run_duration_seconds{mode=dry_run}`:                               1,
		`mcsh_calls_refused_total{code=INVALID_PIPELINE,tool=execute_pipeline}`: 1,
		`mcsh_calls_refused_total{code=UNKNOWN_SERVER,tool=execute_pipeline}`:   1,
		`mcsh_calls_refused_total{code=LIMIT_EXCEEDED,tool=execute_pipeline}`:   1,
		`mcsh_limits_reached_total{limit=run}`:                                  1,
		`mcsh_stages_total{type=tool}`:                                          6,
		`mcsh_stages_total{type=parallel}`:                                      1,
		`mcsh_stages_total{type=preview}`:                                       2,
		`mcsh_tool_calls_total{code=OK,server=shop}`:                            4,
		`mcsh_tool_calls_total{code=TOOL_ERROR,server=shop}`:                    1,
		`mcsh_tool_calls_total{code=TIMEOUT,server=shop}`:                       1,
		`mcsh_tool_call_duration_seconds{server=shop}`:                          6,
		`mcsh_tool_result_bytes_total{server=shop}`:                             3*7 + 50_000,
		`mcsh_tool_calls_active`:                                                0,
		`mcsh_replies_previewed_total`:                                          1,
		`mcsh_http_requests_total{method=GET,route=other,status=404}`:           1,
		`mcsh_server_up{server=shop}`:                                           1,
		`mcsh_servers{state=ready}`:                                             1,
		`mcsh_servers{state=failed}`:                                            0,
		`mcsh_sandbox_workers{state=in_use}`:                                    1,
		`mcsh_sandbox_workers{state=warm}`:                                      2,
		`mcsh_sandbox_workers_max`:                                              4,
		`mcsh_sandbox_queue`:                                                    3,
		`mcsh_memory_bytes{share=results}`:                                      5,
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if v, ok := got[name]; !ok || v != want[name] {
			t.Errorf("%s is %v (there: %v), want %v", name, v, ok, want[name])
		}
	}
	for _, name := range []string{
		"mcsh_output_bytes_total", "mcsh_stage_output_bytes_total{type=tool}", "mcsh_kept_runs", "mcsh_kept_bytes{where=memory}",
		"go_goroutines", "process_open_fds", "mcsh_http_requests_total{method=POST,route=/mcp,status=200}",
	} {
		if got[name] <= 0 {
			t.Errorf("%s is %v", name, got[name])
		}
	}
	if t.Failed() {
		for _, name := range slices.Sorted(maps.Keys(got)) {
			if strings.HasPrefix(name, "mcsh_") {
				t.Log(name, got[name])
			}
		}
	}
}

// The metrics are named and described as Prometheus wants it, and the document lists them all and no others.
func TestNames(t *testing.T) {
	w := newWorld(t, observe.Watch{}, nil)
	shared := observe.NewStoreMetrics()
	w.metrics.AddStore(shared)
	if err := shared.Watch(storetest.Directory(t)).Delete(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	w.run(w.connect(nil), `[`+list+`]`) // of a server that nobody has needed it is not known whether it is up
	problems, err := promlint.NewWithMetricFamilies(w.metrics.Touched()).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("promlint: %v, %v", problems, err)
	}
	var want, shown []string
	for _, f := range w.metrics.Touched() {
		if strings.HasPrefix(f.GetName(), "mcsh_") {
			shown = append(shown, f.GetName())
			names := []string{}
			for _, l := range f.Metric[0].Label {
				names = append(names, "`"+l.GetName()+"`")
			}
			want = append(want, fmt.Sprintf("| `%s` | %s | %s | %s |", f.GetName(), strings.ToLower(f.GetType().String()), strings.Join(names, " "), f.GetHelp()))
		}
	}
	if diff := cmp.Diff(w.metrics.Described(), shown); diff != "" {
		t.Errorf("this test does not see all there is (-described +seen):\n%s", diff)
	}
	page, err := os.ReadFile("../docs/observability.md")
	if err != nil {
		t.Fatal(err)
	}
	got := regexp.MustCompile("(?m)^\\| `mcsh_.*$").FindAllString(string(page), -1)
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(strings.Join(want, "\n"), strings.Join(got, "\n")); diff != "" {
		t.Errorf("the table of docs/observability.md (-registry +document):\n%s", diff)
	}
}

// TestCodes: every outcome has a code, also an error without one.
func TestCodes(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{nil, "OK"},
		{&stages.Error{Code: stages.ToolError}, "TOOL_ERROR"},
		{&stages.Error{}, "INTERNAL"},
		{context.Canceled, "CANCELLED"},
		{io.EOF, "INTERNAL"},
	} {
		if got := observe.CodeOf(c.err); got != c.want {
			t.Errorf("%v has the code %q, want %q", c.err, got, c.want)
		}
	}
}

// TestAsked: a resource that a client reads counts as a call of its server, and one of nobody as a call of others.
func TestAsked(t *testing.T) {
	s := shop()
	s.MCP().AddResource(&mcp.Resource{URI: "doc://x", Name: "x"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "doc://x", Text: "x"}}}, nil
	})
	w := newWorld(t, observe.Watch{}, map[string]*mcptest.Upstream{"shop": s})
	agent := w.connect(nil)
	for _, uri := range []string{"mcsh://servers/shop/doc://x", "mcsh://servers/shop/doc://y", "mcsh://servers/nobody/doc://x", "doc://z"} {
		_, _ = agent.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri}) // all but the first fail
	}
	got, text := w.scrape()
	for name, want := range map[string]float64{
		`mcsh_tool_calls_total{code=OK,server=shop}`:                 1,
		`mcsh_tool_calls_total{code=TOOL_ERROR,server=shop}`:         1,
		`mcsh_tool_calls_total{code=UNKNOWN_SERVER,server=other}`:    1,
		`mcsh_tool_calls_total{code=INVALID_ARGUMENTS,server=other}`: 1,
	} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v in\n%s", name, got[name], want, text)
		}
	}
}

// However hostile names are, there are no more series than there should be, and no name of a tool or of a path is one.
func TestCardinality(t *testing.T) {
	servers := map[string]*mcptest.Upstream{}
	for i := range 300 {
		servers[fmt.Sprintf("s%d\n\"}%s", i, strings.Repeat("é", 200))] = mcptest.New(mcptest.Tool{Name: canary, ReadOnly: true, Text: "1"})
	}
	w := newWorld(t, observe.Watch{}, servers)
	agent := w.connect(nil)
	for name := range servers {
		if _, failed := w.run(agent, fmt.Sprintf(`[{"type":"tool","server":%q,"name":%q}]`, name, canary)); failed {
			t.Fatalf("a call of %q failed", name)
		}
	}
	for i := range parttest.Times(30, 300) {
		w.run(agent, fmt.Sprintf(`[{"type":"%s%d"}]`, canary, i))
		w.run(agent, fmt.Sprintf(`[{"type":"tool","server":"%s%d","name":"x"}]`, canary, i))
		req, err := http.NewRequest(fmt.Sprintf("%s%d", canary, i), fmt.Sprintf("%s/%s%d", w.url, canary, i), nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
	}
	samples, text := w.scrape()
	count := 0
	for name := range samples {
		if strings.HasPrefix(name, "mcsh_tool_calls_total") {
			count++
		}
	}
	if count != 257 || samples["mcsh_tool_calls_total{code=OK,server=other}"] != 44 {
		t.Errorf("%d series of calls, want 256 servers and one for 44 others: %v", count, samples["mcsh_tool_calls_total{code=OK,server=other}"])
	}
	if len(samples) > 1200 {
		t.Errorf("%d series in all", len(samples))
	}
	if strings.Contains(text, canary) {
		t.Error("a name that is nobody's stands in the metrics")
	}
}

// The sandbox worker, which starts for every run, has nothing of all this in it.
func TestWorker(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "../cmd/mcsh-worker").Output()
	if err != nil || !strings.Contains(string(out), "mcsh/sandbox/worker\n") {
		t.Fatalf("%v: %s", err, out)
	}
	if found := regexp.MustCompile(`(?m)^.*(/mcsh/observe|prometheus|opentelemetry|grpc|zap).*$`).FindString(string(out)); found != "" {
		t.Errorf("the worker imports %s", found)
	}
}

// TestExposed: a call of a tool by a name of its own counts as a run and as a call of its server, also where the tool fails.
func TestExposed(t *testing.T) {
	w := newWorld(t, observe.Watch{}, nil)
	w.pool = mcptest.NewPool(t, upstream.Options{Sources: []upstream.Source{upstream.Static{{Name: "shop", Dial: shop().Dial, Expose: []string{"*"}}}}})
	w.serve(gateway.Options{Upstream: w.pool, Version: "test", Watch: &observe.Watch{Metrics: w.metrics, Own: gateway.ToolNames()}})
	agent := w.connect(nil)
	for _, name := range []string{"shop__ids", "shop__echo", "shop__nothing"} {
		_, _ = agent.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: map[string]any{"id": 2}}) // the last one is an error
	}
	got, text := w.scrape()
	for name, want := range map[string]float64{
		`mcsh_runs_started_total{mode=call}`:                  2,
		`mcsh_runs_finished_total{code=OK,mode=call}`:         1,
		`mcsh_runs_finished_total{code=TOOL_ERROR,mode=call}`: 1,
		`mcsh_tool_calls_total{code=OK,server=shop}`:          1,
		`mcsh_tool_calls_total{code=TOOL_ERROR,server=shop}`:  1,
	} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v in\n%s", name, got[name], want, text)
		}
	}
}
