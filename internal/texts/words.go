package texts

import (
	"iter"
	"strings"
	"unicode"
)

// Words returns the words of a text in lower case. It splits identifiers such as "listIssues", "list_issues" and
// "HTTPServer"; digits belong to words.
func Words(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		start, last, prior := -1, 0, ' ' // where the word and the prior character begin; -1: there is no word
		for at, c := range text {
			end := -1
			inside := unicode.IsLetter(c) || unicode.IsDigit(c)
			switch {
			case start < 0:
			case !inside || unicode.IsUpper(c) && unicode.IsLower(prior):
				end = at
			case unicode.IsLower(c) && unicode.IsUpper(prior) && last > start: // the S of HTTPServer
				end = last
			}
			if end >= 0 {
				if !yield(strings.ToLower(text[start:end])) {
					return
				}
				start = end
			}
			switch {
			case !inside:
				start = -1
			case start < 0:
				start = at
			}
			last, prior = at, c
		}
		if start >= 0 {
			yield(strings.ToLower(text[start:]))
		}
	}
}
