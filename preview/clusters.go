package preview

import (
	"bytes"
	"fmt"
	"strings"
)

const (
	maxClusters   = 200 // line patterns
	maxAlike      = 25  // patterns that a line is compared with
	maxTokens     = 40  // words of a line; what follows is one more
	minBegin      = 3   // bytes of what words begin with that make a pattern
	maxSlotValues = 6   // values of a slot that are listed
)

// clusters groups lines that differ in some words only (after Drain: lines of as many words, whose first constant
// word is equal, and that agree in at least half of their words).
type clusters struct {
	all    []*cluster
	index  map[string][]*cluster
	nodes  int
	words  []word
	key    []byte
	sorted []*cluster
}

type cluster struct {
	n     int64
	begin string // what the first word of all lines begins with, where no word is constant
	slots []slot
}

// slot is one word of a pattern: prefix, then a constant text, or values that vary.
type slot struct {
	prefix string
	text   string
	vary   *node // nil while the word is constant
	any    bool  // it varies, but there was no node left for it
}

// word is one word of a line. In key=value the key and the sign are the prefix.
type word struct {
	prefix, text []byte
	digits       bool // the text has digits, so it is taken to vary
}

func newClusters() *clusters { return &clusters{index: map[string][]*cluster{}} }

func (c *clusters) add(line []byte) {
	c.sorted = nil
	c.words = splitWords(c.words[:0], line)
	begin := c.setKey()
	var best *cluster
	score := 0
	for _, cl := range c.index[string(c.key)] {
		if s := cl.score(c.words); s > score {
			best, score = cl, s
		}
	}
	if 2*score < len(c.words) || best == nil {
		if len(c.all) == maxClusters || len(c.index[string(c.key)]) == maxAlike {
			return
		}
		best = &cluster{begin: begin, slots: make([]slot, len(c.words))}
		for i, w := range c.words {
			best.slots[i] = slot{prefix: string(w.prefix), text: string(w.text)}
		}
		c.all = append(c.all, best)
		c.index[string(c.key)] = append(c.index[string(c.key)], best)
	}
	c.feed(best)
}

// setKey sets the key of the group of the words: their number and the first constant one. Where there is none, it is
// what the first word begins with, which is returned.
func (c *clusters) setKey() string {
	c.key = append(c.key[:0], byte(len(c.words)))
	for _, w := range c.words {
		if !w.digits && len(w.prefix) == 0 {
			c.key = append(c.key, w.text[:min(len(w.text), maxTallyText)]...)
			return ""
		}
	}
	if len(c.words) == 0 || len(c.words[0].prefix) > 0 {
		return ""
	}
	begin := c.words[0].text
	if at := bytes.IndexAny(begin, "0123456789"); at >= 0 {
		begin = begin[:at]
	}
	begin = cutRunes(begin, maxExample)
	c.key = append(append(c.key, ' '), begin...)
	return string(begin)
}

// score counts the words that agree.
func (cl *cluster) score(words []word) (n int) {
	for i, w := range words {
		s := &cl.slots[i]
		if s.prefix != string(w.prefix) {
			continue
		}
		if s.vary != nil || s.any || len(w.prefix) > 0 || s.text == string(w.text) {
			n++
		}
	}
	return n
}

// feed counts the line and lets vary what differs.
func (c *clusters) feed(cl *cluster) {
	cl.n++
	for i := range cl.slots {
		s, w := &cl.slots[i], &c.words[i]
		if s.prefix != string(w.prefix) {
			s.prefix, s.any, s.vary = "", true, nil
		}
		if s.any || s.vary == nil && s.text == string(w.text) && !w.digits {
			continue
		}
		if s.vary == nil {
			if c.nodes == maxNodes {
				s.any = true
				continue
			}
			c.nodes++
			s.vary = &node{}
			if cl.n > 1 {
				s.vary.addWord([]byte(s.text), cl.n-1)
			}
		}
		s.vary.addWord(w.text, 1)
	}
}

// addWord counts a word of a line as a number or a string.
func (n *node) addWord(text []byte, times int64) {
	if len(text) > 0 && len(text) <= maxNumber && isJSONNumber(text) {
		n.addNumber(&token{raw: text, size: int64(len(text)), float: !isInteger(text)})
		if times > 1 {
			n.kinds[kindNumber] += times - 1
			n.ints.add(text, times-1)
		}
		return
	}
	last := byte(0)
	if len(text) > 0 {
		last = text[len(text)-1]
	}
	n.addString(text[:min(len(text), maxToken)], int64(len(text)), last)
	if times > 1 {
		n.kinds[kindString] += times - 1
		n.classes[classify(text[:min(len(text), maxToken)], int64(len(text)), last)] += times - 1
		if len(text) <= maxTallyText {
			n.addText(text, times-1)
		}
	}
}

