package sandboxtest

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/mcsh-dev/mcsh/sandbox"
	"github.com/mcsh-dev/mcsh/stages"
)

// scriptsJSON holds commands whose arguments programs have something to say of, and some that look like it.
//
//go:embed testdata/scripts.json
var scriptsJSON []byte

// A script is a command and what is said of it before anything runs.
type script struct {
	Command string
	Args    []string
	Want    string // a part of the mistake; empty: there is none
	Hint    string // a part of it
}

// testScripts checks every script, side by side, as a plan does.
func testScripts(t *testing.T, open func() sandbox.Driver) {
	var all []script
	if err := json.Unmarshal(scriptsJSON, &all); err != nil {
		t.Fatal(err)
	}
	p := newPool(t, open, sandbox.Options{Warm: -1})
	usable := map[string]bool{}
	for _, a := range p.Report().Programs {
		usable[a.Name] = a.Refusal == ""
	}
	for range 2 { // what was found is remembered
		plan := p.Plan("somebody", "", "")
		var group errgroup.Group
		for _, s := range all {
			if !usable[s.Command] {
				continue
			}
			group.Go(func() error {
				_, err := plan.Check(t.Context(), command(s.Command, s.Args...))
				s.check(t, err)
				return nil
			})
		}
		_ = group.Wait() // the functions return nil
		if err := plan.Close(); err != nil {
			t.Errorf("closing: %v", err)
		}
	}
}

func (s script) check(t *testing.T, err error) {
	t.Helper()
	if s.Want == "" {
		if err != nil {
			t.Errorf("%s %q: got %v, want that nothing is wrong", s.Command, s.Args, err)
		}
		return
	}
	if err == nil {
		t.Errorf("%s %q: nothing is wrong, want %q", s.Command, s.Args, s.Want)
		return
	}
	e := asError(t, err)
	if e.Code != stages.DisallowedArgument || !strings.HasPrefix(e.Msg, s.Command+": ") || !strings.HasPrefix(e.Field, "args") ||
		!strings.Contains(e.Msg, s.Want) || !strings.Contains(e.Hint, s.Hint) || strings.Contains(e.Msg, "--help") {
		t.Errorf("%s %q: got %s %s: %q, hint %q; want %q, hint %q", s.Command, s.Args, e.Code, e.Field, e.Msg, e.Hint, s.Want, s.Hint)
	}
}

// testScriptPipelines: no tool is called for a plan with a script that is wrong, wherever it stands, and a check says the
// same; a plan that is right is not hindered.
func testScriptPipelines(t *testing.T, open func() sandbox.Driver) {
	p := newPool(t, open, sandbox.Options{Warm: -1})
	const save = `{"type":"tool","server":"x","name":"save"}`
	for _, test := range []struct {
		name, pipeline string
		wrong          []stages.Place // where there is a mistake
		out            string
	}{
		{"awk that writes", `[` + save + `,{"type":"command","command":"awk","args":["{print > \"f\"}"]}]`, []stages.Place{"2"}, ""},
		{"awk that cannot be read", `[` + save + `,{"type":"command","command":"awk","args":["{print"]}]`, []stages.Place{"2"}, ""},
		{"sed that writes, and grep", `[` + save + `,{"type":"command","command":"sed","args":["w f"]},{"type":"command","command":"grep","args":["-E","("]}]`, []stages.Place{"2", "3"}, ""},
		{"within", `[{"type":"parallel","branches":{"a":[` + save + `],"b":[` + save + `,{"type":"for_each","stages":[{"type":"command","command":"cut","args":["-f","0"]}]}]}}]`, []stages.Place{"1.b.2.1"}, ""},
		{"all is well", `[` + save + `,{"type":"command","command":"sed","args":["s/a/b/"]},{"type":"command","command":"awk","args":["{print $1; exit 0}"]}]`, nil, "sbved\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var calls atomic.Int64
			deps := stages.Deps{Commands: p, Tools: tools{"save": func(_ context.Context, _ string, out io.Writer) error {
				calls.Add(1)
				_, err := io.WriteString(out, "saved\n")
				return err
			}}}
			var said []string
			for _, deps.CheckOnly = range []bool{false, true} {
				plan, errs := stages.Compile(t.Context(), []byte(test.pipeline), deps)
				var wrong []stages.Place
				text := ""
				for _, e := range errs {
					wrong, text = append(wrong, e.Place), text+e.Error()+"\n"
				}
				if said = append(said, text); !slices.Equal(wrong, test.wrong) {
					t.Fatalf("got %v, want mistakes at %q", errs, test.wrong)
				}
				if errs != nil || deps.CheckOnly {
					continue
				}
				var out bytes.Buffer
				if _, err := plan.Run(t.Context(), nil, &out, stages.RunOptions{}); err != nil || out.String() != test.out {
					t.Errorf("got %q, %v, want %q", out.String(), err, test.out)
				}
			}
			if said[0] != said[1] {
				t.Errorf("a check says %q, a run %q", said[1], said[0])
			}
			if n := calls.Load(); (n > 0) != (test.wrong == nil) {
				t.Errorf("the tool was called %d times", n)
			}
		})
	}
}
