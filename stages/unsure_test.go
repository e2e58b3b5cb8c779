package stages_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcsh-dev/mcsh/runs"
	"github.com/mcsh-dev/mcsh/stages"
)

// effects counts what the tools of a world have changed.
type effects struct {
	mu    sync.Mutex
	times map[string]int
}

func (e *effects) add(args map[string]any) (times int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.times == nil {
		e.times = map[string]int{}
	}
	x := fmt.Sprint(args["x"])
	e.times[x]++
	return e.times[x]
}

// TestResumeUnsure: an item whose call has left, and of which nobody knows that it failed, is not run again: the resumption
// is refused and names it, and the error of the run says so beforehand. What the tool said to have failed is run again.
func TestResumeUnsure(t *testing.T) {
	const post2 = `{"type":"for_each","stages":[{"type":"tool","server":"demo","name":"post"},{"type":"tool","server":"demo","name":"then"}]}`
	answered := stages.Errorf(stages.ToolError, "", "no such account")
	answered.Answered = true
	for _, tt := range []struct {
		name    string
		each    string
		failure *stages.Error // of post for item 3, after it took effect; nil: of then
		unsure  bool
	}{
		{"no answer in time", postEach, stages.Errorf(stages.Timeout, "", "the tool did not answer within 1s"), true},
		{"connection lost", postEach, stages.Errorf(stages.ServerUnavailable, "", "the server has gone"), true},
		{"answer too long", postEach, stages.Errorf(stages.LimitExceeded, "", "too long (limit result)"), true},
		{"answer not valid", postEach, stages.Errorf(stages.ToolError, "", "not valid"), true},
		{"tried again", strings.TrimSuffix(postEach, "}") + `,"retries":2}`, stages.Errorf(stages.Timeout, "", "no answer"), true},
		{"let pass", strings.TrimSuffix(postEach, "}") + `,"on_error":"skip"}`, stages.Errorf(stages.Timeout, "", "no answer"), true},
		{"the first of two effects", post2, nil, true},
		{"within another", `{"type":"for_each","stages":[{"type":"command","command":"cat"},` + postEach + `]}`, stages.Errorf(stages.Timeout, "", "no answer"), true},
		{"said to have failed", postEach, answered, false},
		{"said to have failed, of two", post2, answered, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k := newKept(t, runs.Options{})
			var post, then effects
			k.add("post", writes, "x", func(_ context.Context, args map[string]any) (string, error) {
				if n := post.add(args); fmt.Sprint(args["x"]) == "3" && n == 1 && tt.failure != nil {
					return "", tt.failure
				}
				return fmt.Sprint(args["x"]), nil
			})
			k.add("then", writes, "x", func(_ context.Context, args map[string]any) (string, error) {
				if n := then.add(args); fmt.Sprint(args["x"]) == "3" && n == 1 && tt.failure == nil {
					return "", answered
				}
				return "{}", nil
			})
			_, report, err := k.run(t, "["+numbers5+","+tt.each+","+`{"type":"tool","server":"demo","name":"echo"}`+"]")
			e, failed := err.(*stages.Error)
			if failed && strings.Contains(e.Hint, "item 3 of stage 2 may have taken effect") != tt.unsure {
				t.Errorf("the error says %q", e.Hint)
			}
			_, errs := k.compile(t, from(report.Run, 1, tt.each))
			if !tt.unsure {
				if _, _, err := k.run(t, from(report.Run, 1, tt.each)); err != nil || post.times["3"] != 2 || post.times["2"] != 1 {
					t.Errorf("got %v, effects %v", err, post.times)
				}
				return
			}
			if len(errs) != 1 || errs[0].Code != stages.InvalidPipeline || errs[0].Place != "2" || !strings.HasPrefix(errs[0].Msg, "item 3 may have taken effect") {
				t.Fatalf("got %v", errs)
			}
			if !strings.Contains(errs[0].Hint, "jq 'del(.[0:") || !strings.Contains(errs[0].Hint, `"stage": 1}`) {
				t.Errorf("the hint is %q", errs[0].Hint)
			}
			if post.times["3"] != 1 {
				t.Errorf("effects %v", post.times)
			}
		})
	}
}

