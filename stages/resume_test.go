package stages_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
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

// newFlaky is a world with tools that fail at one item until they are repaired: check, which reads, and post, which
// changes something.
func newFlaky(t *testing.T, o runs.Options, bad string) (k *kept, repair func()) {
	t.Helper()
	k = newKept(t, o)
	var repaired atomic.Bool
	do := func(_ context.Context, args map[string]any) (string, error) {
		if fmt.Sprint(args["x"]) == bad && !repaired.Load() {
			return "", errors.New("not now")
		}
		return fmt.Sprintf(`{"done":%v}`, args["x"]), nil
	}
	k.add("check", reads, "x", do)
	k.add("post", writes, "x", do)
	return k, func() { repaired.Store(true) }
}

const (
	numbers100 = `{"type":"tool","server":"demo","name":"numbers","args":{"n":100}}`
	checkEach  = `{"type":"tool","server":"demo","name":"check","for_each":true}`
	postEach   = `{"type":"tool","server":"demo","name":"post","for_each":true}`
)

// resume is the pipeline that continues a run.
func resume(run string, more ...string) string {
	return fmt.Sprintf(`[{%s}]`, strings.Join(append([]string{fmt.Sprintf(`"type":"from","run":%q,"resume":true`, run)}, more...), ","))
}

// failedRun runs a pipeline that must fail, and returns its error.
func (k *kept) failedRun(t *testing.T, list ...string) *stages.Error {
	t.Helper()
	return k.failed(t, "["+strings.Join(list, ",")+"]")
}

func (k *kept) failed(t *testing.T, pipeline string) *stages.Error {
	t.Helper()
	_, _, err := k.run(t, pipeline)
	e, ok := err.(*stages.Error)
	if !ok {
		t.Fatalf("running %s: got %v", pipeline, err)
	}
	return e
}

