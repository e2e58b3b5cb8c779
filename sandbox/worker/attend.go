//go:build linux

package worker

import (
	"bufio"
	"bytes"
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
	ended bool  // the end of the item has been read
	wrong error // a frame that has no place in an item

	ready func(s appletSpec) (programs.Runner, error)
	run   programs.Runner // the program for items; nil: none
}

// attend runs programs on every item that comes on in, and returns when in ends: the one of first, until another one comes.
func attend(first appletSpec, ready func(s appletSpec) (programs.Runner, error), in io.Reader, out io.Writer) (err error) {
	said := newPatient(out)
	defer func() { _ = said.Flush() }() // where it fails too: nothing is said later
	a := &attendant{in: frameReader{r: bufio.NewReaderSize(prompt{in, said}, frameHeader+frameMax)}, out: frameWriter{w: said}, ready: ready}
	if a.run, err = ready(first); err != nil {
		return err
	}
	for {
		if err := a.begin(); err == io.EOF {
			return said.Flush()
		} else if err != nil {
			return err
		}
		status := a.run(context.Background(), programs.IO{In: a, Out: voice{a, frameData}, Err: voice{a, frameMessage}})
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

// begin waits for the first frame of an item. Programs may come before it.
func (a *attendant) begin() error {
	a.ended = false
	for {
		if err := a.in.next(); err != nil {
			return err
		}
		if a.in.kind != frameSpec {
			break
		}
		if err := a.learn(); err != nil {
			return err
		}
	}
	if a.run == nil {
		return fmt.Errorf("an item, and no program: %w", errFrames)
	}
	return a.take()
}

// learn forgets the program and reads the next one. Descriptors come only with the first.
func (a *attendant) learn() error {
	a.run = nil
	if a.in.left == 0 {
		return nil
	}
	text := make([]byte, a.in.left)
	if _, err := io.ReadFull(&a.in, text); err != nil {
		return err
	}
	rest := bytes.NewReader(text)
	spec, err := readSpec(rest)
	if err != nil || rest.Len() > 0 || !spec.Keep || len(spec.Inputs) > 0 || spec.Files > 0 {
		return fmt.Errorf("no spec of a program for items: %w", errFrames)
	}
	a.run, err = a.ready(spec)
	return err
}

func (a *attendant) next() error {
	if err := a.in.next(); err != nil {
		return err
	}
	return a.take()
}

// take takes note of a frame within an item.
func (a *attendant) take() error {
	switch {
	case a.in.kind == frameEnd && a.in.left == 0:
		a.ended = true
	case a.in.kind != frameData:
		a.wrong = fmt.Errorf("kind %q: %w", a.in.kind, errFrames)
	}
	return a.wrong
}

// Read implements [io.Reader] for the present item.
func (a *attendant) Read(p []byte) (int, error) {
	if a.wrong != nil {
		return 0, a.wrong
	}
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
func attendMain(first appletSpec, o Options) int {
	if err := attend(first, o.ready, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "%s: reading items: %v\n", processName, err)
		return 1
	}
	return 0
}