// TestResumeUnsureMany: a message names at most so many items, and a program only where it stays short.
func TestResumeUnsureMany(t *testing.T) {
	k := newKept(t, runs.Options{})
	k.add("post", writes, "x", func(_ context.Context, args map[string]any) (string, error) {
		if n, _ := strconv.Atoi(fmt.Sprint(args["x"])); n%4 == 0 {
			return "", stages.Errorf(stages.Timeout, "", "no answer")
		} else if n%4 == 2 {
			answer := stages.Errorf(stages.ToolError, "", "no such account")
			answer.Answered = true
			return "", answer
		}
		return "{}", nil
	})
	_, run := k.must(t, "["+numbers100+","+strings.TrimSuffix(postEach, "}")+`,"on_error":"skip"}]`)
	_, errs := k.compile(t, from(run, 1, postEach))
	if len(errs) != 1 || !strings.HasPrefix(errs[0].Msg, "items 4, 8, 12") || !strings.Contains(errs[0].Msg, "80 and others up to 100 may") ||
		strings.Contains(errs[0].Hint, "del(") || len(errs[0].Hint) > 1000 {
		t.Errorf("got %v", errs)
	}
}

// TestNestedFlagAlone: a for_each around a tool with the flag does not run the tool's calls side by side unasked either.
func TestNestedFlagAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		post := w.add("post", writes, "x", func(context.Context, map[string]any) (string, error) {
			time.Sleep(time.Second)
			return "{}", nil
		})
		if _, _, err := w.run(t, `[{"type":"for_each","stages":[{"type":"command","command":"cat"},`+postEach+`]}]`, "1\n2\n3\n"); err != nil {
			t.Fatal(err)
		}
		if got := post.peak.Load(); got != 1 {
			t.Errorf("%d calls at once", got)
		}
	})
}

// TestResumeInFlight: a call that was on its way when the caller went away.
func TestResumeInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKept(t, runs.Options{})
		defer k.store.Close()
		var post effects
		k.add("post", writes, "x", func(ctx context.Context, args map[string]any) (string, error) {
			if n := post.add(args); fmt.Sprint(args["x"]) == "3" && n == 1 {
				<-ctx.Done()
				return "", ctx.Err()
			}
			return "{}", nil
		})
		p, errs := k.compile(t, "["+numbers5+","+postEach+"]")
		if errs != nil {
			t.Fatal(errs)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		report, err := p.Run(ctx, nil, io.Discard, stages.RunOptions{})
		e, ok := err.(*stages.Error)
		if !ok || !strings.Contains(e.Hint, "item 3 of stage 2 may have taken effect") {
			t.Errorf("got %+v", err)
		}
		_, errs = k.compile(t, from(report.Run, 1, postEach))
		if len(errs) != 1 || !strings.Contains(errs[0].Hint, "1-2 succeeded") || !strings.Contains(errs[0].Hint, "del(.[0:3])") {
			t.Errorf("got %v", errs)
		}
	})
}

