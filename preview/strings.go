package preview

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

const (
	maxTexts     = 200     // long texts of a path that are read
	maxTextPaths = 16      // paths with texts that are read
	maxTextSize  = 8 << 10 // bytes read of a text
	maxTextLines = 3       // printed patterns of lines
	maxFirst     = 10      // printed lines of one text
	maxFirstLine = 160     // characters of each
)

// longTexts holds the lines of the first long strings of a path.
type longTexts struct {
	n     int64
	lines *clusters
	first []string // the first lines of the first text
}

// addLines adds the lines of a long string of n, unless it is too long.
func (p *profile) addLines(n *node, t *token) {
	if n.texts == nil {
		if p.textPaths == maxTextPaths {
			return
		}
		p.textPaths++
		n.texts = &longTexts{lines: newClusters()}
	}
	if t.size > maxWhole || n.texts.n == maxTexts {
		return
	}
	n.texts.n++
	text := cutRunes(t.text, maxTextSize)
	if n.texts.n == 1 {
		n.texts.first = firstLines(text)
	}
	for line := range bytes.Lines(text) {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if !isPlain(line) {
			line = []byte(clean(line))
		}
		n.texts.lines.add(line)
	}
}

// firstLines returns the first lines of a text, nil if it has only one.
func firstLines(text []byte) (lines []string) {
	for line := range bytes.Lines(text) {
		if len(lines) == maxFirst {
			break
		}
		lines = append(lines, "| "+texts.Fit(maskText(clean(bytes.TrimRight(line, "\r\n"))), maxFirstLine))
	}
	if len(lines) < 2 {
		return nil
	}
	return lines
}

// textLines prints the first lines of one text, if they fit; the text is from the first path that has texts.
func (it *item) textLines(room int) string {
	t := it.n.texts
	if it.level == levelHidden || it.n.secret {
		return ""
	}
	if t != nil && len(t.first) > 0 {
		head := "sample lines of " + it.path + ":\n"
		kept := takeLines(t.first, room-runes(head), maxFirstLine+len("| "))
		if len(kept) < 2 {
			return ""
		}
		return head + strings.Join(kept, "\n") + "\n"
	}
	for _, kid := range it.kids {
		if text := kid.textLines(room); text != "" {
			return text
		}
	}
	return ""
}

// linePatterns returns the patterns of lines worth printing: many lines of the texts have them.
func (n *node) linePatterns() (alike []string) {
	t := n.texts
	if t == nil || t.n < 2 {
		return nil
	}
	for _, c := range t.lines.repeated() {
		if 3*c.n < t.n || len(alike) == maxTextLines {
			break
		}
		like := quote(texts.Fit(maskText(c.text(true)), maxExample))
		if t.n == n.kinds[kindString] && n.maxLen <= maxTextSize { // all lines were counted
			like += fmt.Sprintf("×%d", c.n)
		}
		alike = append(alike, like)
	}
	return alike
}

// lineItem makes the item for the lines of texts.
func (it *item) lineItem() *item {
	seg := `|split("\n")[]`
	if it.null || !it.n.alone(kindString) {
		seg = "|strings" + seg
	}
	kid := newItem(it, seg, &node{kinds: [numKinds]int64{kindString: 1}}, false)
	alike := it.n.linePatterns()
	text := "str like " + strings.Join(alike, "|")
	if len(it.n.texts.lines.all) > len(alike) {
		text += "|…"
	}
	kid.texts[levelTypes], kid.texts[levelValues] = text, text
	return kid
}

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
