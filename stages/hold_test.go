package stages_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcsh-dev/mcsh/runs"
	"github.com/mcsh-dev/mcsh/stages"
)

// steady has the tools post, which takes no time and fails at 3 after a second, fails times, and later, which reads for two
// seconds.
func steady(t *testing.T, fails int) *kept {
	t.Helper()
	k := newKept(t, runs.Options{})
	k.add("post", writes, "x", func(_ context.Context, args map[string]any) (string, error) {
		if fmt.Sprint(args["x"]) == "3" && fails > 0 {
			fails--
			time.Sleep(time.Second)
			return "", errors.New("not now")
		}
		return fmt.Sprint(args["x"]), nil
	})
	k.add("later", reads, "x", func(ctx context.Context, args map[string]any) (string, error) {
		select {
		case <-time.After(2 * time.Second):
			return fmt.Sprintf(`{"done":%v}`, args["x"]), nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	})
	return k
}

const postLater = `{"type":"for_each","concurrency":4,"stages":[{"type":"tool","server":"demo","name":"post"},
	{"type":"tool","server":"demo","name":"later"}]}`

// TestBegunItemsFinish: an item that has begun to change something finishes when another one fails, with the stages
// behind the call, so that the for_each can be taken up: only what has failed or was not tried is run then.
func TestBegunItemsFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := steady(t, 1)
		e := k.failedRun(t, numbers5, postLater)
		if e.Code != stages.ToolError || e.Item != 3 || e.Done != 3 || e.Failed != 1 || !e.Resume {
			t.Errorf("got %+v, want 3 items done and no doubt", e)
		}
		out, _ := k.must(t, resume(e.Run))
		if out != done(5) {
			t.Errorf("got %q", out)
		}
		if n := k.tools["post"].calls.Load(); n != 6 {
			t.Errorf("%d calls, want one for each item and one more for the failed one", n)
		}
	})
}

// TestBegunItemsFinishNested: so are items whose stages are a for_each of their own.
func TestBegunItemsFinishNested(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := steady(t, 1)
		nested := `{"type":"for_each","concurrency":4,"stages":[` + cat + `,` + postLater + `]}`
		if e := k.failedRun(t, numbers5, nested); e.Code != stages.ToolError || !e.Resume {
			t.Errorf("got %+v, want no doubt", e)
		} else if out, _ := k.must(t, resume(e.Run)); strings.Count(out, "done") != 5 {
			t.Errorf("got %q", out)
		}
		if n := k.tools["post"].calls.Load(); n != 6 {
			t.Errorf("%d calls, want one for each item and one more for the failed one", n)
		}
	})
}

// TestBegunItemsFinishBehind: neither does a failure behind the for_each leave an item half done.
func TestBegunItemsFinishBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := steady(t, 0)
		each := strings.Replace(postLater, `"concurrency":4`, `"concurrency":1`, 1)
		refuse := errors.New("no")
		k.add("refuse", reads, "done", func(_ context.Context, args map[string]any) (string, error) {
			time.Sleep(time.Second) // the next item has begun
			return encode(args), refuse
		})
		e := k.failedRun(t, numbers5, each, `{"type":"tool","server":"demo","name":"refuse","for_each":true}`)
		refuse = nil
		out, _ := k.must(t, resume(e.Run))
		if n := k.tools["post"].calls.Load(); out != done(5) || n != 5 {
			t.Errorf("got %q after %d calls", out, n)
		}
	})
}

// TestBegunItemsEnd: the time of the run, and its caller, end also items that would finish.
func TestBegunItemsEnd(t *testing.T) {
	for name, limit := range map[string]time.Duration{"time": 1500 * time.Millisecond, "caller": time.Minute} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := steady(t, 1)
				p, errs := k.compile(t, "["+numbers5+","+postLater+"]")
				if errs != nil {
					t.Fatal(errs)
				}
				ctx, cancel := context.WithCancel(t.Context())
				if name == "caller" {
					time.AfterFunc(1500*time.Millisecond, cancel)
				}
				start := time.Now()
				_, err := p.Run(ctx, nil, io.Discard, stages.RunOptions{Timeout: limit})
				cancel()
				var e *stages.Error
				if took := time.Since(start); !errors.As(err, &e) || took != 1500*time.Millisecond {
					t.Fatalf("it took %s, got %v", took, err)
				}
				if again := k.failed(t, resume(e.Run)); again.Code != stages.Denied {
					t.Errorf("got %v", again)
				}
				if calls := k.callsOf("post"); strings.Count(strings.Join(calls, " "), `{"x":1}`) != 1 {
					t.Errorf("calls %v", calls)
				}
			})
		})
	}
}

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

// TestWaitingEffectsStop: of the calls with effects, the one that was sent finishes when a sibling fails, and those
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
		if !c.MaySend() {
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
				case name == "one" && (err != nil || out != "saved"):
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
