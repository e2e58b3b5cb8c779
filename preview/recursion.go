package preview

import (
	"slices"
	"strings"
)

const (
	minAlike = 80 // percent of their keys that objects of a recursion share
	maxFolds = 8  // folds of one node: a fold can bring folded keys back
)

// recursion is a key whose array or value holds objects like the one that has the key.
type recursion struct {
	name  string
	array bool
}

// foldRecursion merges all levels of objects that nest in themselves, such as a tree of files, into the first level.
func (p *profile) foldRecursion(n *node) {
	for again, times := true, 0; again && times < maxFolds; times++ {
		again = false
		for i := range n.keys {
			r := recursion{name: n.keys[i].name, array: n.keys[i].n.kinds[kindArray] > 0}
			if n.recurs(r) {
				p.foldKey(n, r)
				again = true
				break // the fold has changed n.keys
			}
		}
	}
	for _, child := range n.children() {
		p.foldRecursion(child)
	}
}

// recurs reports whether a key leads to objects like n, and leads from those to further ones.
func (n *node) recurs(r recursion) bool {
	once := n.objectsAt(r)
	if once == nil || !n.isLike(once) {
		return false
	}
	if n.isFolded(r.name) { // the fold of another key has brought it back
		return true
	}
	twice := once.objectsAt(r)
	return twice != nil && once.isLike(twice)
}

func (n *node) isFolded(name string) bool {
	return slices.ContainsFunc(n.recursive, func(r recursion) bool { return r.name == name })
}

// objectsAt returns the objects that a key leads to, nil if it leads to other values too.
func (n *node) objectsAt(r recursion) *node {
	d := n.child(r.name)
	if d != nil && r.array {
		if d.mixed() || d.elem == nil || !d.elem.alone(kindObject) {
			return nil
		}
		d = d.elem
	}
	if d == nil || d.kinds[kindObject] == 0 || d.mixed() || d.mapValue != nil || len(d.keys) == 0 {
		return nil
	}
	return d
}

// isLike reports whether two objects share most keys.
func (n *node) isLike(o *node) bool {
	common := 0
	for i := range o.keys {
		if n.child(o.keys[i].name) != nil {
			common++
		}
	}
	fewer := min(len(n.keys), len(o.keys))
	return common >= 2 && 100*common >= minAlike*fewer
}

// foldKey merges all levels below a key into n.
func (p *profile) foldKey(n *node, r recursion) {
	level := p.detach(n, r)
	for level != nil {
		next := p.detach(level, r)
		p.merge(n, level)
		level = next
	}
	if !n.isFolded(r.name) {
		n.recursive = append(n.recursive, r)
	}
}

// detach removes the objects that a key leads to and returns them; the key stays, with its types.
func (p *profile) detach(n *node, r recursion) *node {
	d := n.objectsAt(r)
	if d == nil {
		return nil
	}
	holder := n.child(r.name)
	holder.recurses = true
	if r.array {
		holder.elem = nil
		return d
	}
	p.nodes++
	level := *d // which has objects and null only
	level.kinds = [numKinds]int64{kindObject: d.kinds[kindObject] - d.movedOut}
	level.recurses, level.movedOut = false, 0
	*d = node{kinds: d.kinds, secret: d.secret, recurses: true, movedOut: d.kinds[kindObject]}
	return &level
}

// recurse returns the jq expression for all levels of a recursion, "" if n has none.
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
