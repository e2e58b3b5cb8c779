package store

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

// An exactReader reads as many bytes as it was promised, or fails: before the last one, if there are more. It ends with
// the context.
type exactReader struct {
	ctx    context.Context
	from   io.Reader
	left   int64     // bytes
	whole  bool      // nothing may follow
	closer io.Closer // nil: none
	failed error     // of the last read; nil: none, or the end
}

// Read implements [io.Reader].
func (r *exactReader) Read(p []byte) (int, error) {
	n, err := r.read(p)
	if err != nil && err != io.EOF {
		r.failed = err
	}
	return n, err
}

func (r *exactReader) read(p []byte) (int, error) {
	if err := context.Cause(r.ctx); err != nil {
		return 0, err
	}
	if r.left == 0 && !r.whole {
		return 0, io.EOF
	}
	n := 0
	if r.left > 0 {
		var err error
		n, err = r.from.Read(p[:min(int64(len(p)), r.left)])
		r.left -= int64(n)
		switch {
		case r.left > 0 && errors.Is(err, io.EOF):
			return n, fmt.Errorf("%s too few: %w", texts.Count(r.left, "byte"), io.ErrUnexpectedEOF)
		case r.left > 0:
			return n, err
		}
	}
	if r.whole {
		if more, err := io.ReadFull(r.from, make([]byte, 1)); more > 0 {
			return 0, errors.New("more bytes than announced")
		} else if !errors.Is(err, io.EOF) {
			return 0, err
		}
		r.whole = false
	}
	return n, nil
}

// Close closes what is read.
func (r *exactReader) Close() error {
	if r.closer == nil {
		return nil
	}
	return r.closer.Close()
}
