package preview

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
)

// number is a number exactly as written. The zero value is none.
type number struct {
	f   float64
	raw []byte
}

func parseNumber(raw []byte, float bool) number {
	if !float && len(raw) <= 15 { // exact, and faster
		return number{float64(parseInt(raw)), raw}
	}
	f, _ := strconv.ParseFloat(string(raw), 64) // out of range is infinity, which compares right
	return number{f, raw}
}

// parseInt is several times as fast as strconv.ParseInt, for digits that are known to fit.
func parseInt(raw []byte) (n int64) {
	digits := bytes.TrimPrefix(raw, []byte("-"))
	for _, c := range digits {
		n = n*10 + int64(c-'0')
	}
	if len(digits) < len(raw) {
		return -n
	}
	return n
}

// keep replaces n by v if v is smaller, for sign -1, or larger, for sign 1. It copies the text of v.
func (n *number) keep(v *number, sign int) {
	if v.raw != nil && (n.raw == nil || sign*v.compare(n) > 0) {
		n.f, n.raw = v.f, append(n.raw[:0], v.raw...)
	}
}

// compare is positive if n is larger than o. It compares integers of any length by their digits.
func (n *number) compare(o *number) int {
	if n.f != o.f || n.f == 0 || !isInteger(n.raw) || !isInteger(o.raw) {
		return cmp.Compare(n.f, o.f)
	}
	a, b := n.raw, o.raw // which have the same sign
	if a[0] == '-' {
		a, b = b, a
	}
	return cmp.Or(cmp.Compare(len(a), len(b)), bytes.Compare(a, b))
}

func isInteger(raw []byte) bool { return !bytes.ContainsAny(raw, ".eE") }

// String is the number as written; integers are never rounded.
func (n *number) String() string {
	if len(n.raw) > maxNumber {
		return string(n.raw[:maxNumber]) + "…"
	}
	return string(n.raw)
}

const maxNumber = 40 // characters printed of a number

// span is a range of lengths.
type span struct {
	lo, hi int64
	set    bool
}

func (s *span) add(length int64) { s.merge(span{length, length, true}) }

func (s *span) merge(o span) {
	if o.set && s.set {
		o.lo, o.hi = min(s.lo, o.lo), max(s.hi, o.hi)
	}
	if o.set {
		*s = o
	}
}

// String is one length or the smallest and the largest.
func (s span) String() string {
	if s.lo == s.hi {
		return strconv.FormatInt(s.lo, 10)
	}
	return strconv.FormatInt(s.lo, 10) + ".." + strconv.FormatInt(s.hi, 10)
}

// tally counts distinct values while they are few.
type tally struct {
	values []tallied
	over   bool // there were more than maxTally values, or one was too long: no value is kept
}

type tallied struct {
	text string
	n    int64
}

const (
	maxTally     = 12
	maxTallyText = 64 // bytes of one value
)

// add counts n more of text. It copies only a new text.
func (t *tally) add(text []byte, n int64) {
	if t.over {
		return
	}
	for i := range t.values {
		if t.values[i].text == string(text) {
			t.values[i].n += n
			return
		}
	}
	if len(t.values) == maxTally || len(text) > maxTallyText {
		t.drop()
		return
	}
	t.values = append(t.values, tallied{string(text), n})
}

// drop forgets the values and accepts no more.
func (t *tally) drop() { *t = tally{over: true} }

func (t *tally) merge(o *tally) {
	if o.over {
		t.drop()
	}
	for _, v := range o.values {
		t.add([]byte(v.text), v.n)
	}
}

// byCount returns the values, the most frequent first, equally frequent ones in the order of their first use.
func (t *tally) byCount() []tallied {
	sorted := slices.Clone(t.values)
	slices.SortStableFunc(sorted, func(a, b tallied) int { return cmp.Compare(b.n, a.n) })
	return sorted
}
