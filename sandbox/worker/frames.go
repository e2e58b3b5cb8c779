//go:build linux

package worker

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/mcsh-dev/mcsh/sandbox/wire"
)

// An applet and the worker speak in frames over the applet's standard input and output: a letter, four bytes of
// length, and as many bytes. Inputs come one after another, each as data and an end; what the applet says of an input is
// data, messages and its exit status, in that order of time. Between two inputs another program may come.
const (
	frameData    = 'd'
	frameEnd     = 'e' // of an input
	frameMessage = 'm' // for standard error
	frameStatus  = 's' // four bytes; the last frame about an input
	frameSpec    = 'p' // JSON of a program in the place of the one before, for the inputs that follow; empty: of none
)

const (
	frameHeader = 5
	frameMax    = 1 << 20 // bytes of payload: of a spec, whose arguments have 64 KiB; data comes in smaller pieces
	statusBytes = 4
)

// A frameWriter writes frames, each with one call: an end of a pipe takes it whole or not at all while there is room.
type frameWriter struct {
	w   io.Writer
	buf []byte
}

// write sends p in one or more frames, one if p is empty. It returns how many bytes of p have left.
func (f *frameWriter) write(kind byte, p []byte) (sent int, err error) {
	for {
		n := min(len(p)-sent, frameMax)
		f.buf = binary.BigEndian.AppendUint32(append(f.buf[:0], kind), uint32(n))
		f.buf = append(f.buf, p[sent:sent+n]...)
		m, err := f.w.Write(f.buf)
		sent += max(0, m-frameHeader)
		if err != nil || sent >= len(p) {
			return sent, err
		}
	}
}

// A frameReader reads frames. The payload of one is read before the next.
type frameReader struct {
	r    *bufio.Reader
	kind byte
	left int // bytes of payload not read yet
}

// errFrames says that the other end does not keep to the protocol.
var errFrames = errors.New("not a frame")

// next reads the header of a frame. io.EOF means that there is no more.
func (f *frameReader) next() error {
	var head [frameHeader]byte
	if _, err := io.ReadFull(f.r, head[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(head[1:])
	if n > frameMax {
		return fmt.Errorf("a frame of %d bytes: %w", n, errFrames)
	}
	f.kind, f.left = head[0], int(n)
	return nil
}

// Read reads payload of the present frame, and 0 bytes at its end.
func (f *frameReader) Read(p []byte) (int, error) {
	if f.left == 0 {
		return 0, nil
	}
	n, err := f.r.Read(p[:min(len(p), f.left)])
	f.left -= n
	return n, wire.NoEOF(err)
}

// status reads the payload of a status frame.
func (f *frameReader) status() (int, error) {
	var b [statusBytes]byte
	if f.left != len(b) {
		return 0, fmt.Errorf("a status of %d bytes: %w", f.left, errFrames)
	}
	if _, err := io.ReadFull(f, b[:]); err != nil {
		return 0, err
	}
	return int(int32(binary.BigEndian.Uint32(b[:]))), nil
}
