package ui

import (
	"bufio"
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
	in *bufio.Reader
	at int64
}

// newScanner walks over the bytes between two offsets.
func newScanner(data io.ReaderAt, from, to int64) *scanner {
	return &scanner{bufio.NewReaderSize(io.NewSectionReader(data, from, to-from), 256<<10), from}
}

// next returns the next byte that is no space, and does not take it; 0 at the end.
func (s *scanner) next() byte {
	for {
		b, err := s.in.Peek(1)
		switch {
		case err != nil:
			return 0
		case b[0] != ' ' && b[0] != '\n' && b[0] != '\r' && b[0] != '\t':
			return b[0]
		}
		s.take()
	}
}

func (s *scanner) take() byte {
	b, err := s.in.ReadByte()
	if err == nil {
		s.at++
	}
	return b
}

// skip reads one value and returns its first bytes, at most keep.
func (s *scanner) skip(keep int) (head []byte, err error) {
	depth, text, begun := 0, false, s.at
	for {
		b, err := s.in.ReadByte()
		if err != nil {
			if scalar := depth == 0 && !text && s.at > begun; !scalar {
				return head, io.ErrUnexpectedEOF
			}
			return head, nil
		}
		if !text && depth == 0 && s.at > begun && (b == ',' || b == ']' || b == '}' || b <= ' ') {
			return head, s.in.UnreadByte() // the end of a scalar
		}
		if s.at++; len(head) < keep {
			head = append(head, b)
		}
		switch {
		case text && b == '\\':
			if s.at++; len(head) < keep {
				head = append(head, s.peeked())
			}
			if _, err := s.in.Discard(1); err != nil {
				return head, io.ErrUnexpectedEOF
			}
		case b == '"':
			text = !text
		case text:
		case b == '{' || b == '[':
			depth++
		case b == '}' || b == ']':
			depth--
		}
		if !text && depth <= 0 && (b == '"' || b == '}' || b == ']') {
			return head, nil
		}
	}
}

func (s *scanner) peeked() byte {
	b, err := s.in.Peek(1)
	if err != nil {
		return 0
	}
	return b[0]
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
	s.take()
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
			s.take()
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
		s.take()
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
		return texts.Fit(textOf(raw), maxCell)
	}
	return texts.Fit(compact(raw), maxCell)
}
