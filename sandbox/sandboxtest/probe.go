package sandboxtest

import (
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/sandbox"
)

// ProbeName is the program that tries system calls from inside the jail and prints those that worked, one on a line.
// A worker has it only where the backend's tests put it there.
const ProbeName = "probe"

// testProbe runs a program of its own in the jail, as a program, as one that may write, and as an applet.
func testProbe(t *testing.T, open func() sandbox.Driver) {
	r := newRaw(t, open)
	c := newCanary(t)
	for name, works := range map[string]string{
		ProbeName:              "",
		ProbeName + "-applet":  "",
		ProbeName + "-scratch": "open pwn\nenvironment: TMPDIR\n", // both its own directory
	} {
		t.Run(name, func(t *testing.T) {
			if !r.can(name) {
				t.Skipf("the worker has no program %q: this backend's tests do not bring it", name)
			}
			said, _, failure, err := r.run(t.Context(), name, []string{c.file}, strings.NewReader("input"))
			if err != nil || failure != nil {
				t.Fatalf("got %q, %+v, %v", said, failure, err)
			}
			// The probe reads its input, so that it differs from one that did not run.
			if want := "read standard input\n" + works + "done\n"; said != want {
				t.Errorf("in the jail these worked:\n%swant only:\n%s", said, want)
			}
		})
	}
}
