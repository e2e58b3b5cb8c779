package cli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTables: a table fits its terminal. Text is cut, the name is not, and a number is whole or not there.
func TestTables(t *testing.T) {
	rows := [][]string{
		{"name", "state", "what it is about", "calls", "bytes"},
		{"a_very_long_name", "running", "a sentence 界界界 that is long", "12", "1234567"},
		{"b", "ok", "\x1b[31mred", "1", ""},
	}
	for _, test := range []struct {
		width int
		want  string
	}{
		{0, `
name              state    what it is about                calls    bytes
a_very_long_name  running  a sentence 界界界 that is long     12  1234567
b                 ok       \x1b[31mred                         1`},
		{60, `
name              state    what it is about   calls    bytes
a_very_long_name  running  a sentence 界界…      12  1234567
b                 ok       \x1b[31mred            1`},
		{40, `
name              state    what …  calls
a_very_long_name  running  a sen…     12
b                 ok       \x1b[…      1
… a wider terminal shows 1 column more`},
		{10, `
name
a_very_long_name
b
… a wider terminal shows 4 columns more`},
	} {
		got := tableText(rows, 3, test.width)
		if diff := cmp.Diff(strings.TrimPrefix(test.want, "\n")+"\n", got); diff != "" {
			t.Errorf("in %d columns (-want +got):\n%s", test.width, diff)
		}
	}
}
