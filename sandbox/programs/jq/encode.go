package jq

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/itchyny/gojq"
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

	indent string // of each level; empty for everything on one line
	ascii  bool
}

func (p *printer) flush() {
	if p.err == nil && len(p.b) > 0 {
		_, p.err = p.w.Write(p.b)
	}
	p.b = p.b[:0]
	if cap(p.b) > 1<<20 {
		p.b = nil
	}
}

// value appends v, which stands inside of depth arrays and objects.
func (p *printer) value(v any, depth int) error {
	if depth > maxOutputDepth {
		return fmt.Errorf("the result has more than %d arrays and objects inside of one another", maxOutputDepth)
	}
	switch v := v.(type) {
	case []any:
		p.b = append(p.b, '[')
		for i, element := range v {
			p.separate(i == 0, depth+1)
			if err := p.value(element, depth+1); err != nil {
				return err
			}
		}
		p.close(']', len(v) == 0, depth)
	case map[string]any:
		p.b = append(p.b, '{')
		for i, k := range slices.Sorted(maps.Keys(v)) {
			p.separate(i == 0, depth+1)
			p.leaf(k)
			p.b = append(p.b, ':')
			if p.indent != "" {
				p.b = append(p.b, ' ')
			}
			if err := p.value(v[k], depth+1); err != nil {
				return err
			}
		}
		p.close('}', len(v) == 0, depth)
	default:
		p.leaf(v)
	}
	if len(p.b) > flushSize {
		p.flush()
	}
	return nil
}

// leaf appends a value as gojq writes it: NaN as null, the infinities as the largest numbers there are, and DEL and what
// is not UTF-8 escaped. It is faster for numbers and for strings that stand for themselves.
func (p *printer) leaf(v any) {
	switch v := v.(type) {
	case int:
		p.b = strconv.AppendInt(p.b, int64(v), 10)
		return
	case string:
		if !strings.ContainsFunc(v, func(c rune) bool { return c < ' ' || c > '~' || c == '"' || c == '\\' }) {
			p.b = append(append(append(p.b, '"'), v...), '"')
			return
		}
	}
	b, _ := gojq.Marshal(v) // there is an error in its signature alone
	if p.ascii {
		b = escaped(b)
	}
	p.b = append(p.b, b...)
}

// escaped escapes everything beyond ASCII.
func escaped(b []byte) (out []byte) {
	var units [2]uint16
	for _, c := range string(b) {
		if c < utf8.RuneSelf {
			out = append(out, byte(c))
			continue
		}
		for _, u := range utf16.AppendRune(units[:0], c) {
			out = fmt.Appendf(out, `\u%04x`, u)
		}
	}
	return out
}

// separate begins an element that stands inside of depth arrays and objects.
func (p *printer) separate(first bool, depth int) {
	if !first {
		p.b = append(p.b, ',')
	}
	p.newline(depth)
}

func (p *printer) close(bracket byte, empty bool, depth int) {
	if !empty {
		p.newline(depth)
	}
	p.b = append(p.b, bracket)
}

func (p *printer) newline(depth int) {
	if p.indent == "" {
		return
	}
	p.b = append(p.b, '\n')
	for range depth {
		p.b = append(p.b, p.indent...)
	}
}

// compact returns v on one line, for messages.
func compact(v any) string {
	var b strings.Builder
	p := printer{w: &b}
	if err := p.value(v, 0); err != nil {
		return "a deeply nested value"
	}
	p.flush()
	return b.String()
}