// dryRun makes a dry run.
func (k *kept) dryRun(t *testing.T, pipeline string) stages.Report {
	t.Helper()
	p, errs := k.compile(t, pipeline)
	if errs != nil {
		t.Fatal(errs)
	}
	report, err := p.Run(t.Context(), nil, io.Discard, stages.RunOptions{DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// done is what the for_each of a flaky world gives for 1 to n.
func done(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%s{\"done\":%d}", map[bool]string{true: "[", false: ",\n"}[i == 0], i+1)
	}
	return b.String() + "]\n"
}

// TestResume: the continuation of a for_each of 100 that failed at item 60 calls the items that are left, wherever they
// come from.
func TestResume(t *testing.T) {
	for _, tt := range []struct {
		name   string
		before []string // stages before the for_each
		each   string
		tool   string
	}{
		{"items of a tool", []string{numbers100}, checkEach, "check"},
		{"items of commands", []string{numbers100, cat, upper}, checkEach, "check"},
		{"items of chance", []string{numbers100, `{"type":"command","command":"late"}`}, checkEach, "check"},
		{"behind a window", []string{numbers100, window}, checkEach, "check"},
		{"one at a time", []string{numbers100}, strings.Replace(checkEach, "}", `,"concurrency":1}`, 1), "check"},
		{"with effects", []string{numbers100, cat}, postEach, "post"},
		{"stages", []string{numbers100}, `{"type":"for_each","stages":[{"type":"tool","server":"demo","name":"check"},` + cat + `]}`, "check"},
		{"behind a file", []string{numbers100, `{"type":"tee","path":"a.txt","append":true}`}, postEach, "post"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k, repair := newFlaky(t, runs.Options{}, "60")
			k.withFiles(t, "")
			k.deps.Files = k.files
			e := k.failedRun(t, append(tt.before, tt.each, cat)...)
			if !e.Resume || e.Item != 60 || e.Done < 50 {
				t.Fatalf("got %+v", e)
			}
			repair()
			called := k.tools[tt.tool].calls.Load()
			out, report, err := k.run(t, resume(e.Run, `"retries":2`, `"on_error":"collect"`, `"concurrency":3`))
			if err != nil || out != done(100) {
				t.Fatalf("got %v, %.300q", err, out)
			}
			if got, want := k.tools[tt.tool].calls.Load()-called, int64(100-e.Done); got != want {
				t.Errorf("%d calls were made, want %d", got, want)
			}
			last := report.Stages[len(report.Stages)-2]
			if last.Resumed != int64(e.Done) || last.Items != 100 || last.OK != int64(100-e.Done) || int(last.Place[0]-'0') != len(tt.before)+1 {
				t.Errorf("the report has %d items resumed, %d ok, of %d, at stage %s", last.Resumed, last.OK, last.Items, last.Place)
			}
			if got := k.tools["numbers"].calls.Load(); got > 1 && tt.name != "items of chance" {
				t.Errorf("the tool before was called %d times", got)
			}
			if saved := k.saved(t); strings.Count(saved, "\n99\n") > 1 {
				t.Errorf("the file was appended to again: %.100q", saved)
			}
		})
	}
}

// TestResumeAgain: a continuation that fails again is continued, even when the for_each behind was reached; one that has
// finished gives its output and calls nothing.
func TestResumeAgain(t *testing.T) {
	k, repair := newFlaky(t, runs.Options{}, "60")
	k.add("pick", reads, "done", func(_ context.Context, args map[string]any) (string, error) {
		return fmt.Sprint(args["done"]), nil
	})
	e := k.failedRun(t, numbers100, cat, checkEach, `{"type":"tool","server":"demo","name":"pick","for_each":true}`)
	again := k.failed(t, resume(e.Run))
	repair()
	called := k.tools["check"].calls.Load()
	out, run := k.must(t, resume(again.Run))
	if !strings.HasPrefix(out, "[\"1\",\n\"2\",\n") && !strings.HasPrefix(out, "[1,\n2,\n") || strings.Count(out, "\n") != 100 {
		t.Errorf("got %.100q", out)
	}
	if got, most := k.tools["check"].calls.Load()-called, int64(100-max(e.Done, again.Done)); got > most {
		t.Errorf("%d calls were made, want at most %d", got, most)
	}
	if n := k.tools["numbers"].calls.Load(); n != 1 {
		t.Errorf("the first stage was run %d times", n)
	}
	calls := len(k.calls)
	for _, finished := range []string{run, run} {
		if same, _ := k.must(t, resume(finished)); same != out {
			t.Errorf("the finished run gives %.100q", same)
		}
	}
	if from2, _ := k.must(t, from(run, 2)); from2 != k.lines(100) {
		t.Errorf("its second stage gives %.100q", from2)
	}
	if len(k.calls) != calls || k.given.Load() == 0 {
		t.Errorf("%d calls were made for a finished run, and %d checked plans were given back", len(k.calls)-calls, k.given.Load())
	}
}

// TestResumeOneLine: of two continuations of one run, the first of which changed nothing and was continued itself, only one
// makes the calls that are left.
func TestResumeOneLine(t *testing.T) {
	for _, newer := range []bool{false, true} {
		k, repair := newFlaky(t, runs.Options{}, "1")
		first := k.failedRun(t, numbers5, postEach)
		second := k.failed(t, resume(first.Run))
		repair()
		ids := []string{first.Run, second.Run}
		if newer {
			slices.Reverse(ids)
		}
		k.must(t, resume(ids[0]))
		_, errs := k.compile(t, resume(ids[1]))
		if errs == nil {
			if late := k.failed(t, resume(ids[1])); late.Code != stages.InvalidPipeline || !strings.Contains(late.Msg, "is continued by run") {
				t.Errorf("got %v", late)
			}
		}
		if n := k.tools["post"].calls.Load(); n != 7 {
			t.Errorf("%d calls, want 7", n)
		}
	}
}

// TestResumeBehindFailure: what ended behind the stage that failed is not taken for the output of the run.
func TestResumeBehindFailure(t *testing.T) {
	k, repair := newFlaky(t, runs.Options{}, "60")
	e := k.failedRun(t, numbers100, checkEach, `{"type":"command","command":"early"}`)
	repair()
	if out, _ := k.must(t, resume(e.Run)); out != "early\n" || k.tools["check"].calls.Load() < 101 {
		t.Errorf("got %q after %d calls", out, k.tools["check"].calls.Load())
	}
}

// TestResumeReadsAgain: where the output of the stage before was cut short or is too long, it is made again, and items are
// known by their number and bytes.
func TestResumeReadsAgain(t *testing.T) {
	turn := `{"type":"tool","server":"demo","name":"turn","args":{"n":1}}`
	for _, tt := range []struct {
		name   string
		o      runs.Options
		before []string
		most   int64 // calls of check in the continuation
	}{
		{"another for_each", runs.Options{}, []string{numbers100, strings.Replace(getEach, "get", "same", 1)}, 50},
		{"too long", runs.Options{Output: 1 << 9}, []string{`{"type":"tool","server":"demo","name":"numbers","args":{"n":300}}`, `{"type":"command","command":"head","args":["100"]}`}, 100},
		{"other items", runs.Options{Output: 1 << 9}, []string{turn, cat}, 100},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k, repair := newFlaky(t, tt.o, "60")
			k.add("same", reads, "id", func(_ context.Context, args map[string]any) (string, error) { return fmt.Sprint(args["id"]), nil })
			first := true
			k.add("turn", reads, "n", func(context.Context, map[string]any) (string, error) {
				list := strings.Fields(k.lines(100))
				if !first {
					slices.Reverse(list)
				}
				first = false
				return strings.Join(list, "\n") + strings.Repeat(" ", 1000), nil
			})
			e := k.failedRun(t, append(tt.before, checkEach)...)
			repair()
			before, same := k.tools["check"].calls.Load(), k.tools["same"].calls.Load()
			out, _ := k.must(t, resume(e.Run))
			if strings.Count(out, "done") != 100 || strings.HasPrefix(out, `[{"done":100}`) != (tt.name == "other items") {
				t.Fatalf("got %.300q", out)
			}
			if got := k.tools["check"].calls.Load() - before; got > tt.most {
				t.Errorf("%d calls were made, want at most %d", got, tt.most)
			}
			if got := k.tools["same"].calls.Load(); got > 100+8 {
				t.Errorf("the for_each before made %d calls, after %d", got, same)
			}
		})
	}
}

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

// The ways in which the first call for some item goes wrong.
var (
	refused = &stages.Error{Code: stages.ToolError, Msg: "no such account", Answered: true}
	lost    = &stages.Error{Code: stages.Timeout, Msg: "no answer"}
	noWay   = &stages.Error{Code: stages.ServerUnavailable, Msg: "no connection", Answered: true}
)

// newFaulty is a world with tools that change something, whose first calls for some arguments fail: post and then, and push,
// next and long, which take what flows in as another argument.
func newFaulty(t *testing.T, o runs.Options, faults map[string]*stages.Error) *kept {
	t.Helper()
	k := newKept(t, o)
	k.withFiles(t, "")
	k.deps.Files = k.files
	var did effects
	for _, name := range changing {
		tool := k.add(name, writes, "x", func(_ context.Context, args map[string]any) (string, error) {
			key := fmt.Sprint(name, " ", args["x"])
			if n := did.add(map[string]any{"x": key}); n == 1 && faults[key] != nil {
				return "", faults[key]
			}
			if name == "long" {
				return strings.Repeat("1\n", 1000), nil
			}
			return fmt.Sprint(args["x"]), nil
		})
		if name != "post" && name != "then" {
			tool.info.Input.Properties = append(tool.info.Input.Properties, "input")
		}
	}
	k.tools["numbers"].info.Input.Properties = append(k.tools["numbers"].info.Input.Properties, "input")
	k.add("after", reads, "x", func(ctx context.Context, args map[string]any) (string, error) {
		x, err := strconv.Atoi(fmt.Sprint(args["x"]))
		return "", cmp.Or(err, k.await(ctx, x))
	})
	k.add("same", reads, "list", func(_ context.Context, args map[string]any) (string, error) { return fmt.Sprint(args["list"]), nil })
	return k
}

