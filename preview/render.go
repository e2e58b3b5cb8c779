package preview

import (
	"container/heap"
	"fmt"
	"sort"
	"strings"
	"unicode/utf8"
)

// page is text with a budget in characters. What does not fit is dropped, and over says so.
type page struct {
	text strings.Builder
	left int
	over bool
}

func (p *page) write(s string) {
	n := utf8.RuneCountInString(s)
	if p.over || n > p.left {
		p.over = true
		return
	}
	p.left -= n
	p.text.WriteString(s)
}

func (p *page) line(indent int, s string) {
	p.write(strings.Repeat(" ", indent))
	p.write(s)
	p.write("\n")
}

// visible reports whether anything is printed below the item.
func (it *item) visible() bool {
	for _, kid := range it.kids {
		if kid.level > levelHidden {
			return true
		}
	}
	return false
}

// inlined reports whether the item's keys stand on its own line: a few, with values that are short if any.
func (it *item) inlined() bool {
	if it.same != nil || !it.n.isSmall() {
		return false
	}
	for _, kid := range it.kids {
		if kid.level == levelValues && !kid.fitsInline() || !kid.n.isScalar() && !kid.inlined() {
			return false
		}
	}
	return true
}

// fitsInline reports whether the values of a key may stand in the line of its object.
func (it *item) fitsInline() bool {
	return !it.n.isScalar() || !it.optional && runes(it.text(levelValues)) <= maxInlineText
}

// print writes the item and what is below it.
func (it *item) print(out *page, indent int) {
	if it.table {
		it.printKids(out, indent)
		return
	}
	text := it.text(it.level)
	inlined := it.inlined()
	if inlined {
		text = it.inlineText(text)
	}
	out.line(indent, it.seg+" "+text)
	if !inlined && it.same == nil {
		it.printKids(out, indent+1)
	}
}

// inlineText puts the keys in the place of their number.
func (it *item) inlineText(text string) string {
	return strings.Replace(text, it.n.objectText(it.level), it.inline(), 1)
}

// row is one line below an item: a path with more below it, or paths that have the same to say.
type row struct {
	segs []string
	text string
	item *item // set if there is more below
}

func (it *item) printKids(out *page, indent int) {
	rows, hidden := it.rows()
	for _, r := range rows {
		switch {
		case out.over:
			return
		case r.item != nil:
			r.item.print(out, indent)
		case len(r.segs) == 1:
			out.line(indent, r.segs[0]+" "+r.text)
		default:
			out.line(indent, strings.Join(r.segs, " ")+": "+r.text)
		}
	}
	hidden += it.more
	if hidden > 0 && len(rows) > 0 {
		noun := "more key"
		if it.table {
			noun = "more column"
		}
		out.line(indent, "… "+count(int64(hidden), noun))
	}
}

func (it *item) rows() (rows []row, hidden int) {
	groups := map[string]int{}
	for _, kid := range it.kids {
		switch {
		case kid.level == levelHidden:
			hidden++
			continue
		case kid.visible() && !kid.inlined():
			rows = append(rows, row{item: kid})
			continue
		}
		text := kid.text(kid.level)
		if kid.inlined() {
			text = kid.inlineText(text)
		}
		at, ok := groups[text]
		if !ok {
			at = len(rows)
			groups[text] = at
			rows = append(rows, row{text: text})
		}
		rows[at].segs = append(rows[at].segs, kid.seg)
	}
	return rows, hidden
}

// upgrade makes one item tell more.
type upgrade struct {
	it    *item
	level uint8
	worth float64 // per character
	order int     // of creation, to break ties
}

// upgrades is a heap with the best one first.
type upgrades []upgrade

func (u upgrades) Len() int { return len(u) }
func (u upgrades) Less(i, j int) bool {
	if u[i].worth != u[j].worth {
		return u[i].worth > u[j].worth
	}
	return u[i].order < u[j].order
}
func (u upgrades) Swap(i, j int) { u[i], u[j] = u[j], u[i] }
func (u *upgrades) Push(x any)   { *u = append(*u, x.(upgrade)) }
func (u *upgrades) Pop() any {
	last := (*u)[len(*u)-1]
	*u = (*u)[:len(*u)-1]
	return last
}

