package stages_test

import (
	"testing"

	"github.com/mcsh-dev/mcsh/stages"
)

// TestTryouts: where a tool could be called before a command shows its mistake, commands are tried out with the plan; so
// are those of a plan that is only checked. Elsewhere nothing is done that running the plan does as well.
func TestTryouts(t *testing.T) {
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
		{name: "no tool", pipeline: `[` + bad + `]`},
		{name: "a word that is in no type", pipeline: `[{"type":"command","command":"append","args":["crooked tool"]}]`},
		{name: "no tool, only checked", pipeline: `[` + bad + `]`, checkOnly: true, tried: 1, wrong: "1"},
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
				t.Errorf("%d commands were tried, want %d", n, test.tried)
			}
		})
	}
}