var changing = []string{"post", "then", "push", "next", "long"}

// await waits until x calls that change something have been made.
func (k *kept) await(ctx context.Context, x int) error {
	for {
		made := 0
		k.mu.Lock()
		for _, c := range k.calls {
			if name, _, _ := strings.Cut(c, "{"); slices.Contains(changing, name) || name == "change" {
				made++
			}
		}
		k.mu.Unlock()
		if made >= x {
			return nil
		}
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// after is a stage that waits for x calls.
func after(x int) string {
	return fmt.Sprintf(`{"type":"command","command":"drop"},{"type":"tool","server":"demo","name":"after","args":{"x":%d}},`, x)
}

// called are the calls that change something from the nth on, sorted.
func (k *kept) called(n int) string {
	var list []string
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range k.calls[n:] {
		name, args, _ := strings.Cut(c, "{")
		var given struct {
			X json.RawMessage `json:"x"`
		}
		if slices.Contains(changing, name) && json.Unmarshal([]byte("{"+args), &given) == nil {
			list = append(list, name+" "+string(given.X))
		}
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

const (
	push1 = `{"type":"tool","server":"demo","name":"push","args":{"x":1}}`
	next1 = `{"type":"tool","server":"demo","name":"next","args":{"x":1}}`
	long1 = `{"type":"tool","server":"demo","name":"long","args":{"x":1}}`
	both  = `{"type":"for_each","stages":[{"type":"tool","server":"demo","name":"post"},{"type":"tool","server":"demo","name":"then"}]}`
)

// inBranches is a parallel of two branches.
func inBranches(a, b string) string {
	return `{"type":"parallel","branches":{"a":[` + a + `],"b":[` + b + `]}}`
}

// list is a tool stage that gives a list.
func list(items string) string {
	return fmt.Sprintf(`{"type":"tool","server":"demo","name":"same","args":{"list":%q}}`, items)
}

// TestResumeEffects: a continuation makes the calls that may change something and have not been made, and refuses those
// that have, or may have, taken effect.
func TestResumeEffects(t *testing.T) {
	slow := `{"type":"command","command":"drop"},{"type":"tool","server":"demo","name":"slow","args":{"ms":20}},`
	for _, tt := range []struct {
		name     string
		pipeline []string
		faults   map[string]*stages.Error
		options  string // of the continuation
		calls    string // that it makes
		refused  string // what its error says; empty: it succeeds
	}{
		{"answered with an error", []string{numbers5, postEach}, map[string]*stages.Error{"post 3": refused}, "", "post 3, post 4, post 5", ""},
		{"not sent", []string{numbers5, postEach}, map[string]*stages.Error{"post 3": noWay}, "", "post 3, post 4, post 5", ""},
		{"no answer", []string{numbers5, postEach}, map[string]*stages.Error{"post 3": lost}, "", "", "has called demo/post with the same arguments, and there was no answer"},
		{"no answer, skipped", []string{numbers5, postEach}, map[string]*stages.Error{"post 3": lost}, `"on_error":"skip"`, "post 4, post 5", ""},
		{"one of two effects", []string{numbers5, both}, map[string]*stages.Error{"then 3": refused}, "", "", "has called demo/post with the same arguments; it is not called again"},
		{"one of two effects, skipped", []string{numbers5, both}, map[string]*stages.Error{"then 3": refused}, `"on_error":"collect"`, "post 4, post 5, then 4, then 5", ""},
		{"equal items", []string{list("[1,1,2,1]"), postEach}, map[string]*stages.Error{"post 2": refused}, "", "post 1, post 2", ""},
		{"equal items, one without an answer", []string{list("[2,1,3,2]"), postEach}, map[string]*stages.Error{"post 3": lost}, `"on_error":"skip"`, "post 2", ""},
		{"equal items, made once", []string{list("[1,1,2,1]"), strings.Replace(postEach, "}", `,"distinct":true}`, 1)}, map[string]*stages.Error{"post 2": refused}, "", "post 2", ""},
		{"a stage", []string{numbers5, push1, next1}, map[string]*stages.Error{"next 1": refused}, "", "next 1", ""},
		{"a stage without an answer", []string{numbers5, push1}, map[string]*stages.Error{"push 1": lost}, "", "", "demo/push with the same arguments, and there was no answer"},
		{"a stage whose output is too long", []string{numbers5, long1, next1}, map[string]*stages.Error{"next 1": refused}, "", "", "has called demo/long with the same arguments"},
		{"a stage whose input is too long", []string{`{"type":"tool","server":"demo","name":"numbers","args":{"n":300}}`, push1, next1}, map[string]*stages.Error{"next 1": refused}, "", "next 1", ""},
		{"results of items that are too long", []string{numbers5, `{"type":"for_each","stages":[{"type":"command","command":"drop"},` + long1 + `]}`, next1}, map[string]*stages.Error{"next 1": refused}, "", "", "demo/long"},
		{"a branch", []string{numbers5, inBranches(push1, after(1)+next1)}, map[string]*stages.Error{"next 1": refused}, "", "next 1", ""},
		{"a branch without an answer", []string{numbers5, inBranches(push1, cat)}, map[string]*stages.Error{"push 1": lost}, "", "", "demo/push"},
		{"a for_each in a branch", []string{numbers5, inBranches(postEach, after(5)+next1)}, map[string]*stages.Error{"next 1": refused}, "", "next 1", ""},
		{"a for_each in a for_each", []string{numbers5, `{"type":"for_each","stages":[` + cat + `,` + postEach + `]}`}, map[string]*stages.Error{"post 3": lost}, `"on_error":"skip"`, "post 4, post 5", ""},
		{"an input", []string{numbers5, `{"type":"command","command":"append","args":["@b"],"inputs":{"b":[` + push1 + `]}}`, next1}, map[string]*stages.Error{"next 1": refused}, "", "next 1", ""},
		{"a file", []string{numbers5, inBranches(`{"type":"tee","path":"a","append":true}`, slow+next1)}, map[string]*stages.Error{"next 1": refused}, "", "next 1", ""},
		{"lines of a file", []string{list("[1,1,2,1]"), `{"type":"for_each","stages":[{"type":"tee","path":"a","append":true},{"type":"tool","server":"demo","name":"post"}]}`}, map[string]*stages.Error{"post 1": refused}, "", "", "has called tee a with the same arguments"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k := newFaulty(t, runs.Options{Output: 1 << 10}, tt.faults)
			e := k.failedRun(t, tt.pipeline...)
			if !e.Resume {
				t.Errorf("the error names nothing to continue: %+v", e)
			}
			n := len(k.calls)
			out, report, err := k.run(t, resume(e.Run, strings.Fields(tt.options)...))
			unbroken := newFaulty(t, runs.Options{Output: 1 << 10}, nil)
			if want, _ := unbroken.must(t, "["+strings.Join(tt.pipeline, ",")+"]"); err == nil && tt.options == "" && out != want {
				t.Errorf("got %q, an unbroken run gives %q", out, want)
			}
			if (err != nil) != (tt.refused != "") || err != nil && (err.(*stages.Error).Code != stages.Denied || !strings.Contains(err.Error(), tt.refused)) {
				t.Errorf("got %v, want %q", err, tt.refused)
			}
			if got := k.called(n); got != tt.calls {
				t.Errorf("calls %q, want %q", got, tt.calls)
			}
			if n := strings.Count(k.saved(t), "5\n"); n > 1 {
				t.Errorf("a file was appended to %d times", n)
			}
			if _, _, err = k.run(t, resume(report.Run)); (err != nil) != (tt.refused != "") {
				t.Errorf("the continuation, continued: %v", err)
			}
		})
	}
}

// TestFromEffects: behind a from stage a call is refused that the run, or one that it continued or that continues it, has
// made with the same final arguments, wherever it stands. Other calls are made.
func TestFromEffects(t *testing.T) {
	tool := func(name, more string) string {
		return fmt.Sprintf(`{"type":"tool","server":"demo","name":%q%s}`, name, more)
	}
	const (
		fails = `{"type":"command","command":"fail-at","args":["1"]}`
		drop  = `{"type":"command","command":"drop"}`
	)
	for _, tt := range []struct {
		name   string
		before []string // what stood behind the first stage
		then   []string // what stands behind from
		calls  string   // that are made
		place  string   // of the refusal; empty: none
	}{
		{"made", []string{push1, fails}, []string{push1}, "", "2"},
		{"made, and the run succeeded", []string{push1}, []string{push1}, "", "2"},
		{"no answer", []string{long1}, []string{long1}, "", "2"},
		{"more time", []string{push1}, []string{tool("push", `,"args":{"x":1},"timeout":9`)}, "", "2"},
		{"another number for the same value", []string{push1}, []string{tool("push", `,"args":{"x":10e-1}`)}, "", "2"},
		{"another order and another spelling", []string{tool("push", `,"args":{"x":{"a":"\u0041","b":-2.0}}`)}, []string{tool("push", `,"args":{"x":{"b":-2,"a":"A"}}`)}, "", "2"},
		{"large numbers that differ in the last digit", []string{tool("push", `,"args":{"x":9007199254740993}`)}, []string{tool("push", `,"args":{"x":9007199254740992}`)}, "push 9007199254740992", ""},
		{"a large number in another form", []string{tool("push", `,"args":{"x":1e21}`)}, []string{tool("push", `,"args":{"x":1000000000000000000000}`)}, "", "2"},
		{"a small number in another form", []string{tool("push", `,"args":{"x":-0.00120}`)}, []string{tool("push", `,"args":{"x":-12E-4}`)}, "", "2"},
		{"zero in another form", []string{tool("push", `,"args":{"x":-0.0}`)}, []string{tool("push", `,"args":{"x":0e+7}`)}, "", "2"},
		{"another sign", []string{tool("push", `,"args":{"x":1.5}`)}, []string{tool("push", `,"args":{"x":-1.5}`)}, "push -1.5", ""},
		{"another exponent", []string{tool("push", `,"args":{"x":10}`)}, []string{tool("push", `,"args":{"x":100}`)}, "push 100", ""},
		{"a large exponent", []string{tool("push", `,"args":{"x":1e399}`)}, []string{tool("push", `,"args":{"x":1e398}`)}, "push 1e398", ""},
		{"large numbers with a fraction that differ in a digit", []string{tool("push", `,"args":{"x":9007199254740993.0}`)}, []string{tool("push", `,"args":{"x":9007199254740992.0}`)}, "push 9007199254740992.0", ""},
		{"an exponent that is too long", []string{drop, list("[1e99999999999]"), postEach}, []string{drop, list("[1e99999999998]"), postEach}, "post 1e99999999998", ""},
		{"other arguments", []string{push1}, []string{tool("push", `,"args":{"x":2}`)}, "push 2", ""},
		{"another tool", []string{push1}, []string{next1}, "next 1", ""},
		{"behind other data", []string{push1}, []string{window, push1}, "", "3"},
		{"in a branch", []string{push1}, []string{inBranches(cat, push1)}, "", "2.b.1"},
		{"once in a branch", []string{inBranches(cat, push1)}, []string{push1}, "", "2"},
		{"in an input", []string{`{"type":"command","command":"drop"}`, push1}, []string{`{"type":"command","command":"append","args":["@b"],"inputs":{"b":[` + push1 + `]}}`}, "", "2.b.1"},
		{"items, of which one was made", []string{both}, []string{postEach}, "", "2"},
		{"items, of which one was made and is skipped", []string{head2, postEach}, []string{strings.Replace(postEach, "}", `,"on_error":"skip"}`, 1)}, "post 3, post 4, post 5", ""},
		{"items, all made", []string{postEach}, []string{strings.Replace(postEach, "}", `,"on_error":"skip"}`, 1)}, "", ""},
		{"items, in another for_each", []string{postEach}, []string{both}, "", "2.1"},
		{"items, with distinct now", []string{postEach}, []string{strings.Replace(postEach, "}", `,"distinct":true}`, 1)}, "", "2"},
		{"answered with an error", []string{tool("next", `,"args":{"x":7}`)}, []string{tool("next", `,"args":{"x":7}`)}, "next 7", ""},
		{"never reached", []string{fails, push1}, []string{push1}, "push 1", ""},
		{"only reads", []string{numbers100}, []string{numbers100}, "", ""},
		{"appended", []string{`{"type":"tee","path":"l","append":true}`}, []string{window, `{"type":"tee","path":"./x/../l","append":true,"confirm_oversize":true}`}, "", "3"},
		{"appended to another file", []string{`{"type":"tee","path":"l","append":true}`}, []string{`{"type":"tee","path":"m","append":true}`}, "", ""},
		{"appended other data", []string{`{"type":"tee","path":"l","append":true}`}, []string{head2, `{"type":"tee","path":"l","append":true}`}, "", ""},
		{"replaced", []string{`{"type":"tee","path":"l"}`}, []string{`{"type":"tee","path":"l"}`}, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k := newFaulty(t, runs.Options{}, map[string]*stages.Error{"long 1": lost, "next 7": refused})
			_, report, _ := k.run(t, "["+strings.Join(append([]string{numbers5}, tt.before...), ",")+"]")
			n := len(k.calls)
			_, second, err := k.run(t, from(report.Run, 1, tt.then...))
			var e *stages.Error
			if errors.As(err, &e); (err != nil) != (tt.place != "") || e != nil && (e.Code != stages.Denied || string(e.Place) != tt.place || !strings.Contains(e.Hint, "on purpose")) {
				t.Errorf("got %+v", err)
			}
			if got := k.called(n); got != tt.calls {
				t.Errorf("calls %q, want %q", got, tt.calls)
			}
			if tt.calls != "" {
				n = len(k.calls)
				if _, _, err := k.run(t, from(second.Run, 1, tt.then...)); k.called(n) != "" {
					t.Errorf("from the second run: %v, calls %q", err, k.called(n))
				}
			}
		})
	}
}

// TestResumeRefused: what cannot be continued is refused when the plan is checked, with what to do.
func TestResumeRefused(t *testing.T) {
	k, _ := newFlaky(t, runs.Options{Output: 1 << 10}, "3")
	e := k.failedRun(t, numbers5, checkEach)
	single := k.failedRun(t, numbers5, `{"type":"tool","server":"demo","name":"get","args":{"id":13}}`)
	stage := strings.Trim(resume(e.Run), "[]")
	fed, errs := stages.CompileFed(t.Context(), []byte("["+checkEach+"]"), k.deps)
	if errs != nil {
		t.Fatal(errs)
	}
	fedReport, _ := fed.Run(t.Context(), strings.NewReader("1\n2\n3\n"), io.Discard, stages.RunOptions{})
	k.add("big", reads, "x", func(context.Context, map[string]any) (string, error) { return strings.Repeat("1\n", 1000), nil })
	dry := k.dryRun(t, `[{"type":"tool","server":"demo","name":"big","args":{"x":1}},`+postEach+`]`)
	k.add("gone", reads, "x", func(context.Context, map[string]any) (string, error) { return "", errors.New("no") })
	gone := k.failedRun(t, `{"type":"tool","server":"demo","name":"gone","args":{"x":1}}`)
	delete(k.tools, "gone")
	for _, tt := range []struct {
		name, pipeline string
		code           stages.Code
		words          []string
	}{
		{"never was", resume("r_none"), stages.UnknownRun, []string{`there is no run "r_none"`}},
		{"not alone", "[" + stage + "," + cat + "]", stages.InvalidPipeline, []string{"must be the only stage"}},
		{"not first", "[" + numbers5 + "," + stage + "]", stages.InvalidPipeline, []string{"first stage"}},
		{"in a branch", `[{"type":"parallel","branches":{"a":[` + stage + `]}}]`, stages.InvalidPipeline, []string{"must be the only stage"}},
		{"in an input", `[{"type":"command","command":"append","args":["@b"],"inputs":{"b":[` + stage + `]}}]`, stages.InvalidPipeline, []string{"must be the only stage"}},
		{"with stage", resume(e.Run, `"stage":1`), stages.InvalidPipeline, []string{"leave stage out"}},
		{"choices without resume", from(e.Run, 1)[:len(from(e.Run, 1))-2] + `,"retries":2}]`, stages.InvalidPipeline, []string{"without resume"}},
		{"no for_each stopped", resume(single.Run, `"on_error":"skip"`), stages.InvalidPipeline, []string{"no for_each of the plan of run " + single.Run}},
		{"wrong choice", resume(e.Run, `"on_error":"ignore"`), stages.InvalidPipeline, []string{`on_error must be one of "fail", "skip", "collect"`}},
		{"its input is not kept", resume(fedReport.Run), stages.InvalidPipeline, []string{"the input of the run is not kept"}},
		{"what a dry run has read is not kept", resume(dry.Run), stages.InvalidPipeline, []string{"the calls could be others than it has shown"}},
		{"a tool is gone", resume(gone.Run), stages.UnknownTool, []string{`no tool "gone"`}},
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
}

// TestResumeOnce: of two runs that continue one, at the same time or one after the other, the second is refused before it
// calls anything, and names the first. One that has changed nothing stands in nobody's way.
func TestResumeOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKept(t, runs.Options{})
		defer k.store.Close()
		var post effects
		broken := true
		k.add("post", writes, "x", func(_ context.Context, args map[string]any) (string, error) {
			time.Sleep(time.Second)
			if broken && fmt.Sprint(args["x"]) == "3" {
				return "", refused
			}
			post.add(args)
			return fmt.Sprintf(`{"done":%v}`, args["x"]), nil
		})
		e := k.failedRun(t, numbers5, postEach)
		if again := k.failed(t, resume(e.Run)); again.Item != 3 {
			t.Fatalf("got %v", again)
		}
		broken = false
		var reports [2]stages.Report
		var errs [2]error
		var both [2]*stages.Pipeline
		for i := range both { // both are checked before either runs
			var wrong []*stages.Error
			if both[i], wrong = k.compile(t, resume(e.Run)); wrong != nil {
				t.Fatal(wrong)
			}
		}
		var running sync.WaitGroup
		for i, p := range both {
			running.Go(func() { reports[i], errs[i] = p.Run(t.Context(), nil, io.Discard, stages.RunOptions{}) })
			synctest.Wait()
		}
		refusal := "is continued by run "
		running.Wait()
		if errs[0] != nil || post.times["3"] != 1 || post.times["5"] != 1 {
			t.Errorf("the first: %v, effects %v", errs[0], post.times)
		}
		if errs[1] == nil || !strings.Contains(errs[1].Error(), refusal+reports[0].Run) {
			t.Errorf("the second: %v", errs[1])
		}
		_, wrong := k.compile(t, resume(e.Run))
		if len(wrong) != 1 || wrong[0].Code != stages.InvalidPipeline || !strings.Contains(wrong[0].Msg, refusal+reports[0].Run) ||
			!strings.Contains(wrong[0].Hint, stages.ResumeStage(reports[0].Run)) {
			t.Errorf("later: %v", wrong)
		}
		if out, _ := k.must(t, resume(reports[0].Run)); out != done(5) || post.times["5"] != 1 {
			t.Errorf("from the run that continued it: %q, effects %v", out, post.times)
		}
		if plain := k.failed(t, from(e.Run, 1, `{"type":"command","command":"drop"},{"type":"tool","server":"demo","name":"post","args":{"x":5}}`)); plain.Code != stages.Denied || post.times["5"] != 1 {
			t.Errorf("a call that the continuation has made: %v", plain)
		}
	})
}

