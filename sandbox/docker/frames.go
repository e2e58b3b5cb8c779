package docker

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/mcsh-dev/mcsh/sandbox"
)

// An engine's stream of a container's output consists of frames with a header of eight bytes: the kind, three zeros, and
// the length of the payload, big endian.
const (
	frameHeader = 8
	frameStdout = 1
	frameStderr = 2
	frameFault  = 3 // the engine's own words
)

// Errors of an engine's stream.
var (
	errCut   = errors.New("the engine's stream was cut within a frame")
	errFrame = errors.New("the engine's stream is garbled")
)

// Frames takes a container's output apart: reading gives what it wrote to standard output, what it wrote to standard
// error goes to said. The stream ends well only between two frames.
type frames struct {
	r    *bufio.Reader
	said *sandbox.StderrHead
	left uint32 // of the payload that is being read
	err  atomic.Pointer[error]
}

// framesBuffer holds several of the frames that an engine sends.
const framesBuffer = 128 << 10

func newFrames(r io.Reader, s *sandbox.StderrHead) *frames {
	return &frames{r: bufio.NewReaderSize(r, framesBuffer), said: s}
}

// failure is the error with which reading has ended, nil if it has not or the stream ended well.
func (f *frames) failure() error {
	if err := f.err.Load(); err != nil {
		return *err
	}
	return nil
}

// Read implements [io.Reader].
func (f *frames) Read(p []byte) (int, error) {
	n, err := f.read(p)
	if err != nil && err != io.EOF {
		f.err.CompareAndSwap(nil, &err)
	}
	return n, err
}

func (f *frames) read(p []byte) (int, error) {
	for f.left == 0 {
		if len(p) == 0 {
			return 0, nil
		}
		if err := f.next(); err != nil {
			return 0, err
		}
	}
	n, err := f.r.Read(p[:min(uint64(len(p)), uint64(f.left))])
	f.left -= uint32(n)
	if err == io.EOF && f.left > 0 {
		err = errCut
	} else if err == io.EOF {
		err = nil // the next header tells
	}
	return n, err
}

// next reads a header, and all of a frame that is not standard output.
func (f *frames) next() error {
	var h [frameHeader]byte
	switch _, err := io.ReadFull(f.r, h[:]); {
	case err == io.ErrUnexpectedEOF:
		return errCut
	case err != nil:
		return err
	case h[1] != 0 || h[2] != 0 || h[3] != 0:
		return fmt.Errorf("%w: a header of %x", errFrame, h)
	}
	length := binary.BigEndian.Uint32(h[4:])
	switch h[0] {
	case frameStdout:
		f.left = length
		return nil
	case frameStderr, frameFault:
		if _, err := io.CopyN(f.said, f.r, int64(length)); err == io.EOF {
			return errCut
		} else if err != nil {
			return err
		}
		if h[0] == frameFault {
			return fmt.Errorf("the engine says: %s", f.said)
		}
		return nil
	}
	return fmt.Errorf("%w: a frame of kind %d", errFrame, h[0])
}
