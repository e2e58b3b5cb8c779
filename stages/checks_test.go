package stages_test

import (
	"context"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/stages"
)

// TestChecks: every command of a plan is checked, wherever it stands, and its mistakes come with all others. A plan that
// does not run is given up.
func TestChecks(t *testing.T) {
	const bad = `{"type":"command","command":"append","args":["crooked"]}`
	for _, test := range []struct {
		name, pipeline string
		checkOnly      bool
		tried          int64
		wrong          stages.Place
	}{
		{name: "behind a tool", pipeline: `[{"type":"tool","server":"demo","name":"get"},` + bad + `]`, tried: 1, wrong: "2"},
		{name: "behind tee", pipeline: `[{"type":"command","command":"cat"},{"type":"tee","path":"x"},` + bad + `]`, tried: 2, wrong: "3"},
		{name: "beside a tool", pipeline: `[{"type":"parallel","branches":{"a":[{"type":"tool","server":"demo","name":"get"}],"b":[` + bad + `]}}]`, tried: 1, wrong: "1.b.1"},
		{name: "in a for_each", pipeline: `[{"type":"tool","server":"demo","name":"get"},{"type":"for_each","stages":[` + bad + `]}]`, tried: 1, wrong: "2.1"},
		{name: "once per item", pipeline: `[{"type":"tool","server":"demo","name":"get"},` + bad[:len(bad)-1] + `,"for_each":true}]`, tried: 1, wrong: "2"},
		{name: "with another mistake", pipeline: `[{"type":"tool","server":"demo","name":"nosuch"},` + bad + `]`, tried: 1, wrong: "2"},
		{name: "a type with an escape", pipeline: `[{"type":"t\u006fol","server":"demo","name":"get"},` + bad + `]`, tried: 1, wrong: "2"},
		{name: "no tool", pipeline: `[` + bad + `]`, tried: 1, wrong: "1"},
		{name: "no mistake", pipeline: `[{"type":"command","command":"append","args":["tool"]}]`, tried: 1},
		{name: "no mistake, only checked", pipeline: `[{"type":"command","command":"append","args":["tool"]}]`, checkOnly: true, tried: 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld()
			w.root = t.TempDir()
			d := w.deps()
			d.CheckOnly = test.checkOnly
			_, errs := stages.CompileFed(t.Context(), []byte(test.pipeline), d)
			found := test.wrong == ""
			for _, e := range errs {
				found = found || e.Place == test.wrong && e.Code == stages.DisallowedArgument && e.Msg == "append: it is crooked"
			}
			if !found || test.wrong == "" && errs != nil {
				t.Errorf("got %v, want a mistake of stage %q", errs, test.wrong)
			}
			if n := w.tried.Load(); n != test.tried {
				t.Errorf("%d commands were checked, want %d", n, test.tried)
			}
			want := int64(0)
			if test.wrong != "" || test.checkOnly {
				want = 1
			}
			if n := w.given.Load(); n != want {
				t.Errorf("%d plans were given up, want %d", n, want)
			}
		})
	}
}

// ending is a world in which the call of a plan ends while its first command is checked.
type ending struct {
	*world
	end func()
}

func (e ending) Plan(_, _, _ string) stages.CommandPlan { return e }

func (e ending) Check(ctx context.Context, _ stages.Command) (stages.Traits, error) {
	e.end()
	<-ctx.Done()
	return stages.Traits{}, stages.Errorf(stages.Cancelled, "", "the stage was cancelled")
}

// TestCommandCheckEnds: a plan whose call ends during the check of a command says that it was not checked, and why.
func TestCommandCheckEnds(t *testing.T) {
	for _, test := range []struct {
		code stages.Code
		says string
		call func() (context.Context, func())
	}{
		{stages.Cancelled, "the check of the plan had not ended", func() (context.Context, func()) {
			ctx, end := context.WithCancel(t.Context())
			return ctx, end
		}},
		{stages.Timeout, "the time was up before the plan was checked", func() (context.Context, func()) {
			ctx := spent{t.Context(), make(chan struct{})}
			return ctx, func() { close(ctx.done) }
		}},
	} {
		w := newWorld()
		ctx, end := test.call()
		d := w.deps()
		d.Commands = ending{w, end}
		_, errs := stages.Compile(ctx, []byte(`[{"type":"command","command":"cat"}]`), d)
		if len(errs) != 1 || errs[0].Code != test.code || !strings.Contains(errs[0].Msg, test.says) || errs[0].Hint == "" {
			t.Errorf("got %v, want %s and %q", errs, test.code, test.says)
		}
	}
}

// spent is a context whose deadline has passed when done is closed.
type spent struct {
	context.Context
	done chan struct{}
}

func (s spent) Done() <-chan struct{} { return s.done }

func (s spent) Err() error {
	select {
	case <-s.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}
