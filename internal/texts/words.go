package texts

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Words returns the words of a text in lower case. It splits identifiers such as "listIssues", "list_issues" and
// "HTTPServer"; digits belong to words.
func Words(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		start, last, prior := -1, 0, between // where the word and the prior character begin; -1: there is no word
		for at, c := range text {
			now, end := classOf(c), -1
			switch {
			case start < 0:
			case now == between || now == upper && prior == lower:
				end = at
			case now == lower && prior == upper && last > start: // the S of HTTPServer
				end = last
			}
			if end >= 0 {
				if !yield(strings.ToLower(text[start:end])) {
					return
				}
				start = end
			}
			switch {
			case now == between:
				start = -1
			case start < 0:
				start = at
			}
			last, prior = at, now
		}
		if start >= 0 {
			yield(strings.ToLower(text[start:]))
		}
	}
}

// A class says what a character is to a word.
type class int

const (
	between class = iota // it is in no word
	lower
	upper
	other // a digit, or a letter without case
)

// classOf begins with what nearly all texts are made of: it sees each character of 5,000 tools in each search.
func classOf(c rune) class {
	switch {
	case 'a' <= c && c <= 'z':
		return lower
	case 'A' <= c && c <= 'Z':
		return upper
	case '0' <= c && c <= '9':
		return other
	case c < utf8.RuneSelf:
		return between
	case unicode.IsUpper(c):
		return upper
	case unicode.IsLower(c):
		return lower
	case unicode.IsLetter(c) || unicode.IsDigit(c):
		return other
	}
	return between
}
