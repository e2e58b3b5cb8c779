package preview

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

const (
	maxClusters   = 200 // line patterns
	maxAlike      = 25  // patterns compared with a line
	maxTokens     = 40  // words of a line; the rest is one more word
	minBegin      = 3   // bytes of a common beginning that makes a pattern
	maxSlotValues = 6   // listed values of a slot
)

// clusters groups lines that differ in some words only. As in Drain, the lines of a group have the same number of words,
// the same first constant word, and agree in at least half of their words.
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
	begin string // the common beginning of the first words, if no word is constant
	slots []slot
}

// slot is one word of a pattern: a prefix, then a constant text or values that vary.
type slot struct {
	prefix string
	text   string
	vary   *node // nil while the word is constant
	any    bool  // the prefix varies too, or there was no node left for the values
}

// word is one word of a line. In key=value the key and the sign are the prefix.
type word struct {
	prefix, text []byte
	digits       bool // the text has digits, so it probably varies
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
	c.addTo(best)
}

// setKey sets the key of the words' group: their number and the first constant word. Without a constant word, it takes
// and returns the beginning of the first word.
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

// addTo counts the line in cl. Words that differ from its pattern become slots that vary.
func (c *clusters) addTo(cl *cluster) {
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
				s.vary.addWord([]byte(s.text), int64(len(s.text)), cl.n-1)
			}
		}
		s.vary.addWord(w.text, int64(len(w.text)), 1)
	}
}

// splitWords splits a line at white space outside of quotes and masks secret values.
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
	w.digits = bytes.ContainsAny(w.text, "0123456789")
	return w
}

// repeated returns the patterns of more than one line, the most frequent first.
func (c *clusters) repeated() []*cluster {
	if c.sorted != nil {
		return c.sorted
	}
	for _, cl := range c.all {
		if cl.n > 1 && cl.constant() {
			c.sorted = append(c.sorted, cl)
		}
	}
	slices.SortStableFunc(c.sorted, func(a, b *cluster) int { return cmp.Compare(b.n, a.n) })
	return c.sorted
}

// begins reports whether no other line is like the first.
func (c *clusters) begins() bool { return c.all[0].n == 1 }

// constant reports whether the lines have anything in common; otherwise they are not a pattern.
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

// text writes the pattern, with the values that vary or with short words for them.
func (cl *cluster) text(short bool) string {
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
			b.WriteString(texts.Fit(s.text, longString))
		case short:
			b.WriteString(s.vary.shortSlot())
		default:
			b.WriteString(s.vary.slotText())
		}
	}
	return b.String()
}

// shortSlot writes the values of a slot if they are few and short, and otherwise their class.
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

// slotText writes the values, the range or an example of a slot.
func (n *node) slotText() string {
	numbers, strs := n.kinds[kindNumber], n.kinds[kindString]
	var values []string
	if !n.ints.over && !n.strs.over {
		for _, v := range append(n.strs.byCount(), n.ints.byCount()...) {
			values = append(values, texts.Fit(v.text, maxExample))
		}
	}
	c := n.class()
	switch {
	case len(values) == 1:
		return values[0]
	case len(values) > 0 && len(values) <= maxSlotValues && numbers+strs >= int64(2*len(values)):
		return "<" + strings.Join(values, "|") + ">"
	case strs == 0:
		return fmt.Sprintf("<%s..%s>", n.lo.String(), n.hi.String())
	case numbers == 0 && (c == classDate || c == classDateTime):
		return fmt.Sprintf("<%s..%s>", n.dateLo, n.dateHi)
	case numbers == 0 && len(n.patterns.values) > 0 && len(n.patterns.values) <= maxPatterns:
		var parts []string
		for _, v := range n.patterns.byCount() {
			parts = append(parts, strings.ReplaceAll(v.text, "\x00", "<n>"))
		}
		if len(parts) == 1 {
			return parts[0]
		}
		return "<" + strings.Join(parts, "|") + ">"
	}
	return "<" + texts.Fit(n.example, maxExample) + "|…>"
}