// TestResumeRunning: a run that is under way is not continued, and what it will have changed is not known.
func TestResumeRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKept(t, runs.Options{})
		defer k.store.Close()
		var id string
		begun := &noting{Runs: k.deps.Runs, begun: &id}
		k.deps.Runs = begun
		p, errs := k.compile(t, "["+numbers5+`,{"type":"command","command":"drop"},{"type":"tool","server":"demo","name":"slow","args":{"ms":9000}}]`)
		if errs != nil {
			t.Fatal(errs)
		}
		var running sync.WaitGroup
		running.Go(func() { _, _ = p.Run(t.Context(), nil, io.Discard, stages.RunOptions{}) })
		synctest.Wait()
		first := id
		if _, errs := k.compile(t, resume(first)); len(errs) != 1 || !strings.Contains(errs[0].Msg, "is still running") {
			t.Errorf("resumed: %v", errs)
		}
		_, _, err := k.run(t, from(first, 1, strings.Replace(postEach, "post", "write", 1)))
		if e, ok := err.(*stages.Error); !ok || e.Code != stages.Denied || !strings.Contains(e.Msg, "is still running") || k.tools["write"].calls.Load() != 0 {
			t.Errorf("from: %v", err)
		}
		running.Wait()
	})
}

// noting are runs that note the id of the last one that began.
type noting struct {
	stages.Runs
	begun *string
}

