package preview

import (
	"fmt"
	"slices"
	"strings"
)

const (
	maxInline      = 4   // keys of an object written on one line
	maxInlineDepth = 3   // nested objects there
	maxInlineWidth = 120 // characters there, about
	maxInlineText  = 20  // characters of a value there
	maxChain       = 6   // nested arrays that share a line
)

// item is one path of the tree to print.
type item struct {
	seg     string // the jq path relative to the parent
	path    string // the jq path from the root of a document
	name    string // the key, empty for elements
	n       *node  // the values at the path
	lengths string // length ranges of the arrays on the path
	above   *item  // nil for the root
	depth   int
	kids    []*item
	same    *item // the item with the same shape that is printed in full

	table       bool // only the kids are printed: columns
	more        int  // columns beyond maxColumns
	optional    bool
	null        bool // the path may lead to null, also because a key above is missing
	present, of int64
	first       int64

	level uint8
	texts [levelValues + 1]string
}

// itemTree makes the items of a profile.
type itemTree struct {
	root    *item
	shapes  map[string]int     // the number of a shape by its description
	number  map[*node]int      // the number of a node's shape
	iter    map[*node]bool     // results of iterates
	printed map[shapeKey]*item // the items printed in full
}

// shapeKey is equal for items that print alike: the shape, and whether jq must expect null on the path.
type shapeKey struct {
	shape int
	null  bool
}

func newItemTree(root *node) *itemTree {
	t := &itemTree{shapes: map[string]int{}, number: map[*node]int{}, iter: map[*node]bool{}, printed: map[shapeKey]*item{}}
	t.root = newItem(nil, ".", root, false)
	// Breadth first, so the item nearest to the root is the one printed in full.
	for queue := []*item{t.root}; len(queue) > 0; queue = queue[1:] {
		it := queue[0]
		if it.same = t.printedAs(it); it.same == nil {
			it.addKids()
		}
		queue = append(queue, it.kids...)
	}
	return t
}

// newItem makes the item of n at seg below parent, and joins arrays that hold only arrays. guard means that n may be
// missing below parent.
func newItem(parent *item, seg string, n *node, guard bool) *item {
	it := &item{above: parent, null: guard}
	if parent != nil {
		it.depth = parent.depth + 1
		it.null = guard || parent.null && seg[0] == '.'
	}
	guard = guard || it.null && n.alone(kindArray) // null cannot be iterated
	for range maxChain {
		if !n.alone(kindArray) || n.elem.total() == 0 {
			break
		}
		it.lengths += "[" + n.lengths.String() + "]"
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
	it.seg, it.n, it.path = seg, n, seg
	if parent != nil && parent.path != "." {
		it.path = parent.path + seg
	} else if parent != nil && !strings.HasPrefix(seg, ".") {
		it.path = "." + seg
	}
	return it
}

func (it *item) addKids() {
	n := it.n
	mark := ""
	if n.kinds[kindBool]+n.kinds[kindNumber]+n.kinds[kindString]+n.kinds[kindArray] > 0 {
		mark = "?" // jq cannot index the other values
	}
	for i := range n.keys {
		it.addKey(&n.keys[i], mark)
	}
	if n.mapValue.total() > 0 {
		it.kids = append(it.kids, newItem(it, it.elements(kindObject), n.mapValue, false))
	}
	if n.elem.total() > 0 {
		it.kids = append(it.kids, newItem(it, it.elements(kindArray), n.elem, false))
	}
	if n.embedded.total() > 0 {
		it.kids = append(it.kids, newItem(it, it.fromJSON(), n.embedded, false))
	}
	if n.linePatterns() != nil {
		it.kids = append(it.kids, it.lineItem())
	}
}

// fromJSON is the jq path to the documents in strings.
func (it *item) fromJSON() string {
	seg := "|fromjson"
	if it.null || !it.n.alone(kindString) {
		seg = "|strings" + seg
	}
	if it.n.classes[classJSON] < it.n.kinds[kindString] || it.n.badEmbedded {
		seg += "?"
	}
	return seg
}

// elements is the jq path to all values in the containers of kind k. .[] iterates over arrays and objects, so a path to
// both must choose; it fails on all other values, null included.
func (it *item) elements(k kind) string {
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

// printedAs returns the item that already prints the shape of it, nil if there is none.
func (t *itemTree) printedAs(it *item) *item {
	if len(it.n.keys) <= 1 || it.n.isSmall() {
		return nil
	}
	key := shapeKey{t.shape(it.n), it.null && t.iterates(it.n)}
	if at := t.printed[key]; at != nil {
		return at
	}
	t.printed[key] = it
	return nil
}

// iterates reports whether a path of keys leads from n to elements. jq fails on the elements of null, but gives null for
// a key of null.
func (t *itemTree) iterates(n *node) bool {
	if n.kinds[kindArray] > 0 || n.mapValue != nil || n.embedded != nil || n.linePatterns() != nil {
		return true
	}
	found, known := t.iter[n]
	for i := 0; !known && !found && i < len(n.keys); i++ {
		found = t.iterates(n.keys[i].n)
	}
	t.iter[n] = found
	return found
}

// shape returns a number for the names, types and optional keys below n; equal shapes have equal numbers. The recursion
// goes at most to maxDepth.
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
	slices.Sort(keys) // the order of keys does not matter
	fmt.Fprint(&b, keys, n.recurses, n.recurse(), n.linePatterns())
	for _, below := range []*node{n.elem, n.mapValue, n.embedded} {
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

// isScalar reports whether n has no values below it.
func (n *node) isScalar() bool {
	return n.kinds[kindArray] == 0 && n.kinds[kindObject] == 0 && n.embedded == nil
}

// isSmall reports whether n is an object, or null, with a few keys of scalars or of small objects.
func (n *node) isSmall() bool {
	width, ok := n.inlineWidth(maxInlineDepth)
	return ok && width <= maxInlineWidth
}

// inlineWidth estimates the width of n on one line, and reports whether n may be written so.
func (n *node) inlineWidth(depth int) (width int, ok bool) {
	if depth == 0 || n.recursive != nil || n.recurses || n.kinds[kindObject] == 0 || n.mixed() || n.mapValue != nil || len(n.keys) > maxInline || len(n.keys) == 0 ||
		n.incomplete || n.longKeys > 0 {
		return 0, false
	}
	for i := range n.keys {
		e := &n.keys[i]
		below, ok := 6, true // about the width of a type
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

// inline writes a small object on one line.
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
		parts[i] = name + ":" + kid.line(max(kid.level, levelTypes))
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// text describes the item at a level.
func (it *item) text(level uint8) string {
	if it.texts[level] == "" {
		it.texts[level] = it.annotate(level)
	}
	return it.texts[level]
}

func (it *item) annotate(level uint8) string {
	text := it.n.types(level)
	if it.lengths != "" {
		text = it.lengths + " " + text
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

// lateRecord is the last record that may have a field first without a remark.
const lateRecord = 100
