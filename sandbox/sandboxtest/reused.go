package sandboxtest

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/sandbox"
	"github.com/mcsh-dev/mcsh/stages"
)

// A turn is what one command has to do in a process that has done other things before.
type turn struct {
	args  []string
	in    string // repeated for ever where last is set
	last  bool   // it does not read to the end
	out   string
	wrong string // what its error says; empty: it ends well
}

// turns tell, all together, of what could be left of a program: variables, arguments, input that was not read, its position
// and format, output and complaints that were not taken, a status, definitions, expressions of the same name.
func turns() []turn {
	secret := strings.Repeat("hush ", 1000)
	return []turn{
		{args: []string{"-c", "-n", "--arg", "x", secret, "--args", "[$ARGS.positional, ($x | length)]", "p", "q"}, out: "[[\"p\",\"q\"],5000]\n"},
		{args: []string{"-c", "-n", "$ARGS"}, out: "{\"named\":{},\"positional\":[]}\n"},
		{args: []string{"-c", "-n", "--argjson", "x", "1", "[$x, $ARGS.named]"}, out: "[1,{\"x\":1}]\n"},
		{args: []string{"-c", "-n", "[$ENV, env]"}, out: "[{},{}]\n"},
		{args: []string{"-c", "[., input_line_number]"}, in: "1\n2\n3\n", out: "[1,1]\n[2,2]\n[3,3]\n"},
		{args: []string{"-c", "[., input_line_number]"}, in: "1", out: "[1,1]\n"},
		{args: []string{"-n", "input"}, wrong: "No more inputs"},
		{args: []string{"-n", "-c", "[inputs]"}, in: "1 2 3", out: "[1,2,3]\n"},
		{args: []string{"-n", "first(inputs)"}, in: "{\"left\": \"behind\"}\n", last: true, out: "{\n  \"left\": \"behind\"\n}\n"},
		{args: []string{"-n", "1"}, in: secret, last: true, out: "1\n"},
		{args: []string{"halt"}, in: "1\n", last: true},
		{args: []string{"-n", "-R", "first(inputs)"}, in: secret + "\n", last: true, out: "\"" + secret + "\"\n"},
		{args: []string{"-r", "-j", "."}, in: `"a" "b"`, out: "ab"},
		{args: []string{"."}, in: "", out: ""},
		{args: []string{"--seq", "-c", "."}, in: "[1]", out: "\x1e[1]\n"},
		{args: []string{"-c", "."}, in: `{"a":`, wrong: "unexpected end"},
		{args: []string{"-c", "."}, in: `1}`, out: "1\n", wrong: "invalid JSON"},
		{args: []string{"-c", "error({a: 1})"}, in: "1", wrong: `{"a":1}`},
		{args: []string{"."}, in: "1", out: "1\n"},
		{args: []string{"-e", "."}, in: "false", out: "false\n", wrong: "status 1"},
		{args: []string{"-c", `"bye\n" | halt_error(3)`}, in: "1", wrong: "bye"},
		{args: []string{"-c", "., halt_error(7)"}, in: `{"of":"seven"}`, out: "{\"of\":\"seven\"}\n", wrong: "status 7"},
		{args: []string{"-n", `range(20000) | debug | empty`}},
		{args: []string{"-n", `("` + strings.Repeat("noise ", 5000) + `" | stderr | empty), error("at the end")`}, wrong: "at the end"},
		{args: []string{"-n", `error("short")`}, wrong: "short"},
		{args: []string{"-c", "def f: 1; [f]"}, in: "null", out: "[1]\n"},
		{args: []string{"-c", "def f: 2; [f]"}, in: "null", out: "[2]\n"},
		{args: []string{"-c", "[test(\"a C\"; \"i\")]"}, in: `"a c"`, out: "[true]\n"},
		{args: []string{"-c", "[test(\"a.c\")]"}, in: `"a  c"`, out: "[false]\n"},
		{args: []string{"-c", "--stream", "."}, in: `{"a":1}`, out: "[[\"a\"],1]\n[[\"a\"]]\n"},
		{args: []string{"-c", "-s", "length"}, in: strings.Repeat("1 ", 50_000), out: "50000\n"},
		{args: []string{"--version"}, in: "1\n", last: true, out: "jq-1.7 (gojq 0.12.20)\n"},
		{args: []string{"-c", ".[]"}, in: "[" + strings.Repeat("1,", 99_999) + "1]", out: strings.Repeat("1\n", 100_000)},
	}
}

