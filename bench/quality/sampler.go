package quality

import (
	"cmp"
	"container/heap"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

// Style is how a sample marks what it leaves out.
type Style int

// The styles.
const (
	Detailed Style = iota // comments with numbers
	Dots                  // … alone
	Strict                // not at all
)

// Sample shows values of a JSON document within a budget of bytes, as value samplers do: elements from the head, the
// middle and the tail of arrays, the beginnings of strings, and how much is left out. Like them it may exceed a budget
// that is very small, and counts what lies between its elements twice. It stands for them in comparisons.
func Sample(data string, budget int, style Style) (string, error) {
	d := json.NewDecoder(strings.NewReader(data))
	d.UseNumber()
	root, err := ingest(d, max(1, budget/2))
	if err != nil {
		return "", fmt.Errorf("reading the data: %w", err)
	}
	if d.More() {
		return "", errors.New("reading the data: there is more behind the document")
	}
	order := prioritize(root, budget)
	text := func(k int) string {
		for i, v := range order {
			v.shown = i < k
		}
		for _, v := range order[:k] {
			for up := v.above; up != nil && !up.shown; up = up.above {
				up.shown = true
			}
		}
		w := sampleText{style: style}
		w.value(root, 0)
		return w.String()
	}
	lo, hi := 1, min(len(order), budget)
	for lo < hi {
		if mid := (lo + hi + 1) / 2; len(text(mid)) <= budget {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	return text(lo), nil
}

// sampled is a value, or one character of a string.
type sampled struct {
	kind  json.Delim // { [ or ", 0 for other values, 1 for a character
	text  string     // of a value or a character
	key   string
	index int // in the array
	total int // keys, elements or characters that there are
	kids  []*sampled
	above *sampled

	score score
	id    int
	shown bool
}

// ingest reads a value, of long arrays a part of the elements.
func ingest(d *json.Decoder, most int) (*sampled, error) {
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case json.Delim:
		return ingestContainer(d, t, most)
	case string:
		v := &sampled{kind: '"'}
		for _, c := range characters(t) {
			v.add(&sampled{kind: 1, text: c})
		}
		v.total = len(v.kids)
		return v, nil
	case nil:
		return &sampled{text: "null"}, nil
	}
	return &sampled{text: fmt.Sprint(t)}, nil
}

func ingestContainer(d *json.Decoder, kind json.Delim, most int) (*sampled, error) {
	v := &sampled{kind: kind}
	for ; d.More(); v.total++ {
		key := ""
		if kind == '{' {
			t, err := d.Token()
			if err != nil {
				return nil, err
			}
			key = t.(string)
		}
		kid, err := ingest(d, most)
		if err != nil {
			return nil, err
		}
		kid.key, kid.index = key, v.total
		if kind == '{' || len(v.kids) < most && isSampled(v.total, most) {
			v.add(kid)
		}
	}
	if kind == '{' {
		slices.SortStableFunc(v.kids, func(a, b *sampled) int { return cmp.Compare(a.key, b.key) })
	}
	_, err := d.Token()
	return v, err
}

func (v *sampled) add(kid *sampled) {
	kid.above = v
	v.kids = append(v.kids, kid)
}

// isSampled chooses elements: the first, then every other one at random.
func isSampled(i, most int) bool {
	if i < 3+max(0, most-3)/2 {
		return true
	}
	x := uint64(i) ^ 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	x ^= x >> 31
	return x>>32 < 0x80000000
}

// score orders values, the lower ones first.
type score struct{ far, near int64 }

// prioritize lists the values that may be shown, the most important first.
func prioritize(root *sampled, most int) (order []*sampled) {
	root.score.near = 1
	queue := &sampleQueue{root}
	made := 1
	for queue.Len() > 0 && len(order) < max(1, most) {
		v := heap.Pop(queue).(*sampled)
		order = append(order, v)
		kids := v.kids
		if v.kind == '"' {
			kids = kids[:min(len(kids), 500)]
		}
		for i, kid := range kids {
			kid.score = score{v.score.far, v.score.near + 1}
			switch v.kind {
			case '[':
				at := int64(distance(i, len(v.kids)))
				kid.score.far += at * at * at
			case '"':
				late := int64(max(0, i-20))
				kid.score.near += int64(i) + late*late
			}
			kid.id = made
			made++
			heap.Push(queue, kid)
		}
	}
	return order
}

// distance is how far an element is from the head, the middle or the tail.
func distance(i, n int) int {
	far := func(a, b int) int { return max(a-b, b-a) }
	return min(i, n-1-i, far(i, n/2), far(i, (n-1)/2))
}

type sampleQueue []*sampled

func (q sampleQueue) Len() int { return len(q) }
func (q sampleQueue) Less(i, j int) bool {
	a, b := q[i], q[j]
	return cmp.Or(cmp.Compare(a.score.far, b.score.far), cmp.Compare(a.score.near, b.score.near), cmp.Compare(a.id, b.id)) < 0
}
func (q sampleQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *sampleQueue) Push(x any)   { *q = append(*q, x.(*sampled)) }
func (q *sampleQueue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// sampleText writes what is shown.
type sampleText struct {
	strings.Builder
	style Style
}

func (w *sampleText) value(v *sampled, indent int) {
	switch v.kind {
	case '"':
		w.str(v)
	case '{', '[':
		w.container(v, indent)
	default:
		w.WriteString(v.text)
	}
}

func (w *sampleText) str(v *sampled) {
	var text strings.Builder
	kept := 0
	for ; kept < len(v.kids) && v.kids[kept].shown; kept++ {
		text.WriteString(v.kids[kept].text)
	}
	if kept < v.total {
		text.WriteString("…")
	}
	w.WriteString(texts.JSON(text.String()))
}

func (w *sampleText) container(v *sampled, indent int) {
	end, noun := "]", "items"
	if v.kind == '{' {
		end, noun = "}", "properties"
	}
	w.WriteString(string(rune(v.kind)))
	var shown []*sampled
	for _, kid := range v.kids {
		if kid.shown {
			shown = append(shown, kid)
		}
	}
	if left := w.left(v.total, noun); len(shown) == 0 {
		if v.total > 0 && left != "" {
			w.WriteString(" " + left + " ")
		}
		w.WriteString(end)
		return
	}
	margin := "\n" + strings.Repeat("  ", indent+1)
	for i, kid := range shown {
		if gap := kid.index - shown[max(0, i-1)].index - 1; i > 0 && gap > 0 && v.kind == '[' && w.style != Strict {
			w.WriteString(margin + w.left(gap, noun))
		}
		w.WriteString(margin)
		if v.kind == '{' {
			w.WriteString(texts.JSON(kid.key) + ": ")
		}
		w.value(kid, indent+1)
		if i < len(shown)-1 {
			w.WriteString(",")
		}
	}
	if more := v.total - len(shown); more > 0 && w.style != Strict {
		w.WriteString(margin + w.left(more, noun))
	}
	w.WriteString("\n" + strings.Repeat("  ", indent) + end)
}

// left says that something is left out.
func (w *sampleText) left(n int, noun string) string {
	switch w.style {
	case Detailed:
		return fmt.Sprintf("/* %d more %s */", n, noun)
	case Dots:
		return "…"
	}
	return ""
}

// characters cuts text into what people take for one character, as far as marks and joined emoji go.
func characters(text string) (list []string) {
	joined := false
	for _, r := range text {
		const joiner = '\u200d'
		if len(list) > 0 && (joined || r == joiner || unicode.Is(unicode.M, r) || r >= 0x1f3fb && r <= 0x1f3ff) {
			list[len(list)-1] += string(r)
		} else {
			list = append(list, string(r))
		}
		joined = r == joiner
	}
	return list
}