// TestResumeDistinct: what is to be called once is called once over all runs that take it up, whatever item asks for it.
func TestResumeDistinct(t *testing.T) {
	k, mend := newFlaky(t, runs.Options{}, "2")
	k.add("same", reads, "n", func(context.Context, map[string]any) (string, error) {
		return `[{"x":1,"y":5},{"x":2},{"y":5,"x":1},{"x":1,"y":5}]`, nil
	})
	const each = `{"type":"tool","server":"demo","name":"post","for_each":true,"distinct":true}`
	e := k.failedRun(t, `{"type":"tool","server":"demo","name":"same","args":{"n":1}}`, each)
	again := k.failedRun(t, from1(e), each)
	dry, errs := k.compile(t, from(again.Run, 1, each))
	if errs != nil {
		t.Fatal(errs)
	}
	report, err := dry.Run(t.Context(), nil, io.Discard, stages.RunOptions{DryRun: true})
	if err != nil || len(report.DryRun.Calls) != 1 || report.DryRun.Calls[0].Count != 1 {
		t.Errorf("a dry run shows %+v, %v", report.DryRun, err)
	}
	mend()
	out, _ := k.must(t, from(again.Run, 1, each))
	if want := "[{\"done\":1},\n{\"done\":2},\n{\"done\":1},\n{\"done\":1}]\n"; out != want {
		t.Errorf("got %q", out)
	}
	if got := strings.Join(k.callsOf("post"), " "); strings.Count(got, `"x":1`) != 1 || strings.Count(got, `"x":2`) != 3 {
		t.Errorf("calls %s", got)
	}
	if _, errs := k.compile(t, from(k.failedRunOf(t, "post").Run, 1, each)); len(errs) != 1 || errs[0].Field != "distinct" {
		t.Errorf("distinct where it was not: %v", errs)
	}
}

// TestResumeOtherItems: items that come in another order than before are refused before anything is called.
func TestResumeOtherItems(t *testing.T) {
	k, mend := newFlaky(t, runs.Options{}, "3")
	turns := 0
	k.add("turn", reads, "n", func(context.Context, map[string]any) (string, error) {
		turns++
		return map[bool]string{true: "[1,2,3,4]", false: "[4,3,2,1]"}[turns != 2], nil
	})
	k.add("start", reads, "x", func(context.Context, map[string]any) (string, error) { return `{"n":1}`, nil })
	const start = `{"type":"tool","server":"demo","name":"start","args":{"x":1}}`
	const turn = `{"type":"tool","server":"demo","name":"turn"}`
	e := k.failedRun(t, start, turn, postEach)
	mend()
	called := k.tools["post"].calls.Load()
	_, _, err := k.run(t, from(e.Run, 1, turn, postEach))
	if err == nil || !strings.Contains(err.Error(), "item 1 is another than in the run") || k.tools["post"].calls.Load() != called {
		t.Errorf("got %v after %d calls", err, k.tools["post"].calls.Load()-called)
	}
	k.must(t, from(e.Run, 1, turn, postEach))
	if got := k.tools["post"].calls.Load() - called; got != 2 {
		t.Errorf("%d calls were made", got)
	}
}

// TestResumeInputs: inputs with effects run for a for_each as a whole, and would again.
func TestResumeInputs(t *testing.T) {
	k, _ := newFlaky(t, runs.Options{}, "3")
	each := `{"type":"for_each","stages":[{"type":"tool","server":"demo","name":"post"},{"type":"command","command":"append","args":["@b"],"inputs":{"b":[{"type":"tool","server":"demo","name":"post","args":{"x":7}}]}}]}`
	e := k.failedRun(t, numbers5, each)
	_, errs := k.compile(t, from(e.Run, 1, each))
	if len(errs) != 1 || !strings.Contains(errs[0].Msg, "inputs within this for_each") {
		t.Errorf("got %v", errs)
	}
}

// TestSharedKeepsItself: an answer that grows when its call is made again does not give way to itself.
func TestSharedKeepsItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		var seen effects
		slow := w.add("slow2", reads, "x", func(_ context.Context, args map[string]any) (string, error) {
			n := seen.add(args)
			switch x := fmt.Sprint(args["x"]); {
			case x == "1" && n == 1:
				return "", stages.Errorf(stages.ServerUnavailable, "", "not now")
			case x == "1":
				time.Sleep(5 * time.Second)
			case x == "3":
				time.Sleep(20 * time.Second)
			default:
				time.Sleep(10 * time.Millisecond)
			}
			return strings.Repeat("x", 600), nil
		})
		d := w.deps()
		d.Limits = stages.Limits{Shared: 1600}
		_, _, err := w.runWith(t, `[{"type":"tool","server":"demo","name":"slow2","for_each":true,"concurrency":2,"retries":1}]`, "1\n2\n3\n1\n", d, stages.RunOptions{})
		if err != nil || seen.times["1"] != 2 || slow.calls.Load() != 4 {
			t.Errorf("got %v, calls %v", err, seen.times)
		}
	})
}

