package stages_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcsh-dev/mcsh/runs"
	"github.com/mcsh-dev/mcsh/stages"
)

// newFlaky is a world with tools that fail at one item until they are mended: check, which reads, and post, which
// changes something.
func newFlaky(t *testing.T, o runs.Options, bad string) (k *kept, mend func()) {
	t.Helper()
	k = newKept(t, o)
	var mended atomic.Bool
	do := func(_ context.Context, args map[string]any) (string, error) {
		if fmt.Sprint(args["x"]) == bad && !mended.Load() {
			return "", errors.New("not now")
		}
		return fmt.Sprintf(`{"done":%v}`, args["x"]), nil
	}
	k.add("check", reads, "x", do)
	k.add("post", writes, "x", do)
	return k, func() { mended.Store(true) }
}

const (
	numbers100 = `{"type":"tool","server":"demo","name":"numbers","args":{"n":100}}`
	checkEach  = `{"type":"tool","server":"demo","name":"check","for_each":true}`
	postEach   = `{"type":"tool","server":"demo","name":"post","for_each":true}`
)

// failedRun runs a pipeline that must fail, and returns its error.
func (k *kept) failedRun(t *testing.T, list ...string) *stages.Error {
	t.Helper()
	_, _, err := k.run(t, "["+strings.Join(list, ",")+"]")
	e, ok := err.(*stages.Error)
	if !ok {
		t.Fatalf("running %q: got %v", list, err)
	}
	return e
}

// done is what the for_each of a flaky world gives for 1 to n.
func done(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%s{\"done\":%d}", map[bool]string{true: "[", false: ",\n"}[i == 0], i+1)
	}
	return b.String() + "]\n"
}

// TestResume: a for_each of 100 that failed at item 60 calls the rest when it is taken up, wherever its items come from.
func TestResume(t *testing.T) {
	for _, tt := range []struct {
		name   string
		before []string // stages before the for_each
		each   string
		tool   string
		stage  int // to continue from
	}{
		{"items of a tool", []string{numbers100}, checkEach, "check", 1},
		{"items of commands", []string{numbers100, cat, upper}, checkEach, "check", 3},
		{"items of chance", []string{numbers100, `{"type":"command","command":"late"}`}, checkEach, "check", 2},
		{"behind a window", []string{numbers100, window}, checkEach, "check", 2},
		{"one at a time", []string{numbers100}, strings.Replace(checkEach, "}", `,"concurrency":1}`, 1), "check", 1},
		{"with effects", []string{numbers100, cat}, postEach, "post", 2},
		{"stages", []string{numbers100}, `{"type":"for_each","stages":[{"type":"tool","server":"demo","name":"check"},` + cat + `]}`, "check", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k, mend := newFlaky(t, runs.Options{}, "60")
			e := k.failedRun(t, append(tt.before, tt.each, cat)...)
			if e.Continue != tt.stage || e.Item != 60 {
				t.Fatalf("got %v at item %d, continue from stage %d, want %d", e, e.Item, e.Continue, tt.stage)
			}
			mend()
			called := k.tools[tt.tool].calls.Load()
			out, report, err := k.run(t, from(e.Run, e.Continue, retrying(tt.each)))
			if err != nil || out != done(100) {
				t.Fatalf("got %v, %.300q", err, out)
			}
			if got, want := k.tools[tt.tool].calls.Load()-called, int64(100-e.Done); got != want || e.Done < 50 {
				t.Errorf("%d calls were made, want %d: %d items were done", got, want, e.Done)
			}
			last := report.Stages[len(report.Stages)-1]
			if last.Resumed != int64(e.Done) || last.Items != 100 || last.OK != int64(100-e.Done) {
				t.Errorf("the report has %d items resumed, %d ok, of %d", last.Resumed, last.OK, last.Items)
			}
			if got := k.tools["numbers"].calls.Load(); got > 1 && tt.name != "items of chance" {
				t.Errorf("the tool before was called %d times", got)
			}
		})
	}
}

// retrying is a for_each with other choices of how its items are run.
func retrying(each string) string {
	return strings.TrimSuffix(each, "}") + `,"retries":2,"on_error":"fail"}`
}

