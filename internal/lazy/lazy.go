// Package lazy has values that are made when they are first needed. Every jq, and every worker of the sandbox, is a
// process that begins by initializing all packages that are linked into it, before it does anything.
package lazy

import (
	"regexp"
	"sync"
)

// Regexp returns a function that compiles expr at its first call and returns the same expression ever after. It
// panics then, if expr is wrong.
func Regexp(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
