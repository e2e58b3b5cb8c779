package preview

import (
	"bytes"
	"context"
	"errors"
	"io"
)

// source counts bytes, stops when the context is done, and reads io.ErrUnexpectedEOF as the end of a sample.
type source struct {
	ctx     context.Context
	r       io.Reader
	of      *source // the original data, if r converts it
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

// head reads at least size+1 bytes if there are so many, and reports whether it has read all.
func (s *source) head(size int) ([]byte, bool, error) {
	var buf bytes.Buffer
	_, err := io.CopyN(&buf, s, int64(size)+1)
	if err != nil && err != io.EOF {
		return nil, false, err
	}
	return buf.Bytes(), err == io.EOF, nil
}

// drain reads the rest to count its bytes.
func (s *source) drain() error {
	_, err := io.Copy(io.Discard, s)
	return err
}

// sampleEnds follows the size of a sample.
const sampleEnds = " (sample ends, data goes on)"

// size is the size of the data, or of the sample of it.
func (s *source) size() string {
	if s.of != nil {
		return s.of.size()
	}
	if s.partial {
		return "first " + sizeText(s.bytes) + sampleEnds
	}
	return sizeText(s.bytes)
}