// splitWords splits at white space outside of quotes. Values that are secret are masked.
func splitWords(words []word, line []byte) []word {
	secret := false
	for {
		line = bytes.TrimLeft(line, " \t")
		if len(line) == 0 {
			return words
		}
		end := len(line)
		if len(words) < maxTokens {
			end = wordEnd(line)
		}
		w := splitKey(line[:end])
		line = line[end:]
		if secret {
			bearer := bytes.EqualFold(w.text, []byte("bearer")) || bytes.EqualFold(w.text, []byte("basic"))
			secret = bearer
			if !bearer {
				w.text, w.digits = []byte(masked), false
			}
		} else if len(w.prefix) > 0 && isSecret(string(w.prefix)) {
			secret = len(w.text) == 0 || bytes.EqualFold(w.text, []byte("bearer"))
			w.text, w.digits = []byte(masked), false
		} else if last := w.text[max(0, len(w.text)-1):]; string(last) == ":" && isSecret(string(w.text)) {
			secret = true
		}
		words = append(words, w)
	}
}

func wordEnd(line []byte) int {
	quoted := false
	for i, c := range line {
		switch {
		case c == '"' && (quoted || i == 0 || line[i-1] == '='):
			quoted = !quoted && bytes.IndexByte(line[i+1:], '"') >= 0
		case (c == ' ' || c == '\t') && !quoted:
			return i
		}
	}
	return len(line)
}

func splitKey(b []byte) word {
	w := word{text: b}
	for i, c := range b {
		if c == '=' && i > 0 {
			w.prefix, w.text = b[:i+1], b[i+1:]
			break
		}
		if !isLetter(c) {
			break
		}
	}
	for _, c := range w.text {
		if '0' <= c && c <= '9' {
			w.digits = true
			break
		}
	}
	return w
}

// repeated returns the patterns of more than one line, the most frequent first.
func (c *clusters) repeated() []*cluster {
	if c.sorted != nil {
		return c.sorted
	}
	for _, cl := range c.all {
		if cl.n < 2 || !cl.constant() {
			continue
		}
		i := len(c.sorted)
		for i > 0 && c.sorted[i-1].n < cl.n {
			i--
		}
		c.sorted = append(c.sorted, nil)
		copy(c.sorted[i+1:], c.sorted[i:])
		c.sorted[i] = cl
	}
	return c.sorted
}

// begins reports whether the first line is like no other.
func (c *clusters) begins() bool { return c.all[0].n == 1 }

// constant reports whether something in the lines stays, without which there is no pattern.
func (cl *cluster) constant() bool {
	if len(cl.begin) >= minBegin {
		return true
	}
	for i := range cl.slots {
		if s := &cl.slots[i]; s.prefix != "" || s.vary == nil && !s.any {
			return true
		}
	}
	return false
}

// spell spells the pattern, with short words for what varies or with its values.
func (cl *cluster) spell(short bool) string {
	var b strings.Builder
	for i := range cl.slots {
		s := &cl.slots[i]
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(s.prefix)
		switch {
		case i == 0 && cl.begin != "" && (s.any || s.vary != nil && s.vary.slotText()[0] == '<'):
			b.WriteString(cl.begin + "<…>")
		case s.any:
			b.WriteString("<…>")
		case s.vary == nil:
			b.WriteString(cut(s.text, longString))
		case short:
			b.WriteString(s.vary.shortSlot())
		default:
			b.WriteString(s.vary.slotText())
		}
	}
	return b.String()
}

// shortSlot spells only what kind of thing stands in a place of a line, or its values if they are few and short.
func (n *node) shortSlot() string {
	full := n.slotText()
	c := n.class()
	switch {
	case full[0] != '<' || runes(full) <= longString/4:
		return full
	case n.kinds[kindString] == 0:
		return "<n>"
	case n.kinds[kindNumber] == 0 && c != classText:
		return "<" + classNames[c] + ">"
	}
	return "<…>"
}

// slotText spells what stands in a place of a line, without spaces of its own.
func (n *node) slotText() string {
	numbers, strs := n.kinds[kindNumber], n.kinds[kindString]
	var values []string
	if !n.ints.over && !n.strs.over {
		for _, v := range append(n.strs.byCount(), n.ints.byCount()...) {
			values = append(values, cut(v.text, maxExample))
		}
	}
	c := n.class()
	patterns := n.stringPatterns()
	switch {
	case len(values) == 1:
		return values[0]
	case len(values) > 0 && len(values) <= maxSlotValues && numbers+strs >= int64(2*len(values)):
		return "<" + strings.Join(values, "|") + ">"
	case strs == 0:
		return fmt.Sprintf("<%s..%s>", n.lo.String(), n.hi.String())
	case numbers == 0 && (c == classDate || c == classDateTime):
		return fmt.Sprintf("<%s..%s>", n.dateLo, n.dateHi)
	case numbers == 0 && len(patterns.values) > 0 && len(patterns.values) <= maxPatterns:
		var parts []string
		for _, v := range patterns.byCount() {
			parts = append(parts, strings.ReplaceAll(v.text, "\x00", "<n>"))
		}
		if len(parts) == 1 {
			return parts[0]
		}
		return "<" + strings.Join(parts, "|") + ">"
	}
	return "<" + cut(n.example, maxExample) + "|…>"
}
