package preview

import (
	"fmt"
	"slices"
	"strings"
)

const (
	maxInline      = 4   // keys of an object that may be written on one line
	maxInlineDepth = 3   // objects inside of objects there
	maxInlineWidth = 120 // characters of all, about
	maxInlineText  = 20  // characters of values there
	maxChain       = 6   // arrays inside of arrays that share a line
)

// item is one path of the tree as it may be printed.
type item struct {
	seg   string // jq spelling relative to the parent
	path  string // jq spelling from the root of a document
	name  string // the key, empty for elements
	n     *node  // what the path leads to
	lens  string // length ranges of the arrays that the path goes through
	depth int
	kids  []*item
	same  *item // has the same shape, and is printed in full

	table       bool // only the kids are printed: columns
	more        int  // columns that are not kept
	optional    bool
	null        bool // the path may lead to null, be it because something above is missing
	present, of int64
	first       int64

	level   uint8
	reached bool // the item above is printed
	texts   [levelValues + 1]string
}

// itemTree makes the items of a profile.
type itemTree struct {
	root   *item
	shapes map[string]int // the signature of a shape to its number
	number map[*node]int  // the number of a node's shape
	iter   map[*node]bool // whether null above a node matters below it
	homes  map[home]*item // where the shape is printed
}

// home is what equal subtrees have in common: their shape, and whether jq must expect null on the way to them.
type home struct {
	shape int
	null  bool
}

func newItemTree(root *node) *itemTree {
	t := &itemTree{shapes: map[string]int{}, number: map[*node]int{}, iter: map[*node]bool{}, homes: map[home]*item{}}
	t.root = newItem(&item{depth: -1}, ".", root, false)
	t.root.path = t.root.seg
	// Breadth first, so that a shape is printed where it is nearest to the root.
	for queue := []*item{t.root}; len(queue) > 0; queue = queue[1:] {
		it := queue[0]
		if it.same = t.home(it); it.same == nil {
			it.addKids()
		}
		queue = append(queue, it.kids...)
	}
	return t
}

// newItem makes the item of n, which parent reaches by seg, and walks through arrays that hold nothing but arrays.
// If guard is set, n may be missing below parent.
func newItem(parent *item, seg string, n *node, guard bool) *item {
	it := &item{depth: parent.depth + 1}
	it.null = guard || parent.null && seg[0] == '.'
	guard = guard || it.null && n.alone(kindArray) // null cannot be iterated
	for range maxChain {
		if n.kinds[kindArray] == 0 || !n.alone(kindArray) || n.elem == nil || n.elem.total() == 0 {
			break
		}
		it.lens += "[" + span(n.lenMin, n.lenMax) + "]"
		seg += "[]"
		if guard {
			seg, guard = seg+"?", false
		}
		n, it.null = n.elem, false
	}
	if guard && !strings.HasSuffix(seg, "?") {
		seg += "?"
	}
	if r := n.recurse(); r != "" {
		seg = strings.TrimPrefix(seg+"|"+r, ".|")
	}
	it.null = it.null || n.kinds[kindNull] > 0
	it.seg, it.n, it.path = seg, n, join(parent.path, seg)
	return it
}

func (it *item) addKids() {
	n := it.n
	scalars := n.kinds[kindBool] + n.kinds[kindNumber] + n.kinds[kindString]
	if n.kinds[kindObject] > 0 {
		mark := ""
		if scalars+n.kinds[kindArray] > 0 {
			mark = "?" // jq cannot index the other values
		}
		for i := range n.keys {
			it.addKey(&n.keys[i], mark)
		}
		if n.mapv != nil && n.mapv.total() > 0 {
			it.kids = append(it.kids, newItem(it, it.elements(kindObject), n.mapv, false))
		}
	}
	if n.kinds[kindArray] > 0 && n.elem != nil && n.elem.total() > 0 {
		it.kids = append(it.kids, newItem(it, it.elements(kindArray), n.elem, false))
	}
	if n.inner != nil && n.inner.total() > 0 {
		it.kids = append(it.kids, newItem(it, it.fromJSON(), n.inner, false))
	}
	if n.linePatterns() != nil {
		it.kids = append(it.kids, it.lineItem())
	}
}

// fromJSON is the jq spelling of the documents in strings.
func (it *item) fromJSON() string {
	seg := "|fromjson"
	if it.null || !it.n.alone(kindString) {
		seg = "|strings" + seg
	}
	if it.n.classes[classJSON] < it.n.kinds[kindString] || it.n.badInner {
		seg += "?"
	}
	return seg
}

// elements is the jq spelling of all that is in the containers of kind k. .[] iterates over both arrays and objects,
// so that a path with both needs to choose, and fails on all else, null included.
func (it *item) elements(k valueKind) string {
	n := it.n
	switch {
	case n.alone(k) && !it.null:
		return "[]"
	case n.kinds[kindArray] == 0 || n.kinds[kindObject] == 0:
		return "[]?"
	case k == kindArray:
		return "|arrays[]"
	}
	return "|objects[]"
}

