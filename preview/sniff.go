package preview

import (
	"bytes"
	"errors"
	"strings"
)

const (
	sniffBytes  = 64 << 10 // bytes that decide the format
	prefixLines = 8        // lines of text before JSON, at most
)

// begins are the first bytes of documents: at the beginning of the data, and after lines of text.
var begins = [2]string{"{[\"-0123456789tfn\n\x1e", "{["}

// sniffJSON looks for JSON documents near the beginning of the data. It returns their offset and the number of lines of
// text before them.
func sniffJSON(head []byte, whole bool) (at int, lines int64, ok bool) {
	if len(head) > sniffBytes {
		head, whole = head[:sniffBytes], false
	}
	for ; lines <= prefixLines; lines++ {
		rest := bytes.TrimLeft(head[at:], " \t\r")
		if len(rest) > 0 && strings.IndexByte(begins[min(lines, 1)], rest[0]) >= 0 && isJSON(head[at:], whole) {
			return at, lines, true
		}
		n := bytes.IndexByte(head[at:], '\n')
		if n < 0 {
			break
		}
		at += n + 1
	}
	return 0, 0, false
}

// isJSON guesses whether b is JSON: it holds at least as many documents as other lines.
func isJSON(b []byte, whole bool) bool {
	g := guess{s: scanBytes(b)}
	g.s.lenient, g.s.seq = true, len(b) > 0 && b[0] == 0x1e
	for g.document() {
	}
	if g.cut && (!whole || g.proof) {
		g.good++
	}
	return g.good > 0 && g.good >= g.bad
}

// guess counts documents and other lines.
type guess struct {
	s         *scanner
	good, bad int
	proof     bool // the current document has a token with which text hardly begins
	cut       bool // the current document goes on after the end of the data
}

// document reads one document and reports whether more may follow.
func (g *guess) document() bool {
	g.proof = false
	var began int64
	for first := true; ; first = false {
		k, err := g.s.next()
		if first {
			began = g.s.line
		}
		if e, ok := errors.AsType[*syntaxError](err); ok {
			return g.failed(e, began)
		}
		if k == tokEnd {
			return false
		}
		// Lines of logs begin with [INFO] or [12:30:01], but not with strings or containers in containers.
		g.proof = g.proof || !first && g.proves(k)
		if g.s.depth == 0 {
			return g.complete(!g.proof)
		}
	}
}

func (g *guess) proves(k kind) bool {
	switch k {
	case tokKey, tokClose:
		return false
	case kindNumber:
		return g.s.depth > 0 && g.s.inObject()
	}
	return true
}

func (g *guess) failed(e *syntaxError, began int64) bool {
	if e.end {
		g.cut = true
		return false
	}
	if g.good > 0 && strings.HasSuffix(e.msg, "'`'") { // the end of a fence: text follows
		return false
	}
	if g.proof {
		g.good++
	} else {
		g.bad++
	}
	return e.line == began && g.s.resync()
}

// complete counts a whole document. A weak one, such as a number or a word, must end its line.
func (g *guess) complete(weak bool) bool {
	if weak {
		g.s.ensure(1)
		rest := bytes.TrimLeft(g.s.buf[g.s.r:g.s.w], " \t\r")
		if len(rest) > 0 && rest[0] != '\n' {
			g.bad++
			return g.s.resync()
		}
	}
	g.good++
	return true
}