// torn are runs whose results of items cannot be read once a pipeline that resumes them runs.
type torn struct {
	stages.Runs
	broken atomic.Bool
}

func (r *torn) Open(run, name string) (*io.SectionReader, string, func()) {
	data, why, release := r.Runs.Open(run, name)
	items := strings.HasSuffix(name, " items")
	r.broken.Store(!items)
	if items && data != nil {
		data = io.NewSectionReader(tornReader{r, data}, 0, data.Size())
	}
	return data, why, release
}

type tornReader struct {
	r    *torn
	data *io.SectionReader
}

func (r tornReader) ReadAt(p []byte, at int64) (int, error) {
	if r.r.broken.Load() {
		return 0, errors.New("the disk is gone")
	}
	return r.data.ReadAt(p, at)
}

// TestResumeUnreadable: a result that is kept and cannot be read is an error, not an item that was resumed.
func TestResumeUnreadable(t *testing.T) {
	k, mend := newFlaky(t, runs.Options{}, "60")
	e := k.failedRun(t, numbers100, postEach)
	mend()
	k.deps.Runs = &torn{Runs: k.deps.Runs}
	called := k.tools["post"].calls.Load()
	_, report, err := k.run(t, from(e.Run, 1, strings.TrimSuffix(postEach, "}")+`,"with_item":true}`))
	if err == nil || !strings.Contains(err.Error(), "the disk is gone") || report.Stages[1].Resumed != 0 {
		t.Errorf("got %v, %+v", err, report.Stages)
	}
	if got := k.tools["post"].calls.Load() - called; got != 0 {
		t.Errorf("%d calls were made", got)
	}
}

// TestResumeOther: a for_each that was written in another way and calls the tool that may have changed something already
// is refused; differences in time, mapping and written-out defaults are none.
func TestResumeOther(t *testing.T) {
	const rest = `"type":"tool","server":"demo","name":"post"`
	for _, tt := range []struct {
		name    string
		after   string // what follows from
		refused bool
	}{
		{"the same", `{` + rest + `,"for_each":true}`, false},
		{"more time", `{` + rest + `,"for_each":true,"timeout":50}`, false},
		{"defaults written out", `{` + rest + `,"for_each":true,"args":{},"paginate":false}`, false},
		{"another form", `{"type":"for_each","stages":[{` + rest + `}]}`, true},
		{"more stages", `{"type":"for_each","stages":[{` + rest + `},{"type":"command","command":"cat"}]}`, true},
		{"other arguments", `{` + rest + `,"for_each":true,"args":{"x":7}}`, true},
		{"in a branch", `{"type":"parallel","branches":{"a":[{` + rest + `,"for_each":true}]}}`, true},
		{"another tool", `{"type":"tool","server":"demo","name":"write","for_each":true}`, false},
		{"behind a command", `{"type":"command","command":"cat"},{"type":"for_each","stages":[{` + rest + `}]}`, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k := newKept(t, runs.Options{})
			var post effects
			answered := stages.Errorf(stages.ToolError, "", "no such account")
			answered.Answered = true
			k.add("post", writes, "x", func(_ context.Context, args map[string]any) (string, error) {
				if post.add(args); fmt.Sprint(args["x"]) == "3" {
					return "", answered
				}
				return "{}", nil
			})
			_, report, err := k.run(t, "["+numbers5+",{"+rest+`,"for_each":true}]`)
			if err == nil {
				t.Fatal("item 3 did not fail")
			}
			_, errs := k.compile(t, from(report.Run, 1, tt.after))
			refused := len(errs) == 1 && errs[0].Place == "2" && strings.Contains(errs[0].Msg, "has called demo/post for items of its stage 2 already")
			if refused != tt.refused || len(errs) > 0 && !refused {
				t.Errorf("got %v, refused should be %t", errs, tt.refused)
			}
		})
	}
}
