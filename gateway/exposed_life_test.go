package gateway

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
)

// TestExposedGrace: a call that may change something goes on for the grace after its client has gone, and ends if the client
// cancels it; one that only reads ends at once.
func TestExposedGrace(t *testing.T) {
	begun, release := make(chan struct{}, 1), make(chan struct{})
	ended := make(chan error, 1)
	answer := func(ctx context.Context, _ json.RawMessage) (string, error) {
		begun <- struct{}{}
		select {
		case <-release:
		case <-ctx.Done():
		}
		ended <- ctx.Err()
		return `{"content":[]}`, ctx.Err()
	}
	shop := mcptest.New(mcptest.Tool{Name: "change", Raw: answer}, mcptest.Tool{Name: "read", ReadOnly: true, Raw: answer})
	pool := mcptest.NewPool(t, upstream.Options{Sources: []upstream.Source{upstream.Static{{Name: "shop", Dial: shop.Dial, Expose: []string{"*"}}}}})
	g := New(Options{Upstream: pool, Version: "test", Grace: time.Hour})
	t.Cleanup(func() { g.Close(context.Background()) })
	pool.AwaitExposed(t.Context(), true)
	for _, test := range []struct {
		name, tool string
		cause      error
		finishes   bool
	}{
		{"an effect, gone", "change", ErrGone, true},
		{"an effect, cancelled", "change", errUnwanted, false},
		{"a reading, gone", "read", ErrGone, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			over := make(chan error, 1)
			go func() {
				_, err := g.callExposed(ctx, &mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{Name: "shop__" + test.tool}})
				over <- err
			}()
			<-begun
			cancel(test.cause)
			if test.finishes {
				release <- struct{}{}
			}
			if err := <-ended; (err == nil) != test.finishes {
				t.Errorf("the tool ends with %v", err)
			}
			if err := <-over; err != nil {
				t.Errorf("the call ends with %v", err)
			}
		})
	}
}

// TestExposedTask: a task that does not end is cancelled when the time of a run is up.
func TestExposedTask(t *testing.T) {
	t.Parallel()
	s := &mcptest.Tasks{Working: 1 << 30}
	server := s.Serve(t)
	server.Expose = []string{"*"}
	pool := mcptest.NewPool(t, upstream.Options{Sources: []upstream.Source{upstream.Static{server}}})
	g := New(Options{Upstream: pool, Version: "test", Limits: stages.Limits{Run: 10 * time.Second}})
	t.Cleanup(func() { g.Close(context.Background()) })
	pool.AwaitExposed(t.Context(), true)
	res, err := g.callExposed(t.Context(), &mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{Name: "tasks__work"}})
	if err != nil {
		t.Fatal(err)
	}
	said, err := json.Marshal(res)
	if err != nil || !strings.Contains(string(said), "TIMEOUT") || !strings.Contains(string(said), "it was sent") {
		t.Errorf("got %s, %v", said, err)
	}
	s.Await(t, "tasks/cancel", 1)
}
