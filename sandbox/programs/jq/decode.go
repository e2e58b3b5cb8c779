package jq

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// maxDepth bounds the nesting of what is read. encoding/json and jq have the same bound.
const maxDepth = 10_000

const bufferSize = 64 << 10

// firstBuffer is enough for most items of a for_each: a large buffer for each would cost more than the rest.
const firstBuffer = 2 << 10

// A decoder reads JSON documents one after another. Numbers keep every digit: short integers become int, everything
// else json.Number. It is not encoding/json's decoder because it has to say where a mistake is, to read arrays element
// by element, and to tell before it waits for more input.
type decoder struct {
	r io.Reader

	buf      []byte
	pos, end int   // the part of buf that is not used up
	full     bool  // the last read has left no room: there may be much more
	readErr  error // what ended the input
	base     int64 // the offset of buf[0] in the input

	lines     int   // up to the next byte, with its own
	lineStart int64 // offset of that line
	records   bool  // U+001E separates documents

	scratch []byte            // the string, number or word that is being read
	keys    map[string]string // keys seen, so that equal ones share memory
	failed  error             // the first mistake, or what ended the input; there is no going on after it
}

func newDecoder(r io.Reader) *decoder {
	return &decoder{r: r, buf: make([]byte, 0, firstBuffer), lines: 1, keys: map[string]string{}}
}

// line implements source. A line of which a part was read counts.
func (d *decoder) line() int {
	if d.base+int64(d.pos) == d.lineStart {
		return d.lines - 1
	}
	return d.lines
}

func isEOF(err error) bool { return errors.Is(err, io.EOF) }

// next returns the next document, io.EOF after the last.
func (d *decoder) next() (any, error) {
	if d.failed != nil {
		return nil, d.failed
	}
	if _, err := d.peek(); err != nil {
		return nil, err
	}
	return d.value(0)
}

// fill reads more input. It keeps a little of what was used up, to show it with a mistake.
func (d *decoder) fill() bool {
	if d.readErr != nil {
		return false
	}
	if keep := max(0, d.pos-nearSize); keep > 0 {
		copy(d.buf[:d.end-keep], d.buf[keep:d.end])
		d.base += int64(keep)
		d.pos, d.end = d.pos-keep, d.end-keep
	}
	if d.full && cap(d.buf) < bufferSize {
		d.buf = append(make([]byte, 0, bufferSize), d.buf[:d.end]...)
	}
	d.buf = d.buf[:cap(d.buf)]
	for range 100 {
		n, err := d.r.Read(d.buf[d.end:])
		d.end += n
		d.full = d.end == len(d.buf)
		if err != nil {
			d.readErr = err
		}
		if n > 0 || err != nil {
			return n > 0
		}
	}
	d.readErr = io.ErrNoProgress
	return false
}

// peek skips white space and returns the next byte, io.EOF if there is none.
func (d *decoder) peek() (byte, error) {
	for {
		for d.pos < d.end {
			switch c := d.buf[d.pos]; c {
			case '\n':
				d.lines++
				d.lineStart = d.base + int64(d.pos) + 1
				d.pos++
			case ' ', '\t', '\r':
				d.pos++
			case 0x1e:
				if !d.records {
					return c, nil
				}
				d.pos++
			case 0xef: // of a byte order mark at the beginning of the input
				if d.base+int64(d.pos) > 0 || !d.has(3) || !bytes.HasPrefix(d.buf[d.pos:d.end], []byte("\ufeff")) {
					return c, nil
				}
				d.pos += 3
			default:
				return c, nil
			}
		}
		if !d.fill() {
			d.failed = d.readErr
			return 0, d.failed
		}
	}
}

// inside is peek where a value has begun and the input must not end.
func (d *decoder) inside() (byte, error) {
	c, err := d.peek()
	if isEOF(err) {
		return 0, d.mistake("unexpected end of the input")
	}
	return c, err
}

// value reads a value that is not white space; depth is the number of arrays and objects around it.
func (d *decoder) value(depth int) (any, error) {
	c, err := d.inside()
	if err != nil {
		return nil, err
	}
	switch c {
	case '{':
		return d.object(depth + 1)
	case '[':
		vs := []any{}
		err := d.each(depth+1, func(v any) error {
			vs = append(vs, v)
			return nil
		})
		return vs, err
	case '"':
		b, err := d.text()
		return string(b), err
	}
	return d.scalar(c)
}

// each calls f with every element of the array that comes next.
func (d *decoder) each(depth int, f func(any) error) error {
	if err := d.open(depth); err != nil {
		return err
	}
	for first := true; ; first = false {
		more, err := d.element(first, ']')
		if err != nil || !more {
			return err
		}
		v, err := d.value(depth)
		if err != nil {
			return err
		}
		if err := f(v); err != nil {
			return err
		}
	}
}

// open consumes the bracket that begins an array or an object.
func (d *decoder) open(depth int) error {
	if depth > maxDepth {
		return d.mistake(fmt.Sprintf("more than %d arrays and objects inside of one another", maxDepth))
	}
	d.pos++
	return nil
}

// element stands before an element of an array, or a member of an object, and says whether there is one. It consumes the
// comma or the closing bracket.
func (d *decoder) element(first bool, closing byte) (bool, error) {
	c, err := d.inside()
	switch {
	case err != nil:
		return false, err
	case c == closing:
		d.pos++
		return false, nil
	case first:
		return true, nil
	case c != ',':
		return false, d.expected("a comma or "+string(rune(closing)), c)
	}
	d.pos++
	if c, err = d.inside(); err == nil && closing == ']' && c == ']' {
		err = d.mistake("a comma without a value after it")
	}
	return true, err
}

func (d *decoder) object(depth int) (any, error) {
	if err := d.open(depth); err != nil {
		return nil, err
	}
	m := map[string]any{}
	for first := true; ; first = false {
		key, more, err := d.key(first)
		if err != nil || !more {
			return m, err
		}
		v, err := d.value(depth)
		if err != nil {
			return nil, err
		}
		m[key] = v
	}
}

// key reads a key of an object with its colon. more is false at the end of the object.
func (d *decoder) key(first bool) (key string, more bool, err error) {
	if more, err = d.element(first, '}'); err != nil || !more {
		return "", false, err
	}
	c := d.buf[d.pos]
	if c != '"' {
		return "", false, d.expected("a key in double quotes", c)
	}
	b, err := d.text()
	if err != nil {
		return "", false, err
	}
	key = d.intern(b)
	if c, err = d.inside(); err == nil && c != ':' {
		err = d.expected("a colon", c)
	}
	d.pos++
	return key, true, err
}

// intern returns b as a string, the same one for equal keys as long as they are few and short.
func (d *decoder) intern(b []byte) string {
	const maxKeys, maxLen = 1000, 64
	if s, ok := d.keys[string(b)]; ok {
		return s
	}
	s := string(b)
	if len(b) <= maxLen && len(d.keys) < maxKeys {
		d.keys[s] = s
	}
	return s
}

// has says whether n more bytes are there. n is small.
func (d *decoder) has(n int) bool {
	for d.end-d.pos < n {
		if !d.fill() {
			return false
		}
	}
	return true
}
