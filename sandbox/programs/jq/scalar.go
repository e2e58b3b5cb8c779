package jq

import (
	"encoding/json"
	"fmt"
	"strconv"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

// text reads a string. The result is valid until the next call.
func (d *decoder) text() ([]byte, error) {
	d.pos++
	start := d.pos
	for i := start; i < d.end; i++ {
		c := d.buf[i]
		if c == '"' {
			d.pos = i + 1
			return validUTF8(d.buf[start:i]), nil
		}
		if c == '\\' || c < ' ' {
			break
		}
	}
	return d.longText()
}

// longText reads a string that has escapes or does not stand in the buffer as a whole.
func (d *decoder) longText() ([]byte, error) {
	out := d.scratch[:0]
	for {
		i := d.pos
		for i < d.end && d.buf[i] != '"' && d.buf[i] != '\\' && d.buf[i] >= ' ' {
			i++
		}
		out = append(out, d.buf[d.pos:i]...)
		d.pos = i
		if i == d.end {
			if !d.fill() {
				return nil, d.ended("unexpected end of the input inside of a string")
			}
			continue
		}
		switch d.buf[i] {
		case '"':
			d.pos++
			if cap(out) <= bufferSize {
				d.scratch = out
			}
			return validUTF8(out), nil
		case '\\':
			var err error
			if out, err = d.escape(out); err != nil {
				return nil, err
			}
		default:
			return nil, d.mistake(fmt.Sprintf("a control character %q inside of a string", d.buf[i]))
		}
	}
}

// validUTF8 writes U+FFFD for each wrong byte, as encoding/json does.
func validUTF8(b []byte) []byte {
	if utf8.Valid(b) {
		return b
	}
	return []byte(string([]rune(string(b))))
}

var escapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// escape reads what begins with a backslash and appends what it means.
func (d *decoder) escape(out []byte) ([]byte, error) {
	if !d.has(2) {
		return nil, d.ended("unexpected end of the input inside of a string")
	}
	c := d.buf[d.pos+1]
	if c != 'u' {
		if escapes[c] == 0 {
			return nil, d.mistake(fmt.Sprintf("an unknown escape %q", d.buf[d.pos:d.pos+2]))
		}
		d.pos += 2
		return append(out, escapes[c]), nil
	}
	r, err := d.unicode()
	if err != nil {
		return nil, err
	}
	if utf16.IsSurrogate(r) {
		pair := unicode.ReplacementChar
		if d.has(2) && d.buf[d.pos] == '\\' && d.buf[d.pos+1] == 'u' {
			low, err := d.unicode()
			if err != nil {
				return nil, err
			}
			if pair = utf16.DecodeRune(r, low); pair == unicode.ReplacementChar {
				d.pos -= len(`\uXXXX`) // the second one stands for itself
			}
		}
		r = pair
	}
	return utf8.AppendRune(out, r), nil
}

// unicode reads \uXXXX.
func (d *decoder) unicode() (rune, error) {
	if !d.has(6) {
		return 0, d.mistake("an escape that is not complete")
	}
	n, err := strconv.ParseUint(string(d.buf[d.pos+2:d.pos+6]), 16, 16)
	if err != nil {
		return 0, d.mistake(fmt.Sprintf("an unknown escape %q", d.buf[d.pos:d.pos+6]))
	}
	d.pos += 6
	return rune(n), nil
}

// word consumes a literal.
func (d *decoder) word(w string) error {
	if !d.has(len(w)) || string(d.buf[d.pos:d.pos+len(w)]) != w {
		return d.mistake("an unknown word")
	}
	d.pos += len(w)
	if d.has(1) && isWord(d.buf[d.pos]) {
		return d.mistake("an unknown word")
	}
	return nil
}

func isWord(c byte) bool {
	return c == '_' || c == '.' || c == '+' || c == '-' || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}

// number reads a number. An integer of up to 18 digits becomes an int; everything else keeps its text.
func (d *decoder) number() (any, error) {
	out := d.scratch[:0]
	for d.has(1) && isWord(d.buf[d.pos]) {
		i := d.pos
		for i < d.end && isWord(d.buf[i]) {
			i++
		}
		out = append(out, d.buf[d.pos:i]...)
		d.pos = i
	}
	if cap(out) <= bufferSize {
		d.scratch = out
	}
	v, ok := numberOf(out)
	if !ok {
		d.pos -= min(len(out), d.pos)
		return nil, d.mistake("an unknown number " + texts.Quote(out))
	}
	return v, nil
}

// numberOf returns the value of a JSON number.
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
