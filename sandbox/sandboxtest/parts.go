package sandboxtest

import (
	"bytes"
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/sandbox"
	"github.com/mcsh-dev/mcsh/stages"
)

// testParts: what no process is started for comes out as the program would write it.
func testParts(t *testing.T, open func() sandbox.Driver) {
	long := strings.Repeat("a line of some length\n", 20_000)
	inputs := []string{"", "\n", "a", "a\nb", "a\nb\nc\n", "a\x00b\nc\x00d\n", "é\xff\n\n\r\n", long}
	s := newSession(t, open)
	for _, argv := range [][]string{
		{"head"},
		{"head", "-n", "0"},
		{"head", "-n", "1"},
		{"head", "-2"},
		{"head", "-n", "19999"},
		{"head", "-n", "-1"},
		{"head", "-c", "0"},
		{"head", "-c", "2"},
		{"head", "-c", "100000"},
		{"head", "-c", "1K"},
		{"head", "-c", "-2"},
		{"head", "-z", "-n", "1"},
		{"head", "-n", "1", "-c", "3"},
		{"head", "-c", "3", "-n", "1"},
		{"head", "-v", "-n", "1"},
		{"tail", "-n", "+1"},
		{"tail", "-n", "+0"},
		{"tail", "+2"},
		{"tail", "-n", "+19999"},
		{"tail", "-n", "2"},
		{"tail", "-c", "+2"},
		{"tail", "-c", "+100000"},
		{"tail", "-z", "-n", "+2"},
		{"tail", "-n", "+2", "-c", "3"},
		{"tail", "-v", "-n", "+2"},
	} {
		path, err := exec.LookPath(argv[0])
		if err != nil {
			t.Skip(err)
		}
		f := prepare(t, s, nil, command(argv[0], argv[1:]...))
		for _, in := range inputs {
			tool := exec.CommandContext(t.Context(), path, argv[1:]...)
			tool.Env, tool.Stdin = []string{"LC_CTYPE=C.UTF-8"}, strings.NewReader(in)
			want, err := tool.Output()
			if err != nil {
				t.Fatalf("%q: %v", argv, err)
			}
			var got bytes.Buffer
			if err := f(t.Context(), strings.NewReader(in), &got); err != nil || !bytes.Equal(got.Bytes(), want) {
				t.Errorf("%q of %.20q: got %.50q (%d bytes), %v, want %.50q (%d bytes)", argv, in, got.Bytes(), got.Len(), err, want, len(want))
			}
		}
	}
}

// testPartsFull: a command that fails when its reader has all that it wants is no failure, and one whose reader wants more
// is. Which of the two is not left to chance, so there are many.
func testPartsFull(t *testing.T, open func() sandbox.Driver) {
	s := newSession(t, open)
	for _, writer := range []stages.Command{
		command("jq", `1, error("bad")`), command("awk", `{print 1; exit 3}`), command("awk", `{print 1; fflush(); exit 3}`),
	} {
		for _, test := range []struct {
			behind []stages.Command
			out    string
			fails  bool
		}{
			{[]stages.Command{command("head", "-n", "0")}, "", false},
			{[]stages.Command{command("head", "-n", "1")}, "1\n", false},
			{[]stages.Command{command("head", "-c", "1")}, "1", false},
			{[]stages.Command{command("tail", "-n", "+1"), command("head", "-n", "1"), command("wc", "-c")}, "2\n", false},
			{[]stages.Command{command("head", "-n", "2")}, "1\n", true},
			{[]stages.Command{command("tail", "-n", "+1")}, "1\n", true},
			{[]stages.Command{command("tail", "-n", "+2"), command("head", "-n", "1")}, "", true},
		} {
			chain := append([]stages.Command{writer}, test.behind...)
			f := prepare(t, s, nil, chain...)
			for range parttest.Times(4, 20) {
				out, err := run(t.Context(), f, "1\n")
				var e *stages.Error
				if fails := errors.As(err, &e) && e.Code == stages.CommandFailed && e.Place == "1"; fails != test.fails || err != nil && !fails || out != test.out {
					t.Fatalf("%v: got %q, %v, want %q, and a failure of the first: %v", chain, out, err, test.out, test.fails)
				}
			}
		}
	}
}