func (n *noting) Begin() (string, func()) {
	id, end := n.Runs.Begin()
	*n.begun = id
	return id, end
}

// TestResumeDryRun: a dry run that is continued makes the calls that it showed, one of a continuation shows the calls
// that are left, and to continue that one makes them, once.
func TestResumeDryRun(t *testing.T) {
	k, repair := newFlaky(t, runs.Options{}, "60")
	first := k.dryRun(t, "["+numbers100+","+cat+","+postEach+"]")
	if d := first.DryRun; !d.Resume || d.Calls[0].Count != 100 {
		t.Errorf("got %+v", d)
	}
	e := k.failed(t, resume(first.Run, `"concurrency":8`))
	left := k.dryRun(t, resume(e.Run))
	if d := left.DryRun; !d.Resume || d.Place != "3" || d.Before != 2 || len(d.Calls) != 1 || d.Calls[0].Count != int64(100-e.Done) {
		t.Errorf("got %+v, want %d calls", d, 100-e.Done)
	}
	repair()
	if out, _ := k.must(t, resume(left.Run)); out != done(100) {
		t.Errorf("got %.100q", out)
	}
	if _, errs := k.compile(t, resume(e.Run)); len(errs) != 1 || !strings.Contains(errs[0].Msg, "is continued by") {
		t.Errorf("what the dry run continued is continued again: %v", errs)
	}
	seen := map[string]int{}
	for _, call := range k.callsOf("post") {
		if seen[call]++; seen[call] > 1 && !strings.Contains(call, `"x":60}`) {
			t.Errorf("%s was called again", call)
		}
	}
	if n := k.tools["numbers"].calls.Load(); n != 1 {
		t.Errorf("it was read %d times", n)
	}
	unsure := newFaulty(t, runs.Options{}, map[string]*stages.Error{"post 3": lost})
	e = unsure.failedRun(t, numbers5, postEach)
	if d := unsure.dryRun(t, resume(e.Run)).DryRun; len(d.Calls) != 1 || d.Calls[0].Count != 3 || !strings.Contains(d.Calls[0].Fails, "there was no answer") {
		t.Errorf("a call that will be refused: %+v", d.Calls)
	}
}

