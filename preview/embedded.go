package preview

import "encoding/json"

// profileEmbedded profiles the document in a string of n, which is nil if it is too long: some tools return the result of
// another tool that way. A string in that document stays a string.
func (p *profile) profileEmbedded(n *node, text []byte) {
	if text == nil {
		n.badEmbedded = true
		return
	}
	if n.embedded == nil {
		if n.embedded = p.newNode(false); n.embedded == nil {
			n.incomplete = true
			return
		}
	}
	p.inner = unescape(p.inner[:0], text)
	if !json.Valid(p.inner) { // it is checked first, as a profile cannot be undone
		n.badEmbedded = true
		return
	}
	below := profile{root: n.embedded, nodes: p.nodes}
	s := scanBytes(p.inner)
	for k, err := s.next(); err == nil && k != tokEnd; k, err = s.next() {
		below.add(k, &s.tok)
	}
	p.nodes = below.nodes
}
