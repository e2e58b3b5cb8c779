package ui

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

// Bounds of what is shown of a value at once. The value itself may have many megabytes, and stays where it is.
const (
	maxNodes   = 100     // members of an object or items of an array
	maxColumns = 24      // of a table
	maxCell    = 240     // bytes of a value in a row
	maxScalar  = 4 << 10 // bytes of a value that is shown alone
	maxKeyText = 200     // bytes of the name of a member
	maxRow     = 64 << 10
)

// A Node is a JSON value within a larger text.
type Node struct {
	Key   string // its name, or its place in an array
	Kind  string // object, array, string, number, word
	Text  string // of a scalar, cut to its bound
	At    int64  // where it begins
	Size  int64  // bytes
	whole []byte // the value itself, if it has few bytes
}

// Holds reports whether it holds other values.
func (n Node) Holds() bool { return n.Kind == "object" || n.Kind == "array" }

// A NodeWindow is a part of the values in another one, or of a sequence of values.
type NodeWindow struct {
	Kind   string // of the value around them; values: there is none
	Nodes  []Node
	First  int   // the place of the first one
	Next   int64 // where the next window begins; 0: there is none
	NextAt int   // the place of its first value
}

var errNoJSON = errors.New("it is not JSON")

// A scanner walks over JSON without keeping it.
type scanner struct {
	in  io.Reader
	buf []byte // what was read and not yet taken
	all []byte // the memory of buf
	at  int64  // of the first byte of buf
}

// newScanner walks over the bytes between two offsets.
func newScanner(data io.ReaderAt, from, to int64) *scanner {
	return &scanner{in: io.NewSectionReader(data, from, to-from), at: from, all: make([]byte, min(256<<10, max(0, to-from)))}
}

// fill reports whether there is a byte to take.
func (s *scanner) fill() bool {
	for len(s.buf) == 0 {
		n, err := s.in.Read(s.all)
		if s.buf = s.all[:n]; err != nil && n == 0 {
			return false
		}
	}
	return true
}

// take takes bytes of the buffer.
func (s *scanner) take(n int) {
	s.buf, s.at = s.buf[n:], s.at+int64(n)
}

// next returns the next byte that is no space, and does not take it; 0 at the end.
func (s *scanner) next() byte {
	for s.fill() {
		if b := s.buf[0]; b != ' ' && b != '\n' && b != '\r' && b != '\t' {
			return b
		}
		s.take(1)
	}
	return 0
}

// A skipping is the place within a value that is skipped.
type skipping struct {
	depth              int
	text, escaped, any bool
}

// step notes a byte, and reports whether the value has ended, with the byte or before it.
func (p *skipping) step(b byte) (over, with bool) {
	first := !p.any
	p.any = true
	switch {
	case p.escaped:
		p.escaped = false
	case p.text && b == '\\':
		p.escaped = true
	case b == '"':
		p.text = !p.text
		return p.depth == 0 && !p.text, true
	case p.text:
	case b == '{' || b == '[':
		p.depth++
	case p.depth == 0 && !first && (b <= ' ' || b == ',' || b == ']' || b == '}'):
		return true, false // the end of a scalar
	case b == '}' || b == ']':
		p.depth--
		return p.depth <= 0, true
	}
	return false, false
}

// skip reads one value and returns its first bytes, at most keep.
func (s *scanner) skip(keep int) (head []byte, err error) {
	var p skipping
	for s.fill() {
		n := len(s.buf)
		over, with := false, false
		for i, b := range s.buf {
			if (p.depth > 0 || p.text) && !p.escaped && b != '"' && b != '\\' && b|0x20 != '{' && b|0x20 != '}' {
				continue // most bytes; 0x20 makes a brace of a bracket
			}
			if over, with = p.step(b); over {
				if n = i; with {
					n++
				}
				break
			}
		}
		head = append(head, s.buf[:min(n, keep-len(head))]...)
		if s.take(n); over {
			return head, nil
		}
	}
	if p.depth == 0 && !p.text && p.any {
		return head, nil
	}
	return head, io.ErrUnexpectedEOF
}

