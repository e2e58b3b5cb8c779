package stages_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/mcsh-dev/mcsh/runs"
	"github.com/mcsh-dev/mcsh/stages"
)

// newOnce is a world with tools that change something: ok, lose (nobody knows), refuse (the first call is answered with
// an error) and after (which says no after ok was called).
func newOnce(t *testing.T) *kept {
	t.Helper()
	k := newKept(t, runs.Options{})
	called := make(chan struct{})
	once := sync.OnceFunc(func() { close(called) })
	k.add("ok", writes, "x", func(context.Context, map[string]any) (string, error) {
		once()
		return "{}", nil
	})
	k.add("after", writes, "x", func(ctx context.Context, _ map[string]any) (string, error) {
		select {
		case <-called:
		case <-ctx.Done():
		}
		e := stages.Errorf(stages.ToolError, "", "no")
		e.Answered = true
		return "", e
	})
	k.add("lose", writes, "x", func(context.Context, map[string]any) (string, error) {
		return "", stages.Errorf(stages.Timeout, "", "no answer")
	})
	refused := false
	k.add("refuse", writes, "x", func(context.Context, map[string]any) (string, error) {
		if refused {
			return "{}", nil
		}
		refused = true
		e := stages.Errorf(stages.ToolError, "", "no")
		e.Answered = true
		return "", e
	})
	for _, name := range []string{"ok", "lose", "refuse", "after", "numbers"} {
		k.tools[name].info.Input.Properties = append(k.tools[name].info.Input.Properties, "input")
	}
	return k
}

// TestNotDoneAgain: a pipeline that goes on from a run is refused where it would make a call again that succeeded there,
// or may have taken effect. What was answered with an error, what never left and what is another call may be made.
func TestNotDoneAgain(t *testing.T) {
	tool := func(name, more string) string {
		return fmt.Sprintf(`{"type":"tool","server":"demo","name":%q,"args":{"x":1}%s}`, name, more)
	}
	parallel := func(a, b string) string {
		return `{"type":"parallel","branches":{"a":[` + a + `],"b":[` + b + `]}}`
	}
	const fails = `{"type":"command","command":"fail-at","args":["1"]}`
	for _, tt := range []struct {
		name   string
		before []string // what stood behind the first stage
		then   []string // what stands behind from
		place  string   // of the refusal; empty: it is run
	}{
		{"it succeeded", []string{tool("ok", ""), fails}, []string{tool("ok", "")}, "2"},
		{"it succeeded, and all that followed", []string{tool("ok", ""), cat}, []string{tool("ok", "")}, "2"},
		{"nobody knows", []string{tool("lose", "")}, []string{tool("lose", "")}, "2"},
		{"written otherwise", []string{tool("lose", "")}, []string{tool("lose", `,"timeout":9`)}, "2"},
		{"a number written otherwise", []string{tool("lose", "")}, []string{strings.Replace(tool("lose", ""), `"x":1`, `"x":10e-1`, 1)}, "2"},
		{"a whole number with a fraction", []string{strings.Replace(tool("lose", ""), `"x":1`, `"x":[{"y":-2.0}]`, 1)}, []string{strings.Replace(tool("lose", ""), `"x":1`, `"x":[{"y":-2}]`, 1)}, "2"},
		{
			"large numbers that differ in the last digit",
			[]string{strings.Replace(tool("ok", ""), `"x":1`, `"x":9007199254740993`, 1), fails},
			[]string{strings.Replace(tool("ok", ""), `"x":1`, `"x":9007199254740992`, 1)},
			"",
		},
		{"once per item", []string{tool("lose", "")}, []string{tool("lose", `,"for_each":true`)}, "2"},
		{"behind what is the same", []string{cat, tool("lose", "")}, []string{cat, tool("lose", "")}, "3"},
		{"in a branch now", []string{tool("lose", "")}, []string{parallel(tool("lose", ""), cat)}, "2"},
		{"the same parallel", []string{parallel(tool("lose", ""), cat)}, []string{parallel(tool("lose", ""), cat)}, "2"},
		{"the parallel, with another branch mended", []string{parallel(tool("ok", ""), tool("after", ""))}, []string{parallel(tool("ok", ""), cat)}, "2"},
		{
			"an input",
			[]string{`{"type":"command","command":"append","args":["@b"],"inputs":{"b":[` + tool("lose", "") + `]}}`},
			[]string{`{"type":"command","command":"append","args":["@b"],"inputs":{"b":[` + tool("lose", "") + `]}}`},
			"2",
		},
		{"a window added", []string{tool("lose", "")}, []string{window, tool("lose", "")}, "3"},
		{"a window left out", []string{window, tool("lose", "")}, []string{tool("lose", "")}, "2"},
		{"it was answered with an error", []string{tool("refuse", "")}, []string{tool("refuse", "")}, ""},
		{"another call", []string{tool("ok", ""), fails}, []string{strings.Replace(tool("ok", ""), `"x":1`, `"x":2`, 1)}, ""},
		{"it never left", []string{fails, tool("ok", "")}, []string{cat, tool("ok", "")}, ""},
		{"other data", []string{tool("ok", ""), fails}, []string{cat, tool("ok", "")}, ""},
		{"it only reads", []string{`{"type":"tool","server":"demo","name":"numbers","args":{"n":3}}`, fails}, []string{`{"type":"tool","server":"demo","name":"numbers","args":{"n":3}}`}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k := newOnce(t)
			_, report, _ := k.run(t, "["+strings.Join(append([]string{numbers5}, tt.before...), ",")+"]")
			again := from(report.Run, 1, tt.then...)
			_, errs := k.compile(t, again)
			if tt.place == "" {
				if errs != nil {
					t.Errorf("refused: %v", errs)
				}
				return
			}
			if len(errs) != 1 || string(errs[0].Place) != tt.place || errs[0].Code != stages.InvalidPipeline ||
				!strings.Contains(errs[0].Msg, "has done this already, or may have") || !strings.Contains(errs[0].Hint, "on purpose") {
				t.Errorf("got %v", errs)
			}
		})
	}
}

