package stages_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcsh-dev/mcsh/stages"
)

// seated are tools with one seat: the others wait for it.
type seated struct {
	*world
	seat  chan struct{}
	calls []stages.Call
}

func (s *seated) CallTool(ctx context.Context, c stages.Call) (stages.Result, error) {
	select {
	case s.seat <- struct{}{}:
		defer func() { <-s.seat }()
	case <-ctx.Done():
		return stages.Result{}, ctx.Err()
	}
	s.calls = append(s.calls, c)
	return s.world.CallTool(ctx, c)
}

// TestWaitingEffectsStop: of the calls with effects, the one that was sent is let finish when a sibling fails, and those
// that still wait for their turn are never made.
func TestWaitingEffectsStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		finished := 0
		save := w.add("save", writes, "x", func(ctx context.Context, _ map[string]any) (string, error) {
			select {
			case <-time.After(time.Minute):
				finished++
				return "saved", nil
			case <-ctx.Done():
				return "", ctx.Err()
			}
		})
		w.add("bad", writes, "x", func(context.Context, map[string]any) (string, error) {
			time.Sleep(time.Second)
			return "", errors.New("no")
		})
		d := w.deps()
		d.Tools = &tools{world: w, seats: &seated{world: w, seat: make(chan struct{}, 1)}}
		_, _, err := w.runWith(t, `[{"type":"parallel","branches":{
			"a":[{"type":"tool","server":"demo","name":"save","for_each":true,"concurrency":4}],
			"b":[{"type":"tool","server":"demo","name":"bad","for_each":true,"concurrency":1}]}}]`, "1\n2\n3\n", d, stages.RunOptions{})
		var e *stages.Error
		if !errors.As(err, &e) || e.Code != stages.ToolError {
			t.Fatalf("got %v", err)
		}
		if n := save.calls.Load(); n != 1 || finished != 1 {
			t.Errorf("%d calls were made and %d finished, want 1 and 1", n, finished)
		}
		if got := encode(map[string]any{"changed": e.Changed}); got != `{"changed":["demo/save: 1","demo/bad: 1"]}` {
			t.Errorf("got %s: a call that was never sent is not among those that may have changed something", got)
		}
	})
}

// tools has seats for the tool save only.
type tools struct {
	*world
	seats *seated
}

func (x *tools) CallTool(ctx context.Context, c stages.Call) (stages.Result, error) {
	if c.Name == "save" {
		return x.seats.CallTool(ctx, c)
	}
	return x.world.CallTool(ctx, c)
}

// TestUnsentCalls: a call that turned out never to have left does not count, and can be sent again.
func TestUnsentCalls(t *testing.T) {
	w := newWorld()
	d := w.deps()
	d.Tools = unsure{w}
	_, report, err := w.runWith(t, `[{"type":"tool","server":"demo","name":"write","args":{"x":1}}]`, "", d, stages.RunOptions{Trace: stages.Trace{Parent: "00-1-2-01"}})
	if err != nil || report.Stages[0].Calls != 1 {
		t.Errorf("got %d calls, %v; want 1", report.Stages[0].Calls, err)
	}
	_, _, err = w.runWith(t, `[{"type":"tool","server":"demo","name":"write","args":{"x":2}}]`, "", d, stages.RunOptions{})
	var e *stages.Error
	if !errors.As(err, &e) || len(e.Changed) != 0 || e.RetryAfter != time.Second {
		t.Errorf("got %+v, want an error with nothing changed", e)
	}
}

// unsure are tools whose connection is lost whenever a request has left: after the second time the server is found, or
// given up if there is no trace.
type unsure struct{ *world }

func (u unsure) CallTool(ctx context.Context, c stages.Call) (stages.Result, error) {
	for range 2 {
		if !c.Sent() {
			return stages.Result{}, ctx.Err()
		}
		c.Unsent()
	}
	if c.Trace.Parent == "" || c.Reading {
		e := stages.Errorf(stages.ServerUnavailable, "", "gone")
		e.RetryAfter = time.Second
		return stages.Result{}, e
	}
	return u.world.CallTool(ctx, c)
}

// TestTimeoutLetsEffectsFinish: the time of a run ends no call with effects that was sent, and begins no further one.
// Where nothing else is left to do, the run has succeeded.
func TestTimeoutLetsEffectsFinish(t *testing.T) {
	for name, pipeline := range map[string]string{
		"one":  `[{"type":"tool","server":"demo","name":"save","args":{"x":1}}]`,
		"each": `[{"type":"tool","server":"demo","name":"save","for_each":true,"on_error":"collect","retries":2}]`,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				finished := 0
				save := w.add("save", writes, "x", func(ctx context.Context, _ map[string]any) (string, error) {
					select {
					case <-time.After(30 * time.Second):
						finished++
						return "saved", nil
					case <-ctx.Done():
						return "", ctx.Err()
					}
				})
				input := ""
				if name == "each" {
					input = "1\n2\n3\n"
				}
				start := time.Now()
				out, _, err := w.runWith(t, pipeline, input, w.deps(), stages.RunOptions{Timeout: time.Second})
				var e *stages.Error
				switch errors.As(err, &e); {
				case name == "one" && (err != nil || out != "saved\n"):
					t.Errorf("got %q, %v", out, err)
				case name == "each" && (e == nil || e.Code != stages.Timeout || len(e.Changed) != 1 || e.Changed[0] != "demo/save: 1"):
					t.Errorf("got %+v", err)
				}
				if n := save.calls.Load(); n != 1 || finished != 1 {
					t.Errorf("%d calls were made and %d finished, want 1 and 1", n, finished)
				}
				if took := time.Since(start); took != 30*time.Second {
					t.Errorf("took %s, want the 30s of the call", took)
				}
			})
		})
	}
}