func (it *item) addKey(e *edge, mark string) {
	if e.n.total() == 0 {
		return
	}
	optional := e.present < it.n.kinds[kindObject]-it.n.broken
	kid := newItem(it, segment(e.name)+mark, e.n, optional)
	kid.name, kid.optional, kid.present, kid.of, kid.first = e.name, optional, e.present, it.n.kinds[kindObject], e.first
	it.kids = append(it.kids, kid)
}

// home returns the item that prints the shape of it, nil if it does so itself.
func (t *itemTree) home(it *item) *item {
	if len(it.n.keys) <= 1 || it.n.isSmall() {
		return nil
	}
	key := home{t.shape(it.n), it.null && t.iterates(it.n)}
	if at := t.homes[key]; at != nil {
		return at
	}
	t.homes[key] = it
	return nil
}

// iterates reports whether elements are reached from n by keys alone: null on the way to them is an error in jq, where
// a key of null is null.
func (t *itemTree) iterates(n *node) bool {
	if n.kinds[kindArray] > 0 || n.mapv != nil || n.inner != nil || n.linePatterns() != nil {
		return true
	}
	found, known := t.iter[n]
	for i := 0; !known && !found && i < len(n.keys); i++ {
		found = t.iterates(n.keys[i].n)
	}
	t.iter[n] = found
	return found
}

// shape numbers what can be below n: names, types, optional keys. It nests no deeper than maxDepth.
func (t *itemTree) shape(n *node) int {
	if id, ok := t.number[n]; ok {
		return id
	}
	var b strings.Builder
	for k := kindBool; k < numKinds; k++ {
		fmt.Fprint(&b, n.kinds[k] > 0, " ")
	}
	keys := make([]string, len(n.keys))
	for i := range n.keys {
		e := &n.keys[i]
		null := e.n.kinds[kindNull] > 0
		keys[i] = fmt.Sprint(quote(e.name), e.present < n.kinds[kindObject]-n.broken, null, t.shape(e.n))
	}
	slices.Sort(keys) // which key came first says nothing
	fmt.Fprint(&b, keys, n.again, n.recurse(), n.linePatterns())
	for _, below := range []*node{n.elem, n.mapv, n.inner} {
		if below != nil {
			fmt.Fprint(&b, below.kinds[kindNull] > 0, t.shape(below), " ")
		}
		b.WriteByte(';')
	}
	id, ok := t.shapes[b.String()]
	if !ok {
		id = len(t.shapes)
		t.shapes[b.String()] = id
	}
	t.number[n] = id
	return id
}

// isScalar reports whether nothing lies below n.
func (n *node) isScalar() bool {
	return n.kinds[kindArray] == 0 && n.kinds[kindObject] == 0 && n.inner == nil
}

// isSmall reports whether n is an object, or null, with a few keys of scalars or of such objects.
func (n *node) isSmall() bool {
	width, ok := n.inlineWidth(maxInlineDepth)
	return ok && width <= maxInlineWidth
}

// inlineWidth estimates how long n is on one line, and reports whether it may be there.
func (n *node) inlineWidth(depth int) (width int, ok bool) {
	if depth == 0 || n.recursive != nil || n.again || n.kinds[kindObject] == 0 || n.mixed() || n.mapv != nil || len(n.keys) > maxInline || len(n.keys) == 0 ||
		n.lost || n.longKeys > 0 {
		return 0, false
	}
	for i := range n.keys {
		e := &n.keys[i]
		below, ok := 6, true // about the length of a type
		if !e.n.isScalar() {
			below, ok = e.n.inlineWidth(depth - 1)
		}
		if !ok || e.n.total() == 0 || len(e.name) > maxExample {
			return 0, false
		}
		width += len(e.name) + below + 3
	}
	return width, true
}

// inline spells a small object on one line.
func (it *item) inline() string {
	parts := make([]string, len(it.kids))
	for i, kid := range it.kids {
		name := kid.name
		if !isName(name) {
			name = quote(name)
		}
		if kid.optional {
			name += "?"
		}
		text := kid.text(max(kid.level, levelTypes))
		if kid.n.kinds[kindObject] > 0 {
			text = kid.inlineText(text)
		}
		parts[i] = name + ":" + text
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// text is what is said about the item at a level.
func (it *item) text(level uint8) string {
	if it.texts[level] == "" {
		it.texts[level] = it.annotate(level)
	}
	return it.texts[level]
}

func (it *item) annotate(level uint8) string {
	text := it.n.types(level)
	if it.lens != "" {
		text = it.lens + " " + text
	}
	if it.same != nil {
		text += " as " + it.same.path
	}
	if it.optional && level == levelValues {
		text += fmt.Sprintf(" in %d/%d", it.present, it.of)
		if it.first > lateRecord {
			text += fmt.Sprintf(" first@%d", it.first)
		}
	}
	return text
}

// lateRecord is the record from which on a field that begins later is worth saying so.
const lateRecord = 100
