package preview

import "strings"

const (
	minAlike = 80 // percent of the keys that objects of a recursion share
	maxFolds = 8  // times that a node is looked at again for keys that came back
)

// recursion is a key below which the objects above it come again: in its array, or as its value.
type recursion struct {
	name  string
	array bool
}

// foldRecursion merges what nests in itself, such as a tree of files, into where it begins.
func (p *profile) foldRecursion(n *node) {
	for again, times := true, 0; again && times < maxFolds; times++ {
		again = false
		for i := range n.keys {
			r := recursion{name: n.keys[i].name, array: n.keys[i].n.kinds[kindArray] > 0}
			if n.recurs(r) {
				p.foldKey(n, r)
				again = true
				break // the keys may be others now
			}
		}
	}
	for _, child := range n.children() {
		p.foldRecursion(child)
	}
}

// recurs reports whether a key leads to objects like n, and from those again.
func (n *node) recurs(r recursion) bool {
	once := n.step(r)
	if once == nil || !n.isLike(once) {
		return false
	}
	if n.isFolded(r.name) { // what has come back by folding another key
		return true
	}
	twice := once.step(r)
	return twice != nil && once.isLike(twice)
}

func (n *node) isFolded(name string) bool {
	for _, r := range n.recursive {
		if r.name == name {
			return true
		}
	}
	return false
}

// step returns the objects that a key leads to, nil if it leads to anything else.
func (n *node) step(r recursion) *node {
	at := n.find([]byte(r.name), 0)
	if at < 0 {
		return nil
	}
	d := n.keys[at].n
	if r.array {
		if d.mixed() || d.elem == nil || !d.elem.alone(kindObject) {
			return nil
		}
		d = d.elem
	}
	if d.kinds[kindObject] == 0 || d.mixed() || d.mapv != nil || len(d.keys) == 0 {
		return nil
	}
	return d
}

// isLike reports whether two objects share most keys.
func (n *node) isLike(o *node) bool {
	common := 0
	for i := range o.keys {
		if n.find([]byte(o.keys[i].name), 0) >= 0 {
			common++
		}
	}
	fewer := min(len(n.keys), len(o.keys))
	return common >= 2 && 100*common >= minAlike*fewer
}

// foldKey merges all levels below a key into n.
func (p *profile) foldKey(n *node, r recursion) {
	level := p.take(n, r)
	for level != nil {
		next := p.take(level, r)
		p.merge(n, level)
		level = next
	}
	if !n.isFolded(r.name) {
		n.recursive = append(n.recursive, r)
	}
}

// take cuts off what a key leads to; the key itself stays, with its types.
func (p *profile) take(n *node, r recursion) *node {
	d := n.step(r)
	if d == nil {
		return nil
	}
	holder := n.keys[n.find([]byte(r.name), 0)].n
	holder.again = true
	if r.array {
		holder.elem = nil
		return d
	}
	p.nodes++
	level := &node{secret: d.secret, keys: d.keys, index: d.index, keysMin: d.keysMin, keysMax: d.keysMax, lost: d.lost, longKeys: d.longKeys, broken: d.broken}
	level.kinds[kindObject] = d.kinds[kindObject] - d.taken
	d.taken = d.kinds[kindObject]
	level.recursive = d.recursive
	d.keys, d.index, d.lost, d.longKeys, d.broken, d.recursive = nil, nil, false, 0, 0, nil
	return level
}

// recurse spells all levels of a recursion in jq, empty if n has none.
func (n *node) recurse() string {
	var steps []string
	objects := ""
	for _, r := range n.recursive {
		step := segment(r.name)
		if r.array {
			step += "[]?"
		} else {
			objects = "|objects" // null would recurse for ever
		}
		steps = append(steps, step)
	}
	if steps == nil {
		return ""
	}
	return "recurse(" + strings.Join(steps, ",") + objects + ")"
}
