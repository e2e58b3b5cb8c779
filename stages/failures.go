package stages

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

const (
	maxMessages   = 100 // patterns that are kept; failures with others are only counted
	maxMessage    = 200 // bytes of a message
	shownMessages = 5   // patterns in a report
)

// failureGroups counts messages by their pattern. The zero value is empty.
type failureGroups struct {
	byPattern map[string]*FailureGroup
	others    int64 // messages of patterns beyond those that are kept
}

// add counts a message n times.
func (g *failureGroups) add(text string, n int64) {
	text = texts.Cut(text, maxMessage)
	key := patternOf(text)
	switch known := g.byPattern[key]; {
	case known != nil:
		if known.Text != text {
			known.Text = key
		}
		known.Count += n
	case len(g.byPattern) == maxMessages:
		g.others += n
	default:
		if g.byPattern == nil {
			g.byPattern = map[string]*FailureGroup{}
		}
		g.byPattern[key] = &FailureGroup{Text: text, Count: n}
	}
}

// most returns the most frequent messages, and how many there are beyond them.
func (g *failureGroups) most(n int) (list []FailureGroup, others int64) {
	for _, known := range g.byPattern {
		list = append(list, *known)
	}
	slices.SortFunc(list, func(a, b FailureGroup) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Text, b.Text))
	})
	others = g.others
	for _, rest := range list[min(n, len(list)):] {
		others += rest.Count
	}
	return list[:min(n, len(list))], others
}

// text writes the most frequent messages for people: `"a" (2 times), "b", 3 others`.
func (g *failureGroups) text(n int) string {
	list, others := g.most(n)
	var parts []string
	for _, one := range list {
		text := fmt.Sprintf("%q", one.Text)
		if one.Count > 1 {
			text += fmt.Sprintf(" (%d times)", one.Count)
		}
		parts = append(parts, text)
	}
	if others > 0 {
		parts = append(parts, fmt.Sprintf("%d others", others))
	}
	return strings.Join(parts, ", ")
}

// patternOf returns text with "…" in the place of what tells apart messages of one kind: what is quoted, and words with
// a digit in them.
func patternOf(text string) string {
	var b strings.Builder
	word, digit := 0, false // where the word began, and whether it has a digit
	end := func(at int) {
		if digit {
			b.WriteString("…")
		} else {
			b.WriteString(text[word:at])
		}
		digit = false
	}
	for i := 0; i < len(text); {
		c, n := utf8.DecodeRuneInString(text[i:])
		quoted := 0
		if strings.ContainsRune("\"'`", c) && i == word { // within a word it is an apostrophe
			quoted = 1 + strings.IndexRune(text[i+1:], c)
		}
		switch {
		case quoted > 0:
			b.WriteString(string(c) + "…" + string(c))
			i += quoted + 1
			word = i
		case unicode.IsLetter(c) || unicode.IsDigit(c) || strings.ContainsRune("_-.'", c):
			digit = digit || unicode.IsDigit(c)
			i += n
		default:
			end(i)
			b.WriteString(text[i : i+n])
			i += n
			word = i
		}
	}
	end(len(text))
	return b.String()
}
