package stages_test

import (
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

// TestNothingRepeated: what has taken effect, or may have, stands behind the stage that an error names to continue from;
// where that cannot be, none is named, and the error says what was done. The same holds for the hint of a from that has
// nothing to begin with.
func TestNothingRepeated(t *testing.T) {
	const (
		write  = `{"type":"tool","server":"demo","name":"write","args":{"x":1}}`
		long   = `{"type":"tool","server":"demo","name":"long","args":{"x":1}}`
		lose   = `{"type":"tool","server":"demo","name":"lose","args":{"x":1}}`
		refuse = `{"type":"tool","server":"demo","name":"refuse","args":{"x":1}}`
		fails  = `{"type":"tool","server":"demo","name":"get","args":{"id":13}}`
		drop   = `{"type":"command","command":"drop"}`
		fail2  = `{"type":"command","command":"fail-at","args":["2"]}`
		each   = `{"type":"tool","server":"demo","name":"write","args":{"x":1},"for_each":true}`
		eachBy = `{"type":"for_each","stages":[` + drop + `,` + long + `]}`
	)
	for _, tt := range []struct {
		name     string
		pipeline []string
		want     int
		standing string // what the error says where want is 0
	}{
		{"it succeeded, and is kept", []string{numbers5, write, fails}, 2, ""},
		{"its output is too long", []string{numbers5, long, fails}, 0, "stage 2 (tool demo/long) has run demo/long (once)"},
		{"what follows is kept", []string{numbers5, long, drop, fails}, 3, ""},
		{"in a branch", []string{numbers5, `{"type":"parallel","branches":{"a":[` + write + `],"b":[{"type":"tool","server":"demo","name":"slow","args":{"ms":9}},` + fails + `]}}`}, 0, "stage 2 (parallel) has run demo/write (once)"},
		{"in a branch that only reads", []string{numbers5, `{"type":"parallel","branches":{"a":[` + numbers5 + `],"b":[` + fails + `]}}`}, 1, ""},
		{"a for_each in a branch", []string{numbers5, `{"type":"parallel","branches":{"a":[` + each + `],"b":[{"type":"tool","server":"demo","name":"slow","args":{"ms":9}},` + fails + `]}}`}, 0, "stage 2 (parallel) has run demo/write (5 times)"},
		{"nobody knows", []string{numbers5, lose}, 0, "stage 2 (tool demo/lose) has run demo/lose (once)"},
		{"the first stage", []string{long, fails}, 0, "stage 1 (tool demo/long) has run demo/long (once)"},
		{"the tool said no", []string{numbers5, refuse}, 1, ""},
		{"a for_each, whose items are known", []string{numbers5, each, fails}, 2, ""},
		{"a for_each, whose items are too long", []string{numbers5, eachBy, fails}, 0, "stage 2 (for_each) has run demo/long (5 times)"},
		{"an input", []string{numbers5, `{"type":"command","command":"append","args":["@b"],"inputs":{"b":[` + write + `]}}`, drop, fails}, 3, ""},
		{"an input of a command that fails", []string{numbers5, `{"type":"command","command":"append","args":["@b"],"inputs":{"b":[` + write + `,` + fails + `]}}`}, 0, "stage 2 (command append) has run demo/write (once)"},
		{"only reading before", []string{numbers5, fail2, write}, 1, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			k := newKept(t, runs.Options{Output: 1 << 10})
			defer k.store.Close()
			k.add("long", writes, "x", func(context.Context, map[string]any) (string, error) { return strings.Repeat("1\n", 1000), nil })
			k.add("lose", writes, "x", func(context.Context, map[string]any) (string, error) {
				return "", stages.Errorf(stages.Timeout, "", "no answer")
			})
			k.add("refuse", writes, "x", func(context.Context, map[string]any) (string, error) {
				e := stages.Errorf(stages.ToolError, "", "no")
				e.Answered = true
				return "", e
			})
			for _, name := range []string{"write", "long", "lose", "refuse", "get", "slow"} { // they take what flows into them, and do not look
				k.tools[name].info.Input.Properties = append(k.tools[name].info.Input.Properties, "input")
			}
			e := k.failedRun(t, tt.pipeline...)
			if e.Continue != tt.want || (e.Standing != "") != (tt.standing != "") || !strings.HasPrefix(e.Standing, tt.standing) {
				t.Errorf("%s: continue with stage %d, want %d (%v)\n%s", tt.name, e.Continue, tt.want, e, e.Standing)
			}
			if tt.want > 0 {
				if _, errs := k.compile(t, from(e.Run, e.Continue)); errs != nil {
					t.Errorf("%s: one cannot continue: %v", tt.name, errs)
				}
				return
			}
			at := 2
			if tt.standing[6] == '1' {
				at = 1
			}
			_, errs := k.compile(t, from(e.Run, at))
			if len(errs) != 1 || !strings.HasPrefix(errs[0].Hint, tt.standing) || strings.Contains(errs[0].Hint, "begin from") {
				t.Errorf("%s: from stage %d: %v", tt.name, at, errs)
			}
		})
	}
}

