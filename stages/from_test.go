package stages_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcsh-dev/mcsh/runs"
	"github.com/mcsh-dev/mcsh/stages"
)

// kept is a world whose runs are kept.
type kept struct {
	*world
	store *runs.Store
	deps  stages.Deps
}

func newKept(t *testing.T, o runs.Options) *kept {
	t.Helper()
	o.Dir = t.TempDir()
	k := &kept{world: newWorld(), store: runs.New(o)}
	t.Cleanup(func() { k.store.Close() })
	k.deps = k.world.deps()
	k.deps.Runs = k.store.Of("me")
	return k
}

func (k *kept) compile(t *testing.T, pipeline string) (*stages.Pipeline, []*stages.Error) {
	t.Helper()
	return stages.Compile(t.Context(), []byte(pipeline), k.deps)
}

func (k *kept) run(t *testing.T, pipeline string) (string, stages.Report, error) {
	t.Helper()
	p, errs := k.compile(t, pipeline)
	if errs != nil {
		t.Fatalf("compiling %s: %v", pipeline, errs)
	}
	var out bytes.Buffer
	report, err := p.Run(t.Context(), nil, &out, stages.RunOptions{})
	return out.String(), report, err
}

// must runs a pipeline that succeeds.
func (k *kept) must(t *testing.T, pipeline string) (out, run string) {
	t.Helper()
	out, report, err := k.run(t, pipeline)
	if err != nil {
		t.Fatalf("running %s: %v", pipeline, err)
	}
	return out, report.Run
}

// from is a pipeline that begins with a stage of a run.
func from(run string, stage int, rest ...string) string {
	first := fmt.Sprintf(`{"type":"from","run":%q}`, run)
	if stage != 0 {
		first = fmt.Sprintf(`{"type":"from","run":%q,"stage":%d}`, run, stage)
	}
	return "[" + strings.Join(append([]string{first}, rest...), ",") + "]"
}

const (
	numbers5 = `{"type":"tool","server":"demo","name":"numbers","args":{"n":5}}`
	cat      = `{"type":"command","command":"cat"}`
	upper    = `{"type":"command","command":"upper"}`
	head2    = `{"type":"command","command":"head","args":["2"]}`
	window   = `{"type":"preview"}`
	getEach  = `{"type":"tool","server":"demo","name":"get","for_each":true,"concurrency":1}`
)

// TestFromIterates: however often a pipeline goes on from the result of a tool, the tool is called once.
func TestFromIterates(t *testing.T) {
	k := newKept(t, runs.Options{})
	_, run := k.must(t, "["+numbers5+"]")
	for i := range 5 {
		out, again := k.must(t, from(run, 1, fmt.Sprintf(`{"type":"command","command":"head","args":["%d"]}`, i+1)))
		if out != k.lines(i+1) {
			t.Errorf("iteration %d: got %q", i, out)
		}
		if i == 2 {
			run = again // what is begun from is an output of the new run too
		}
	}
	if got := k.tools["numbers"].calls.Load(); got != 1 {
		t.Errorf("%d calls were made, want 1", got)
	}
}

func (k *kept) lines(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%d\n", i+1)
	}
	return b.String()
}

// TestFromStages: every stage of a run can be begun from, those within a chain too, which are made again, and those
// that a stage behind them has cut short.
func TestFromStages(t *testing.T) {
	k := newKept(t, runs.Options{})
	all := k.lines(5)
	out, run := k.must(t, "["+strings.Join([]string{numbers5, cat, window, upper, cat, head2, `{"type":"command","command":"append","args":["end"]}`}, ",")+"]")
	for stage, want := range []string{out, all, all, all, all, all, "1\n2\n", out} {
		if got, _ := k.must(t, from(run, stage)); got != want {
			t.Errorf("stage %d: got %q, want %q", stage, got, want)
		}
	}
	if got := k.tools["numbers"].calls.Load(); got != 1 {
		t.Errorf("%d calls were made, want 1", got)
	}
}

