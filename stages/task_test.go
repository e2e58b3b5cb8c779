package stages_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/runs"
	"github.com/mcsh-dev/mcsh/stages"
)

// taskTools are tools that answer with tasks after a second, which take ten: ask, which reads, and make, which changes something.
// The result is the argument x.
type taskTools struct {
	*world
	fault func(x string, waits int) error // of the nth wait for the task of a call; nil: none
	long  string                          // at the end of each handle
	same  bool                            // equal calls get the same task

	mu    sync.Mutex // guards the fields below
	calls map[string]int
	waits map[string]int
	tasks map[string]task // by handle
	order []string        // of handles
	cut   int             // calls that ended before their answer
}

type task struct {
	x    string
	done time.Time
}

func newTaskTools(t *testing.T) (*kept, *taskTools) {
	t.Helper()
	k := newKept(t, runs.Options{TTL: 24 * time.Hour})
	k.add("ask", reads, "x", nil)
	k.add("make", writes, "x", nil)
	k.add("same", reads, "list", func(_ context.Context, args map[string]any) (string, error) { return fmt.Sprint(args["list"]), nil })
	tools := &taskTools{world: k.world, calls: map[string]int{}, waits: map[string]int{}, tasks: map[string]task{}}
	k.deps.Tools = tools
	return k, tools
}

func (w *taskTools) CallTool(ctx context.Context, c stages.Call) (stages.Result, error) {
	if c.Name != "ask" && c.Name != "make" {
		return w.world.CallTool(ctx, c)
	}
	handle := c.Task.Handle
	if handle == "" {
		if !c.MaySend() {
			return stages.Result{}, ctx.Err()
		}
		var err error
		if handle, err = w.start(ctx, string(c.Args)); err != nil {
			return stages.Result{}, err
		}
		c.Task.Keep(handle)
	}
	w.mu.Lock()
	t, lives := w.tasks[handle]
	w.waits[t.x]++
	n := w.waits[t.x]
	w.mu.Unlock()
	if !lives {
		e := stages.Errorf(stages.ToolError, "", "no such task")
		e.Err = stages.ErrNoTask
		return stages.Result{}, e
	}
	if w.fault != nil {
		if err := w.fault(t.x, n); err != nil {
			return stages.Result{}, err
		}
	}
	wait, cancel := context.WithCancel(ctx)
	if c.Limited {
		wait, cancel = context.WithTimeout(ctx, c.Timeout)
	}
	defer cancel()
	select {
	case <-time.After(time.Until(t.done)):
		return stages.Result{Data: []byte(t.x), Kind: stages.Values}, nil
	case <-wait.Done():
	}
	if !c.Task.Lasts() {
		w.mu.Lock()
		delete(w.tasks, handle)
		w.mu.Unlock()
	}
	if ctx.Err() == nil {
		return stages.Result{}, stages.Errorf(stages.Timeout, "", "too slow")
	}
	return stages.Result{}, ctx.Err()
}

// start starts a task, unless ctx ends before the answer.
func (w *taskTools) start(ctx context.Context, args string) (handle string, err error) {
	x := strings.Trim(args, `{}"x: `)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls[x]++
	w.mu.Unlock()
	select {
	case <-time.After(time.Second):
		w.mu.Lock()
	case <-ctx.Done():
		w.mu.Lock()
		w.cut++
		return "", ctx.Err()
	}
	handle = fmt.Sprintf("task %d%s", len(w.order), w.long)
	if w.same {
		handle = "task of " + x
	}
	w.order = append(w.order, handle)
	w.tasks[handle] = task{x, time.Now().Add(10 * time.Second)}
	return handle, nil
}

// made is how often the tools were called.
func (w *taskTools) made() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.calls {
		n += c
	}
	return n
}

const makeEach = `{"type":"tool","server":"demo","name":"make","for_each":true,"concurrency":2}`

