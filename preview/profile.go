package preview

import (
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth is the number of levels that are profiled; values below them are only counted.
const maxDepth = 48

// profile merges all documents of a stream into one tree of nodes.
type profile struct {
	root  *node
	nodes int
	docs  int64

	stack   []frame
	skip    int // open containers below a value that is not profiled
	scratch []byte

	embeds    bool   // documents and lines in strings are profiled
	inner     []byte // the text of a string that is profiled
	textPaths int

	invalid, lone int64 // strings with invalid UTF-8, with half a surrogate pair
	controls      int64 // strings with raw control characters
	nonFinite     int64 // NaN and Infinity
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

// newNode makes every node of the profile. It returns nil after maxNodes.
func (p *profile) newNode(secret bool) *node {
	if p.nodes == maxNodes {
		return nil
	}
	p.nodes++
	return &node{secret: secret}
}

// add profiles one token.
func (p *profile) add(k tokenKind, t *token) {
	switch {
	case p.skip > 0 && (k == tokObject || k == tokArray):
		p.skip++
	case p.skip > 0 && (k == tokObjectEnd || k == tokArrayEnd):
		p.skip--
	case p.skip > 0:
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
		if t.nonFinite {
			p.nonFinite++
		}
		n.addNumber(t, 1)
	case tokString:
		b, size := p.text(t)
		last := t.last
		if len(b) > 0 && int64(len(b)) == size {
			last = b[len(b)-1]
		}
		switch c := n.addString(b, size, last, 1); {
		case !p.embeds:
		case c == classJSON:
			p.profileEmbedded(n, t.whole())
		case c == classText && t.escaped && size > longString && !n.secret:
			p.addLines(n, t.whole())
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
		n.incomplete = true
		p.skip = 1
		return
	}
	p.stack = append(p.stack, frame{n: n, object: object})
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
	name, _ := p.text(t)
	if n.mapValue != nil {
		n.addMapKey(name)
		if !n.mapValue.secret && isSecret(string(name)) {
			n.mapValue.hide()
		}
		top.child = n.mapValue
		return
	}
	at := n.find(name, top.pos)
	if at < 0 {
		if at = p.newKey(n, string(name)); at < 0 {
			top.child = n.mapValue // nil unless the keys have just become data
			return
		}
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

// newKey adds a key to n and returns its position, or -1 if n has no room for it.
func (p *profile) newKey(n *node, name string) int {
	if len(n.keys) == maxKeys {
		p.fold(n)
		if isSecret(name) {
			n.mapValue.hide()
		}
		return -1
	}
	child := p.newNode(n.secret || isSecret(name))
	if child == nil {
		n.incomplete = true
		return -1
	}
	n.addEdge(name, child).first = n.kinds[kindObject]
	return len(n.keys) - 1
}

// text returns a string without escapes, only the beginning of a long one, and the length of the whole string in bytes.
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
	raw := t.raw()
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

// escapes maps the letter after a backslash to its character.
var escapes = [256]byte{
	'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t',
}

// unescape appends the characters of a JSON string without its quotes. Invalid bytes become U+FFFD; an escape that is
// cut at the end is left out.
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