// plan lists all upgrades of the tree, the best first, parents before what is below them.
func plan(root *item) []upgrade {
	var queue upgrades
	var list []upgrade
	made := 0
	push := func(it *item, level uint8) {
		heap.Push(&queue, upgrade{it, level, it.worth(level), made})
		made++
	}
	push(root, levelTypes)
	for len(queue) > 0 {
		u := heap.Pop(&queue).(upgrade)
		list = append(list, u)
		if u.level > levelTypes {
			continue
		}
		if u.it.text(levelValues) != u.it.text(levelTypes) {
			push(u.it, levelValues)
		}
		for _, kid := range u.it.kids {
			push(kid, levelTypes)
		}
	}
	return list
}

// hotNames are keys that filters ask for first.
var hotNames = map[string]bool{
	"id": true, "name": true, "title": true, "state": true, "status": true, "type": true, "kind": true,
	"number": true, "login": true, "key": true, "label": true, "labels": true, "message": true, "error": true,
	"total": true, "count": true, "value": true, "date": true, "time": true, "created_at": true, "items": true,
	"results": true, "data": true, "level": true, "email": true, "path": true, "price": true, "amount": true,
}

const (
	depthFactor  = 0.7 // worth of a level below against the one above
	hotFactor    = 1.6
	constantLess = 0.4
)

// worth estimates how much an upgrade helps the next filter, per character that it costs.
func (it *item) worth(level uint8) float64 {
	w := 1.0
	for range min(it.depth, maxDepth) {
		w *= depthFactor
	}
	if it.of > 0 {
		w *= depthFactor*float64(it.present)/float64(it.of) + 1 - depthFactor
	}
	if hotNames[it.name] {
		w *= hotFactor
	}
	text := utf8.RuneCountInString(it.text(level))
	if level == levelTypes {
		return w / float64(utf8.RuneCountInString(it.seg)+text/2+4)
	}
	return w * it.detail() / float64(text+it.depth+4)
}

// detail is what values are worth against types.
func (it *item) detail() float64 {
	n := it.n
	w := 0.15
	if len(n.strs.values) > 0 || len(n.ints.values) > 0 {
		w += 0.5
	}
	if len(n.strs.values)+len(n.ints.values) == 1 {
		w -= constantLess
	}
	if it.optional || n.kinds[kindNull] > 0 {
		w += 0.15
	}
	if c := n.class(); c == classURL || c == classUUID || c == classHex {
		w *= 0.3
	}
	return w
}

const maxFill = 60 // upgrades tried one by one once the next best does not fit

// renderTree prints as much of the tree as fits in budget characters. It measures what it prints, so it is exact.
func renderTree(root *item, budget int) string {
	list := plan(root)
	fits := func(k int) bool {
		apply(list, k)
		_, ok := printTree(root, budget)
		return ok
	}
	// fits is not quite monotonous, as rows of equal text share a line: the last step makes sure.
	k := sort.Search(len(list), func(k int) bool { return !fits(k + 1) })
	for k > 1 && !fits(k) {
		k--
	}
	apply(list, max(k, 1))
	if _, ok := printTree(root, budget); !ok && !root.table {
		return cut(fmt.Sprintf("%s %s\n", root.seg, root.text(levelTypes)), budget)
	}
	for _, u := range list[min(k, len(list)):min(k+maxFill, len(list))] {
		raise(u, root, budget)
	}
	text, _ := printTree(root, budget)
	return text
}

// raise applies u if the item is ready for it and the tree still fits.
func raise(u upgrade, root *item, budget int) {
	before := u.it.level
	if before != u.level-1 || u.it != root && !u.it.reached {
		return
	}
	u.it.setLevel(u.level)
	if _, ok := printTree(root, budget); !ok {
		u.it.setLevel(before)
	}
}

// apply sets the levels that the first k upgrades lead to.
func apply(list []upgrade, k int) {
	for _, u := range list {
		u.it.setLevel(levelHidden)
	}
	for _, u := range list[:k] {
		u.it.setLevel(u.level)
	}
}

// setLevel changes what the item tells; its kids can only be shown below an item that is.
func (it *item) setLevel(level uint8) {
	it.level = level
	for _, kid := range it.kids {
		kid.reached = level > levelHidden
	}
}

func printTree(root *item, budget int) (string, bool) {
	out := &page{left: budget}
	root.print(out, 0)
	return out.text.String(), !out.over
}
