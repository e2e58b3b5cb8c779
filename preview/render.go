package preview

import (
	"container/heap"
	"fmt"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

// budgetWriter holds text up to a budget of characters. It drops all text from the first that does not fit, and sets over.
type budgetWriter struct {
	text strings.Builder
	left int
	over bool
}

func (p *budgetWriter) write(s string) {
	n := utf8.RuneCountInString(s)
	if p.over || n > p.left {
		p.over = true
		return
	}
	p.left -= n
	p.text.WriteString(s)
}

func (p *budgetWriter) line(indent int, s string) {
	p.write(strings.Repeat(" ", indent))
	p.write(s)
	p.write("\n")
}

// visible reports whether anything is printed below the item.
func (it *item) visible() bool {
	return slices.ContainsFunc(it.kids, func(kid *item) bool { return kid.level > levelHidden })
}

// inlined reports whether the item's keys are written on its own line.
func (it *item) inlined() bool {
	if it.same != nil || !it.n.isSmall() {
		return false
	}
	return !slices.ContainsFunc(it.kids, func(kid *item) bool {
		return kid.level == levelValues && !kid.fitsInline() || !kid.n.isScalar() && !kid.inlined()
	})
}

// fitsInline reports whether the values of a key may stand in the line of its object.
func (it *item) fitsInline() bool {
	return !it.n.isScalar() || !it.optional && runes(it.text(levelValues)) <= maxInlineText
}

// print writes the item and its kids.
func (it *item) print(out *budgetWriter, indent int) {
	if it.table {
		it.printKids(out, indent)
		return
	}
	out.line(indent, it.seg+" "+it.line(it.level))
	if !it.inlined() && it.same == nil {
		it.printKids(out, indent+1)
	}
}

// line describes the item at a level. If it is inlined, its keys stand in place of their number.
func (it *item) line(level uint8) string {
	text := it.text(level)
	if it.inlined() {
		text = strings.Replace(text, it.n.objectText(level), it.inline(), 1)
	}
	return text
}

// row is one line below an item: a path with kids, or all paths with the same text.
type row struct {
	segs []string
	text string
	item *item // set if it has kids to print
}

func (it *item) printKids(out *budgetWriter, indent int) {
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
		out.line(indent, "… "+texts.Count(hidden, noun))
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
		text := kid.line(kid.level)
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

// upgrade raises the level of one item.
type upgrade struct {
	it    *item
	level uint8
	score float64 // per character
	order int     // of creation, to break ties
}

// upgrades is a heap, the best first.
type upgrades []upgrade

func (u upgrades) Len() int { return len(u) }
func (u upgrades) Less(i, j int) bool {
	if u[i].score != u[j].score {
		return u[i].score > u[j].score
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

// listUpgrades lists all upgrades of the tree, the best first, each item before its kids.
func listUpgrades(root *item) []upgrade {
	var queue upgrades
	var list []upgrade
	made := 0
	push := func(it *item, level uint8) {
		heap.Push(&queue, upgrade{it, level, it.score(level), made})
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

// commonKeys are the keys that filters ask for first.
var commonKeys = map[string]bool{
	"id": true, "name": true, "title": true, "state": true, "status": true, "type": true, "kind": true,
	"number": true, "login": true, "key": true, "label": true, "labels": true, "message": true, "error": true,
	"total": true, "count": true, "value": true, "date": true, "time": true, "created_at": true, "items": true,
	"results": true, "data": true, "level": true, "email": true, "path": true, "price": true, "amount": true,
}

const (
	depthFactor  = 0.7 // a level against the one above
	commonFactor = 1.6
	constantLess = 0.4
	valuesFactor = 0.5 // values against the types of keys that are still hidden
)

// score estimates how much an upgrade helps the next filter, per character.
func (it *item) score(level uint8) float64 {
	w := 1.0
	for range min(it.depth, maxDepth) {
		w *= depthFactor
	}
	if it.of > 0 {
		w *= depthFactor*float64(it.present)/float64(it.of) + 1 - depthFactor
	}
	if commonKeys[it.name] {
		w *= commonFactor
	}
	text := utf8.RuneCountInString(it.text(level))
	if level == levelTypes {
		return w / float64(utf8.RuneCountInString(it.seg)+text/2+4)
	}
	return valuesFactor * w * it.detail() / float64(text+it.depth+4)
}

// detail estimates how much values tell beyond types.
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

const maxFill = 60 // upgrades tried one by one after the first that does not fit

// renderTree prints as much of the tree as fits in budget characters. It measures the printed text, so it is exact.
func renderTree(root *item, budget int) string {
	list := listUpgrades(root)
	fits := func(k int) bool {
		setLevels(list, k)
		_, ok := printTree(root, budget)
		return ok
	}
	// fits is not quite monotonic, since paths with equal text share a line: the loop below corrects the search.
	k := sort.Search(len(list), func(k int) bool { return !fits(k + 1) })
	for k > 1 && !fits(k) {
		k--
	}
	setLevels(list, max(k, 1))
	if _, ok := printTree(root, budget); !ok && !root.table {
		return texts.Fit(fmt.Sprintf("%s %s\n", root.seg, root.text(levelTypes)), budget)
	}
	for _, u := range list[min(k, len(list)):min(k+maxFill, len(list))] {
		tryUpgrade(u, root, budget)
	}
	text, _ := printTree(root, budget)
	return text
}

// tryUpgrade applies u if the item is one level below and below a printed one, and the tree still fits.
func tryUpgrade(u upgrade, root *item, budget int) {
	before := u.it.level
	if before != u.level-1 || u.it != root && u.it.above.level == levelHidden {
		return
	}
	u.it.level = u.level
	if _, ok := printTree(root, budget); !ok {
		u.it.level = before
	}
}

// setLevels applies the first k upgrades to the hidden tree.
func setLevels(list []upgrade, k int) {
	for _, u := range list {
		u.it.level = levelHidden
	}
	for _, u := range list[:k] {
		u.it.level = u.level
	}
}

func printTree(root *item, budget int) (string, bool) {
	out := &budgetWriter{left: budget}
	root.print(out, 0)
	return out.text.String(), !out.over
}
