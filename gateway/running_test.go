package gateway_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/control"
	"github.com/mcsh-dev/mcsh/gateway"
)

// operator sees everything.
var operator = control.Viewer{All: true, Results: true}

// live lists the runs in progress.
func live(g *gateway.Gateway) []control.Run {
	return g.History().Runs(operator, control.RunFilter{States: []string{control.RunLive, control.RunAsking}}).Runs
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
