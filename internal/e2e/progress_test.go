//go:build linux

package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestHeartbeat: on every transport a client that asks for progress hears of finished items, and of a run that works at
// one thing for long.
func TestHeartbeat(t *testing.T) {
	t.Parallel()
	_, url := serveHTTP(t, object{"demo": object{"builtin": "demo"}})
	for name, open := range map[string]func(*mcp.ClientOptions) *mcp.ClientSession{
		overStdio: func(o *mcp.ClientOptions) *mcp.ClientSession {
			return serveStdio(t, object{"demo": object{"builtin": "demo"}}, versions[0], o).ClientSession
		},
		stateful:  func(o *mcp.ClientOptions) *mcp.ClientSession { return connectHTTP(t, url, versions[0], o) },
		stateless: func(o *mcp.ClientOptions) *mcp.ClientSession { return connectHTTP(t, url, versions[1], o) },
	} {
		heard := make(chan float64, 100)
		session := open(&mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
			heard <- req.Params.Progress
		}})
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			items := with(with(toolStage("demo", "slow", object{}), "for_each", true), "concurrency", 1)
			call := pipelineCall([]object{command("jq", "-n", "-c", "{ms: (1, 12000)}"), items})
			call.SetProgressToken("p")
			begun := time.Now()
			res, err := session.CallTool(t.Context(), call)
			if err != nil || res.IsError {
				t.Fatalf("%+v, %v", res, err)
			}
			if took := time.Since(begun); took < 12*time.Second {
				t.Fatalf("it took %v: too short for the test", took)
			}
			last := 0.0
			for _, want := range []float64{1, 1.001, 2} { // an item, the heartbeat, another one or the other item
				wait := patience
				if want == 2 { // the last may have been overtaken by the answer
					wait = time.Second
				}
				select {
				case got := <-heard:
					if got <= last || want != 2 && got != want {
						t.Errorf("got progress %v after %v, want %v", got, last, want)
					}
					last = got
				case <-time.After(wait):
					if want != 2 {
						t.Fatalf("progress %v was not heard of", want)
					}
				}
			}
		})
	}
}
