//go:build !race

package shell_test

import (
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/internal/costtest"
	"github.com/mcsh-dev/mcsh/servers/shell"
)

// TestNesting: lines that nest as deep as they can cost little.
func TestNesting(t *testing.T) {
	for _, piece := range []string{
		"(", "$(", "((", "$((", "`", "${x:-", "if ", "! ", "{ ", "\"$(", "while ", "<(", "a|", "a&&", "$((-", "$((1+", "case x in x) ", "f() ", "time ", "a[", "${a[", "[[ ! ",
		"<<a ", "<<a\n", "for x in x; do ", "$[", "@(", "\"${x:-", "echo x;", "\n", "$((1?", "$((1**", "#", "\\\n", " \\\n", "'", "\"x\" ", "$x", "echo <<a\n$(echo)\na\n", "\u00e9",
	} {
		line := strings.Repeat(piece, 64<<10/len(piece))
		for _, name := range []string{"sh", "bash"} {
			costtest.Run(t, func() { _ = shell.Check(name, []string{"echo"}, nil, line) })
			if t.Failed() {
				t.Fatalf("%s: lines of %q", name, piece)
			}
		}
	}
}
