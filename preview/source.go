package preview

import (
	"bytes"
	"context"
	"errors"
	"io"
)

// source counts what is read, ends when the context does, and takes data that was cut for data that ends.
type source struct {
	ctx     context.Context
	r       io.Reader
	of      *source // what r is made of, if that is not the data itself
	bytes   int64
	partial bool
	ended   bool
}

func (s *source) Read(p []byte) (int, error) {
	if s.ended {
		return 0, io.EOF
	}
	if err := s.ctx.Err(); err != nil {
		return 0, context.Cause(s.ctx)
	}
	n, err := s.r.Read(p)
	s.bytes += int64(n)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		s.partial, err = true, io.EOF
	}
	s.ended = err == io.EOF
	return n, err
}

// head reads up to size bytes and reports whether that is all there is.
func (s *source) head(size int) ([]byte, bool, error) {
	var buf bytes.Buffer
	_, err := io.CopyN(&buf, s, int64(size)+1)
	if err != nil && err != io.EOF {
		return nil, false, err
	}
	return buf.Bytes(), err == io.EOF, nil
}

// drain reads the rest only to know its size.
func (s *source) drain() error {
	_, err := io.Copy(io.Discard, s)
	return err
}

// size says how much data there is.
func (s *source) size() string {
	if s.of != nil {
		return s.of.size()
	}
	if s.partial {
		return "first " + sizeText(s.bytes) + " (the data was cut there)"
	}
	return sizeText(s.bytes)
}
