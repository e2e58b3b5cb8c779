//go:build linux

package worker

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os"

	"github.com/mcsh-dev/mcsh/sandbox/programs"
)

// An attendant is the applet's end of the frames: it hands one item after another to a program. As a Reader it is the
// present item.
type attendant struct {
	in    frameReader
	out   frameWriter
	ended bool // the end of the item has been read
}

// attend runs a program on every item that comes on in, and returns when in ends.
func attend(run programs.Runner, in io.Reader, out io.Writer) error {
	said := newPatient(out)
	a := &attendant{in: frameReader{r: bufio.NewReaderSize(prompt{in, said}, frameMax)}, out: frameWriter{w: said}}
	for {
		if err := a.begin(); err == io.EOF {
			return said.Flush()
		} else if err != nil {
			return err
		}
		status := run(context.Background(), programs.IO{In: a, Out: voice{a, frameData}, Err: voice{a, frameMessage}})
		if _, err := a.out.write(frameStatus, binary.BigEndian.AppendUint32(nil, uint32(int32(status)))); err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, a); err != nil {
			return err
		}
	}
}

// A prompt reader sends what has been said before it may have to wait: so that an item which came with its end is answered
// with its status.
type prompt struct {
	r    io.Reader
	said interface{ Flush() error }
}

func (p prompt) Read(b []byte) (int, error) {
	if err := p.said.Flush(); err != nil {
		return 0, err
	}
	return p.r.Read(b)
}

// begin waits for the first frame of an item.
func (a *attendant) begin() error {
	a.ended = false
	return a.next()
}

func (a *attendant) next() error {
	if err := a.in.next(); err != nil {
		return err
	}
	switch {
	case a.in.kind == frameEnd && a.in.left == 0:
		a.ended = true
	case a.in.kind != frameData:
		return fmt.Errorf("kind %q: %w", a.in.kind, errFrames)
	}
	return nil
}

// Read implements [io.Reader] for the present item.
func (a *attendant) Read(p []byte) (int, error) {
	for a.in.left == 0 {
		if a.ended {
			return 0, io.EOF
		}
		if err := a.next(); err == io.EOF {
			return 0, io.ErrUnexpectedEOF
		} else if err != nil {
			return 0, err
		}
	}
	return a.in.Read(p)
}

// A voice is a program's standard output or error. The two are not for use at the same time.
type voice struct {
	a    *attendant
	kind byte
}

func (v voice) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	return v.a.out.write(v.kind, p)
}

// attendMain is attend for the process's own standard input and output.
func attendMain(run programs.Runner) int {
	if err := attend(run, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "%s: reading items: %v\n", processName, err)
		return 1
	}
	return 0
}
