package gateway_test

import (
	"context"
	"errors"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
)

// reached is a watch that takes note of the limits that errors are of.
type reached struct {
	mu     sync.Mutex
	limits []string
}

func (r *reached) Tools(next stages.Tools) stages.Tools { return next }

func (r *reached) Run(ctx context.Context, _, _ string, o stages.RunOptions) (context.Context, stages.RunOptions, func(stages.Report, int64, bool, error)) {
	return ctx, o, func(_ stages.Report, _ int64, _ bool, err error) { r.Refused("", err) }
}

func (r *reached) Refused(_ string, err error) {
	if e, ok := errors.AsType[*stages.Error](err); ok {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.limits = append(r.limits, e.Limit)
	}
}

func (r *reached) all() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.limits, " ")
}

// patience is the time of the runs, which none of them needs.
const patience = time.Minute

// A limitCase makes the limit of a row of docs/limits.md small and reaches it.
type limitCase struct {
	set      func(*gateway.Options)
	result   int64 // of the pool
	pipeline string
	beside   bool // while another run is under way
	waits    bool // it makes what goes on wait, and is no error
}

func limitCases() map[string]limitCase {
	of := func(l stages.Limits) func(*gateway.Options) { return func(o *gateway.Options) { o.Limits = l } }
	const (
		list    = `{"type":"tool","server":"shop","name":"list"}`
		get     = `{"type":"tool","server":"shop","name":"get","for_each":true`
		slow    = `{"type":"tool","server":"shop","name":"slow"}`
		preview = `{"type":"preview"}`
		each    = `{"type":"for_each","stages":[`
	)
	return map[string]limitCase{
		"stages":      {set: of(stages.Limits{Stages: 2}), pipeline: list + "," + preview + "," + preview},
		"nesting":     {set: of(stages.Limits{Nesting: 1}), pipeline: list + "," + each + each + preview + "]}]}"},
		"items":       {set: of(stages.Limits{Items: 2}), pipeline: list + "," + get + "}"},
		"calls":       {set: of(stages.Limits{Calls: 2}), pipeline: list + "," + get + "}"},
		"run":         {set: of(stages.Limits{Run: 200 * time.Millisecond}), pipeline: slow},
		"call":        {set: of(stages.Limits{Call: 200 * time.Millisecond}), pipeline: slow},
		"command":     {set: of(stages.Limits{Command: 200 * time.Millisecond}), pipeline: `{"type":"command","command":"jq","args":["-n","last(range(1e12))"]}`},
		"input":       {set: of(stages.Limits{Input: 10}), pipeline: list + `,{"type":"tool","server":"shop","name":"save"}`},
		"result":      {result: 10, pipeline: list},
		"item":        {set: of(stages.Limits{Item: 5}), pipeline: list + "," + get + "}"},
		"attempt":     {set: of(stages.Limits{Attempt: 10}), pipeline: list + "," + get + `,"retries":1}`},
		"waiting":     {set: of(stages.Limits{Waiting: 1}), pipeline: list + "," + get + "}", waits: true},
		"shared":      {set: of(stages.Limits{Shared: 300}), pipeline: list + `,{"type":"tool","server":"shop","name":"save","for_each":true,"distinct":true}`},
		"held":        {set: of(stages.Limits{Held: 50}), pipeline: list + "," + get + `,"retries":1}`},
		"spool":       {set: of(stages.Limits{Spool: 10, SpoolHead: 1}), pipeline: list + `,{"type":"tool","server":"shop","name":"save","for_each":true}`},
		"runs":        {set: func(o *gateway.Options) { o.Runs = 1 }, pipeline: list, beside: true},
		"caller-runs": {set: func(o *gateway.Options) { o.CallerRuns = 1 }, pipeline: list, beside: true},
	}
}

// TestLimits: the error of every limit of docs/limits.md says which one it is, in words and to those who count.
func TestLimits(t *testing.T) {
	page, err := os.ReadFile("../docs/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\|").FindAllStringSubmatch(string(page), -1)
	cases := limitCases()
	if len(rows) != len(cases) {
		t.Errorf("%d limits are on the page, and %d in the test", len(rows), len(cases))
	}
	for _, row := range rows {
		t.Run(row[1], func(t *testing.T) {
			c, ok := cases[row[1]]
			if !ok {
				t.Fatal("there is no case")
			}
			c.run(t, row[1])
		})
	}
}

func (c limitCase) run(t *testing.T, limit string) {
	long := strings.Repeat("x", 250)
	shop := mcptest.New(
		mcptest.Tool{Name: "list", ReadOnly: true, Text: `[{"id":1000001},{"id":1000002},{"id":1000003}]`},
		mcptest.Tool{Name: "get", ReadOnly: true, Text: long},
		mcptest.Tool{Name: "save", Destructive: true, Text: long},
		mcptest.Tool{Name: "slow", ReadOnly: true, Latency: time.Minute, Text: "late"},
	)
	pool := mcptest.NewPool(t, upstream.Options{ResultMax: c.result, Sources: []upstream.Source{upstream.Static{{Name: "shop", Dial: shop.Dial}}}})
	var watch reached
	o := gateway.Options{Upstream: pool, Version: "test", Watch: &watch}
	if limit == "command" {
		o.Sandbox = ready{newSandbox(t)}
	}
	if c.set != nil {
		c.set(&o)
	}
	g := gateway.New(o)
	agent := connect(t, g, newClient())
	call := func(ctx context.Context, pipeline string) (*mcp.CallToolResult, error) {
		args := map[string]any{"pipeline": "[" + pipeline + "]"}
		if limit != "run" {
			args["timeout"] = patience.Seconds()
		}
		return agent.CallTool(ctx, &mcp.CallToolParams{Name: "execute_pipeline", Arguments: args})
	}
	ctx, cancel := context.WithCancel(t.Context())
	var other sync.WaitGroup
	defer other.Wait()
	defer cancel()
	if c.beside {
		other.Go(func() { _, _ = call(ctx, `{"type":"tool","server":"shop","name":"slow"}`) })
		within(t, 10*time.Second, "the other one runs", func() bool { return shop.Running() == 1 })
	}
	begun := time.Now()
	result, err := call(t.Context(), c.pipeline)
	if err != nil {
		t.Fatal(err)
	}
	text := result.Content[len(result.Content)-1].(*mcp.TextContent).Text
	if took := time.Since(begun); took >= patience {
		t.Errorf("it ended with the time of the run only, after %s", took)
	}
	want := limit
	if c.waits {
		want = ""
	}
	if got := watch.all(); got != want || result.IsError == c.waits || !c.waits && !strings.Contains(text, "(limit "+limit) {
		t.Errorf("got the limit %q, and %s", got, text)
	}
}