// taskPipelines are pipelines with tasks, their calls and their outputs.
var taskPipelines = []struct {
	name, pipeline string
	calls          int
	out            string
}{
	{"a stage that changes something", `{"type":"tool","server":"demo","name":"make","args":{"x":7}},` + cat, 1, "7\n"},
	{"a stage that reads", `{"type":"tool","server":"demo","name":"ask","args":{"x":7}},` + cat, 1, "7\n"},
	{"items that change something", numbers5 + "," + makeEach, 5, "[1,\n2,\n3,\n4,\n5]\n"},
	{"items that read", numbers5 + "," + strings.Replace(makeEach, "make", "ask", 1), 5, "[1,\n2,\n3,\n4,\n5]\n"},
	{"equal items", list("[1,1,2,1]") + "," + makeEach, 4, "[1,\n1,\n2,\n1]\n"},
	{"equal items that share their calls", list("[1,1,2,1]") + "," + strings.Replace(makeEach, "make", "ask", 1), 2, "[1,\n1,\n2,\n1]\n"},
	{
		"two tools for each item", numbers5 + `,{"type":"for_each","concurrency":2,"stages":[{"type":"tool","server":"demo","name":"make"},` +
			`{"type":"command","command":"jq","args":["{x: (. + 10)}"]},{"type":"tool","server":"demo","name":"make"}]}`,
		10, "[11,\n12,\n13,\n14,\n15]\n",
	},
	{"a for_each in a for_each", numbers5 + `,{"type":"for_each","concurrency":2,"stages":[` + cat + `,` + makeEach + `]}`, 5, "[[1],\n[2],\n[3],\n[4],\n[5]]\n"},
	{"branches", inBranches(`{"type":"tool","server":"demo","name":"make","args":{"x":1}}`, `{"type":"tool","server":"demo","name":"ask","args":{"x":2}}`), 2, "{\"a\":1,\n\"b\":2}\n"},
}

// runFor runs a pipeline for some time, whose end is that of the run or of its caller, and continues it then, as often as times
// says, until it succeeds.
func (k *kept) runFor(t *testing.T, pipeline string, times int, limit time.Duration, callerEnds bool) (out string, err error) {
	t.Helper()
	for range times {
		p, errs := k.compile(t, pipeline)
		if errs != nil {
			t.Fatal(errs)
		}
		var b strings.Builder
		ctx, cancel := t.Context(), func() {}
		o := stages.RunOptions{Timeout: limit}
		if callerEnds {
			o.Timeout = 0
			ctx, cancel = context.WithTimeout(ctx, limit)
		}
		var report stages.Report
		report, err = p.Run(ctx, nil, &b, o)
		cancel()
		out = b.String()
		e, ok := err.(*stages.Error)
		if !ok || !e.Resume {
			return out, err
		}
		pipeline = resume(report.Run)
		limit, callerEnds = max(limit, 20*time.Second), false
	}
	return out, err
}

// TestTaskResume: a run whose time is up at any point after its tools have answered with tasks is continued without a call of
// them: the continuation waits for the tasks.
func TestTaskResume(t *testing.T) {
	for _, tt := range taskPipelines {
		t.Run(tt.name, func(t *testing.T) {
			for half := 1; half < 80; half += parttest.Times(7, 3) {
				synctest.Test(t, func(t *testing.T) {
					k, tools := newTaskTools(t)
					limit := time.Duration(half) * 500 * time.Millisecond
					out, err := k.runFor(t, "["+tt.pipeline+"]", 10, limit, false)
					if err != nil || out != tt.out {
						t.Errorf("cut after %s: got %v, %q", limit, err, out)
					}
					if n := tools.made(); n != tt.calls+tools.cut || tools.cut > 0 && !strings.Contains(tt.pipeline, "ask") {
						t.Errorf("cut after %s: there were %d calls, %d of them cut off before they were answered; want %d", limit, n, tools.cut, tt.calls)
					}
					k.store.Close()
				})
			}
		})
	}
}

// TestTaskCancelled: with the caller of the run its tasks end. A tool that only reads is called again by the continuation; of one
// that may change something nobody knows what it has done.
func TestTaskCancelled(t *testing.T) {
	for name, again := range map[string]bool{"ask": true, "make": false} {
		synctest.Test(t, func(t *testing.T) {
			k, tools := newTaskTools(t)
			out, err := k.runFor(t, `[{"type":"tool","server":"demo","name":"`+name+`","args":{"x":7}}]`, 2, 5*time.Second, true)
			if again && (err != nil || out != "7" || tools.made() != 2) {
				t.Errorf("%s: got %v, %q after %d calls", name, err, out, tools.made())
			}
			if e, ok := err.(*stages.Error); !again && (!ok || !errors.Is(err, stages.ErrNoTask) || e.Code != stages.ToolError || tools.made() != 1) {
				t.Errorf("%s: got %v after %d calls", name, err, tools.made())
			}
			k.store.Close()
		})
	}
}