// TestStandingSaysWhatIsKept: the sentence names why the output is not there, and where the data is for what is left.
func TestStandingSaysWhatIsKept(t *testing.T) {
	k := newKept(t, runs.Options{Output: 1 << 10})
	k.add("long", writes, "x", func(context.Context, map[string]any) (string, error) { return strings.Repeat("1\n", 1000), nil })
	k.tools["long"].info.Input.Properties = append(k.tools["long"].info.Input.Properties, "input")
	e := k.failedRun(t, numbers5, `{"type":"tool","server":"demo","name":"long","args":{"x":1}}`, `{"type":"command","command":"fail-at","args":["1"]}`)
	want := `stage 2 (tool demo/long) has run demo/long (once), which may have taken effect and would be repeated, and its output is not kept: ` +
		`it is longer than 1 KiB, which is the most that is kept of one stage. Find out what was changed (with a tool that reads), and run only what is left; ` +
		fmt.Sprintf(`what came to stage 2 is kept, for that: {"type": "from", "run": %q, "stage": 1}`, e.Run)
	if e.Standing != want {
		t.Errorf("got %s\nwant %s", e.Standing, want)
	}
}

// TestResumeOnce: of two runs that take up one for_each with effects, at the same time or one after the other, the
// second is refused, before it calls anything, and is told which run it can go on from.
func TestResumeOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKept(t, runs.Options{})
		defer k.store.Close()
		var post effects
		broken := true
		k.add("post", writes, "x", func(_ context.Context, args map[string]any) (string, error) {
			time.Sleep(time.Second)
			if broken && fmt.Sprint(args["x"]) == "3" {
				e := stages.Errorf(stages.ToolError, "", "not now")
				e.Answered = true
				return "", e
			}
			post.add(args)
			return fmt.Sprintf(`{"done":%v}`, args["x"]), nil
		})
		e := k.failedRun(t, numbers5, postEach)
		if again := k.failedRun(t, from1(e), postEach); again.Item != 3 { // it did nothing, and stands in nobody's way
			t.Fatalf("got %v", again)
		}
		broken = false
		var reports [2]stages.Report
		var errs [2]error
		var both [2]*stages.Pipeline
		for i := range both { // both are checked before either runs
			var wrong []*stages.Error
			if both[i], wrong = k.compile(t, from(e.Run, 1, postEach)); wrong != nil {
				t.Fatal(wrong)
			}
		}
		var running sync.WaitGroup
		for i, p := range both {
			running.Go(func() { reports[i], errs[i] = p.Run(t.Context(), nil, io.Discard, stages.RunOptions{}) })
			synctest.Wait()
		}
		running.Wait()
		if errs[0] != nil || post.times["3"] != 1 || post.times["5"] != 1 {
			t.Errorf("the first: %v, effects %v", errs[0], post.times)
		}
		refusal := "run " + reports[0].Run + " takes up this for_each already, or has done so"
		if errs[1] == nil || !strings.Contains(errs[1].Error(), refusal) {
			t.Errorf("the second: %v", errs[1])
		}
		_, wrong := k.compile(t, from(e.Run, 1, postEach))
		if len(wrong) != 1 || wrong[0].Place != "2" || !strings.Contains(wrong[0].Msg, refusal) ||
			!strings.Contains(wrong[0].Hint, fmt.Sprintf(`{"type": "from", "run": %q, "stage": 1}`, reports[0].Run)) {
			t.Errorf("later: %v", wrong)
		}
		if out, _ := k.must(t, from(reports[0].Run, 1, postEach)); out != done(5) || post.times["5"] != 1 {
			t.Errorf("from the run that took it up: %q, effects %v", out, post.times)
		}
	})
}

// TestResumeReadingTwice: a for_each that only reads may be taken up as often as one likes.
func TestResumeReadingTwice(t *testing.T) {
	k, mend := newFlaky(t, runs.Options{}, "60")
	e := k.failedRun(t, numbers100, checkEach)
	mend()
	for range 2 {
		if out, _ := k.must(t, from(e.Run, 1, checkEach)); out != done(100) {
			t.Errorf("got %.100q", out)
		}
	}
}

// TestResumeWithin: a for_each with effects that stands within another stage is not taken up, and so is refused while
// items of it have been run; one that reads, or that was not begun, may stand there.
func TestResumeWithin(t *testing.T) {
	for _, each := range []string{postEach, strings.TrimSuffix(postEach, "}") + `,"concurrency":1}`, checkEach} {
		k, mend := newFlaky(t, runs.Options{}, "60")
		e := k.failedRun(t, numbers100, each)
		mend()
		calls := k.tools["post"].calls.Load()
		inner := from1(e)
		for _, outer := range []string{
			`[{"type":"parallel","branches":{"a":[` + inner + `,` + each + `]}}]`,
			`[{"type":"parallel","branches":{"b":[{"type":"parallel","branches":{"a":[` + inner + `,` + each + `]}}]}}]`,
			`[{"type":"command","command":"append","args":["@a"],"inputs":{"a":[` + inner + `,` + each + `]}}]`,
		} {
			_, errs := k.compile(t, outer)
			if each == checkEach {
				if errs != nil {
					t.Errorf("%s: %v", outer, errs)
				}
				continue
			}
			if len(errs) != 1 || errs[0].Code != stages.InvalidPipeline || !strings.HasSuffix(string(errs[0].Place), ".a.2") ||
				!strings.Contains(errs[0].Msg, "run "+e.Run+" has called demo/post for items of its stage 2 already, and within another stage") {
				t.Errorf("%s: got %v", outer, errs)
			}
		}
		anew := `[{"type":"parallel","branches":{"a":[` + inner + `,` + cat + `,` + each + `]}}]`
		if _, errs := k.compile(t, anew); errs != nil {
			t.Errorf("behind a command: %v", errs)
		}
		if n := k.tools["post"].calls.Load(); n != calls {
			t.Errorf("%d calls were made by checking", n-calls)
		}
	}
}
