package gateway_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/control"
	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/gateway/history"
	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/runs"
	"github.com/mcsh-dev/mcsh/store/storetest"
)

// operator sees everything.
var operator = control.Viewer{All: true, Results: true}

// live lists the runs in progress.
func live(g *gateway.Gateway) []control.Run {
	return g.History().Runs(context.Background(), operator, control.RunFilter{States: []string{control.RunRunning, control.RunAsking}}).Runs
}

// TestRunning: a run is listed under its name in logs from its start to its end.
func TestRunning(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	begun := time.Now()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = w.agent.CallTool(ctx, &mcp.CallToolParams{Name: "execute_pipeline", Arguments: map[string]any{"pipeline": []any{
			map[string]any{"type": "tool", "server": "shop", "name": "slow"},
			map[string]any{"type": "preview"},
		}}}) // it is cancelled
	}()
	wait := func(n int) {
		t.Helper()
		for limit := time.Now().Add(time.Minute); len(live(w.gateway)) != n; time.Sleep(time.Millisecond) {
			if time.Now().After(limit) {
				t.Fatalf("%+v are listed, want %d", live(w.gateway), n)
			}
		}
	}
	wait(1)
	if run := live(w.gateway)[0]; !strings.HasPrefix(run.Request, "q_") || run.Stages != 2 || run.DryRun || run.Caller != "" ||
		run.Started.Before(begun.Add(-time.Second)) || run.Client != "agent 1" || run.Transport != "stdio" || run.Tool != "execute_pipeline" {
		t.Errorf("got %+v", run)
	}
	cancel()
	<-ended
	wait(0)
}

// TestRunFigures: while a run of many items goes on, its stages are known with what they have done; at its end all counts are
// right, and what is known is as small as of a few items. A slow reader gets the latest state.
func TestRunFigures(t *testing.T) {
	const many = 10_000
	gate, reached := make(chan struct{}), make(chan struct{})
	store := runs.New(runs.Options{Dir: t.TempDir()})
	defer store.Close()
	w := newWorldThat(t, store, mcptest.Tool{Name: "many", ReadOnly: true, Raw: func(context.Context, json.RawMessage) (string, error) {
		return `{"content":[{"type":"text","text":"[` + strings.TrimSuffix(strings.Repeat("{},", many), ",") + `]"}]}`, nil
	}}, mcptest.Tool{Name: "step", ReadOnly: true, Do: func(map[string]any) (string, error) {
		close(reached) // equal calls are made once
		<-gate
		return "{}", nil
	}})
	replied := make(chan *mcp.CallToolResult, 1)
	go func() {
		_, result := w.execute(t, `[{"type":"tool","server":"shop","name":"many"},{"type":"tool","server":"shop","name":"step","for_each":true,"concurrency":1},{"type":"preview"}]`)
		replied <- result
	}()
	<-reached
	h := w.gateway.History()
	row := live(w.gateway)[0]
	d, err := h.Run(t.Context(), operator, row.Request)
	if err != nil || len(d.Stages) != 3 || d.Stages[1].Items != 1 || d.Stages[1].Calls != 1 || d.Calls != 2 || d.State != control.RunRunning {
		t.Errorf("a live run: %+v, %v", d, err)
	}
	close(gate)
	<-replied
	if d, err = h.Run(t.Context(), operator, row.Request); err != nil || d.State != control.RunOK || d.Stages[1].OK != many || d.Stages[1].Total != many || d.Items != many || d.Calls != 2 {
		t.Errorf("a finished run: %+v, %v", d, err)
	}
	if text := texts.JSON(d); len(text) > 8<<10 {
		t.Errorf("it has %d bytes: %s", len(text), texts.Cut(text, 1000))
	}
	if d.Seen < 3*many || d.Returned == 0 || d.Returned > d.Seen/10 {
		t.Errorf("seen %d, returned %d", d.Seen, d.Returned)
	}
}

// TestRunBeforeClose: a run that ends while its gateway closes is shown by the others.
func TestRunBeforeClose(t *testing.T) {
	dir := storetest.Directory(t)
	open := func() *runs.Store {
		kept := runs.New(runs.Options{Dir: t.TempDir(), Shared: dir})
		t.Cleanup(func() { kept.Close() })
		return kept
	}
	w := newWorldThat(t, open(), mcptest.Tool{Name: "one", ReadOnly: true, Text: "1"})
	w.execute(t, `[{"type":"tool","server":"shop","name":"one"}]`)
	if err := w.gateway.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := history.New(open(), nil).Runs(t.Context(), operator, control.RunFilter{}).Runs; len(got) != 1 {
		t.Errorf("another gateway shows %+v", got)
	}
}

// TestRunCancelled: cancelling a live run ends its call in flight at once, and its client has an answer.
func TestRunCancelled(t *testing.T) {
	w := newWorld(t)
	replied := make(chan string, 1)
	go func() {
		text, _ := w.execute(t, `[{"type":"tool","server":"shop","name":"slow"}]`)
		replied <- text
	}()
	within(t, "the call runs", func() bool { return w.shop.Running() == 1 })
	if err := w.gateway.History().Cancel(operator, live(w.gateway)[0].Request); err != nil {
		t.Fatal(err)
	}
	if text := <-replied; !strings.Contains(text, "CANCELLED") || !strings.Contains(text, "ask before you run it again") {
		t.Errorf("the client has %q", text)
	}
	within(t, "the call has ended", func() bool { return w.shop.Running() == 0 })
	if left := live(w.gateway); len(left) != 0 {
		t.Errorf("live are %v", left)
	}
}