// TestTaskLost: a connection that is lost while a task is waited for, within a run and for its continuation; a task that has
// failed is no task any more.
func TestTaskLost(t *testing.T) {
	unavailable := stages.Errorf(stages.ServerUnavailable, "", "gone")
	failed := stages.Errorf(stages.ToolError, "", "out of ink")
	failed.Answered = true
	for _, tt := range []struct {
		name, pipeline string
		fault          *stages.Error // of the first wait for item 3
		calls          int
	}{
		{"items that change something", numbers5 + "," + makeEach, unavailable, 5},
		{"items that read", numbers5 + "," + strings.Replace(makeEach, "make", "ask", 1), unavailable, 5},
		{"items that read, tried again", numbers5 + "," + strings.Replace(makeEach, `make"`, `ask","retries":2`, 1), unavailable, 5},
		{"failed tasks that change something", numbers5 + "," + makeEach, failed, 6},
		{"failed tasks that read", numbers5 + "," + strings.Replace(makeEach, "make", "ask", 1), failed, 6},
		{"failed tasks that read, tried again", numbers5 + "," + strings.Replace(makeEach, `make"`, `ask","retries":2`, 1), failed, 6},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k, tools := newTaskTools(t)
				tools.fault = func(x string, n int) error {
					if x == "3" && n == 1 {
						return tt.fault
					}
					return nil
				}
				out, err := k.runFor(t, "["+tt.pipeline+"]", 3, 5*time.Minute, false)
				if err != nil || out != "[1,\n2,\n3,\n4,\n5]\n" {
					t.Errorf("got %v, %q", err, out)
				}
				// Reading items that are cut off by the failure of another are called again.
				if n := tools.made(); n != tt.calls && (!strings.Contains(tt.pipeline, "ask") || n > tt.calls+1) {
					t.Errorf("there were %d calls, want %d", n, tt.calls)
				}
				k.store.Close()
			})
		})
	}
}

// TestTaskTimes: the time that a stage asks for bounds the wait, and the error says how to go on; the usual time of a call does
// not.
func TestTaskTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, tools := newTaskTools(t)
		k.deps.Limits.Call = 5 * time.Second
		if out, err := k.runFor(t, `[{"type":"tool","server":"demo","name":"make","args":{"x":1}}]`, 1, time.Minute, false); err != nil || out != "1" {
			t.Errorf("got %v, %q", err, out)
		}
		e := k.failed(t, `[{"type":"tool","server":"demo","name":"make","args":{"x":2},"timeout":3}]`)
		if e.Code != stages.Timeout || !e.Resume || !strings.Contains(e.Hint, "waits for the task") {
			t.Errorf("got %+v", e)
		}
		time.Sleep(10 * time.Second)
		if out, _, err := k.run(t, resume(e.Run)); err != nil || out != "2" || tools.calls["2"] != 1 {
			t.Errorf("got %v, %q after %d calls", err, out, tools.calls["2"])
		}
		k.store.Close()
	})
}

// TestTaskUnkept: where no runs are kept, the task ends with the run.
func TestTaskUnkept(t *testing.T) {
	for _, name := range []string{"ask", "make"} {
		synctest.Test(t, func(t *testing.T) {
			k, tools := newTaskTools(t)
			k.deps.Runs = nil
			p, errs := k.compile(t, `[{"type":"tool","server":"demo","name":"`+name+`","args":{"x":1}}]`)
			if errs != nil {
				t.Fatal(errs)
			}
			began := time.Now()
			_, err := p.Run(t.Context(), nil, io.Discard, stages.RunOptions{Timeout: 5 * time.Second})
			if e, ok := err.(*stages.Error); !ok || e.Code != stages.Timeout || len(tools.tasks) != 0 || time.Since(began) != 5*time.Second {
				t.Errorf("%s: got %v after %s, and %d tasks live", name, err, time.Since(began), len(tools.tasks))
			}
			k.store.Close()
		})
	}
}

// TestTaskShared: two equal calls that the server answers with one task are both waited for.
func TestTaskShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, tools := newTaskTools(t)
		tools.same = true
		out, err := k.runFor(t, "["+list("[1,1,2,1]")+","+strings.Replace(makeEach, `cy":2`, `cy":4`, 1)+"]", 10, 5*time.Second, false)
		if err != nil || out != "[1,\n1,\n2,\n1]\n" || tools.made() != 4 {
			t.Errorf("got %v, %q after %d calls", err, out, tools.made())
		}
		k.store.Close()
	})
}