// check runs the command and compares.
func (u turn) check(t *testing.T, s stages.Session, chain ...stages.Command) {
	t.Helper()
	var in io.Reader = strings.NewReader(u.in)
	if u.last {
		in = &endless{text: u.in}
	}
	var out bytes.Buffer
	err := prepare(t, s, nil, chain...)(t.Context(), in, &out)
	if out.String() != u.out {
		t.Errorf("%.100q: got %.200q, want %.200q", u.args, out.String(), u.out)
	}
	switch {
	case err == nil && u.wrong != "":
		t.Errorf("%.100q: no error, want %q", u.args, u.wrong)
	case err != nil && (u.wrong == "" || !strings.Contains(asError(t, err).Msg, u.wrong) || len(asError(t, err).Msg) > 40_000):
		t.Errorf("%.100q: got error %.300v, want one with %q", u.args, err, u.wrong)
	}
}

// testReused runs many programs one after another for one caller, so that most of them get a process that has run others:
// none of them finds anything of those before, in whatever order they come, in one run or in the next.
func testReused(t *testing.T, open func() sandbox.Driver) {
	p := newPool(t, open, sandbox.Options{Warm: -1, Lasting: true})
	chance := rand.New(rand.NewPCG(1, 2))
	for range parttest.Times(2, 4) {
		all := turns()
		chance.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
		for len(all) > 0 {
			n := min(len(all), 1+chance.IntN(8))
			s := openFor(t, p, "a")
			for _, u := range all[:n] {
				c := command("jq", u.args...)
				c.Each = chance.IntN(4) == 0
				u.check(t, s, c)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			all = all[n:]
		}
	}
}

// testReusedFaults has commands end in every other way than by themselves, each before one that has nothing to do with it.
func testReusedFaults(t *testing.T, open func() sandbox.Driver) {
	s := newSession(t, open)
	quick := command("jq", "-n", "def f: f; f")
	quick.Timeout = time.Second
	for i, test := range []struct {
		name    string
		chain   []stages.Command
		in      string
		code    stages.Code
		refuses bool // the reader of its output
	}{
		{"a timeout", []stages.Command{quick}, "", stages.Timeout, false},
		{"memory", []stages.Command{command("jq", "-n", `[range(200) as $i | "x" * 10000000 + ($i | tostring)] | length`)}, "", stages.LimitExceeded, false},
		{"depth", []stages.Command{command("jq", "-n", "def g: [g]; g")}, "", stages.LimitExceeded, false},
		{"much of what it may have", []stages.Command{command("jq", "-s", "length")}, strings.Repeat("[1] ", 1<<20), "", false},
		{"a reader behind it that stops", []stages.Command{command("jq", "-n", "repeat(1)"), command("head", "-n", "1")}, "", "", false},
		{"a neighbour that fails", []stages.Command{command("jq", "-n", "repeat(1)"), command("jq", "halt_error")}, "", stages.CommandFailed, false},
		{"a reader that stops", []stages.Command{command("jq", "-n", "repeat(1)")}, "", "", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			turn{args: []string{"before"}, in: "1", out: "2\n"}.check(t, s, command("jq", "-c", ". + 1"))
			var out io.Writer = io.Discard
			if test.refuses {
				out = &closing{1 << 10}
			}
			err := prepare(t, s, nil, test.chain...)(t.Context(), strings.NewReader(test.in), out)
			switch {
			case test.code == "" && err != nil:
				t.Errorf("got %v", err)
			case test.code != "" && asError(t, err).Code != test.code:
				t.Errorf("got %v, want %s", err, test.code)
			}
			after := turn{args: []string{"after"}, in: "1 2", out: fmt.Sprintf("[1,%d]\n[2,%d]\n", i, i)}
			after.check(t, s, command("jq", "-c", "--argjson", "i", fmt.Sprint(i), "[., $i]"))
			turn{args: []string{"two at once"}, in: "1", out: "3\n"}.check(t, s, command("jq", ". + 1"), command("jq", ". + 1"))
		})
	}
}
