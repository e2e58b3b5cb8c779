package rpc

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxEscape is the length of the longest escape, in bytes: two halves of a character.
const maxEscape = len(`\ud83d\ude00`)

// A layer is a text without some layers of escapes. A character of Latin-1 is one byte in it, because \xe9 is the
// character in Python and a byte elsewhere.
type layer struct {
	text   string
	places []place // of each byte
}

// A place is where a byte of a layer is in the text as it was sent.
type place struct {
	from, to int32
	breaks   int32 // line breaks that were removed before it
}

// firstLayer is a text as it was sent.
func firstLayer(text string) layer {
	places := make([]place, len(text))
	for i := range places {
		places[i] = place{from: int32(i), to: int32(i + 1)}
	}
	return layer{text, places}
}

// decoded removes one layer of escapes: percent signs, backslash escapes of JSON, Go, Python, JavaScript and C, and line
// ends with the white space after them. It reports whether there were any.
func (l layer) decoded() (inner layer, changed bool) {
	text := make([]byte, 0, len(l.text))
	places := make([]place, 0, len(l.text))
	breaks, folding := int32(0), false
	for i, used := 0, 0; i < len(l.text); i += used {
		var char rune
		if folding = folding && (l.text[i] == ' ' || l.text[i] == '\t'); folding {
			used, changed = 1, true
			continue
		}
		if used, char = readEscape(l.text[i:min(len(l.text), i+maxEscape)]); char == lineEnd {
			breaks++
			folding, changed = true, true
			continue
		}
		changed = changed || used > 1
		if char <= 0xFF {
			text = append(text, byte(char))
		} else {
			text = utf8.AppendRune(text, char)
		}
		for len(places) < len(text) {
			places = append(places, place{l.places[i].from, l.places[i+used-1].to, l.places[i].breaks + breaks})
		}
	}
	return layer{string(text), places}, changed
}

// lineEnd stands for the end of a line.
const lineEnd = -1

// readEscape reads the escape, or else the byte, at the beginning of s: its length, and what it stands for.
func readEscape(s string) (used int, char rune) {
	second := byte(0)
	if len(s) > 1 {
		second = s[1]
	}
	switch first := s[0]; {
	case first == '\n' || first == '\r':
		return 1, lineEnd
	case first|1 == 0xC3 && second >= 0x80 && second < 0xC0: // U+0080 to U+00FF
		return 2, rune(first<<6 | second&0x3F)
	case first == '%' && len(s) > 2:
		if n, err := strconv.ParseUint(s[1:3], 16, 8); err == nil {
			return 3, rune(n)
		}
	case first != '\\':
	case second == '\n' || second == '\r':
		return 2, lineEnd
	case second == '/' || second == '\'' || second == '"' || second == '`':
		return 2, rune(second)
	case strings.HasPrefix(s, `\u{`):
		digits, _, closed := strings.Cut(s[3:], "}")
		if n, err := strconv.ParseUint(digits, 16, 32); closed && len(digits) <= 6 && err == nil {
			return len(`\u{}`) + len(digits), rune(n)
		}
	default:
		return readBackslash(s)
	}
	return 1, rune(s[0])
}

// readBackslash reads an escape that Go writes too, or the two halves of a character, as JSON has them.
func readBackslash(s string) (used int, char rune) {
	if char, _, rest, err := strconv.UnquoteChar(s, 0); err == nil {
		return len(s) - len(rest), char
	}
	var pair string
	if len(s) == maxEscape && json.Unmarshal([]byte(`"`+s+`"`), &pair) == nil && utf8.RuneCountInString(pair) == 1 {
		char, _ = utf8.DecodeRuneInString(pair)
		return maxEscape, char
	}
	return 1, '\\'
}

// A span is a part of a text.
type span struct{ from, to int32 }

// find finds a word in a layer, and returns its places in the text as it was sent. A short word with line breaks in it
// does not count.
func (l layer) find(word string) (found []span) {
	for at := 0; ; at++ {
		next := strings.Index(l.text[at:], word)
		if next < 0 {
			return found
		}
		at += next
		if first, last := l.places[at], l.places[at+len(word)-1]; len(word) >= minCaseFolded || first.breaks == last.breaks {
			found = joined(found, span{first.from, last.to})
		}
	}
}

// joined adds a span to spans that are sorted by their beginnings, and merges those that overlap.
func joined(spans []span, p span) []span {
	if n := len(spans); n > 0 && spans[n-1].to > p.from {
		spans[n-1].to = max(spans[n-1].to, p.to)
		return spans
	}
	return append(spans, p)
}
