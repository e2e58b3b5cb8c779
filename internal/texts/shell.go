package texts

import (
	"strings"

	"github.com/mcsh-dev/mcsh/internal/lazy"
)

// plainWord are words that no shell changes.
var plainWord = lazy.Regexp(`^[A-Za-z0-9_.:/@+=,-]+$`)

// ShellWord writes a word so that a shell reads it as one.
func ShellWord(word string) string {
	if plainWord().MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
