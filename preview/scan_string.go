package preview

import (
	"encoding/binary"
	"math/bits"
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

// str reads a string whose opening quote is at r.
func (s *scanner) str() error {
	s.begin()
	s.r++
	start, i := s.r, s.r
	for {
		for i+8 <= s.w {
			if m := special(binary.LittleEndian.Uint64(s.buf[i:])); m != 0 {
				i += bits.TrailingZeros64(m) / 8
				break
			}
			i += 8
		}
		if i >= s.w {
			if !s.carry(start, i) {
				return s.truncated("the data ends inside a string")
			}
			start, i = s.r, s.r
			continue
		}
		c := s.buf[i]
		if c == '"' {
			s.finish(start, i)
			s.r = i + 1
			return nil
		}
		if c != '\\' && c >= 0x20 && c < utf8.RuneSelf {
			i++
			continue
		}
		if s.w-i < 12 && !s.eof { // the longest unit is a pair of \u escapes
			s.carry(start, i)
			start, i = s.r, s.r
			continue
		}
		n, err := s.unit(i)
		if err != nil {
			return err
		}
		i += n
	}
}

// begin starts a token.
func (s *scanner) begin() {
	s.tok = token{}
	s.spill = s.spill[:0]
}

// carry saves buf[start:i] of the token and refills the buffer from i on. It reports whether there are more bytes.
func (s *scanner) carry(start, i int) bool {
	s.save(start, i)
	s.r = i
	return s.fill()
}

func (s *scanner) save(start, i int) {
	if i > start {
		s.tok.last = s.buf[i-1]
	}
	s.tok.size += int64(i - start)
	s.spill = append(s.spill, s.buf[start:min(i, start+maxWhole-len(s.spill))]...)
}

// finish sets the token's text, the last piece of which is buf[start:i].
func (s *scanner) finish(start, i int) {
	if s.tok.size > 0 {
		s.save(start, i)
		s.tok.kept = s.spill
		return
	}
	if i > start {
		s.tok.last = s.buf[i-1]
	}
	s.tok.size = int64(i - start)
	s.tok.kept = s.buf[start:min(i, start+maxWhole)]
}

// unit returns the length of the escape or the rune beyond ASCII at i, or an error.
func (s *scanner) unit(i int) (int, error) {
	b := s.buf[i:s.w]
	if b[0] >= utf8.RuneSelf {
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n == 1 {
			s.tok.invalid = true
		}
		return n, nil
	}
	if s.lenient && b[0] < 0x20 && b[0] != '\n' && b[0] != '\r' { // a line feed more likely ends a broken line
		s.tok.control = true
		return 1, nil
	}
	s.r = i
	if b[0] < 0x20 {
		_, err := s.fail("a string must not hold the raw character %s")
		return 0, err
	}
	s.tok.escaped = true
	if len(b) < 2 {
		return 0, s.truncated("the data ends inside a string")
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2, nil
	case 'u':
		return s.unicodeEscape(i)
	}
	s.r = i + 1
	_, err := s.fail("a backslash must not stand before %s")
	return 0, err
}

func (s *scanner) unicodeEscape(i int) (int, error) {
	v, ok := hex4(s.buf[i:s.w])
	if !ok {
		if s.w-i < 6 {
			s.r = s.w
			return 0, s.truncated("the data ends inside a string")
		}
		s.r = i
		_, err := s.fail("four hexadecimal digits must follow \\u, found %s")
		return 0, err
	}
	if v < 0xd800 || v > 0xdfff {
		return 6, nil
	}
	if low, ok := hex4(s.buf[i+6 : s.w]); ok && v < 0xdc00 && low >= 0xdc00 && low <= 0xdfff {
		return 12, nil
	}
	s.tok.lone = true
	return 6, nil
}

// hex4 reads \uXXXX.
func hex4(b []byte) (v rune, ok bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	for _, c := range b[2:6] {
		switch {
		case '0' <= c && c <= '9':
			v = v<<4 | rune(c-'0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			v = v<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return v, true
}
