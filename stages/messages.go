package stages

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxMessages   = 100 // patterns that are told apart; failures with others are only counted
	maxMessage    = 200 // bytes of a message
	shownMessages = 5   // patterns in a report
)

// messages counts messages by their pattern. The zero value is empty.
type messages struct {
	byPattern map[string]*Messages
	others    int64 // messages of patterns beyond those that are told apart
}

// add counts a message n times.
func (m *messages) add(text string, n int64) {
	text = shortened(text, maxMessage)
	key := patternOf(text)
	switch known := m.byPattern[key]; {
	case known != nil:
		if known.Text != text {
			known.Text = key
		}
		known.Count += n
	case len(m.byPattern) == maxMessages:
		m.others += n
	default:
		if m.byPattern == nil {
			m.byPattern = map[string]*Messages{}
		}
		m.byPattern[key] = &Messages{Text: text, Count: n}
	}
}

// most returns the most frequent messages, and how many there are beyond them.
func (m *messages) most(n int) (list []Messages, others int64) {
	for _, known := range m.byPattern {
		list = append(list, *known)
	}
	slices.SortFunc(list, func(a, b Messages) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Text, b.Text))
	})
	others = m.others
	for _, rest := range list[min(n, len(list)):] {
		others += rest.Count
	}
	return list[:min(n, len(list))], others
}

// told writes the most frequent messages for people: `"a" (2 times), "b", 3 others`.
func (m *messages) told(n int) string {
	list, others := m.most(n)
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
