package gateway_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
)

// TestTimeoutOfTheCheck: the time of a call covers the waiting for servers that are still starting, in every mode; other
// mistakes are reported as ever, and a server that starts in time leaves the rest of the time to the run.
func TestTimeoutOfTheCheck(t *testing.T) {
	for _, tt := range []struct {
		name, pipeline, mode string
		starts, timeout      time.Duration
		want                 []string
		after                time.Duration
	}{
		{"it does not start", `[{"type":"tool","server":"slow","name":"one"}]`, "run", time.Hour, 5 * time.Second, []string{
			"The pipeline failed: TIMEOUT\nthe run took longer than 5s (the argument \"timeout\"); nothing was called; server \"slow\" is still starting (5s so far)",
			"Try: try again soon, when the server has started, or raise the argument \"timeout\", at most to 300 (limit run)\n",
		}, 5 * time.Second},
		{"check", `[{"type":"tool","server":"slow","name":"one"}]`, "check", time.Hour, 5 * time.Second, []string{"TIMEOUT", "5s so far"}, 5 * time.Second},
		{"more is wrong", `[{"type":"tool","server":"slow","name":"one"},{"type":"tol"}]`, "run", time.Hour, 5 * time.Second, []string{
			"2 mistakes", "SERVER_UNAVAILABLE", `unknown stage type "tol"`,
		}, 5 * time.Second},
		{"longer than the server may take", `[{"type":"tool","server":"slow","name":"one"}]`, "run", time.Hour, 200 * time.Second, []string{
			"1 mistake", "SERVER_UNAVAILABLE", "set startTimeout for it (100s now)",
		}, 100 * time.Second},
		{"it starts after a while", `[{"type":"tool","server":"slow","name":"one"}]`, "run", 90 * time.Second, 200 * time.Second, []string{"late"}, 110 * time.Second},
		{"it starts, and then is slow", `[{"type":"tool","server":"slow","name":"one"}]`, "run", 3 * time.Second, 5 * time.Second, []string{
			"TIMEOUT\nthe run took longer than 5s (the argument \"timeout\"); stage 1 (tool slow/one) had not ended; tool calls made: 1\n",
		}, 5 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shop := mcptest.New(mcptest.Tool{Name: "one", ReadOnly: true, Latency: 20 * time.Second, Text: "late"})
				agent := connect(t, slowGateway(t, shop, tt.starts), newClient())
				begun := time.Now()
				result, err := agent.CallTool(t.Context(), &mcp.CallToolParams{Name: "execute_pipeline", Arguments: map[string]any{
					"pipeline": tt.pipeline, "mode": tt.mode, "timeout": tt.timeout.Seconds(),
				}})
				if err != nil {
					t.Fatal(err)
				}
				got := fmt.Sprint(result.Content[0].(*mcp.TextContent).Text)
				for _, want := range tt.want {
					if !strings.Contains(got, want) {
						t.Errorf("got %s\nwant %s", got, want)
					}
				}
				if took := time.Since(begun); took != tt.after {
					t.Errorf("it took %s, want %s", took, tt.after)
				}
			})
		})
	}
}

// slowGateway is a gateway with one server that takes a while to start, for which it has 100 s.
func slowGateway(t *testing.T, shop *mcptest.Upstream, starts time.Duration) *gateway.Gateway {
	t.Helper()
	pool := mcptest.NewPool(t, upstream.Options{StartTimeout: 100 * time.Second, Sources: []upstream.Source{upstream.Static{{
		Name: "slow", Dial: func(ctx context.Context) (mcp.Transport, error) {
			select {
			case <-time.After(starts):
				return shop.Dial(ctx)
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		},
	}}}})
	g := gateway.New(gateway.Options{Upstream: pool, Version: "test"})
	t.Cleanup(func() { g.Close(context.Background()) })
	return g
}

// TestWaitIsTold: a client that asked for progress hears of a wait for a server every 5 s, and the list says that a
// pipeline waits by itself, and how long.
func TestWaitIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var messages []string
		client := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, &mcp.ClientOptions{
			ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
				mu.Lock()
				defer mu.Unlock()
				messages = append(messages, req.Params.Message)
			},
		})
		agent := connect(t, slowGateway(t, mcptest.New(mcptest.Tool{Name: "one", ReadOnly: true, Text: "late"}), 42*time.Second), client)
		list, err := agent.CallTool(t.Context(), &mcp.CallToolParams{Name: "list_all_tools"})
		if err != nil {
			t.Fatal(err)
		}
		const want = "(starting: server \"slow\" is still starting (10s so far))\nnote: a pipeline waits for the server by itself, up to 100s (startTimeout)"
		if text := list.Content[0].(*mcp.TextContent).Text; !strings.Contains(text, want) {
			t.Errorf("got %s\nwant %s", text, want)
		}
		params := &mcp.CallToolParams{Name: "execute_pipeline", Arguments: map[string]any{"pipeline": `[{"type":"tool","server":"slow","name":"one"}]`}}
		params.SetProgressToken("p")
		if res, err := agent.CallTool(t.Context(), params); err != nil || res.IsError {
			t.Fatalf("got %v, %v", res, err)
		}
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if len(messages) < 6 || messages[0] != "no tool has been called yet" {
			t.Errorf("got %q in 32 s, want one every 5 s", messages)
		}
	})
}

// TestTimeoutBeforeTheCheck: a plan that was not checked in the time of its call is not said to wait for a server.
func TestTimeoutBeforeTheCheck(t *testing.T) {
	call := gateway.CallTime{Timeout: time.Nanosecond, Begun: time.Now()}
	_, errs, late := call.Check(t.Context(), func(ctx context.Context) (*stages.Pipeline, []*stages.Error) {
		<-ctx.Done()
		return stages.Compile(ctx, []byte(`[{"type":"preview"}]`), stages.Deps{})
	})
	if errs != nil || late == nil || late.Code != stages.Timeout {
		t.Fatalf("got %v, %v", errs, late)
	}
	const says, try = "nothing was called; the check of the plan had not ended", "send the plan again, or raise"
	if !strings.HasSuffix(late.Msg, says) || !strings.HasPrefix(late.Hint, try) {
		t.Errorf("got %q, %q, want %q, %q", late.Msg, late.Hint, says, try)
	}
}
