package jq

import (
	"bufio"
	"bytes"
	"io"
	"strings"
)

// A source yields the values that a program runs on. next returns io.EOF after the last one. line is the number of
// the line that was read last.
type source interface {
	next() (any, error)
	line() int
}

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

// text is the lines of a text without their newlines, or all of it as one string.
type text struct {
	r     *bufio.Reader
	whole bool
	n     int // lines that were read; of all of it at least one
}

func (s *text) line() int { return s.n }

func (s *text) next() (any, error) {
	if !s.whole {
		line, err := s.r.ReadString('\n')
		if err != nil && (!isEOF(err) || line == "") {
			return nil, err
		}
		s.n++
		return strings.ToValidUTF8(strings.TrimSuffix(line, "\n"), "\ufffd"), nil
	}
	if s.n > 0 {
		return nil, io.EOF
	}
	all, err := io.ReadAll(s.r)
	s.n = max(1, bytes.Count(all, []byte("\n")))
	return strings.ToValidUTF8(string(all), "\ufffd"), err
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
		return &text{r: bufio.NewReaderSize(r, lineBuffer), whole: o.Slurp}
	}
	d := newDecoder(r)
	d.records = o.Seq
	var s source = d
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