// TestResumeAgain: what was taken up and fails again is taken up from there; a for_each behind the first one too.
func TestResumeAgain(t *testing.T) {
	k, mend := newFlaky(t, runs.Options{}, "60")
	k.add("pick", reads, "done", func(_ context.Context, args map[string]any) (string, error) {
		return fmt.Sprint(args["done"]), nil
	})
	pick := `{"type":"tool","server":"demo","name":"pick","for_each":true}`
	e := k.failedRun(t, numbers100, cat, checkEach, pick)
	again := k.failedRun(t, from1(e), checkEach, pick)
	if again.Continue != 1 {
		t.Fatalf("got %v, continue from %d", again, again.Continue)
	}
	mend()
	called, picked := k.tools["check"].calls.Load(), k.tools["pick"].calls.Load()
	out, run := k.must(t, "["+from1(again)+","+checkEach+","+pick+"]")
	if !strings.HasPrefix(out, "[1,\n2,\n") || !strings.HasSuffix(out, "100]\n") {
		t.Errorf("got %.100q", out)
	}
	if got, most := k.tools["check"].calls.Load()-called, int64(100-max(e.Done, again.Done)); got > most {
		t.Errorf("%d calls were made, want at most %d", got, most)
	}
	if got := k.tools["pick"].calls.Load() - picked; got == 0 || got > 100 {
		t.Errorf("%d calls of the stage behind were made", got)
	}
	called, picked = k.tools["check"].calls.Load(), k.tools["pick"].calls.Load()
	k.must(t, from(run, 1, checkEach, pick))
	if k.tools["check"].calls.Load() != called || k.tools["pick"].calls.Load() != picked {
		t.Error("a run that is complete was not answered from what is kept")
	}
}

func from1(e *stages.Error) string { return strings.Trim(from(e.Run, e.Continue), "[]") }

// TestResumeCut: where the stage before the for_each was cut short, it reads again; nothing is lost, and what was done
// is not done again. The stages before are another for_each and a stage whose output is too long to be kept.
func TestResumeCut(t *testing.T) {
	for _, tt := range []struct {
		name   string
		o      runs.Options
		before []string
	}{
		{"another for_each", runs.Options{}, []string{numbers100, strings.Replace(getEach, "get", "same", 1)}},
		{"too long", runs.Options{Output: 200}, []string{numbers100}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k, mend := newFlaky(t, tt.o, "60")
			k.add("same", reads, "id", func(_ context.Context, args map[string]any) (string, error) { return fmt.Sprint(args["id"]), nil })
			e := k.failedRun(t, append(tt.before, checkEach)...)
			mend()
			before, same := k.tools["check"].calls.Load(), k.tools["same"].calls.Load()
			out, _, err := k.run(t, from(e.Run, len(tt.before), checkEach))
			if err != nil || out != done(100) {
				t.Fatalf("got %v, %.300q", err, out)
			}
			if got, want := k.tools["check"].calls.Load()-before, int64(100-e.Done); tt.o.Output == 0 && got != want {
				t.Errorf("%d calls were made, want %d", got, want)
			}
			if got := k.tools["same"].calls.Load(); got > 100 || got == same && same < 100 && len(tt.before) > 1 {
				t.Errorf("the for_each before made %d calls, after %d", got, same)
			}
		})
	}
}

// TestResumeOnlyEqual: items are known by their place and their bytes, and only for a for_each that does the same.
func TestResumeOnlyEqual(t *testing.T) {
	k, mend := newFlaky(t, runs.Options{}, "60")
	e := k.failedRun(t, numbers100, checkEach)
	mend()
	for _, tt := range []struct {
		name, each string
		same       bool
	}{
		{"other arguments", strings.Replace(checkEach, `"for_each"`, `"args":{"y":1},"for_each"`, 1), false},
		{"another tool", strings.Replace(checkEach, "check", "echo", 1), false},
		{"another time for a call", strings.Replace(checkEach, `"for_each"`, `"timeout":9,"for_each"`, 1), true},
		{"another form of results", strings.Replace(checkEach, `"for_each"`, `"collect":"lines","with_item":true,"on_error":"skip","for_each"`, 1), true},
		{"in another order", `{"for_each":true,"name":"check","server":"demo","type":"tool"}`, true},
	} {
		_, report, err := k.run(t, from(e.Run, 1, tt.each))
		resumed := int64(0)
		if err == nil {
			resumed = report.Stages[1].Resumed
		}
		if (resumed < int64(e.Done)) && tt.same || resumed != 0 && !tt.same {
			t.Errorf("%s: %d items were resumed (%v)", tt.name, resumed, err)
		}
	}
	_, report, err := k.run(t, from(e.Run, 1, `{"type":"command","command":"append","args":["x"]}`, checkEach))
	if err == nil && report.Stages[2].Resumed != 0 {
		t.Errorf("behind another stage %d items were resumed", report.Stages[2].Resumed)
	}
}

