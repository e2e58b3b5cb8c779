package preview

import (
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth is how many levels are profiled; what lies deeper is only counted.
const maxDepth = 48

// profile merges all documents of a stream into one tree of nodes.
type profile struct {
	root  *node
	nodes int
	docs  int64

	stack   []frame
	skip    int // open containers below a value that is not profiled
	scratch []byte

	s      *scanner // what is read
	inside *inside  // reads documents in strings; nil where that is not wanted

	lines     []byte
	textPaths int

	invalid, lone int64 // strings that are not valid UTF-8, that hold half a surrogate pair
	controls      int64 // those with raw control characters
	odds          int64 // NaN and Infinity
	dups          int64
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

// newNode is the only place where nodes are made. It returns nil when there are enough.
func (p *profile) newNode(secret bool) *node {
	if p.nodes == maxNodes {
		return nil
	}
	p.nodes++
	return &node{secret: secret}
}

// add takes one token of the stream.
func (p *profile) add(k tokenKind, t *token) {
	switch {
	case p.skip > 0:
		p.pass(k)
	case k == tokKey:
		p.key(t)
	case k == tokObjectEnd || k == tokArrayEnd:
		p.pop()
	default:
		p.value(k, t)
	}
	if len(p.stack) == 0 && p.skip == 0 {
		p.docs++
	}
}

func (p *profile) pass(k tokenKind) {
	switch k {
	case tokObject, tokArray:
		p.skip++
	case tokObjectEnd, tokArrayEnd:
		p.skip--
	}
}

// abort ends all open containers of a document that is not complete.
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
		top.n.addKeys(top.count)
	} else {
		top.n.addLength(top.count)
	}
	p.stack = p.stack[:len(p.stack)-1]
}

func (p *profile) value(k tokenKind, t *token) {
	n := p.target()
	opens := k == tokObject || k == tokArray
	if n == nil {
		if opens {
			p.skip = 1
		}
		return
	}
	switch k {
	case tokNull:
		n.kinds[kindNull]++
	case tokTrue, tokFalse:
		n.addBool(k == tokTrue)
	case tokNumber:
		if t.odd {
			p.odds++
		}
		n.addNumber(t)
	case tokString:
		b, size := p.text(t)
		last := t.last
		if len(b) > 0 && int64(len(b)) == size {
			last = b[len(b)-1]
		}
		switch c := n.addString(b, size, last); {
		case c == classJSON:
			p.lookInside(n)
		case c == classText && t.escaped && size > longString && p.inside != nil && !n.secret:
			p.lookAtLines(n)
		}
	case tokObject, tokArray:
		p.push(n, k == tokObject)
	}
}

func (p *profile) push(n *node, object bool) {
	if object {
		n.kinds[kindObject]++
	} else {
		n.kinds[kindArray]++
	}
	if len(p.stack) == maxDepth {
		n.lost = true
		p.skip = 1
		return
	}
	p.stack = append(p.stack, frame{n: n, object: object})
}

// target is the node for the value that comes now, nil if it is not profiled.
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
			top.n.lost = true
		}
	}
	return top.n.elem
}

// key notes a key of the innermost object.
func (p *profile) key(t *token) {
	top := &p.stack[len(p.stack)-1]
	n := top.n
	top.count++
	top.child = nil
	if t.cut() {
		n.longKeys++
		return
	}
	name, _ := p.text(t)
	if n.mapv != nil {
		n.addMapKey(name)
		if !n.mapv.secret && isSecret(string(name)) {
			n.mapv.hide()
		}
		top.child = n.mapv
		return
	}
	at := n.find(name, top.pos)
	if at < 0 {
		if at = p.newKey(n, string(name)); at < 0 {
			top.child = n.mapv // nil unless the keys have just become data
			return
		}
	}
	e := &n.keys[at]
	top.pos = at + 1
	top.child = e.n
	objects := n.kinds[kindObject]
	if e.seen == objects {
		p.dups++
		return
	}
	e.seen = objects
	e.present++
}

// newKey adds a key to n and returns its position, or -1 when there is no room for it.
func (p *profile) newKey(n *node, name string) int {
	if len(n.keys) == maxKeys {
		p.fold(n)
		if isSecret(name) {
			n.mapv.hide()
		}
		return -1
	}
	child := p.newNode(n.secret || isSecret(name))
	if child == nil {
		n.lost = true
		return -1
	}
	n.addEdge(name, child).first = n.kinds[kindObject]
	return len(n.keys) - 1
}

// text returns a string without its escapes, its beginning if it is long, and the length of the whole in bytes.
func (p *profile) text(t *token) ([]byte, int64) {
	if t.invalid {
		p.invalid++
	}
	if t.lone {
		p.lone++
	}
	if t.control {
		p.controls++
	}
	raw := t.raw
	if t.cut() {
		raw = cutRunes(raw, len(raw)-utf8.UTFMax)
	}
	if !t.escaped && !t.invalid {
		return raw, t.size
	}
	p.scratch = unescape(p.scratch[:0], raw)
	if t.cut() {
		return p.scratch, t.size
	}
	return p.scratch, int64(len(p.scratch))
}

// escapes maps the letter behind a backslash to what it means.
var escapes = [256]byte{
	'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t',
}

// unescape appends what the inside of a JSON string means. What is not valid becomes U+FFFD; an escape that is cut
// at the end is left out.
func unescape(dst, raw []byte) []byte {
	for i := 0; i < len(raw); {
		c := raw[i]
		if c != '\\' {
			r, n := utf8.DecodeRune(raw[i:])
			dst = utf8.AppendRune(dst, r)
			i += n
			continue
		}
		if i+1 == len(raw) {
			break
		}
		if raw[i+1] != 'u' {
			dst = append(dst, escapes[raw[i+1]])
			i += 2
			continue
		}
		r, ok := hex4(raw[i:])
		if !ok {
			break
		}
		i += 6
		if utf16.IsSurrogate(r) {
			low, _ := hex4(raw[i:])
			if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
				i += 6
			}
		}
		dst = utf8.AppendRune(dst, r)
	}
	return dst
}