// TestResumeAfterTime: items that were done before the time was up are not run again, and a call that was on its way is
// refused.
func TestResumeAfterTime(t *testing.T) {
	for _, tool := range []string{"wait", "put"} {
		synctest.Test(t, func(t *testing.T) {
			k := newKept(t, runs.Options{})
			defer k.store.Close()
			for name, reading := range map[string]bool{"wait": reads, "put": writes} {
				k.add(name, reading, "x", func(ctx context.Context, args map[string]any) (string, error) {
					select {
					case <-time.After(time.Second):
						return fmt.Sprintf(`{"done":%v}`, args["x"]), nil
					case <-ctx.Done():
						return "", ctx.Err()
					}
				})
			}
			p, errs := k.compile(t, "["+numbers100+","+cat+`,{"type":"tool","server":"demo","name":"`+tool+`","for_each":true,"concurrency":1}]`)
			if errs != nil {
				t.Fatal(errs)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second+time.Millisecond)
			defer cancel()
			_, err := p.Run(ctx, nil, io.Discard, stages.RunOptions{})
			e, ok := err.(*stages.Error)
			if !ok || tool == "wait" && (e.Code != stages.Cancelled || !e.Resume) {
				t.Fatalf("got %+v", err)
			}
			begun := time.Now()
			out, report, err := k.run(t, resume(e.Run, `"on_error":"skip"`))
			if err != nil || tool == "wait" && out != done(100) || tool == "put" && strings.Contains(out, `"done":61}`) {
				t.Errorf("got %v, %.100q", err, out)
			}
			if failed := report.Stages[len(report.Stages)-1].Failed; failed != int64(map[string]int{"wait": 0, "put": 1}[tool]) {
				t.Errorf("%d items failed", failed)
			}
			if took, want := time.Since(begun), 40*time.Second; took > want || took < want-time.Second {
				t.Errorf("it took %s, want %s", took, want)
			}
		})
	}
}

