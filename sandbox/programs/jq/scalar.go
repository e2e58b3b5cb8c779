package jq

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

// bytesThat says of each byte whether it belongs to a set.
func bytesThat(belong func(c byte) bool) (set []bool) {
	for c := range 256 {
		set = append(set, belong(byte(c)))
	}
	return set
}

var (
	// inString are the bytes that stand for themselves in a string.
	inString = bytesThat(func(c byte) bool { return c >= ' ' && c != '"' && c != '\\' })

	// inWord are those of numbers and literals.
	inWord = bytesThat(func(c byte) bool {
		return strings.IndexByte("_.+-", c) >= 0 || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
	})
)

// begin readies scratch for a token. A large one is not kept.
func (d *decoder) begin() {
	if cap(d.scratch) > bufferSize {
		d.scratch = nil
	}
	d.scratch = d.scratch[:0]
}

// span moves the bytes up to the next one that is not in set to scratch. It reports whether there is such a byte.
func (d *decoder) span(set []bool) bool {
	for {
		i := d.pos
		for i < d.end && set[d.buf[i]] {
			i++
		}
		d.scratch = append(d.scratch, d.buf[d.pos:i]...)
		d.pos = i
		if i < d.end {
			return true
		}
		if !d.fill() {
			return false
		}
	}
}

// text reads a string. The result is valid until the next call.
func (d *decoder) text() ([]byte, error) {
	d.begin()
	d.pos++
	for escaped := false; d.span(inString); {
		switch c := d.buf[d.pos]; c {
		case '"':
			d.pos++
			if !escaped {
				return validUTF8(d.scratch), nil
			}
			var s string
			err := json.Unmarshal(append(slices.Insert(d.scratch, 0, '"'), '"'), &s)
			d.scratch = append(d.scratch[:0], s...)
			return d.scratch, err
		case '\\':
			escaped = true
			if err := d.escape(); err != nil {
				return nil, err
			}
		default:
			return nil, d.mistake(fmt.Sprintf("a control character %q inside of a string", c))
		}
	}
	return nil, d.ended("unexpected end of the input inside of a string")
}

// escape moves an escape to scratch as it is written.
func (d *decoder) escape() error {
	if !d.has(2) {
		return d.ended("unexpected end of the input inside of a string")
	}
	n, known := 2, strings.IndexByte(`"\/bfnrt`, d.buf[d.pos+1]) >= 0
	if d.buf[d.pos+1] == 'u' {
		if n = len(`\uXXXX`); !d.has(n) {
			return d.mistake("an escape that is not complete")
		}
		_, err := strconv.ParseUint(string(d.buf[d.pos+2:d.pos+n]), 16, 16)
		known = err == nil
	}
	text := d.buf[d.pos : d.pos+n]
	if !known {
		return d.mistake(fmt.Sprintf("an unknown escape %q", text))
	}
	d.scratch = append(d.scratch, text...)
	d.pos += n
	return nil
}

// validUTF8 writes U+FFFD for each wrong byte, as encoding/json does.
func validUTF8(b []byte) []byte {
	if utf8.Valid(b) {
		return b
	}
	return []byte(string([]rune(string(b))))
}

// scalar reads a value that begins with c and is no string, array or object.
func (d *decoder) scalar(c byte) (any, error) {
	if c != '-' && (c < '0' || c > '9') && strings.IndexByte("tfn", c) < 0 {
		return nil, d.unexpected(c)
	}
	if c >= 'a' {
		return d.word()
	}
	d.begin()
	d.span(inWord)
	if v, ok := numberOf(d.scratch); ok {
		return v, nil
	}
	d.pos -= min(len(d.scratch), d.pos)
	return nil, d.mistake("an unknown number " + texts.Quote(d.scratch))
}

var words = map[string]any{"true": true, "false": false, "null": nil}

// word reads a literal. It reads no more than it takes to see that a word is none.
func (d *decoder) word() (any, error) {
	n := 0
	for n <= len("false") && d.has(n+1) && inWord[d.buf[d.pos+n]] {
		n++
	}
	v, known := words[string(d.buf[d.pos:d.pos+n])]
	if !known {
		return nil, d.mistake("an unknown word")
	}
	d.pos += n
	return v, nil
}

// numberOf returns the value of a JSON number: an int, if it has up to 18 digits and no fraction, else its text.
func numberOf(text []byte) (v any, ok bool) {
	if !json.Valid(text) || text[0] != '-' && (text[0] < '0' || text[0] > '9') {
		return nil, false
	}
	if len(text) <= 18 && string(text) != "-0" {
		if n, err := strconv.Atoi(string(text)); err == nil {
			return n, true
		}
	}
	return json.Number(text), true
}
