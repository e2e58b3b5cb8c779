package preview

import "strings"

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