// node reads one value.
func (s *scanner) node(keep int) (Node, error) {
	n := Node{Kind: "word"}
	switch first := s.next(); {
	case first == 0 || strings.IndexByte(",]}:", first) >= 0:
		return n, errNoJSON
	case first == '{':
		n.Kind = "object"
	case first == '[':
		n.Kind = "array"
	case first == '"':
		n.Kind = "string"
	case first == '-' || first >= '0' && first <= '9':
		n.Kind = "number"
	}
	n.At = s.at
	head, err := s.skip(max(keep, maxCell))
	n.Size = s.at - n.At
	if err != nil {
		return n, err
	}
	if int64(len(head)) == n.Size {
		n.whole = head
	}
	if !n.Holds() {
		if n.Kind != "string" && (n.whole == nil || !json.Valid(n.whole)) {
			return n, errNoJSON
		}
		n.Text = shownScalar(head, n.whole != nil)
	}
	return n, nil
}

// shownScalar is the text of a scalar, or of its beginning.
func shownScalar(head []byte, whole bool) string {
	text, _ := texts.Valid(head)
	text = texts.Plain(text, true)
	if whole {
		return text
	}
	return text + "…"
}

// window reads the values in the value between two offsets. from is where the first one begins, or 0 for the beginning, and
// first is its place.
func window(data io.ReaderAt, at, end, from int64, first, most, keep int) (NodeWindow, error) {
	s := newScanner(data, at, end)
	w := NodeWindow{Kind: map[byte]string{'{': "object", '[': "array"}[s.next()], First: first}
	if w.Kind == "" {
		return w, errNoJSON
	}
	s.take(1)
	if from > at {
		s = newScanner(data, from, end)
	}
	for i := first; ; i++ {
		switch b := s.next(); b {
		case 0:
			return w, io.ErrUnexpectedEOF
		case '}', ']':
			return w, nil
		case ',':
			s.take(1)
			s.next()
		}
		if len(w.Nodes) == most {
			w.Next, w.NextAt = s.at, i
			return w, nil
		}
		n, err := s.member(w.Kind, i, keep)
		if err != nil {
			return w, err
		}
		w.Nodes = append(w.Nodes, n)
	}
}

// member reads a value with its name or place.
func (s *scanner) member(kind string, place, keep int) (Node, error) {
	key := number(place)
	if kind == "object" {
		name, err := s.node(maxKeyText)
		if err != nil || name.Kind != "string" {
			return name, errNoJSON
		}
		if key = texts.Fit(name.Text, maxKeyText); name.whole != nil {
			key = texts.Fit(textOf(name.whole), maxKeyText)
		}
		if s.next() != ':' {
			return name, errNoJSON
		}
		s.take(1)
	}
	n, err := s.node(keep)
	n.Key = key
	return n, err
}

// values reads a sequence of values from an offset on.
func values(data io.ReaderAt, from, end int64, first, most, keep int) (NodeWindow, error) {
	s, w := newScanner(data, from, end), NodeWindow{Kind: "values", First: first}
	for i := first; s.next() != 0; i++ {
		if len(w.Nodes) == most {
			w.Next, w.NextAt = s.at, i
			return w, nil
		}
		n, err := s.node(keep)
		if err != nil {
			return w, err
		}
		n.Key = number(i)
		w.Nodes = append(w.Nodes, n)
	}
	if s.at < end {
		return w, errNoJSON // a zero byte
	}
	return w, nil
}

// A Grid is a window of a list of objects as a table.
type Grid struct {
	Columns []string
	Rows    [][]string
	Cut     bool // there are more columns
	Window  NodeWindow
}

// grid makes a table of the objects in a window, whose values were read whole where they are short enough.
func grid(w NodeWindow) (*Grid, bool) {
	g := &Grid{Window: w}
	var rows []map[string]string
	for _, n := range w.Nodes {
		if n.Kind != "object" {
			return nil, false
		}
		row := map[string]string{}
		of, names := members(n.whole)
		for _, name := range names {
			if row[name] = cellText(of[name]); slices.Contains(g.Columns, name) {
				continue
			}
			if len(g.Columns) == maxColumns {
				g.Cut = true
				continue
			}
			g.Columns = append(g.Columns, name)
		}
		rows = append(rows, row)
	}
	for _, row := range rows {
		cells := make([]string, len(g.Columns))
		for i, name := range g.Columns {
			cells[i] = row[name]
		}
		g.Rows = append(g.Rows, cells)
	}
	return g, len(g.Columns) > 0
}

// cellText is a value in a table.
func cellText(raw json.RawMessage) string {
	if raw = bytes.TrimSpace(raw); len(raw) > 0 && raw[0] == '"' {
		return texts.Plain(texts.Fit(textOf(raw), maxCell), true)
	}
	return texts.Plain(texts.Fit(compact(raw), maxCell), true)
}
