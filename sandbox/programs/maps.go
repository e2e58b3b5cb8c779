package programs

import (
	"slices"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/lazy"
)

// This file says which arguments make one line of each line (see [stages.Traits]). In doubt, it says no.

// plainSet is a set of tr without the newline: no escapes, no ranges from control characters, and none of the classes that
// have it.
var plainSet = lazy.Regexp(`^([^\x00-\x1f\\[]|\[:(alnum|alpha|blank|digit|graph|lower|print|punct|upper|xdigit):\])*$`)

func trMaps(p *parsed) bool {
	return !p.has("complement") && !slices.ContainsFunc(p.operands(), func(w word) bool { return !plainSet().MatchString(w.value) })
}

func cutMaps(p *parsed) bool {
	separators := strings.Join(append(p.values("output-delimiter"), p.values("delimiter")...), "")
	return !strings.Contains(separators, "\n") && !p.has("only-delimited") && !p.has("zero-terminated")
}

func numfmtMaps(p *parsed) bool {
	return !p.has("header") && !p.has("zero-terminated") && !slices.ContainsFunc(p.words, func(w word) bool {
		return w.opt == nil || strings.Contains(w.value, "\n") // an operand is printed in place of the input
	})
}

// substitution is an s command of sed that writes no newline: its replacement has no escapes but those of groups, of case,
// and of characters that stand for themselves.
var substitution = lazy.Regexp(`^\s*s(?:` +
	`/(?:[^/\\\n]|\\[^\n])+/(?:[^/\\\n]|\\[0-9&/\\LUElut])*/|` +
	`\|(?:[^|\\\n]|\\[^\n])+\|(?:[^|\\\n]|\\[0-9&|\\LUElut])*\||` +
	`#(?:[^#\\\n]|\\[^\n])+#(?:[^#\\\n]|\\[0-9&#\\LUElut])*#|` +
	`,(?:[^,\\\n]|\\[^\n])+,(?:[^,\\\n]|\\[0-9&,\\LUElut])*,)[gIi0-9]*\s*$`)

func sedMaps(p *parsed) bool {
	scripts := p.values("expression")
	others := slices.ContainsFunc(scripts, func(script string) bool { return !substitution().MatchString(script) })
	return len(scripts) > 0 && !others && !p.has("quiet") && !p.has("null-data")
}
