package preview

import (
	"slices"
	"strings"
)

const (
	minMapKeys    = 12 // keys of the smallest map
	minSparseKeys = 24 // keys of the smallest map that is recognized because its objects share few keys
)

// foldMaps turns the objects at and below n whose keys look like data into maps.
func (p *profile) foldMaps(n *node) {
	if n.looksLikeMap() {
		p.fold(n)
	}
	for _, child := range n.children() {
		p.foldMaps(child)
	}
}

// looksLikeMap reports whether n has many keys and values of one kind, and most keys look like data or occur in few of
// the objects.
func (n *node) looksLikeMap() bool {
	if len(n.keys) < minMapKeys {
		return false
	}
	kinds := map[uint]bool{}
	data, present := 0, int64(0)
	for i := range n.keys {
		e := &n.keys[i]
		if looksLikeData(e.name) {
			data++
		}
		present += e.present
		if mask := e.n.kindMask(); mask != 0 {
			kinds[mask] = true
		}
	}
	if len(kinds) > 2 {
		return false
	}
	sparse := len(n.keys) >= minSparseKeys && 5*present < n.kinds[kindObject]*int64(len(n.keys))
	return sparse || 10*data >= 7*len(n.keys)
}

// kindMask has a bit for every kind of value other than null.
func (n *node) kindMask() (mask uint) {
	for k := kindBool; k < numKinds; k++ {
		if n.kinds[k] > 0 {
			mask |= 1 << k
		}
	}
	return mask
}

// looksLikeData reports whether a key looks like an identifier or an address and not like a field's name.
func looksLikeData(key string) bool {
	return len(key) > 40 || strings.ContainsAny(key, "0123456789@/ ")
}

const mapSamples = 3 // keys of a map that are printed

// addMapKey keeps the first few keys of a map as examples.
func (n *node) addMapKey(name []byte) {
	if len(n.mapKeys) < mapSamples && !slices.Contains(n.mapKeys, string(name)) {
		n.mapKeys = append(n.mapKeys, string(name))
	}
}

// fold makes n a map: its keys are data, and all values share one node.
func (p *profile) fold(n *node) {
	if n.mapValue != nil || len(n.keys) == 0 {
		return
	}
	for _, e := range n.keys {
		n.addMapKey([]byte(e.name))
		n.mapValue = p.mergeBelow(n.mapValue, e.n)
	}
	n.keys = nil
}

// merge adds o to n; o must not be used again. The recursion is at most as deep as maxDepth.
func (p *profile) merge(n, o *node) {
	p.nodes--
	if o.secret && !n.secret {
		n.hide()
	}
	n.lengths.merge(o.lengths)
	n.sizes.merge(o.sizes)
	for k := range n.kinds {
		n.kinds[k] += o.kinds[k]
	}
	n.mergeScalars(o)
	n.incomplete = n.incomplete || o.incomplete
	n.recurses = n.recurses || o.recurses
	n.movedOut += o.movedOut
	for _, r := range o.recursive {
		if !n.isFolded(r.name) {
			n.recursive = append(n.recursive, r)
		}
	}
	n.longKeys += o.longKeys
	n.broken += o.broken
	n.elem = p.mergeBelow(n.elem, o.elem)
	if n.texts == nil {
		n.texts = o.texts
	}
	n.badEmbedded = n.badEmbedded || o.badEmbedded
	n.embedded = p.mergeBelow(n.embedded, o.embedded)
	p.mergeKeys(n, o)
}

// mergeBelow merges two nodes, of which either may be nil.
func (p *profile) mergeBelow(n, o *node) *node {
	switch {
	case o == nil:
		return n
	case n == nil:
		return o
	}
	p.merge(n, o)
	return n
}

// hide forgets the values of n and of all nodes below.
func (n *node) hide() {
	n.secret = true
	n.lo, n.hi, n.example, n.dateLo, n.dateHi = number{}, number{}, "", nil, nil
	n.ints.drop()
	n.strs.drop()
	n.patterns.drop()
	n.mapKeys, n.texts, n.embedded = nil, nil, nil
	for _, child := range n.children() {
		child.hide()
	}
}

// children returns the nodes directly below n.
func (n *node) children() []*node {
	var all []*node
	for i := range n.keys {
		all = append(all, n.keys[i].n)
	}
	for _, below := range []*node{n.elem, n.mapValue, n.embedded} {
		if below != nil {
			all = append(all, below)
		}
	}
	return all
}

func (n *node) mergeScalars(o *node) {
	n.trues += o.trues
	n.floats += o.floats
	n.huge += o.huge
	n.nonFinite += o.nonFinite
	n.maxLen = max(n.maxLen, o.maxLen)
	for c := range n.classes {
		n.classes[c] += o.classes[c]
	}
	if n.secret {
		return
	}
	n.lo.keep(&o.lo, -1)
	n.hi.keep(&o.hi, 1)
	n.ints.merge(&o.ints)
	n.strs.merge(&o.strs)
	n.patterns.merge(&o.patterns)
	if n.example == "" {
		n.example = o.example
	}
	if len(o.dateLo) > 0 {
		n.addDate(o.dateLo)
		n.addDate(o.dateHi)
	}
}

// mergeKeys moves the keys of o to n, which already counts the objects of both.
func (p *profile) mergeKeys(n, o *node) {
	if o.mapValue != nil {
		p.fold(n)
		for _, k := range o.mapKeys {
			n.addMapKey([]byte(k))
		}
		n.mapValue = p.mergeBelow(n.mapValue, o.mapValue)
	}
	for _, e := range o.keys {
		at := n.find([]byte(e.name), 0)
		if at < 0 && len(n.keys) == maxKeys {
			p.fold(n)
		}
		switch {
		case n.mapValue != nil:
			n.addMapKey([]byte(e.name))
			p.merge(n.mapValue, e.n)
		case at < 0:
			n.keys = append(n.keys, edge{name: e.name, n: e.n, present: e.present})
		default:
			n.keys[at].first = 0
			n.keys[at].present += e.present
			p.merge(n.keys[at].n, e.n)
		}
	}
}
