package gateway_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

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
		for limit := time.Now().Add(time.Minute); len(w.gateway.Running()) != n; time.Sleep(time.Millisecond) {
			if time.Now().After(limit) {
				t.Fatalf("%+v are listed, want %d", w.gateway.Running(), n)
			}
		}
	}
	wait(1)
	if run := w.gateway.Running()[0]; !strings.HasPrefix(run.Request, "q_") || run.Stages != 2 || run.DryRun || run.Caller != "" || run.Started.Before(begun) {
		t.Errorf("got %+v", run)
	}
	cancel()
	<-ended
	wait(0)
}
