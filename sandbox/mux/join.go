package mux

import (
	"encoding/binary"
	"io"
)

// Of the headers of yamux: a frame of data is one whose kind, the second byte, is zero, and the last four bytes are its
// length.
const (
	headerSize = 12
	kindAt     = 1
	lengthAt   = 8
)

// joinedMax is how much is written at a time where writes are joined: as much as the engine and what is behind it pass on
// at a time.
const joinedMax = 32 << 10

// A joiner sends the header of a frame, which yamux writes alone, with what follows it: between the two ends there are an
// engine and a pipe or two, and each would pass the twelve bytes on alone.
type joiner struct {
	io.ReadWriteCloser
	buf []byte // a header that waits
}

func join(conn io.ReadWriteCloser) *joiner { return &joiner{conn, make([]byte, 0, joinedMax)} }

// Write implements [io.Writer]. Only the one goroutine of yamux that sends calls it.
func (j *joiner) Write(p []byte) (int, error) {
	if len(j.buf) == 0 && isData(p) {
		j.buf = append(j.buf, p...)
		return len(p), nil
	}
	if len(j.buf) == 0 {
		return j.ReadWriteCloser.Write(p)
	}
	first := min(len(p), joinedMax-len(j.buf))
	buf := append(j.buf, p[:first]...)
	j.buf = j.buf[:0]
	if _, err := j.ReadWriteCloser.Write(buf); err != nil {
		return 0, err
	}
	if first == len(p) {
		return first, nil
	}
	n, err := j.ReadWriteCloser.Write(p[first:])
	return first + n, err
}

// isData reports whether p is the header of a frame that has a body.
func isData(p []byte) bool {
	return len(p) == headerSize && p[kindAt] == 0 && binary.BigEndian.Uint32(p[lengthAt:]) > 0
}