// TestNotDoneByTwo: what was answered with an error is made again by one run that goes on, not by a second one.
func TestNotDoneByTwo(t *testing.T) {
	const refuse = `{"type":"tool","server":"demo","name":"refuse","args":{"x":1}}`
	k := newOnce(t)
	e := k.failedRun(t, numbers5, refuse)
	dry, errs := k.compile(t, from(e.Run, 1, refuse))
	if errs != nil {
		t.Fatal(errs)
	}
	if _, err := dry.Run(t.Context(), nil, io.Discard, stages.RunOptions{DryRun: true}); err != nil {
		t.Errorf("a dry run: %v", err) // and it stands in nobody's way
	}
	late, errs := k.compile(t, from(e.Run, 1, refuse)) // before the other has run
	if errs != nil {
		t.Fatal(errs)
	}
	_, run := k.must(t, from(e.Run, 1, refuse))
	calls := len(k.callsOf("refuse"))
	if _, err := late.Run(t.Context(), nil, io.Discard, stages.RunOptions{}); err == nil || !strings.Contains(err.Error(), "run "+run+", which goes on from run "+e.Run) {
		t.Errorf("the second: %v", err)
	}
	if n := len(k.callsOf("refuse")); n != calls {
		t.Errorf("the second made %d calls", n-calls)
	}
	_, errs = k.compile(t, from(e.Run, 1, refuse))
	if len(errs) != 1 || !strings.Contains(errs[0].Msg, "run "+run+", which goes on from run "+e.Run) {
		t.Errorf("got %v", errs)
	}
}

// TestWindowsLookedThrough: a preview or a tee that is added or left out does not make another for_each of one with effects.
func TestWindowsLookedThrough(t *testing.T) {
	const tee = `{"type":"tee","path":"l.txt"}`
	for _, tt := range []struct{ before, then []string }{
		{nil, []string{window}},
		{nil, []string{tee, window}},
		{[]string{window}, nil},
		{[]string{tee}, nil},
		{[]string{tee}, []string{window}},
		{[]string{window}, []string{window}},
	} {
		k, mend := newFlaky(t, runs.Options{}, "60")
		k.withFiles(t, "")
		k.deps.Files = k.files
		e := k.failedRun(t, append(append([]string{numbers100}, tt.before...), postEach)...)
		mend()
		if out, _ := k.must(t, from(e.Run, 1, append(tt.then, postEach)...)); out != done(100) {
			t.Errorf("%v, then %v: got %.100q", tt.before, tt.then, out)
		}
		if n := len(k.callsOf("post")); n != 101 {
			t.Errorf("%v, then %v: %d calls, want 101", tt.before, tt.then, n)
		}
	}
}

// TestAppendedOnce: a tee that has appended does not append the same again; one that replaces its file may.
func TestAppendedOnce(t *testing.T) {
	const appends, other = `{"type":"tee","path":"l.txt","append":true}`, `{"type":"tee","path":"m.txt","append":true}`
	for _, tt := range []struct {
		then  []string
		place string
	}{
		{[]string{appends, postEach}, "2"},
		{[]string{window, `{"append":true,"path":"./l.txt","type":"tee","confirm_oversize":true}`, postEach}, "3"},
		{[]string{appends, cat}, "2"},
		{[]string{`{"type":"tee","path":"ROOT/x/../l.txt","append":true}`, cat}, "2"},
		{[]string{other, postEach}, ""},
		{[]string{`{"type":"tee","path":"l.txt"}`, postEach}, ""},
		{[]string{cat, appends}, ""},
	} {
		k, mend := newFlaky(t, runs.Options{}, "60")
		k.withFiles(t, "")
		k.deps.Files = k.files
		e := k.failedRun(t, numbers100, appends, postEach)
		mend()
		saved, err := os.ReadFile(filepath.Join(k.root, "l.txt"))
		if err != nil || len(saved) == 0 {
			t.Fatal(err)
		}
		_, errs := k.compile(t, strings.ReplaceAll(from(e.Run, 1, tt.then...), "ROOT", k.root))
		if tt.place == "" && errs != nil || tt.place != "" && (len(errs) != 1 || string(errs[0].Place) != tt.place ||
			!strings.Contains(errs[0].Hint, fmt.Sprintf(`go on behind it with {"type": "from", "run": %q, "stage": 2}`, e.Run))) {
			t.Errorf("%v: got %v", tt.then, errs)
		}
	}
}

// TestForgotten: the error of a run that nobody can go on from names nothing to continue from, and what may have
// taken effect all the same.
func TestForgotten(t *testing.T) {
	k := newKept(t, runs.Options{})
	k.add("post", writes, "x", func(context.Context, map[string]any) (string, error) {
		return "", stages.Errorf(stages.Timeout, "", "no answer")
	})
	p, errs := k.compile(t, "["+numbers5+","+postEach+"]")
	if errs != nil {
		t.Fatal(errs)
	}
	_, err := p.Run(t.Context(), nil, io.Discard, stages.RunOptions{Forgets: func() bool { return true }})
	e, ok := err.(*stages.Error)
	if !ok || e.Run != "" || e.Continue != 0 || e.Standing != "" || !strings.HasPrefix(e.Hint, "item 1 of stage 2 may have taken effect; the gateway is stopping and forgets this run") {
		t.Errorf("got %+v", err)
	}
}