// TestFromKeepsChance: what a command made by chance is kept as it was, and what stands before it in the chain too.
func TestFromKeepsChance(t *testing.T) {
	k := newKept(t, runs.Options{})
	_, run := k.must(t, "["+numbers5+","+upper+`,{"type":"command","command":"roll"},`+cat+"]")
	first, _ := k.must(t, from(run, 3))
	for _, stage := range []int{3, 4, 0} {
		if got, _ := k.must(t, from(run, stage)); got != first {
			t.Errorf("stage %d: got %q, then %q", stage, first, got)
		}
	}
	if got, _ := k.must(t, from(run, 2)); got != k.lines(5) {
		t.Errorf("stage 2: got %q", got)
	}
}

// TestFromRefused: a plan that cannot begin where it says is refused before anything runs, with what to do.
func TestFromRefused(t *testing.T) {
	k := newKept(t, runs.Options{Output: 1 << 20})
	_, stopped := k.must(t, "["+numbers5+","+getEach+`,{"type":"command","command":"head","args":["1"]}]`)
	_, long := k.must(t, `[{"type":"tool","server":"demo","name":"numbers","args":{"n":200000}},{"type":"command","command":"drop"}]`)
	_, report, err := k.run(t, `[{"type":"command","command":"append","args":["13"]},`+getEach+","+cat+"]")
	if err == nil {
		t.Fatal("item 13 did not fail")
	}
	failed := report.Run
	for _, tt := range []struct {
		name, pipeline string
		code           stages.Code
		words          []string
	}{
		{"never was", from("r_aaaaaaaaaaaaaaaaaaaaaaaaaa", 1), stages.UnknownRun, []string{`there is no run "r_aaaaaaaaaaaaaaaaaaaaaaaaaa"`}},
		{"no such stage", from(stopped, 4), stages.InvalidPipeline, []string{"3 stages", "no stage 4"}},
		{"stopped early", from(stopped, 2), stages.InvalidPipeline, []string{"stage 2", "incomplete", "had read enough", `"stage": 1`}},
		{"failed", from(failed, 2), stages.InvalidPipeline, []string{"incomplete", "failed (TOOL_ERROR)"}},
		{"behind the failure", from(failed, 0), stages.InvalidPipeline, []string{"stage 3", "incomplete", "another stage failed"}},
		{"too long", from(long, 1), stages.InvalidPipeline, []string{"incomplete", "longer than 1 MiB"}},
		{"not first", "[" + numbers5 + "," + strings.Trim(from(stopped, 1), "[]") + "]", stages.InvalidPipeline, []string{"first stage", "inputs"}},
		{"in a for_each", from(stopped, 1, `{"type":"for_each","stages":`+from(stopped, 1)+`}`), stages.InvalidPipeline, []string{"first stage"}},
		{"no run", `[{"type":"from"}]`, stages.InvalidPipeline, []string{`missing field "run"`}},
		{"below zero", from(stopped, -1), stages.InvalidPipeline, []string{"stage must be at least 1, got -1"}},
	} {
		_, errs := k.compile(t, tt.pipeline)
		if len(errs) != 1 || errs[0].Code != tt.code {
			t.Errorf("%s: got %v", tt.name, errs)
			continue
		}
		for _, w := range tt.words {
			if text := errs[0].Msg + " " + errs[0].Hint; !strings.Contains(text, w) {
				t.Errorf("%s: %q does not say %q", tt.name, text, w)
			}
		}
	}
	if got := k.tools["numbers"].calls.Load(); got != 2 {
		t.Errorf("%d calls were made, want 2", got)
	}
}

// TestFromElsewhere: where nothing is kept, and where a pipeline has input of its own, from says so.
func TestFromElsewhere(t *testing.T) {
	k := newKept(t, runs.Options{})
	_, run := k.must(t, "["+numbers5+"]")
	_, errs := stages.CompileFed(t.Context(), []byte(from(run, 1)), k.deps)
	if len(errs) != 1 || errs[0].Code != stages.InvalidPipeline || !strings.Contains(errs[0].Msg, "would drop the data") {
		t.Errorf("with input: %v", errs)
	}
	_, errs = stages.Compile(t.Context(), []byte(from(run, 1)), k.world.deps())
	if len(errs) != 1 || errs[0].Code != stages.UnknownRun || !strings.Contains(errs[0].Msg, "nothing is kept here") {
		t.Errorf("without a store: %v", errs)
	}
}

