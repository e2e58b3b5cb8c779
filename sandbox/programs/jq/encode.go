package jq

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxOutputDepth bounds the nesting of what is written. Programs wrap what they read, so it is above maxDepth.
const maxOutputDepth = 2 * maxDepth

// flushSize is how much output is collected before it is written.
const flushSize = 32 << 10

// A printer writes JSON the way jq does: keys sorted, two spaces or none, and only what must be escaped escaped. It
// collects its output until there is much of it, or flush is called.
type printer struct {
	w   io.Writer
	err error // the first writing error; later output is dropped
	b   []byte

	tab    bool
	indent int
	ascii  bool
	keys   [][]string // scratch space for sorting keys, by depth
	sorted int        // keys so far
}

// spareKeys is how many keys a run may have sorted whose scratch space is kept.
const spareKeys = 1000

func (p *printer) flush() {
	if p.err == nil && len(p.b) > 0 {
		_, p.err = p.w.Write(p.b)
	}
	p.b = p.b[:0]
	if cap(p.b) > 1<<20 {
		p.b = nil
	}
}

// pretty says whether values take several lines.
func (p *printer) pretty() bool { return p.tab || p.indent > 0 }

// value appends v, which stands inside of depth arrays and objects.
func (p *printer) value(v any, depth int) error {
	if depth > maxOutputDepth {
		return fmt.Errorf("the result has more than %d arrays and objects inside of one another", maxOutputDepth)
	}
	switch v := v.(type) {
	case nil:
		p.b = append(p.b, "null"...)
	case bool:
		p.b = strconv.AppendBool(p.b, v)
	case int:
		p.b = strconv.AppendInt(p.b, int64(v), 10)
	case float64:
		p.float(v)
	case *big.Int:
		p.b = v.Append(p.b, 10)
	case json.Number:
		p.b = append(p.b, v...)
	case string:
		p.text(v)
	case []any:
		return p.array(v, depth)
	case map[string]any:
		return p.object(v, depth)
	default:
		return fmt.Errorf("a value of type %T cannot be written", v)
	}
	if len(p.b) > flushSize {
		p.flush()
	}
	return nil
}

// float writes like jq: NaN as null, the infinities as the largest numbers there are.
func (p *printer) float(f float64) {
	if math.IsNaN(f) {
		p.b = append(p.b, "null"...)
		return
	}
	f = min(max(f, -math.MaxFloat64), math.MaxFloat64)
	format := byte('f')
	if x := math.Abs(f); x != 0 && x < 1e-6 || x >= 1e21 {
		format = 'e'
	}
	p.b = strconv.AppendFloat(p.b, f, format, -1, 64)
	// strconv writes e-09 where jq writes e-9.
	if n := len(p.b); format == 'e' && n >= 4 && p.b[n-4] == 'e' && p.b[n-3] == '-' && p.b[n-2] == '0' {
		p.b = append(p.b[:n-2], p.b[n-1])
	}
}

func (p *printer) array(vs []any, depth int) error {
	p.b = append(p.b, '[')
	for i, v := range vs {
		p.separate(i == 0, depth+1)
		if err := p.value(v, depth+1); err != nil {
			return err
		}
	}
	p.close(']', len(vs) == 0, depth)
	return nil
}

// separate begins an element that stands inside of depth arrays and objects.
func (p *printer) separate(first bool, depth int) {
	if !first {
		p.b = append(p.b, ',')
	}
	if p.pretty() {
		p.newline(depth)
	}
}

func (p *printer) close(bracket byte, empty bool, depth int) {
	if !empty && p.pretty() {
		p.newline(depth)
	}
	p.b = append(p.b, bracket)
}

func (p *printer) newline(depth int) {
	p.b = append(p.b, '\n')
	c, n := byte(' '), p.indent*depth
	if p.tab {
		c, n = '\t', depth
	}
	for range n {
		p.b = append(p.b, c)
	}
}

func (p *printer) object(m map[string]any, depth int) error {
	for len(p.keys) <= depth {
		p.keys = append(p.keys, nil)
	}
	keys := p.keys[depth][:0]
	for k := range m {
		keys = append(keys, k)
	}
	p.keys[depth] = keys
	p.sorted += len(keys) + 1
	slices.Sort(keys)
	p.b = append(p.b, '{')
	for i, k := range keys {
		p.separate(i == 0, depth+1)
		p.text(k)
		p.b = append(p.b, ':')
		if p.pretty() {
			p.b = append(p.b, ' ')
		}
		if err := p.value(m[k], depth+1); err != nil {
			return err
		}
	}
	p.close('}', len(m) == 0, depth)
	return nil
}

const hex = "0123456789abcdef"

var short = map[byte]byte{'"': '"', '\\': '\\', '\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't'}

// text appends a string. DEL is escaped, as in jq, and so is what is not UTF-8.
func (p *printer) text(s string) {
	p.b = append(p.b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if ' ' <= c && c <= '~' && c != '"' && c != '\\' {
			i++
			continue
		}
		r, n := rune(c), 1
		if c >= utf8.RuneSelf {
			r, n = utf8.DecodeRuneInString(s[i:])
			if !p.ascii && (r != utf8.RuneError || n > 1) {
				i += n
				continue
			}
		}
		p.b = append(p.b, s[start:i]...)
		p.escape(r)
		i += n
		start = i
	}
	p.b = append(append(p.b, s[start:]...), '"')
}

func (p *printer) escape(r rune) {
	if r < utf8.RuneSelf {
		if c, ok := short[byte(r)]; ok {
			p.b = append(p.b, '\\', c)
			return
		}
	}
	if r > 0xffff {
		r -= 0x10000
		p.escape(0xd800 + r>>10)
		r = 0xdc00 + r&0x3ff
	}
	p.b = append(p.b, '\\', 'u', hex[r>>12&0xf], hex[r>>8&0xf], hex[r>>4&0xf], hex[r&0xf])
}

// compact returns v on one line, for messages.
func compact(v any) string {
	p := printer{w: io.Discard}
	var b strings.Builder
	p.w = &b
	if err := p.value(v, 0); err != nil {
		return "a deeply nested value"
	}
	p.flush()
	return b.String()
}
