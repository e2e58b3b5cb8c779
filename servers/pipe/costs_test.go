//go:build !race

package pipe_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/internal/costtest"
	"github.com/mcsh-dev/mcsh/servers/pipe"
)

// TestCosts: lines that make the parser recurse, or are long, are answered within bounds.
func TestCosts(t *testing.T) {
	c := open(t, pipe.Options{}, &echo{says: directories})
	const size = 64 << 10
	for _, unit := range []string{
		"$(", "(", "`", "{ ", "if ", "! ", "ls|", "ls&&", "$((", "${a:-", `"$(`, "<(", "[[ ! ", "while ", "a=(", "((", "f() ", "time ", "case x in x) ",
		"{a,", "{1..", "<<a ", "<<'a'\n", "ls;", "ls ", "x[", "$[", "\\\n", "ls\n", "ls>c ", "'", `"`, "\\", "a*", "\x00", "é", "ls | tee x |",
	} {
		line, err := json.Marshal(map[string]string{"command": strings.Repeat(unit, size/len(unit))})
		if err != nil {
			t.Fatal(err)
		}
		t.Run(fmt.Sprintf("%q", unit), func(t *testing.T) {
			costtest.Run(t, func() { c.Call(t, "pipe", string(line)) })
		})
	}
	if got := call(t, c, fmt.Sprintf(`{"command":%q}`, "ls "+strings.Repeat("x", size))); !strings.HasPrefix(got, "OVERSIZE") {
		t.Errorf("a line that is too long: %s", got)
	}
	if got := call(t, c, fmt.Sprintf(`{"command":%q}`, strings.Repeat("ls|", 64)+"ls")); !strings.HasPrefix(got, "OVERSIZE") {
		t.Errorf("a line with too many commands: %s", got)
	}
}
