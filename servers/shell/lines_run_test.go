//go:build !race

package shell_test

import (
	"testing"

	"github.com/mcsh-dev/mcsh/internal/parttest"
)

// TestLines: each line is refused, or it runs and the canary does not. Where nothing is refused, most of the refused lines run it.
func TestLines(t *testing.T) {
	t.Parallel()
	all := rows(t)
	if len(all) < 150 {
		t.Errorf("got %d lines, want at least 150", len(all))
	}
	for _, name := range []string{"sh", "bash"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, tried, ran := program(t, name), 0, 0
			for i, r := range all {
				refused := r.Want == "refused" || r.Want == "refused in sh" && name == "sh"
				checkLine(t, path, r, refused)
				if refused && len(r.Line) < 1000 && i%parttest.Times(10, 1) == 0 {
					c := newCage(t)
					open(t, c.options(path, row{}))(r.Line)
					if tried++; exists(c.trace) {
						ran++
					}
				}
			}
			if ran < tried/3 {
				t.Errorf("of %d lines only %d run the canary when nothing is refused", tried, ran)
			}
		})
	}
}
