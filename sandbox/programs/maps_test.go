package programs_test

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/sandbox/programs"
)

// FuzzMaps: a command that is said to map lines makes of two lines together what it makes of each.
func FuzzMaps(f *testing.F) {
	names := []string{"tr", "sed", "cut", "numfmt", "rev"}
	for _, r := range readJSON[[]row](f, "testdata/accepted.json") {
		for i, name := range names {
			if r.Command == name && len(r.Inputs) == 0 {
				f.Add(byte(i), strings.Join(r.Args, "\x1f"), "a1,b c\t2", "x 10\x00y")
			}
		}
	}
	f.Fuzz(func(t *testing.T, which byte, args, one, other string) {
		name := names[int(which)%len(names)]
		var argv []string
		if args != "" {
			argv = strings.Split(args, "\x1f")
		}
		inv, err := programs.Parse(name, argv)
		if err != nil || !inv.Habits.MapsLines {
			return
		}
		one, other = strings.ReplaceAll(one, "\n", "")+"\n", strings.ReplaceAll(other, "\n", "")+"\n"
		var outs [3][]byte
		var errs [3]error
		for i, in := range []string{one, other, one + other} {
			path, err := exec.LookPath(name)
			if err != nil {
				parttest.Missing(t, "%v", err)
			}
			tool := exec.CommandContext(t.Context(), path, inv.Argv[1:]...)
			tool.Env, tool.Stdin = []string{"LC_CTYPE=C.UTF-8"}, strings.NewReader(in)
			outs[i], errs[i] = tool.Output()
		}
		if errs[2] != nil || bytes.Count(outs[2], []byte("\n")) != 2 {
			return // it is done again, one by one
		}
		apart := string(outs[0]) + string(outs[1])
		if errs[0] != nil || errs[1] != nil || apart != string(outs[2]) || bytes.Count(outs[0], []byte("\n")) != 1 {
			t.Errorf("%q makes %q (%v) of %q and %q (%v) of %q, and %q of both", inv.Argv, outs[0], errs[0], one, outs[1], errs[1], other, outs[2])
		}
	})
}
