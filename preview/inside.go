package preview

import "bytes"

// inside reads JSON documents that stand in strings, as tools return them that wrap the result of another.
type inside struct {
	s    *scanner
	src  bytes.Reader
	text []byte
}

// lookInside profiles the document in a string of n. A document in a document in a string stays a string.
func (p *profile) lookInside(n *node) {
	if p.inside == nil {
		return
	}
	text := p.s.text()
	if text == nil {
		n.badInner = true
		return
	}
	in := p.inside
	in.text = unescape(in.text[:0], text)
	if n.inner == nil {
		if n.inner = p.newNode(false); n.inner == nil {
			n.lost = true
			return
		}
	}
	if in.s == nil {
		in.s = newScanner(&in.src)
	}
	if !in.isDocument() {
		n.badInner = true
		return
	}
	below := profile{root: n.inner, nodes: p.nodes}
	in.rewind()
	for {
		k, err := in.s.next()
		if err != nil || k == tokEnd {
			break
		}
		below.add(k, &in.s.tok)
	}
	p.nodes = below.nodes
}

// isDocument reports whether the text is one valid document: what is half read would not be true of any.
func (in *inside) isDocument() bool {
	in.rewind()
	for docs := 0; ; {
		k, err := in.s.next()
		switch {
		case err != nil:
			return false
		case k == tokEnd:
			return docs == 1
		case in.s.depth == 0:
			docs++
		}
	}
}

// rewind goes back to the beginning of the text.
func (in *inside) rewind() {
	in.src.Reset(in.text)
	s := in.s
	*s = scanner{src: &in.src, buf: s.buf, spill: s.spill, stack: s.stack[:0], line: 1}
}
