package programs

import (
	"strings"

	"github.com/mcsh-dev/mcsh/internal/lazy"
)

// What follows says which arguments make one line of each line (see [stages.Habits]). What is not surely so is not.

// plainSet is a set of tr without the newline: no escapes, no ranges from control characters, and none of the classes that
// have it.
var plainSet = lazy.Regexp(`^([^\x00-\x1f\\[]|\[:(alnum|alpha|blank|digit|graph|lower|print|punct|upper|xdigit):\])*$`)

func trMaps(p *parsed) bool {
	for _, w := range p.operands() {
		if !plainSet().MatchString(w.value) {
			return false
		}
	}
	return !p.has("complement")
}

func cutMaps(p *parsed) bool {
	for _, separator := range append(p.values("output-delimiter"), p.values("delimiter")...) {
		if strings.Contains(separator, "\n") {
			return false
		}
	}
	return !p.has("only-delimited") && !p.has("zero-terminated")
}

func numfmtMaps(p *parsed) bool {
	for _, w := range p.words {
		if w.opt == nil || strings.Contains(w.value, "\n") { // an operand is printed in place of the input
			return false
		}
	}
	return !p.has("header") && !p.has("zero-terminated")
}

// substitution is an s command of sed that writes no newline: what it writes has no escapes but those of groups, of case,
// and of characters that stand for themselves.
var substitution = lazy.Regexp(`^\s*s(?:` +
	`/(?:[^/\\\n]|\\[^\n])+/(?:[^/\\\n]|\\[0-9&/\\LUElut])*/|` +
	`\|(?:[^|\\\n]|\\[^\n])+\|(?:[^|\\\n]|\\[0-9&|\\LUElut])*\||` +
	`#(?:[^#\\\n]|\\[^\n])+#(?:[^#\\\n]|\\[0-9&#\\LUElut])*#|` +
	`,(?:[^,\\\n]|\\[^\n])+,(?:[^,\\\n]|\\[0-9&,\\LUElut])*,)[gIi0-9]*\s*$`)

func sedMaps(p *parsed) bool {
	scripts := p.values("expression")
	for _, script := range scripts {
		if !substitution().MatchString(script) {
			return false
		}
	}
	return len(scripts) > 0 && !p.has("quiet") && !p.has("null-data")
}
