package preview

import (
	"bytes"
	"strings"
)

const (
	maxTexts     = 200     // long texts of a path that are looked into
	maxTextPaths = 16      // paths whose texts are
	maxTextSize  = 8 << 10 // bytes of a text
	maxTextLines = 3       // patterns of lines that are shown
)

// texts are the lines of the first long strings of a path.
type texts struct {
	n     int64
	lines *clusters
	alike []string // the patterns of lines that many of the texts have, once all is read
	more  bool     // there are other lines
}

// lookAtLines takes the lines of a long string of n.
func (p *profile) lookAtLines(n *node) {
	if n.texts == nil {
		if p.textPaths == maxTextPaths {
			return
		}
		p.textPaths++
		n.texts = &texts{lines: newClusters()}
	}
	text := p.s.text()
	if text == nil || n.texts.n == maxTexts {
		return
	}
	n.texts.n++
	p.lines = unescape(p.lines[:0], cutRunes(text, maxTextSize))
	for line := range bytes.Lines(p.lines) {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if !isPlain(line) {
			line = []byte(clean(line))
		}
		n.texts.lines.add(line)
	}
}

// findLines chooses the patterns of lines that are worth telling, of n and of all below.
func findLines(n *node) {
	if t := n.texts; t != nil && t.n > 1 {
		for _, c := range t.lines.repeated() {
			if 3*c.n < t.n || len(t.alike) == maxTextLines {
				break
			}
			t.alike = append(t.alike, quote(cut(maskText(c.spell(true)), maxExample)))
		}
		t.more = len(t.lines.all) > len(t.alike)
	}
	for _, child := range n.children() {
		findLines(child)
	}
}

// linePatterns are the patterns of lines of long strings.
func (n *node) linePatterns() []string {
	if n.texts == nil {
		return nil
	}
	return n.texts.alike
}

// lineItem is the line below a path of texts.
func (it *item) lineItem() *item {
	seg := `|split("\n")[]`
	if it.null || !it.n.alone(kindString) {
		seg = "|strings" + seg
	}
	kid := newItem(it, seg, &node{kinds: [numKinds]int64{kindString: 1}}, false)
	text := "str like " + strings.Join(it.n.linePatterns(), "|")
	if it.n.texts.more {
		text += "|…"
	}
	kid.texts[levelTypes], kid.texts[levelValues] = text, text
	return kid
}