// TestResumeEffects: what may have changed something is not done twice: where a result was not kept, that is refused.
func TestResumeEffects(t *testing.T) {
	k, mend := newFlaky(t, runs.Options{Output: 1000}, "60")
	e := k.failedRun(t, numbers100, postEach)
	_, errs := k.compile(t, from(e.Run, 1, postEach))
	if len(errs) != 1 || errs[0].Code != stages.InvalidPipeline || !strings.Contains(errs[0].Msg, "not all results") || errs[0].Place != "2" {
		t.Errorf("results that were not kept: %v", errs)
	}
	mend()
	out, _, err := k.run(t, from(k.failedRunOf(t, "check").Run, 1, checkEach))
	if err != nil || out != done(100) {
		t.Errorf("results of a for_each that reads were not kept: %v, %.100q", err, out)
	}
	if got := k.tools["post"].calls.Load(); got > 61 {
		t.Errorf("%d calls were made", got)
	}
}

// failedRunOf makes a run whose for_each over 100 items ends in the middle.
func (k *kept) failedRunOf(t *testing.T, tool string) *stages.Error {
	t.Helper()
	p, errs := k.compile(t, "["+numbers100+","+strings.Replace(checkEach, "check", tool, 1)+"]")
	if errs != nil {
		t.Fatal(errs)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err := p.Run(ctx, nil, io.Discard, stages.RunOptions{Progress: func(p stages.Progress) {
		if p.Items == 60 {
			cancel()
		}
	}})
	e, ok := err.(*stages.Error)
	if !ok {
		t.Fatalf("got %v", err)
	}
	return e
}

// TestResumeAfterTime: items that were done before the time was up are not run again.
func TestResumeAfterTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKept(t, runs.Options{})
		k.add("wait", reads, "x", func(ctx context.Context, args map[string]any) (string, error) {
			select {
			case <-time.After(time.Second):
				return fmt.Sprintf(`{"done":%v}`, args["x"]), nil
			case <-ctx.Done():
				return "", ctx.Err()
			}
		})
		each := `{"type":"tool","server":"demo","name":"wait","for_each":true,"concurrency":1}`
		p, errs := k.compile(t, "["+numbers100+","+cat+","+each+"]")
		if errs != nil {
			t.Fatal(errs)
		}
		_, err := p.Run(t.Context(), nil, io.Discard, stages.RunOptions{Timeout: 60*time.Second + time.Millisecond})
		e, ok := err.(*stages.Error)
		if !ok || e.Code != stages.Timeout || e.Continue != 2 {
			t.Fatalf("got %v, continue from %d", err, e.Continue)
		}
		begun := time.Now()
		if out, _ := k.must(t, from(e.Run, 2, each)); out != done(100) {
			t.Errorf("got %.100q", out)
		}
		if took := time.Since(begun); took != 40*time.Second {
			t.Errorf("it took %s, want 40 s", took)
		}
	})
}

// TestResumeDryRun: a dry run shows the calls that are left.
func TestResumeDryRun(t *testing.T) {
	k, _ := newFlaky(t, runs.Options{}, "60")
	e := k.failedRun(t, numbers100, postEach)
	p, errs := k.compile(t, from(e.Run, 1, postEach))
	if errs != nil {
		t.Fatal(errs)
	}
	report, err := p.Run(t.Context(), nil, io.Discard, stages.RunOptions{DryRun: true})
	if err != nil || report.DryRun == nil || len(report.DryRun.Calls) != 1 || report.DryRun.Calls[0].Count != int64(100-e.Done) {
		t.Errorf("got %+v, %v, want %d calls", report.DryRun, err, 100-e.Done)
	}
}

// TestResumeEffectsAgain: what was done is known however often a for_each is taken up, also where the run between ended
// before it came to it, or was a dry run.
func TestResumeEffectsAgain(t *testing.T) {
	k, mend := newFlaky(t, runs.Options{}, "60")
	e := k.failedRun(t, numbers100, strings.TrimSuffix(postEach, "}")+`,"concurrency":8}`)
	again := k.failedRun(t, from1(e), strings.TrimSuffix(postEach, "}")+`,"concurrency":1}`)
	p, errs := k.compile(t, from(again.Run, 1, postEach))
	if errs != nil {
		t.Fatal(errs)
	}
	dry, err := p.Run(t.Context(), nil, io.Discard, stages.RunOptions{DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	mend()
	if out, _ := k.must(t, from(dry.Run, 1, postEach)); out != done(100) {
		t.Errorf("got %.100q", out)
	}
	seen := map[string]int{}
	for _, call := range k.callsOf("post") {
		seen[call]++
	}
	for call, n := range seen {
		if n > 1 && !strings.Contains(call, `"x":60}`) {
			t.Errorf("%s was called %d times", call, n)
		}
	}
}
