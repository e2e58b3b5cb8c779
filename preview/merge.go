package preview

const mapSamples = 3 // keys of a map that are shown

// addMapKey keeps the first few keys of a map as examples.
func (n *node) addMapKey(name []byte) {
	if len(n.mapKeys) >= mapSamples {
		return
	}
	for _, k := range n.mapKeys {
		if k == string(name) {
			return
		}
	}
	n.mapKeys = append(n.mapKeys, string(name))
}

// fold makes n a map: its keys are data, and all values share one node.
func (p *profile) fold(n *node) {
	if n.mapv != nil || len(n.keys) == 0 {
		return
	}
	n.mapv = n.keys[0].n
	for i, e := range n.keys {
		n.addMapKey([]byte(e.name))
		if i > 0 {
			p.merge(n.mapv, e.n)
		}
	}
	n.keys, n.index = nil, nil
}

// merge adds all that o knows to n and gives o up. It nests no deeper than maxDepth.
func (p *profile) merge(n, o *node) {
	p.nodes--
	if o.secret && !n.secret {
		n.hide()
	}
	n.mergeArrays(o)
	n.mergeObjects(o)
	for k := range n.kinds {
		n.kinds[k] += o.kinds[k]
	}
	n.mergeScalars(o)
	n.lost = n.lost || o.lost
	n.again = n.again || o.again
	n.taken += o.taken
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
	n.badInner = n.badInner || o.badInner
	n.inner = p.mergeBelow(n.inner, o.inner)
	p.mergeKeys(n, o)
}

// mergeBelow merges nodes that need not be there.
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

// hide forgets the values of n and of all below.
func (n *node) hide() {
	n.secret = true
	n.lo, n.hi, n.example, n.dateLo, n.dateHi = extreme{}, extreme{}, "", nil, nil
	n.ints.drop()
	n.strs.drop()
	n.patterns.drop()
	n.mapKeys, n.texts, n.inner = nil, nil, nil
	for _, child := range n.children() {
		child.hide()
	}
}

// children are all nodes directly below n.
func (n *node) children() []*node {
	var all []*node
	for i := range n.keys {
		all = append(all, n.keys[i].n)
	}
	for _, below := range []*node{n.elem, n.mapv, n.inner} {
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
	n.odd += o.odd
	n.maxLen = max(n.maxLen, o.maxLen)
	for c := range n.classes {
		n.classes[c] += o.classes[c]
	}
	if n.secret {
		return
	}
	n.lo.merge(&o.lo, -1)
	n.hi.merge(&o.hi, 1)
	n.ints.merge(&o.ints)
	n.mergeTexts(o)
	if n.example == "" {
		n.example = o.example
	}
	if len(o.dateLo) > 0 {
		n.addDate(o.dateLo)
		n.addDate(o.dateHi)
	}
}

func (n *node) mergeArrays(o *node) {
	switch {
	case o.kinds[kindArray] == 0:
	case n.kinds[kindArray] == 0:
		n.lenMin, n.lenMax = o.lenMin, o.lenMax
	default:
		n.lenMin, n.lenMax = min(n.lenMin, o.lenMin), max(n.lenMax, o.lenMax)
	}
}

func (n *node) mergeObjects(o *node) {
	switch {
	case o.kinds[kindObject] == 0:
	case n.kinds[kindObject] == 0:
		n.keysMin, n.keysMax = o.keysMin, o.keysMax
	default:
		n.keysMin, n.keysMax = min(n.keysMin, o.keysMin), max(n.keysMax, o.keysMax)
	}
}

// mergeKeys moves the keys of o to n, whose objects have been counted already.
func (p *profile) mergeKeys(n, o *node) {
	if o.mapv != nil {
		p.fold(n)
		for _, k := range o.mapKeys {
			n.addMapKey([]byte(k))
		}
		p.mergeMap(n, o.mapv)
	}
	for _, e := range o.keys {
		if n.mapv == nil && len(n.keys) == maxKeys && n.find([]byte(e.name), 0) < 0 {
			p.fold(n)
		}
		if n.mapv != nil {
			n.addMapKey([]byte(e.name))
			p.mergeMap(n, e.n)
			continue
		}
		at := n.find([]byte(e.name), 0)
		if at < 0 {
			n.addEdge(e.name, e.n).present = e.present
			continue
		}
		n.keys[at].first = 0
		n.keys[at].present += e.present
		p.merge(n.keys[at].n, e.n)
	}
}

func (p *profile) mergeMap(n, value *node) {
	n.mapv = p.mergeBelow(n.mapv, value)
}
