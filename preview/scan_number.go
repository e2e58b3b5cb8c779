package preview

// The grammar of numbers as a table: numberNext[state][class] is the next state.
const (
	numBad uint8 = iota
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

const (
	classOther uint8 = iota
	classZero
	classDigit
	classMinus
	classPlus
	classDot
	classExp
)

var numberNext = [...][7]uint8{
	numStart:     {classZero: numZero, classDigit: numInt, classMinus: numMinus},
	numMinus:     {classZero: numZero, classDigit: numInt},
	numZero:      {classDot: numDot, classExp: numExp},
	numInt:       {classZero: numInt, classDigit: numInt, classDot: numDot, classExp: numExp},
	numDot:       {classZero: numFrac, classDigit: numFrac},
	numFrac:      {classZero: numFrac, classDigit: numFrac, classExp: numExp},
	numExp:       {classZero: numExpDigits, classDigit: numExpDigits, classMinus: numExpSign, classPlus: numExpSign},
	numExpSign:   {classZero: numExpDigits, classDigit: numExpDigits},
	numExpDigits: {classZero: numExpDigits, classDigit: numExpDigits},
}

var numberClass = [256]uint8{
	'0': classZero, '1': classDigit, '2': classDigit, '3': classDigit, '4': classDigit, '5': classDigit,
	'6': classDigit, '7': classDigit, '8': classDigit, '9': classDigit,
	'-': classMinus, '+': classPlus, '.': classDot, 'e': classExp, 'E': classExp,
}

// number reads a number that begins at r.
func (s *scanner) number() (tokenKind, error) {
	s.tok = token{}
	s.spill = s.spill[:0]
	start, i, state := s.r, s.r, numStart
	for {
		if i >= s.w {
			if !s.carry(start, i) {
				start, i = s.r, s.r
				break
			}
			start, i = 0, 0
		}
		class := numberClass[s.buf[i]]
		if class == classOther {
			break
		}
		if state = numberNext[state][class]; state == numBad {
			s.r = i
			return s.fail("a number cannot go on with %s")
		}
		if state == numDot || state == numExp {
			s.tok.float = true
		}
		i++
	}
	s.finish(start, i)
	s.r = i
	switch {
	case s.err != nil:
		return tokEnd, s.err
	case state == numZero || state == numInt || state == numFrac || state == numExpDigits:
		if i < s.w && isLetter(s.buf[i]) {
			return s.fail("a number cannot go on with %s")
		}
		return s.done(tokNumber)
	case i >= s.w:
		return tokEnd, s.truncated("the data ends inside a number")
	}
	return s.fail("a number cannot end before %s")
}

// oddNumber returns what c may begin that programs write for numbers which JSON does not have.
func (s *scanner) oddNumber(c byte) string {
	switch c {
	case 'N':
		return "NaN"
	case 'I':
		return "Infinity"
	case '-':
		if s.need(2); s.w-s.r > 1 && s.buf[s.r+1] == 'I' {
			return "-Infinity"
		}
	}
	return ""
}

func (s *scanner) odd(word string) (tokenKind, error) {
	k, err := s.literal(word, tokNumber)
	if err == nil {
		s.tok = token{raw: append(s.spill[:0], word...), size: int64(len(word)), float: true, odd: true}
	}
	return k, err
}