// TestFromPlaces: from stands wherever nothing flows in: first of the pipeline, of an input, of a branch that begins.
func TestFromPlaces(t *testing.T) {
	k := newKept(t, runs.Options{})
	_, run := k.must(t, "["+numbers5+"]")
	branches := fmt.Sprintf(`[{"type":"parallel","branches":{"a":%s,"b":[%s]}}]`, from(run, 1, head2), numbers5)
	if got, _ := k.must(t, branches); got != "{\"a\":\"1\\n2\",\n\"b\":\"1\\n2\\n3\\n4\\n5\\n\"}\n" {
		t.Errorf("branches: got %q", got)
	}
	joined := fmt.Sprintf(`[%s,{"type":"command","command":"append","args":["@b"],"inputs":{"b":%s}}]`, numbers5, from(run, 1, head2))
	if got, _ := k.must(t, joined); got != k.lines(5)+"1\n2\n" {
		t.Errorf("inputs: got %q", got)
	}
}

// TestCallersApart: another caller's run is unknown, in the words for one that never was.
func TestCallersApart(t *testing.T) {
	k := newKept(t, runs.Options{})
	_, run := k.must(t, "["+numbers5+"]")
	k.deps.Runs = k.store.Of("somebody else")
	_, theirs := k.compile(t, from(run, 1))
	_, never := k.compile(t, from("r_none", 1))
	if len(theirs) != 1 || len(never) != 1 || theirs[0].Code != stages.UnknownRun ||
		theirs[0].Hint != never[0].Hint || strings.ReplaceAll(theirs[0].Msg, run, "r_none") != never[0].Msg {
		t.Errorf("got %v, for a run that never was %v", theirs, never)
	}
}

// TestContinue: a failure whose cause may pass names the run to be continued, any other the last stage whose output is
// there (0: the former).
func TestContinue(t *testing.T) {
	fails := `{"type":"command","command":"fail-at","args":["3"]}`
	for _, tt := range []struct {
		name     string
		pipeline []string
		want     int
	}{
		{"the stage before", []string{numbers5, fails}, 1},
		{"within a chain", []string{numbers5, cat, fails, cat}, 2},
		{"behind a window", []string{numbers5, window, fails}, 2},
		{"the first stage", []string{`{"type":"tool","server":"demo","name":"get","args":{"id":13}}`, cat}, 0},
		{"behind a for_each that ended", []string{numbers5, getEach, cat, `{"type":"command","command":"roll"}`, `{"type":"command","command":"fail-at","args":["rolled"]}`}, 4},
		{"in a for_each", []string{`{"type":"tool","server":"demo","name":"numbers","args":{"n":20000}}`, getEach, fails}, 0},
		{"made of commands", []string{`{"type":"command","command":"append","args":["3"]}`, fails}, 1},
	} {
		k := newKept(t, runs.Options{})
		_, report, err := k.run(t, "["+strings.Join(tt.pipeline, ",")+"]")
		e, ok := err.(*stages.Error)
		if !ok {
			t.Fatalf("%s: got %v", tt.name, err)
		}
		if e.Continue != tt.want || e.Resume != (tt.want == 0) || e.Run == "" || e.Run != report.Run {
			t.Errorf("%s: continue with stage %d of %q, want %d of %q (%v)", tt.name, e.Continue, e.Run, tt.want, report.Run, err)
		}
		if tt.want > 0 {
			if _, errs := k.compile(t, from(e.Run, e.Continue)); errs != nil {
				t.Errorf("%s: one cannot continue: %v", tt.name, errs)
			}
		}
	}
}

