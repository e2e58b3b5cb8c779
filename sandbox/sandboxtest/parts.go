package sandboxtest

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/sandbox"
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
			tool.Env, tool.Stdin = []string{"LC_ALL=C.UTF-8"}, strings.NewReader(in)
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
