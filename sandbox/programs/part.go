package programs

import "strconv"

// A Part is a stretch of the input that is passed on as it is.
type Part struct {
	Skip, Take int64 // how much is left out before it, and how long it is; Take is below zero for all that is left
	Bytes      bool  // they count bytes, not lines
	Zero       bool  // lines end with NUL
}

// headPart is what head prints, unless that is all but the end of its input, or has a title.
func headPart(p *parsed) *Part {
	part, number := p.stretch("10")
	n, err := strconv.ParseUint(number, 10, 62)
	if err != nil || part == nil {
		return nil
	}
	part.Take = int64(n)
	return part
}

// tailPart is what tail prints from a line or byte on, which it counts from 1.
func tailPart(p *parsed) *Part {
	part, number := p.stretch("10")
	if part == nil || number[0] != '+' {
		return nil
	}
	n, err := strconv.ParseUint(number[1:], 10, 62)
	if err != nil {
		return nil
	}
	part.Skip, part.Take = max(int64(n)-1, 0), -1
	return part
}

// stretch reads the options of head and tail, of which the last that gives a number decides. It returns nil where they ask
// for a title.
func (p *parsed) stretch(number string) (*Part, string) {
	part := &Part{Zero: p.has("zero-terminated")}
	if p.has("verbose") {
		return nil, ""
	}
	for _, w := range p.words {
		if w.is("lines") || w.is("bytes") {
			part.Bytes, number = w.is("bytes"), w.value
		}
	}
	return part, number
}
