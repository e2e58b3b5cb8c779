package strictjson

import (
	"fmt"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/nearest"
)

// suggest ends the message about an unknown name: the nearest known one, or all of them.
func suggest(name string, known []string) string {
	if len(known) == 0 {
		return "; there are none"
	}
	all := "; known: " + strings.Join(known, ", ")
	if near := nearest.Name(name, known); near != "" {
		return fmt.Sprintf(", did you mean %q%s", near, all)
	}
	return all
}
