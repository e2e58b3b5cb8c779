// Package globs matches names with patterns. A star matches any run of characters, a question mark one. Names are opaque: no
// character is a separator.
package globs

import (
	"regexp"
	"slices"
	"strings"
)

// A List matches the names that any of its patterns matches.
type List []*regexp.Regexp

// Compile makes a list of patterns.
func Compile(patterns ...string) List {
	var l List
	for _, p := range patterns {
		quoted := strings.NewReplacer(`\*`, `.*`, `\?`, `.`).Replace(regexp.QuoteMeta(p))
		l = append(l, regexp.MustCompile(`(?s)^(?:`+quoted+`)$`)) // quoted: it always compiles
	}
	return l
}

// Match reports whether a pattern matches a name.
func (l List) Match(name string) bool {
	return slices.ContainsFunc(l, func(re *regexp.Regexp) bool { return re.MatchString(name) })
}
