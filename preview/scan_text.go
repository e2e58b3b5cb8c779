package preview

import (
	"encoding/binary"
	"encoding/hex"
	"math/bits"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// special has its lowest set bit in the first byte of x that ends a run of plain ASCII in a string.
func special(x uint64) uint64 {
	quote := x ^ ones*'"'
	slash := x ^ ones*'\\'
	return ((quote-ones)&^quote | (slash-ones)&^slash | (x-ones*0x20)&^x | x) & highs
}

// plain returns the length of the run of plain ASCII at the beginning of b.
func plain(b []byte) (n int) {
	for ; n+8 <= len(b); n += 8 {
		if m := special(binary.LittleEndian.Uint64(b[n:])); m != 0 {
			return n + bits.TrailingZeros64(m)/8
		}
	}
	for n < len(b) && b[n] != '"' && b[n] != '\\' && b[n] >= 0x20 && b[n] < utf8.RuneSelf {
		n++
	}
	return n
}

const maxUnit = 12 // bytes of the longest escape, which is a pair of \u

// str reads a string whose opening quote is at r.
func (s *scanner) str() error {
	s.r++
	for s.tail = s.r; ; {
		s.tail += plain(s.buf[s.tail:])
		switch {
		case s.tail < len(s.buf) && s.buf[s.tail] == '"':
			s.finish()
			s.r++
			return nil
		case len(s.buf)-s.tail < maxUnit && !s.eof:
			s.refill()
			continue
		case s.tail == len(s.buf):
			s.r = s.tail
			return s.truncated("the data ends inside a string")
		}
		if r, n := utf8.DecodeRune(s.buf[s.tail:]); n > 1 || r >= utf8.RuneSelf && r != utf8.RuneError {
			s.tail += n
			continue
		}
		s.keep(s.buf[s.r:s.tail])
		s.r = s.tail
		if err := s.unit(); err != nil {
			return err
		}
		s.tail = s.r
	}
}

// refill keeps the token and reads on, unless all data has been read.
func (s *scanner) refill() {
	if s.eof {
		return
	}
	s.keep(s.buf[s.r:s.tail])
	s.r = s.tail
	s.fill()
	s.tail = s.r
}

// keep appends b to the token.
func (s *scanner) keep(b []byte) {
	if len(b) > 0 {
		s.tok.last = b[len(b)-1]
	}
	s.tok.size += int64(len(b))
	s.spill = append(s.spill, b[:min(len(b), maxWhole-len(s.spill))]...)
}

// finish ends the token with buf[r:tail]. It copies nothing if that is all of it.
func (s *scanner) finish() {
	part := s.buf[s.r:s.tail]
	if s.r = s.tail; s.tok.size > 0 {
		s.keep(part)
		s.tok.text = s.spill
	} else if len(part) > 0 {
		s.tok.text = part[:min(len(part), maxWhole)]
		s.tok.size, s.tok.last = int64(len(part)), part[len(part)-1]
	}
}

// escapes maps the letter after a backslash to its character.
var escapes = [256]byte{
	'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t',
}

// unit reads an escape, a control character or a byte that is not UTF-8, and appends the character to the token.
func (s *scanner) unit() error {
	b := s.buf[s.r:]
	r, n := rune(b[0]), 1
	var err error
	switch {
	case b[0] == '\\':
		s.tok.escaped = true
		if r, n, err = s.escape(b); err != nil {
			return err
		}
	case b[0] >= utf8.RuneSelf:
		s.tok.odd[oddInvalid] = true
		r = utf8.RuneError
	case r != '\n' && r != '\r': // a line feed more likely ends a broken line
		s.tok.odd[oddControl] = true
	default:
		_, err := s.fail("a string must not hold the raw character %s")
		return err
	}
	var char [utf8.UTFMax]byte
	s.keep(utf8.AppendRune(char[:0], r))
	s.r += n
	return nil
}

// escape returns the character of the escape that b begins with, and the length of the escape.
func (s *scanner) escape(b []byte) (r rune, n int, err error) {
	switch {
	case len(b) < 2:
		return 0, 0, s.truncated("the data ends inside a string")
	case b[1] != 'u' && escapes[b[1]] == 0:
		s.r++
		_, err := s.fail("a backslash must not stand before %s")
		return 0, 0, err
	case b[1] != 'u':
		return rune(escapes[b[1]]), 2, nil
	}
	r, ok := hex4(b)
	switch {
	case !ok && len(b) < 6:
		s.r = len(s.buf)
		return 0, 0, s.truncated("the data ends inside a string")
	case !ok:
		_, err := s.fail("four hexadecimal digits must follow \\u, found %s")
		return 0, 0, err
	case !utf16.IsSurrogate(r):
		return r, 6, nil
	}
	low, _ := hex4(b[6:])
	if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
		return r, maxUnit, nil
	}
	s.tok.odd[oddSurrogate] = true
	return r, 6, nil
}

// hex4 reads \uXXXX.
func hex4(b []byte) (rune, bool) {
	var code [2]byte
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	if _, err := hex.Decode(code[:], b[2:6]); err != nil {
		return 0, false
	}
	return rune(binary.BigEndian.Uint16(code[:])), true
}

// number reads a number that begins at r.
func (s *scanner) number() (kind, error) {
	s.tail = s.r
	ok, float := s.digits()
	s.finish()
	s.tok.float = float
	switch {
	case s.r < len(s.buf) && (ok && isLetter(s.buf[s.r]) || strings.IndexByte("0123456789+-.eE", s.buf[s.r]) >= 0):
		return s.fail("a number cannot go on with %s")
	case ok:
		return s.done(kindNumber)
	case s.r == len(s.buf):
		return tokEnd, s.truncated("the data ends inside a number")
	}
	return s.fail("a number cannot end before %s")
}

// digits moves tail over a number. It reports whether the number is complete, and whether it has a fraction or exponent.
func (s *scanner) digits() (ok, float bool) {
	s.take('-', '-')
	ok = s.take('0', '0') || s.run()
	if ok && s.take('.', '.') {
		ok, float = s.run(), true
	}
	if ok && s.take('e', 'E') {
		s.take('+', '-')
		ok, float = s.run(), true
	}
	return ok, float
}

// run moves tail over digits and reports whether there were any.
func (s *scanner) run() (some bool) {
	for s.more() && '0' <= s.buf[s.tail] && s.buf[s.tail] <= '9' {
		s.tail++
		some = true
	}
	return some
}

// take moves tail over a byte that is one of two.
func (s *scanner) take(a, b byte) bool {
	if !s.more() || s.buf[s.tail] != a && s.buf[s.tail] != b {
		return false
	}
	s.tail++
	return true
}

// more reports whether there is a byte at tail.
func (s *scanner) more() bool {
	if s.tail == len(s.buf) {
		s.refill()
	}
	return s.tail < len(s.buf)
}

// isJSONNumber reports whether b is a number in JSON, which jq's tonumber accepts.
func isJSONNumber(b []byte) bool {
	s := scanner{buf: b, eof: true}
	ok, _ := s.digits()
	return ok && s.tail == len(b)
}
