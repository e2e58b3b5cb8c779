package gateway

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/stages"
)

// told makes a notifier of a call whose client is told by tell.
func told(ctx context.Context, tell teller) *notifier {
	params := &mcp.CallToolParamsRaw{Name: "execute_pipeline"}
	params.Meta = mcp.Meta{"progressToken": "p"}
	return newNotifier(context.WithValue(ctx, tellerKey{}, tell), &mcp.CallToolRequest{Params: params})
}

// TestNotifier: a client hears of every finished item, at least every 5 seconds, always of more than before, and of
// nothing once the run has ended.
func TestNotifier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		var heard []string
		n := told(t.Context(), func(_ context.Context, p *mcp.ProgressNotificationParams) error {
			heard = append(heard, fmt.Sprintf("%v %v %s", time.Since(begun), p.Progress, p.Message))
			return nil
		})
		for item := range int64(2) {
			time.Sleep(time.Second)
			n.progress(stages.Progress{Items: item + 1, Calls: 2 * (item + 1)})
		}
		time.Sleep(9 * time.Second)
		n.stop(t.Context())
		time.Sleep(time.Minute)
		want := []string{
			"1s 1 1 items done, 2 tool calls", "2s 2 2 items done, 4 tool calls",
			"5s 2.001 2 items done, 4 tool calls", "10s 2.002 2 items done, 4 tool calls",
		}
		if diff := cmp.Diff(want, heard); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}

// TestNotifierSlowClient: a client that takes its time holds up neither the run nor, once the call is cancelled, its end;
// what it has missed is summed up.
func TestNotifierSlowClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var heard []float64
		wait := time.Minute
		n := told(t.Context(), func(_ context.Context, p *mcp.ProgressNotificationParams) error {
			time.Sleep(wait)
			heard = append(heard, math.Floor(p.Progress)) // heartbeats may have been due
			return nil
		})
		begun := time.Now()
		for item := range int64(1000) {
			n.progress(stages.Progress{Items: item + 1})
			synctest.Wait()
		}
		if took := time.Since(begun); took != 0 {
			t.Errorf("the run took %v", took)
		}
		time.Sleep(3*wait/2 + time.Second) // the second notification is under way
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		begun = time.Now()
		n.stop(ctx)
		if took := time.Since(begun); took != 0 {
			t.Errorf("the end took %v", took)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if diff := cmp.Diff([]float64{1, 1000}, heard); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}

// TestNotifierGone: a client that is gone is not told any more.
func TestNotifierGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		times := 0
		n := told(t.Context(), func(context.Context, *mcp.ProgressNotificationParams) error {
			times++
			return errors.New("gone")
		})
		time.Sleep(time.Minute)
		n.stop(t.Context())
		if times != 1 {
			t.Errorf("it was told %d times", times)
		}
	})
}

// TestNotifierGrows: heartbeats and items that are told late come in an order that grows.
func TestNotifierGrows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var heard []float64
		n := told(t.Context(), func(_ context.Context, p *mcp.ProgressNotificationParams) error {
			time.Sleep(7 * time.Second) // a heartbeat is due, and so is an item
			heard = append(heard, p.Progress)
			return nil
		})
		for item := range int64(100) {
			time.Sleep(3 * time.Second)
			n.progress(stages.Progress{Items: item + 1})
		}
		n.stop(t.Context())
		for i := 1; i < len(heard); i++ {
			if heard[i] <= heard[i-1] {
				t.Errorf("after %v comes %v", heard[i-1], heard[i])
			}
		}
		if len(heard) < 40 {
			t.Errorf("only %d notifications", len(heard))
		}
	})
}
