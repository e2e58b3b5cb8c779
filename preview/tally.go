package preview

import (
	"cmp"
	"slices"
)

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
