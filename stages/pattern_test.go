package stages_test

import (
	"context"
	"errors"
	"fmt"
	"regexp/syntax"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/stages"
)

// TestRetryOnBounds refuses patterns that are long, or short and compiled to large programs.
func TestRetryOnBounds(t *testing.T) {
	const large = "retry_on compiles to more than 1000 instructions"
	tests := []struct{ name, pattern, want string }{
		{"repetitions of repetitions", `((a{1,30}){1,30}){1,30}`, "retry_on is not a regular expression: invalid repeat count at character 4: \"{1,30}\""},
		{"two of them", `((a{1,30}){1,30})` + strings.Repeat("b", 100), large},
		{"of much", "(" + strings.Repeat("x", 990) + "){1000}", large},
		{"of classes", `([^\pL]{1,10}[^\pN]{1,10}){1,100}`, large},
		{"without captures", `(?:(?:[ab]cd){30}){30}`, large},
		{"side by side", strings.Repeat(`\pL{100}`, 11), large},
		{"of nothing", `(((((()))))){90}`, large},
		{"at least", `(a{30,}b){30,}`, large},
		{"too deep", strings.Repeat("(", 400) + "a{3}" + strings.Repeat(")", 400), ""},
		{"long", strings.Repeat("x", 1000), ""},
		{"one too long", strings.Repeat("x", 999) + "é", "retry_on has 1001 bytes, more than 1000"},
		{"plain", `(?i)rate limit|timed? out|^5\d\d`, ""},
		{"many", `^[a-z]{1,200}(ab?c){0,50}$`, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			plan := fmt.Sprintf(`[{"type":"tool","server":"demo","name":"read","for_each":true,"retries":1,"retry_on":%q}]`, test.pattern)
			_, errs := stages.CompileFed(t.Context(), []byte(plan), newWorld().deps())
			got := ""
			if len(errs) > 0 {
				got = errs[0].Msg
			}
			if len(errs) > 1 || got != test.want {
				t.Errorf("got %v, want %q", errs, test.want)
			}
		})
	}
}

// TestRetryOnLongMessage: of the message of an error the first 4 KiB are matched.
func TestRetryOnLongMessage(t *testing.T) {
	for _, test := range []struct {
		before int // bytes
		calls  int64
	}{{4092, 2}, {4093, 1}, {1 << 20, 1}} {
		w := newWorld()
		failing := &tool{
			info: stages.Tool{Server: "demo", Name: "get_busy", ReadOnly: true, Signature: "get_busy()"},
			do: func(context.Context, map[string]any) (string, error) {
				return "", errors.New(strings.Repeat("x", test.before) + "busy")
			},
		}
		w.tools["get_busy"] = failing
		_, _, err := w.run(t, `[{"type":"tool","server":"demo","name":"get_busy","for_each":true,"retries":1,"retry_on":"busy"}]`, "{}")
		if calls := failing.calls.Load(); err == nil || calls != test.calls {
			t.Errorf("%d bytes before: %d calls, want %d; error %.60v", test.before, calls, test.calls, err)
		}
	}
}

// FuzzInstructions compares how large a pattern is said to be with the program that it is compiled to.
func FuzzInstructions(f *testing.F) {
	for _, pattern := range []string{"", "a", "(a|b){3}", `((a{1,3}){1,3}){1,3}`, "(?i)x*y+?z??", `[^\pL]|^$\b`, "(a*)*(b?)+", "(){5}", "a{0}", "a{2,}", "(?:|a|)", "(a{,2}|bc){2}"} {
		f.Add(pattern)
	}
	f.Fuzz(func(t *testing.T, pattern string) {
		parsed, err := syntax.Parse(pattern, syntax.Perl)
		if err != nil || len(pattern) > 1000 {
			return
		}
		said := stages.PatternSize(parsed)
		if said > 10_000 {
			return
		}
		prog, err := syntax.Compile(parsed.Simplify())
		if err != nil {
			t.Fatal(err)
		}
		if got := len(prog.Inst) - 2; got > said { // without those for failure and success
			t.Errorf("%q has %d instructions, said to be %d", pattern, got, said)
		}
	})
}
