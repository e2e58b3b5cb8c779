package sandboxtest

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/sandbox"
	"github.com/mcsh-dev/mcsh/sandbox/wire"
	"github.com/mcsh-dev/mcsh/stages"
)

// A costly script is one that takes much to read.
type costly struct {
	name, command, script string
	code                  stages.Code // of its mistake; empty: it is accepted or too costly, as the build of the worker has it
}

// costlyScripts have the most of what makes each kind of script large.
var costlyScripts = []costly{
	{"jq ?", "jq", "." + strings.Repeat("?", 59_000), stages.LimitExceeded},
	{"jq [", "jq", strings.Repeat("[", 59_000), stages.DisallowedArgument},
	{"jq []", "jq", strings.Repeat("[", 29_000) + strings.Repeat("]", 29_000), ""},
	{"jq ()", "jq", strings.Repeat("(", 29_000) + "." + strings.Repeat(")", 29_000), ""},
	{"jq def", "jq", strings.Repeat("def f: ", 6000) + "." + strings.Repeat(";.", 6000), ""},
	{"jq update", "jq", strings.Repeat(".a|=(", 9000) + "." + strings.Repeat(")", 9000), ""},
	{"jq interpolation", "jq", `@base64 "` + strings.Repeat(`\(.)`, 14_000) + `"`, ""},
	{"jq definitions and calls", "jq", "def a: 0;" + strings.Repeat("def b: 1;", 3000) + "[" + strings.Repeat("a,", 15_000) + "1]", ""},
	{"awk /", "awk", "BEGIN{x=1" + strings.Repeat("/1", 30_000) + "}", ""},
	{"awk getline", "awk", strings.Repeat("getline x[", 600), stages.DisallowedArgument},
	{"awk print", "awk", strings.Repeat("print ", 10_000), stages.DisallowedArgument},
	{"awk {", "awk", "BEGIN" + strings.Repeat("{", 30_000) + strings.Repeat("}", 30_000), ""},
	{"sed {", "sed", strings.Repeat("{", 60_000), stages.DisallowedArgument},
	{"sed {}", "sed", strings.Repeat("{", 30_000) + strings.Repeat("}", 30_000), ""},
	{"sed (", "sed", "s/" + strings.Repeat(`\(a`, 10_000) + strings.Repeat(`\)`, 10_000) + "/b/", ""},
}

// testCostlyScripts: the check of a script ends, by its limits at the latest, and takes nothing from the commands beside it.
func testCostlyScripts(t *testing.T, open func() sandbox.Driver) {
	p := newPool(t, open, sandbox.Options{Warm: -1})
	for _, c := range costlyScripts {
		t.Run(c.name, func(t *testing.T) {
			_, err := check(t, p, command(c.command, c.script))
			if err == nil {
				if c.code != "" {
					t.Errorf("it was accepted, want %s", c.code)
				}
				return
			}
			e := asError(t, err)
			if e.Code != c.code && (c.code != "" || e.Code != stages.LimitExceeded) && !strings.Contains(e.Msg, "not available here") {
				t.Errorf("got %s: %.300s, want %s", e.Code, e.Msg, c.code)
			}
			if e.Code == stages.LimitExceeded && (!strings.HasPrefix(e.Limit, "check") || !strings.Contains(e.Msg, "(limit "+e.Limit+")") || !strings.Contains(e.Hint, "--limit "+e.Limit+"=")) {
				t.Errorf("got limit %q, %.300q, hint %q", e.Limit, e.Msg, e.Hint)
			}
		})
	}
	if _, err := check(t, p, command("jq", ".a")); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// testCostlyPlan: the mistakes of the other stages come with one that is too costly to check.
func testCostlyPlan(t *testing.T, open func() sandbox.Driver) {
	p := newPool(t, open, sandbox.Options{Warm: -1})
	_, errs := stages.Compile(t.Context(), fmt.Appendf(nil, `[{"type":"command","command":"jq","args":[%q]},{"type":"command","command":"jq","args":[".["]},
		{"type":"command","command":"sort","args":["-o","x"]},{"type":"nosuch"}]`, costlyScripts[0].script), stages.Deps{Commands: p})
	var got []string
	for _, e := range errs {
		got = append(got, fmt.Sprint(e.Place, " ", e.Code))
	}
	if want := "1 LIMIT_EXCEEDED, 2 DISALLOWED_ARGUMENT, 3 DISALLOWED_ARGUMENT, 4 INVALID_PIPELINE"; strings.Join(got, ", ") != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// testCheckLimits: the worker itself ends a check at its limits, and goes on.
func testCheckLimits(t *testing.T, open func() sandbox.Driver) {
	r := newRaw(t, open)
	filter := costlyScripts[6].script
	ask := func(c wire.Check) (string, *wire.Failure) {
		s := r.start(t, wire.Chain{Memory: sandbox.Memory, Disk: rawDisk, Commands: []wire.Command{
			{Name: "jq", Argv: []string{"jq", "--", filter}, Timeout: time.Minute, Check: &c},
		}})
		_ = s.End()
		text, _ := io.ReadAll(s)
		o, err := s.Outcome()
		if err != nil {
			t.Fatal(err)
		}
		return string(text), o.Failure
	}
	if _, f := ask(wire.Check{Script: true, Memory: 128 << 20, CPU: time.Millisecond}); f == nil || f.Reason != wire.CPULimit {
		t.Errorf("a millisecond of the processor: got %+v, want %s", f, wire.CPULimit)
	}
	if _, f := ask(wire.Check{Script: true, Memory: 1 << 20, CPU: time.Minute}); f == nil || f.Reason != wire.MemoryLimit || f.Limit != 1<<20 {
		t.Errorf("a MiB: got %+v, want %s", f, wire.MemoryLimit)
	}
	filter = "."
	if text, f := ask(wire.Check{Script: true, Memory: 1 << 20, CPU: time.Minute}); f != nil || strings.TrimSpace(text) != "{}" {
		t.Errorf("the next check: got %q, %+v", text, f)
	}
	said, _, failure, err := r.run(t.Context(), "jq", []string{"-n", `[range(200000)] | length`}, strings.NewReader(""))
	if err != nil || failure != nil || said != "200000\n" {
		t.Errorf("a run in the process of a check has its own limits: got %q, %+v, %v", said, failure, err)
	}
}
