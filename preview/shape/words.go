package shape

import (
	_ "embed"
	"slices"
	"strings"
	"unicode"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

// words.txt holds common words of field names, which reveal no data.
//
//go:embed words.txt
var words string

// Common returns a predicate that reports whether a word in lower case is common in field names.
func Common() func(word string) bool {
	known := make(map[string]bool, 2048)
	for word := range strings.FieldsSeq(words) {
		known[word] = true
	}
	return func(word string) bool { return known[word] }
}

// Words splits text into words of letters, in lower case: "userId2 created_at" is user, id, created, at.
func Words(text string) []string {
	letters := strings.Map(func(c rune) rune {
		if unicode.IsLetter(c) {
			return c
		}
		return ' '
	}, text)
	return slices.Collect(texts.Words(letters))
}

// maxDigits is the number of digits that a name may have: a longer number is probably data.
const maxDigits = 2

// Named reports whether every word of a field's name is known. Anything in it that is neither a letter, a mark between
// words nor one of a few digits makes it data.
func Named(name string, known func(word string) bool) bool {
	if name == "" || len(name) > MaxName {
		return false
	}
	digits := 0
	for _, c := range strings.TrimPrefix(name, "@") {
		switch {
		case unicode.IsLetter(c), strings.ContainsRune("_-. $", c):
		case c >= '0' && c <= '9':
			digits++
		default:
			return false
		}
	}
	all := Words(name)
	unknown := func(word string) bool { return !known(word) }
	return len(all) > 0 && digits <= maxDigits && !slices.ContainsFunc(all, unknown)
}
