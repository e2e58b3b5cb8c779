package programs

import (
	"strconv"
	"strings"
)

// A Part is a stretch of the input that is passed on as it is.
type Part struct {
	Skip, Take int64 // how much is left out before it, and how long it is; Take is below zero for all that is left
	Bytes      bool  // they count bytes, not lines
	Zero       bool  // lines end with NUL
}

// partOf returns what head prints, unless that is all but the end of its input, and what tail prints from a line or byte on,
// which it counts from 1. Where they print a title it is nil.
func partOf(p *parsed) *Part {
	part, number := &Part{Zero: p.has("zero-terminated")}, "10"
	for _, w := range p.words { // the last one decides
		if w.is("lines") || w.is("bytes") {
			part.Bytes, number = w.is("bytes"), w.value
		}
	}
	digits, from := strings.CutPrefix(number, "+")
	n, err := strconv.ParseUint(digits, 10, 63) // "-0" is all of the input
	if err != nil || p.has("verbose") || from != (p.Name == "tail") {
		return nil
	}
	if part.Take = int64(n); from {
		part.Skip, part.Take = max(part.Take-1, 0), -1
	}
	return part
}
