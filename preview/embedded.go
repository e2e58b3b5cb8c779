package preview

import "encoding/json"

// profileEmbedded profiles the document in a string of n, unless it is too long: some tools return the result of another
// tool that way. A string in that document stays a string.
func (p *profile) profileEmbedded(n *node, t *token) {
	if t.size > maxWhole {
		n.badEmbedded = true
		return
	}
	if n.embedded == nil {
		if n.embedded = p.newNode(false); n.embedded == nil {
			n.incomplete = true
			return
		}
	}
	if !json.Valid(t.text) { // it is checked first, as a profile cannot be undone
		n.badEmbedded = true
		return
	}
	below := profile{root: n.embedded, nodes: p.nodes}
	s := scanBytes(t.text)
	for k, err := s.next(); err == nil && k != tokEnd; k, err = s.next() {
		below.add(k, &s.tok)
	}
	p.nodes = below.nodes
}
