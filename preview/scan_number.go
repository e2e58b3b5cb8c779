package preview

import "strings"

// numberState is a state of the grammar of numbers.
type numberState uint8

const (
	numBad numberState = iota
	numStart
	numMinus
	numZero
	numInt
	numDot
	numFrac
	numExp
	numExpSign
	numExpDigits
)

// afterDigit is the next state after a digit, but for a zero at the beginning.
var afterDigit = [...]numberState{
	numStart: numInt, numMinus: numInt, numInt: numInt, numDot: numFrac, numFrac: numFrac,
	numExp: numExpDigits, numExpSign: numExpDigits, numExpDigits: numExpDigits,
}

func (n numberState) next(c byte) numberState {
	switch {
	case c == '0' && n <= numMinus:
		return numZero
	case '0' <= c && c <= '9':
		return afterDigit[n]
	case c == '-' && n == numStart:
		return numMinus
	case c == '.' && (n == numZero || n == numInt):
		return numDot
	case c|0x20 == 'e' && n.ends() && n != numExpDigits:
		return numExp
	case (c == '+' || c == '-') && n == numExp:
		return numExpSign
	}
	return numBad
}

// ends reports whether a number may end here.
func (n numberState) ends() bool {
	return n == numZero || n == numInt || n == numFrac || n == numExpDigits
}

// isJSONNumber reports whether b is a number in JSON, which jq's tonumber accepts.
func isJSONNumber(b []byte) bool {
	state := numStart
	for _, c := range b {
		if state = state.next(c); state == numBad {
			return false
		}
	}
	return state.ends()
}

// number reads a number that begins at r.
func (s *scanner) number() (kind, error) {
	i, state, float := s.r, numStart, false
	for {
		if i == len(s.buf) {
			s.keep(s.buf[s.r:i])
			s.r = i
			more := s.fill()
			if i = s.r; !more {
				break
			}
		}
		c := s.buf[i]
		if state == numInt && '0' <= c && c <= '9' { // most of the time
			i++
			continue
		}
		next := state.next(c)
		if next == numBad {
			break
		}
		state = next
		float = float || state == numDot || state == numExp
		i++
	}
	s.finish(i)
	s.tok.float = float
	switch {
	case i < len(s.buf) && (state.ends() && isLetter(s.buf[i]) || strings.IndexByte("0123456789+-.eE", s.buf[i]) >= 0):
		return s.fail("a number cannot go on with %s")
	case state.ends():
		return s.done(kindNumber)
	case i == len(s.buf):
		return tokEnd, s.truncated("the data ends inside a number")
	}
	return s.fail("a number cannot end before %s")
}

// nonFinite returns the word of a number that JSON lacks, if c may begin one.
func (s *scanner) nonFinite(c byte) string {
	switch {
	case !s.lenient:
	case c == 'N':
		return "NaN"
	case c == 'I':
		return "Infinity"
	case c == '-':
		if s.ensure(2); len(s.buf)-s.r > 1 && s.buf[s.r+1] == 'I' {
			return "-Infinity"
		}
	}
	return ""
}
