package rpc

import (
	"bytes"
	"iter"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// maxEscape is the length of the longest escape, in bytes: two halves of a character.
const maxEscape = len(`\ud83d\ude00`)

// A decoder removes one layer of escapes from a stream: percent signs, backslash escapes of JSON, Go, Python, JavaScript
// and C, and line ends with the white space after them. A character of Latin-1 becomes one byte, because \xe9 is the
// character in Python and a byte elsewhere.
type decoder struct {
	emit    func(char) bool
	waiting []char // possible beginning of an escape, at most maxEscape
	breaks  int    // line ends so far
	folding bool   // white space is removed
	decoded bool   // there was an escape or a line end
}

// decode returns the stream without its escapes. It is read to its end.
func (d *decoder) decode(stream iter.Seq[char]) iter.Seq[char] {
	return func(yield func(char) bool) {
		*d = decoder{emit: yield}
		for c := range stream {
			if len(d.waiting) == 0 && !d.folding && !mayEscape(c.b) {
				c.breaks += d.breaks
				yield(c)
				continue
			}
			d.waiting = append(d.waiting, c)
			for len(d.waiting) == maxEscape || len(d.waiting) > 0 && !d.folding && !mayEscape(d.waiting[0].b) {
				d.step()
			}
		}
		for len(d.waiting) > 0 {
			d.step()
		}
	}
}

// mayEscape reports whether an escape may begin with b.
func mayEscape(b byte) bool {
	return b == '%' || b == '\\' || b == '\n' || b == '\r' || b == 0xC2 || b == 0xC3
}

// step decodes the escape or the byte that has waited longest.
func (d *decoder) step() {
	first := d.waiting[0]
	var text [maxEscape]byte
	for i, c := range d.waiting {
		text[i] = c.b
	}
	used, out := 1, []byte(nil)
	if d.folding = d.folding && (first.b == ' ' || first.b == '\t'); !d.folding {
		if used, out = readEscape(text[:len(d.waiting)]); len(out) == 0 {
			d.breaks++
			d.folding = true
		}
	}
	d.decoded = d.decoded || used > 1 || d.folding
	for _, b := range out {
		d.emit(char{b, first.from, d.waiting[used-1].to, first.breaks + d.breaks})
	}
	d.waiting = slices.Delete(d.waiting, 0, used)
}

// charsOf is a text as a stream.
func charsOf(text string) iter.Seq[char] {
	return func(yield func(char) bool) {
		for i := range len(text) {
			yield(char{b: text[i], from: i, to: i + 1})
		}
	}
}

// decoded is a text without one layer of escapes.
func decoded(text string) string {
	var b []byte
	for c := range new(decoder).decode(charsOf(text)) {
		b = append(b, c.b)
	}
	return string(b)
}

// readEscape reads the escape, or else the byte, at the beginning of b: its length, and the bytes it stands for, none for
// a line end.
func readEscape(b []byte) (used int, out []byte) {
	second := byte(0)
	if len(b) > 1 {
		second = b[1]
	}
	switch {
	case b[0] == '\n' || b[0] == '\r':
		return 1, nil
	case b[0]|1 == 0xC3 && second >= 0x80 && second < 0xC0: // U+0080 to U+00FF
		return 2, []byte{b[0]<<6 | second&0x3F}
	case b[0] == '\\' && (second == '\n' || second == '\r'):
		return 2, nil
	case b[0] == '\\' && plainEscapes[second] != 0:
		return 2, []byte{plainEscapes[second]}
	case b[0] == '\\' && (second == '\'' || second == '`'):
		return 2, b[1:2]
	case b[0] == '\\' && second == 'a':
		return 2, []byte{'\a'}
	case b[0] == '\\' && second == 'v':
		return 2, []byte{'\v'}
	case b[0] == '\\' && second == 'u' && len(b) > 2 && b[2] == '{':
		hex, _, closed := bytes.Cut(b[3:], []byte("}"))
		if n, err := strconv.ParseUint(string(hex), 16, 32); closed && len(hex) <= 6 && err == nil {
			return len(`\u{}`) + len(hex), bytesOf(rune(n))
		}
		return 1, b[:1]
	}
	length, number := readNumber(b)
	if length == 0 {
		return 1, b[:1]
	}
	if length == maxEscape/2 && utf16.IsSurrogate(number) {
		more, low := readNumber(b[length:])
		if more != length {
			return 1, b[:1]
		}
		return maxEscape, bytesOf(utf16.DecodeRune(number, low))
	}
	return length, bytesOf(number)
}

// numbers are the escapes that have a number of so many digits.
var numbers = []struct {
	prefix       string
	digits, base int
}{{"%", 2, 16}, {`\x`, 2, 16}, {`\u`, 4, 16}, {`\U`, 8, 16}, {`\`, 3, 8}}

// readNumber reads the escape with a number at the beginning of b: its length, 0 if there is none, and the number.
func readNumber(b []byte) (length int, number rune) {
	for _, e := range numbers {
		end := len(e.prefix) + e.digits
		if len(b) < end || string(b[:len(e.prefix)]) != e.prefix {
			continue
		}
		if n, err := strconv.ParseUint(string(b[len(e.prefix):end]), e.base, 32); err == nil && (e.base == 16 || n <= 0xFF) {
			return end, rune(n)
		}
	}
	return 0, 0
}

// bytesOf returns a character in the form in which it is compared.
func bytesOf(c rune) []byte {
	if c <= 0xFF {
		return []byte{byte(c)}
	}
	return utf8.AppendRune(nil, c)
}