// TestResumeGone: a run that is evicted after the plan was checked is missed before anything is called.
func TestResumeGone(t *testing.T) {
	k, repair := newFlaky(t, runs.Options{Runs: 2}, "60")
	e := k.failedRun(t, numbers100, postEach)
	repair()
	p, errs := k.compile(t, resume(e.Run))
	if errs != nil {
		t.Fatal(errs)
	}
	for range 2 {
		k.must(t, "["+numbers5+"]")
	}
	before := k.tools["post"].calls.Load()
	_, err := p.Run(t.Context(), nil, io.Discard, stages.RunOptions{})
	if e, ok := err.(*stages.Error); !ok || e.Code != stages.UnknownRun || !strings.Contains(e.Msg, "was evicted") {
		t.Errorf("got %v", err)
	}
	if n := k.tools["post"].calls.Load(); n != before {
		t.Errorf("%d calls were made", n-before)
	}
}

// TestResumeOfFrom: a run that began with another one is continued after that one is gone.
func TestResumeOfFrom(t *testing.T) {
	k, repair := newFlaky(t, runs.Options{Runs: 2}, "60")
	_, run := k.must(t, "["+numbers100+"]")
	e := k.failed(t, from(run, 1, postEach))
	k.must(t, "["+numbers5+"]")
	repair()
	if out, _ := k.must(t, resume(e.Run)); out != done(100) {
		t.Errorf("got %.100q", out)
	}
}

// TestEffectsNotKept: where the list of the calls of a run is too long to be kept, no call that changes something is made
// behind it.
func TestEffectsNotKept(t *testing.T) {
	k, _ := newFlaky(t, runs.Options{Output: 200}, "4")
	e := k.failedRun(t, numbers5, postEach)
	n := k.tools["post"].calls.Load()
	for _, pipeline := range []string{resume(e.Run, `"on_error":"skip"`), from(e.Run, 1, strings.Replace(postEach, "}", `,"args":{"y":1},"on_error":"skip"}`, 1))} {
		again := k.failed(t, pipeline)
		if again.Code != stages.Denied || !strings.Contains(again.Msg, "it is not known which calls were made before") || k.tools["post"].calls.Load() != n {
			t.Errorf("%s: %v, %d calls", pipeline, again, k.tools["post"].calls.Load()-n)
		}
	}
}

// TestEffectsOfTwo: a pipeline that goes on from two runs knows the effects of both, and whether they are known.
func TestEffectsOfTwo(t *testing.T) {
	k := newFaulty(t, runs.Options{Output: 200}, nil)
	_, clean := k.must(t, "["+numbers5+"]")
	_, one := k.must(t, "["+push1+"]")
	_, many := k.must(t, "["+numbers5+","+postEach+"]")
	next2 := strings.Replace(next1, `"x":1`, `"x":2`, 1)
	for _, tt := range []struct{ first, second, call, want string }{
		{clean, one, push1, "has called demo/push"},
		{one, clean, push1, "has called demo/push"},
		{many, clean, next2, "is not known"},
		{clean, many, next2, "is not known"},
	} {
		branches := inBranches(strings.Trim(from(tt.first, 1), "[]"), strings.Trim(from(tt.second, 1), "[]"))
		e := k.failedRun(t, branches, `{"type":"command","command":"drop"}`, tt.call)
		if e.Code != stages.Denied || !strings.Contains(e.Msg, tt.want) {
			t.Errorf("got %v, want %q", e, tt.want)
		}
	}
}

// TestResumeBounds: stored plans and lists of calls count as what is kept of a run, and what is read of them as what a run
// holds.
func TestResumeBounds(t *testing.T) {
	k := newFaulty(t, runs.Options{}, map[string]*stages.Error{"post 100": refused})
	before, _, _ := k.store.Usage()
	k.must(t, fmt.Sprintf(`[{"type":"tool","server":"demo","name":"say","args":{"text":"","more":%q}}]`, strings.Repeat("x", 300_000)))
	if after, _, _ := k.store.Usage(); after-before < 300_000 {
		t.Errorf("a plan of 300 kB takes %d bytes of the store", after-before)
	}
	e := k.failedRun(t, numbers100, postEach)
	k.deps.Limits = stages.Limits{Held: 16 << 10}
	if got := k.failed(t, resume(e.Run)); got.Code != stages.LimitExceeded || got.Limit != "held" {
		t.Errorf("got %v", got)
	}
	if n := len(k.callsOf("post")); n != 100 {
		t.Errorf("%d calls, want 100", n)
	}
}

