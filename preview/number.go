package preview

import (
	"strconv"
	"strings"
)

// extreme is the smallest or the largest number seen, exactly as it was written.
type extreme struct {
	set   bool
	small bool // i holds it: an integer of at most 18 digits
	i     int64
	f     float64
	raw   []byte // the others
}

// number is a number read from a token.
type number struct {
	small bool
	i     int64
	f     float64
	raw   []byte
	float bool // written with fraction or exponent
}

func parseNumber(raw []byte, float bool) number {
	v := number{raw: raw, float: float}
	if !float && len(raw) <= 18 && string(raw) != "-0" {
		v.small = true
		v.i = parseInt(raw)
		v.f = float64(v.i)
		return v
	}
	v.f, _ = strconv.ParseFloat(string(raw), 64) // out of range is infinity, which compares right
	return v
}

func parseInt(raw []byte) (n int64) {
	negative := raw[0] == '-'
	if negative {
		raw = raw[1:]
	}
	for _, c := range raw {
		n = n*10 + int64(c-'0')
	}
	if negative {
		return -n
	}
	return n
}

// keep replaces e by v when v lies beyond it, below for sign -1 and above for sign 1.
func (e *extreme) keep(v *number, sign int) {
	if e.set && sign*e.compare(v) <= 0 {
		return
	}
	e.set, e.small, e.i, e.f = true, v.small, v.i, v.f
	if !v.small {
		e.raw = append(e.raw[:0], v.raw...)
	}
}

// compare is positive when v is larger than e.
func (e *extreme) compare(v *number) int {
	switch {
	case e.small && v.small:
		return order(v.i, e.i)
	case v.f != e.f:
		return order(v.f, e.f)
	case !e.small && !v.small && isInteger(e.raw) && isInteger(v.raw):
		return compareIntegers(v.raw, e.raw)
	}
	return 0
}

func order[T int64 | float64 | int](a, b T) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func isInteger(raw []byte) bool { return !strings.ContainsAny(string(raw), ".eE") }

// compareIntegers compares integers of any length by their digits.
func compareIntegers(a, b []byte) int {
	na, nb := a[0] == '-', b[0] == '-'
	switch {
	case na && nb:
		return compareIntegers(b[1:], a[1:])
	case na:
		return -1
	case nb:
		return 1
	case len(a) != len(b):
		return order(len(a), len(b))
	}
	return strings.Compare(string(a), string(b))
}

func (e *extreme) number() number {
	return number{small: e.small, i: e.i, f: e.f, raw: e.raw}
}

func (e *extreme) merge(o *extreme, sign int) {
	if o.set {
		v := o.number()
		e.keep(&v, sign)
	}
}

// String is the number as it was written; integers are never rounded.
func (e *extreme) String() string {
	if e.small {
		return strconv.FormatInt(e.i, 10)
	}
	if len(e.raw) > maxNumber {
		return string(e.raw[:maxNumber]) + "…"
	}
	return string(e.raw)
}

const maxNumber = 40 // characters of a number that are printed
