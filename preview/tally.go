package preview

// tally counts the distinct values of something as long as they are few.
type tally struct {
	values []tallied
	over   bool // there were more than maxTally values, or one that is too long: nothing is known
	hit    int  // where the last value was found, the next one is often the same
}

type tallied struct {
	text string
	n    int64
}

const (
	maxTally     = 12
	maxTallyText = 64 // bytes of one value
)

// add counts n more of text, which is copied only when it is new.
func (t *tally) add(text []byte, n int64) {
	if t.over {
		return
	}
	if t.hit < len(t.values) && t.values[t.hit].text == string(text) {
		t.values[t.hit].n += n
		return
	}
	for i := range t.values {
		if t.values[i].text == string(text) {
			t.values[i].n += n
			t.hit = i
			return
		}
	}
	if len(t.values) == maxTally || len(text) > maxTallyText {
		t.drop()
		return
	}
	t.hit = len(t.values)
	t.values = append(t.values, tallied{string(text), n})
}

// drop forgets the values for good.
func (t *tally) drop() { *t = tally{over: true} }

func (t *tally) merge(o *tally) {
	if o.over {
		t.drop()
	}
	for _, v := range o.values {
		t.add([]byte(v.text), v.n)
	}
}

// byCount returns the values, the most frequent first, equal ones in order of appearance.
func (t *tally) byCount() []tallied {
	sorted := make([]tallied, 0, len(t.values))
	for _, v := range t.values {
		i := len(sorted)
		for i > 0 && sorted[i-1].n < v.n {
			i--
		}
		sorted = append(sorted, tallied{})
		copy(sorted[i+1:], sorted[i:])
		sorted[i] = v
	}
	return sorted
}