// TestForgotten: the error of a run that will be forgotten names nothing to continue.
func TestForgotten(t *testing.T) {
	k := newFaulty(t, runs.Options{}, map[string]*stages.Error{"post 1": lost})
	p, errs := k.compile(t, "["+numbers5+","+postEach+"]")
	if errs != nil {
		t.Fatal(errs)
	}
	_, err := p.Run(t.Context(), nil, io.Discard, stages.RunOptions{Forgets: func() bool { return true }})
	e, ok := err.(*stages.Error)
	if !ok || e.Run != "" || e.Continue != 0 || e.Resume || !strings.HasPrefix(e.Hint, "the gateway is stopping and forgets this run") {
		t.Errorf("got %+v", err)
	}
}

// torn are runs of which some outputs cannot be read.
type torn struct {
	stages.Runs
	suffix string // of their names
}

func (r *torn) Open(run, name string) (*io.SectionReader, string, func()) {
	data, why, release := r.Runs.Open(run, name)
	if strings.HasSuffix(name, r.suffix) && data != nil {
		data = io.NewSectionReader(tornReader{}, 0, data.Size())
	}
	return data, why, release
}

type tornReader struct{}

func (tornReader) ReadAt([]byte, int64) (int, error) { return 0, errors.New("the disk is gone") }

// TestResumeUnreadable: what is kept and cannot be read is an error, and nothing is called.
func TestResumeUnreadable(t *testing.T) {
	k, repair := newFlaky(t, runs.Options{}, "60")
	e := k.failedRun(t, numbers100, postEach)
	repair()
	k.deps.Runs = &torn{k.deps.Runs, " items"}
	called := k.tools["post"].calls.Load()
	_, report, err := k.run(t, resume(e.Run))
	if err == nil || !strings.Contains(err.Error(), "the disk is gone") || len(report.Stages) > 1 && report.Stages[1].Resumed != 0 {
		t.Errorf("got %v, %+v", err, report.Stages)
	}
	if got := k.tools["post"].calls.Load() - called; got != 0 {
		t.Errorf("%d calls were made", got)
	}
}

// TestEffectsOfEvicted: the effects of a run that is evicted after the plan was checked are not known, so no call that
// changes something is made, even where nothing that the run has kept is needed.
func TestEffectsOfEvicted(t *testing.T) {
	k := newFaulty(t, runs.Options{Runs: 2}, nil)
	_, run := k.must(t, `[{"type":"command","command":"append","args":["1"]},`+head2+","+push1+"]")
	p, errs := k.compile(t, from(run, 1, push1))
	if errs != nil {
		t.Fatal(errs)
	}
	for range 2 {
		k.must(t, "["+numbers5+"]")
	}
	report, err := p.Run(t.Context(), nil, io.Discard, stages.RunOptions{})
	if e, ok := err.(*stages.Error); !ok || e.Code != stages.Denied || !strings.Contains(e.Msg, "is not known") {
		t.Errorf("got %v", err)
	}
	again := k.failed(t, from(report.Run, 1, next1))
	if n := len(k.callsOf("push")) + len(k.callsOf("next")); again.Code != stages.Denied || n != 1 {
		t.Errorf("behind that run: %v, %d calls", again, n)
	}
}

// TestResumePanic: a call that was sent and ended in a panic may have taken effect.
func TestResumePanic(t *testing.T) {
	k := newFaulty(t, runs.Options{}, nil)
	tool := k.add("burst", writes, "x", func(context.Context, map[string]any) (string, error) { panic("burst") })
	tool.info.Input.Properties = append(tool.info.Input.Properties, "input")
	burst := strings.Replace(push1, "push", "burst", 1)
	e := k.failedRun(t, numbers5, burst)
	if e.Code != stages.Internal {
		t.Fatalf("got %v", e)
	}
	for _, pipeline := range []string{resume(e.Run), from(e.Run, 1, burst)} {
		if again := k.failed(t, pipeline); again.Code != stages.Denied || !strings.Contains(again.Msg, "there was no answer") {
			t.Errorf("got %v", again)
		}
	}
	if n := len(k.callsOf("burst")); n != 1 {
		t.Errorf("%d calls, want 1", n)
	}
}

// countedEnds are runs that count how often the list of effects is ended.
type countedEnds struct {
	stages.Runs
	ended int
}

func (e *countedEnds) Create(run, name string, partial bool) (io.Writer, func(string)) {
	out, end := e.Runs.Create(run, name, partial)
	if name != "effects" {
		return out, end
	}
	return out, func(why string) { e.ended++; end(why) }
}

// TestEffectsEndOnce: a run ends the list of its effects once.
func TestEffectsEndOnce(t *testing.T) {
	k := newFaulty(t, runs.Options{}, nil)
	counted := &countedEnds{Runs: k.deps.Runs}
	k.deps.Runs = counted
	k.must(t, "["+numbers5+","+push1+"]")
	if counted.ended != 1 {
		t.Errorf("it was ended %d times", counted.ended)
	}
}

// TestEffectsNameRun: the refusal of a call names the run that has made it, through every run that goes on from it.
func TestEffectsNameRun(t *testing.T) {
	k := newFaulty(t, runs.Options{}, map[string]*stages.Error{"next 1": refused})
	const drop = `{"type":"command","command":"drop"}`
	e := k.failedRun(t, numbers5, drop, push1, drop, next1)
	_, continued := k.must(t, resume(e.Run))
	_, behind := k.must(t, from(continued, 1))
	for _, run := range []string{e.Run, continued, behind} {
		for call, maker := range map[string]string{push1: e.Run, next1: continued} {
			if got := k.failed(t, from(run, 1, drop, call)); !strings.Contains(got.Msg, "run "+maker+" has called") {
				t.Errorf("from %s: got %v, want run %s", run, got, maker)
			}
		}
	}
}
