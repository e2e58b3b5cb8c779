package preview

// maxDepth is the number of levels that are profiled. Containers one level deeper are counted, and their contents are not read.
const maxDepth = 48

// profile merges all documents of a stream into one tree of nodes.
type profile struct {
	root  *node
	nodes int
	docs  int64

	stack []frame
	skip  int // open containers below a value that is not profiled

	embeds    bool // documents and lines in strings are profiled
	textPaths int

	odd  [numOddities]int64
	dups int64 // keys that an object has twice
}

// frame is an open container.
type frame struct {
	n      *node
	child  *node // where the next value goes
	object bool
	count  int64 // keys or elements so far
	pos    int   // where the next key is expected
}

func newProfile() *profile {
	p := &profile{stack: make([]frame, 0, maxDepth)}
	p.root = p.newNode(false)
	return p
}

// newNode makes every node of the profile. It returns nil after maxNodes.
func (p *profile) newNode(secret bool) *node {
	if p.nodes == maxNodes {
		return nil
	}
	p.nodes++
	return &node{secret: secret}
}

// add profiles one token.
func (p *profile) add(k kind, t *token) {
	if t.odd != [numOddities]bool{} {
		p.addOdd(t)
	}
	switch {
	case p.skip > 0 && (k == kindObject || k == kindArray):
		p.skip++
	case p.skip > 0 && k == tokClose:
		p.skip--
	case p.skip > 0:
	case k == tokKey:
		p.key(t)
	case k == tokClose:
		p.pop()
	default:
		p.value(k, t)
	}
	if len(p.stack) == 0 && p.skip == 0 {
		p.docs++
	}
}

func (p *profile) addOdd(t *token) {
	for o, is := range t.odd {
		if is {
			p.odd[o]++
		}
	}
}

// abort closes all open containers of a document that breaks off.
func (p *profile) abort() {
	p.skip = 0
	for len(p.stack) > 0 {
		if top := &p.stack[len(p.stack)-1]; top.object {
			top.n.broken++
		}
		p.pop()
	}
}

func (p *profile) pop() {
	top := &p.stack[len(p.stack)-1]
	if top.object {
		top.n.sizes.add(top.count)
	} else {
		top.n.lengths.add(top.count)
	}
	p.stack = p.stack[:len(p.stack)-1]
}

func (p *profile) value(k kind, t *token) {
	n := p.target()
	opens := k == kindObject || k == kindArray
	if n == nil {
		if opens {
			p.skip = 1
		}
		return
	}
	switch k {
	case kindNull:
		n.kinds[kindNull]++
	case kindBool:
		n.kinds[kindBool]++
		if t.text[0] == 't' {
			n.trues++
		}
	case kindNumber:
		n.addNumber(t, 1)
	case kindString:
		switch c := n.addString(t.begin(), t.size, t.last, 1); {
		case !p.embeds:
		case c == classJSON:
			p.profileEmbedded(n, t)
		case c == classText && t.escaped && t.size > longString && !n.secret:
			p.addLines(n, t)
		}
	default:
		p.push(n, k)
	}
}

func (p *profile) push(n *node, k kind) {
	n.kinds[k]++
	if len(p.stack) == maxDepth {
		n.incomplete = true
		p.skip = 1
		return
	}
	p.stack = append(p.stack, frame{n: n, object: k == kindObject})
}

// target is the node for the next value, nil if the value is not profiled.
func (p *profile) target() *node {
	if len(p.stack) == 0 {
		return p.root
	}
	top := &p.stack[len(p.stack)-1]
	if top.object {
		return top.child
	}
	top.count++
	if top.n.elem == nil {
		if top.n.elem = p.newNode(top.n.secret); top.n.elem == nil {
			top.n.incomplete = true
		}
	}
	return top.n.elem
}

// key counts a key of the innermost object.
func (p *profile) key(t *token) {
	top := &p.stack[len(p.stack)-1]
	n := top.n
	top.count++
	top.child = nil
	if t.cut() {
		n.longKeys++
		return
	}
	name := t.text
	at := n.find(name, top.pos)
	if at < 0 {
		at = p.newKey(n, name)
	}
	if at < 0 {
		top.child = n.mapValue // nil if there is no node left
		return
	}
	e := &n.keys[at]
	top.pos = at + 1
	top.child = e.n
	objects := n.kinds[kindObject]
	if e.last == objects {
		p.dups++
		return
	}
	e.last = objects
	e.present++
}

// newKey adds a key to n and returns its position, or -1 if n has no room for it or is a map.
func (p *profile) newKey(n *node, name []byte) int {
	secret := isSecret(string(name))
	if len(n.keys) == maxKeys {
		p.fold(n)
	}
	if n.mapValue != nil {
		n.addMapKey(name)
		if secret && !n.mapValue.secret {
			n.mapValue.hide()
		}
		return -1
	}
	child := p.newNode(n.secret || secret)
	if child == nil {
		n.incomplete = true
		return -1
	}
	n.keys = append(n.keys, edge{name: string(name), n: child, first: n.kinds[kindObject]})
	return len(n.keys) - 1
}