// TestContinueAfterTime: a run whose time is up can be continued from what it had.
func TestContinueAfterTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKept(t, runs.Options{})
		p, errs := k.compile(t, `[`+numbers5+`,{"type":"command","command":"drop"},{"type":"tool","server":"demo","name":"slow","args":{"ms":9000}}]`)
		if errs != nil {
			t.Fatal(errs)
		}
		_, err := p.Run(t.Context(), nil, io.Discard, stages.RunOptions{Timeout: time.Second})
		e, ok := err.(*stages.Error)
		if !ok || e.Code != stages.Timeout || !e.Resume {
			t.Fatalf("got %+v", err)
		}
		_, errs = k.compile(t, from(e.Run, 3))
		if len(errs) != 1 || !strings.Contains(errs[0].Msg, "the time of the run was up") {
			t.Errorf("from the stage that ran: %v", errs)
		}
		time.Sleep(31 * time.Minute)
		if _, errs = k.compile(t, from(e.Run, 2)); len(errs) != 1 || errs[0].Code != stages.UnknownRun {
			t.Errorf("half an hour later: %v", errs)
		}
	})
}

// TestFromGone: what has to give way after the plan was checked is missed when the pipeline runs.
func TestFromGone(t *testing.T) {
	k := newKept(t, runs.Options{Runs: 2})
	_, run := k.must(t, "["+numbers5+"]")
	p, errs := k.compile(t, from(run, 1, upper))
	if errs != nil {
		t.Fatal(errs)
	}
	for range 2 {
		k.must(t, "["+numbers5+"]")
	}
	_, err := p.Run(t.Context(), nil, io.Discard, stages.RunOptions{})
	if e, ok := err.(*stages.Error); !ok || e.Code != stages.UnknownRun || e.Place != "1" {
		t.Errorf("got %v", err)
	}
}

// TestFromDryRun: what a dry run read is kept, and the run itself goes on from there; what it did not do is not.
func TestFromDryRun(t *testing.T) {
	k := newKept(t, runs.Options{})
	write := `{"type":"tool","server":"demo","name":"write","for_each":true}`
	p, errs := k.compile(t, "["+numbers5+","+cat+","+write+"]")
	if errs != nil {
		t.Fatal(errs)
	}
	report, err := p.Run(t.Context(), nil, io.Discard, stages.RunOptions{DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, errs := k.compile(t, from(report.Run, 3)); len(errs) != 1 || errs[0].Code != stages.InvalidPipeline {
		t.Errorf("from the stage that was not run: %v", errs)
	}
	k.must(t, from(report.Run, 2, write))
	if numbers, writes := k.tools["numbers"].calls.Load(), k.tools["write"].calls.Load(); numbers != 1 || writes != 5 {
		t.Errorf("%d and %d calls, want 1 and 5", numbers, writes)
	}
}

// TestRunsAtOnce: many runs at a time, each going on from its own, while the oldest give way.
func TestRunsAtOnce(t *testing.T) {
	k := newKept(t, runs.Options{Total: 8 << 20, Head: 4 << 10})
	var all sync.WaitGroup
	for i := range 64 {
		all.Go(func() {
			ctx := context.Background()
			n := 1000 + i
			p, errs := stages.Compile(ctx, fmt.Appendf(nil, `[{"type":"tool","server":"demo","name":"numbers","args":{"n":%d}},%s]`, n, cat), k.deps)
			if errs != nil {
				t.Errorf("%v", errs)
				return
			}
			report, err := p.Run(ctx, nil, io.Discard, stages.RunOptions{})
			if err != nil {
				t.Errorf("%v", err)
			}
			p, errs = stages.Compile(ctx, []byte(from(report.Run, 1)), k.deps)
			if errs != nil {
				if errs[0].Code != stages.UnknownRun {
					t.Errorf("%v", errs)
				}
				return
			}
			var out strings.Builder
			if _, err := p.Run(ctx, nil, &out, stages.RunOptions{}); err != nil && err.(*stages.Error).Code != stages.UnknownRun {
				t.Errorf("%v", err)
			} else if err == nil && out.String() != k.lines(n) {
				t.Errorf("run %d: got %d bytes", i, out.Len())
			}
		})
	}
	all.Wait()
}
