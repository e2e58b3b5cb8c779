package jq

import (
	"bufio"
	"io"
	"strings"
)

// A source yields the values that a program runs on. next returns io.EOF after the last one. line is the number of
// the line that was read last.
type source interface {
	next() (any, error)
	line() int
}

// documents are JSON documents one after another.
type documents struct{ *decoder }

func (s documents) line() int { return s.begun() }

// slurped is one array of everything that another source yields.
type slurped struct {
	source
	done bool
}

func (s *slurped) next() (any, error) {
	if s.done {
		return nil, io.EOF
	}
	s.done = true
	all := []any{}
	for {
		v, err := s.source.next()
		if isEOF(err) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
}

// lines are the lines of a text without their newlines.
type lines struct {
	r *bufio.Reader
	n int
}

func (s *lines) line() int { return s.n }

func (s *lines) next() (any, error) {
	text, err := s.r.ReadString('\n')
	if err != nil && (!isEOF(err) || text == "") {
		return nil, err
	}
	s.n++
	return strings.ToValidUTF8(strings.TrimSuffix(text, "\n"), "\ufffd"), nil
}

// whole is a text as one string.
type whole struct {
	r    io.Reader
	done bool
	n    int
}

func (s *whole) line() int { return s.n }

func (s *whole) next() (any, error) {
	if s.done {
		return nil, io.EOF
	}
	s.done = true
	b, err := io.ReadAll(s.r)
	if err != nil {
		return nil, err
	}
	s.n = max(1, strings.Count(string(b), "\n"))
	return strings.ToValidUTF8(string(b), "\ufffd"), nil
}

// eager calls before ahead of every read: a run does not wait for input with output in hand.
type eager struct {
	r      io.Reader
	before func()
}

func (e eager) Read(p []byte) (int, error) {
	e.before()
	return e.r.Read(p)
}

// lineBuffer is less than bufferSize: each item of a for_each has its own.
const lineBuffer = 16 << 10

// source returns what a run reads from r.
func (o Options) source(r io.Reader) source {
	if o.RawInput {
		if o.Slurp {
			return &whole{r: r}
		}
		return &lines{r: bufio.NewReaderSize(r, lineBuffer)}
	}
	d := newDecoder(r)
	d.records = o.Seq
	var s source = documents{d}
	if o.Stream {
		s = &streamer{d: d}
	}
	if o.Slurp {
		return &slurped{source: s}
	}
	return s
}

// Load reads the inputs that the options name and gives their values to the variables. It is to be called before Run where
// there are any.
func (f *Filter) Load(open func(name string) (io.Reader, error)) (err error) {
	_, f.values, err = f.options.variables(open)
	return err
}
