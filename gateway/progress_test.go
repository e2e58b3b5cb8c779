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

// notifying makes a notifier of a call that sends its messages with tell.
func notifying(ctx context.Context, tell progressSender) *notifier {
	params := &mcp.CallToolParamsRaw{Name: "execute_pipeline"}
	params.Meta = mcp.Meta{"progressToken": "p"}
	return newNotifier(context.WithValue(ctx, senderKey{}, tell), &mcp.CallToolRequest{Params: params}, false)
}

// TestNotifier: a client hears of every finished item, at least every 5 seconds, always of more than before, and of
// nothing once the run has ended.
func TestNotifier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		var heard []string
		n := notifying(t.Context(), func(_ context.Context, p *mcp.ProgressNotificationParams) error {
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
			"1s 1 1 item done, 2 tool calls", "2s 2 2 items done, 4 tool calls",
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
		n := notifying(t.Context(), func(_ context.Context, p *mcp.ProgressNotificationParams) error {
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

// TestNotifierRate: a client hears of many items at most ten times a second, and of the last one.
func TestNotifierRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		times, last := 0, 0.0
		n := notifying(t.Context(), func(_ context.Context, p *mcp.ProgressNotificationParams) error {
			times, last = times+1, p.Progress
			return nil
		})
		for item := range int64(2000) {
			time.Sleep(time.Millisecond)
			n.progress(stages.Progress{Items: item + 1})
		}
		time.Sleep(time.Second)
		n.stop(t.Context())
		if times > 21 || times < 10 || last != 2000 {
			t.Errorf("it got %d messages in two seconds, last of %v items", times, last)
		}
	})
}

// TestNotifierGone: a client that is gone gets no more messages.
func TestNotifierGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		times := 0
		n := notifying(t.Context(), func(context.Context, *mcp.ProgressNotificationParams) error {
			times++
			return errors.New("gone")
		})
		time.Sleep(time.Minute)
		n.stop(t.Context())
		if times != 1 {
			t.Errorf("it got %d messages", times)
		}
	})
}

// TestNotifierGrows: heartbeats and late items come in an order that grows.
func TestNotifierGrows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var heard []float64
		n := notifying(t.Context(), func(_ context.Context, p *mcp.ProgressNotificationParams) error {
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

// TestNotifierTool: what the only tool of a run says reaches the client as it is; that of several stages is summed, and
// within a for_each only the items count, beside one sum of what the tools say.
func TestNotifierTool(t *testing.T) {
	said := func(place stages.Place, items int64, done, total float64, message string, each bool) stages.Progress {
		return stages.Progress{Items: items, Calls: 2, Place: place, Each: each, Tool: stages.ToolProgress{Done: done, Total: total, Message: message}}
	}
	for name, c := range map[string]struct {
		news []stages.Progress
		want []string
	}{
		"one tool": {
			[]stages.Progress{said("1", 0, 0, 3, "reading", false), said("1", 0, 1, 3, "", false), said("1", 0, 2, 3, "writing", false), said("1", 0, 2, 3, "closing", false)},
			[]string{"0 of 3: reading", "1 of 3: 0 items done, 2 tool calls; the tool says 1 of 3", "2 of 3: writing", "2.001 of 3: closing"},
		},
		"overtaken": {
			[]stages.Progress{said("1", 0, 2, 3, "second", false), said("1", 0, 1, 3, "first", false)},
			[]string{"2 of 3: second", "2.001 of 3: first"},
		},
		"two stages": {
			[]stages.Progress{said("1", 0, 3, 3, "read", false), said("2", 0, 1, 9, "wrote", false)},
			[]string{"3 of 3: read", "4 of 0: wrote"},
		},
		"for_each": {
			[]stages.Progress{said("2", 0, 5, 80, "", true), said("2", 1, 6, 80, "", true), {Items: 2, Calls: 4}},
			[]string{
				"0 of 0: 0 items done, 2 tool calls; the tool says 5 of 80", "1 of 0: 1 item done, 2 tool calls; the tool says 6 of 80",
				"2 of 0: 2 items done, 4 tool calls; the tool says 6 of 80",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var heard []string
				n := notifying(t.Context(), func(_ context.Context, p *mcp.ProgressNotificationParams) error {
					heard = append(heard, fmt.Sprintf("%v of %v: %s", p.Progress, p.Total, p.Message))
					return nil
				})
				for _, p := range c.news {
					n.follow()(p)
					time.Sleep(time.Second)
				}
				n.stop(t.Context())
				if diff := cmp.Diff(c.want, heard); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			})
		})
	}
}

// TestNotifierLastWord: what a tool has said immediately before it answered is heard before the answer, and a client that
// asks for nothing has no tool asked.
func TestNotifierLastWord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var heard []float64
		n := notifying(t.Context(), func(_ context.Context, p *mcp.ProgressNotificationParams) error {
			heard = append(heard, p.Progress)
			return nil
		})
		for _, done := range []float64{0, 50, 100} {
			n.progress(stages.Progress{Place: "1", Tool: stages.ToolProgress{Done: done, Total: 100}})
			synctest.Wait()
		}
		n.progress(stages.Progress{Place: "1", Tool: stages.ToolProgress{Done: 101, Total: 100}})
		n.stop(t.Context())
		if diff := cmp.Diff([]float64{0, 50, 100, 101}, heard); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		if newNotifier(t.Context(), &mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{}}, false).follow() != nil {
			t.Error("tools are asked for progress that nobody wants")
		}
	})
}