// TestTaskRoom: tasks that the log of a run has no room for are not waited for again, and their tools are not called again.
func TestTaskRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, tools := newTaskTools(t)
		tools.long = strings.Repeat("x", 1<<20)
		items := make([]string, 20)
		for i := range items {
			items[i] = fmt.Sprint(i)
		}
		each := strings.Replace(makeEach, `"concurrency":2`, `"concurrency":20,"on_error":"skip"`, 1)
		p, errs := k.compile(t, "["+list("["+strings.Join(items, ",")+"]")+","+each+"]")
		if errs != nil {
			t.Fatal(errs)
		}
		report, err := p.Run(t.Context(), nil, io.Discard, stages.RunOptions{Timeout: 5 * time.Second})
		if e, ok := err.(*stages.Error); !ok || e.Code != stages.Timeout || !e.Resume {
			t.Fatalf("got %v", err)
		}
		out, again, err := k.run(t, resume(report.Run))
		done := strings.Count(out, "\n")
		if err != nil || done < 10 || done == len(items) || again.Stages[len(again.Stages)-1].Failed == 0 || tools.made() != len(items) {
			t.Errorf("got %v, %d of %d items done after %d calls", err, done, len(items), tools.made())
		}
		k.store.Close()
	})
}

// TestTaskReadTwice: to wait for the task of a tool that only reads changes nothing, so that a run can be continued more than
// once.
func TestTaskReadTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, tools := newTaskTools(t)
		e := k.failed(t, `[{"type":"tool","server":"demo","name":"ask","args":{"x":7},"timeout":3}]`)
		time.Sleep(10 * time.Second)
		for range 2 {
			if out, _, err := k.run(t, resume(e.Run)); err != nil || out != "7" || tools.made() != 1 {
				t.Errorf("got %v, %q after %d calls", err, out, tools.made())
			}
		}
		k.store.Close()
	})
}

// askedTasks are tools that ask something four seconds after they have answered with a task.
type askedTasks struct{ *taskTools }

func (a askedTasks) CallTool(ctx context.Context, c stages.Call) (stages.Result, error) {
	own, keep := *c.Task, c.Task.Keep
	own.Keep = func(handle string) {
		keep(handle)
		go func() {
			time.Sleep(4 * time.Second)
			_, _ = c.Asker.Ask(ctx, stages.Question{}) // nobody answers
		}()
	}
	c.Task = &own
	return a.taskTools.CallTool(ctx, c)
}

// TestTaskAsked: the task of an item that finishes after the failure of another one has the time of the run, which is paused
// while the task asks something.
func TestTaskAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, tools := newTaskTools(t)
		k.deps.Tools = askedTasks{tools}
		tools.fault = func(x string, _ int) error {
			if x == "2" {
				return stages.Errorf(stages.ToolError, "", "out of ink")
			}
			return nil
		}
		p, errs := k.compile(t, `[`+list("[1,2]")+`,`+makeEach+`]`)
		if errs != nil {
			t.Fatal(errs)
		}
		asker := &stages.Asker{Form: true, Ask: func(ctx context.Context, _ stages.Question) (json.RawMessage, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}}
		_, err := p.Run(t.Context(), nil, io.Discard, stages.RunOptions{Timeout: 6 * time.Second, Asker: asker})
		if e, ok := err.(*stages.Error); !ok || e.Code != stages.ToolError || e.Item != 2 || e.Done != 1 {
			t.Errorf("got %+v", err)
		}
		k.store.Close()
	})
}

// TestHoldEffect: a call outside a run that was sent outlasts what is around it, but not once its tool has answered with a task.
func TestHoldEffect(t *testing.T) {
	for _, tt := range []struct {
		sent, task bool
		want       time.Duration
	}{{false, false, time.Second}, {true, false, time.Hour}, {true, true, time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			around, stop := context.WithTimeout(t.Context(), time.Second)
			defer stop()
			caller, end := context.WithTimeout(t.Context(), time.Hour)
			defer end()
			var c stages.Call
			ctx, release := stages.HoldEffect(around, caller, &c)
			defer release()
			if tt.sent && !c.MaySend() {
				t.Error("the call may not be sent")
			}
			if tt.task {
				c.Task.Keep("")
			}
			if <-ctx.Done(); time.Since(begun) != tt.want {
				t.Errorf("sent %v, a task %v: it ends after %s", tt.sent, tt.task, time.Since(begun))
			}
		})
	}
}
