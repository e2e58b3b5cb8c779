//go:build linux

package worker

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/mcsh-dev/mcsh/sandbox/programs"
	"github.com/mcsh-dev/mcsh/sandbox/wire"
)

// An inputServer is the applet's end of the frames: it hands one input after another to a program. As a Reader it is the
// present input.
type inputServer struct {
	in    frameReader
	out   frameWriter
	ended bool  // the end of the input has been read
	wrong error // a frame that has no place in an input

	ready func(s appletSpec) (programs.Runner, error)
	run   programs.Runner // the present program; nil: none
	later bool            // a spec has come
}

// serveInputs runs on every input that comes on in the program whose spec came last, and returns when in ends.
func serveInputs(ready func(s appletSpec) (programs.Runner, error), in io.Reader, out io.Writer) error {
	said := bufio.NewWriterSize(out, flushSize)
	defer func() { _ = said.Flush() }() // where it fails too: nothing is said later
	a := &inputServer{in: frameReader{r: bufio.NewReaderSize(prompt{in, said}, frameHeader+wire.MaxData)}, out: frameWriter{w: said}, ready: ready}
	for {
		if err := a.begin(); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		status := a.run(context.Background(), programs.IO{In: a, Out: frameOutput{a, frameData}, Err: frameOutput{a, frameMessage}})
		if _, err := a.out.write(frameStatus, binary.BigEndian.AppendUint32(nil, uint32(int32(status)))); err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, a); err != nil {
			return err
		}
	}
}

// flushSize is how many bytes at once are not held back until more input is needed.
const flushSize = 16 << 10

// A prompt reader sends what has been said before it may have to wait: so an input that came with its end is answered with
// its status.
type prompt struct {
	r    io.Reader
	said *bufio.Writer
}

func (p prompt) Read(b []byte) (int, error) {
	if err := p.said.Flush(); err != nil {
		return 0, err
	}
	return p.r.Read(b)
}

// begin waits for the first frame of an input. Programs may come before it.
func (a *inputServer) begin() error {
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
		return fmt.Errorf("an input, and no program: %w", errFrames)
	}
	return a.take()
}

// learn forgets the program and reads the next one.
func (a *inputServer) learn() (err error) {
	first := !a.later
	a.run, a.later = nil, true
	if a.in.left == 0 {
		return nil
	}
	text := make([]byte, a.in.left)
	if _, err := io.ReadFull(&a.in, text); err != nil {
		return err
	}
	var spec appletSpec
	if err := json.Unmarshal(text, &spec); err != nil {
		return fmt.Errorf("a spec that cannot be read: %w: %w", errFrames, err)
	}
	if !first && (len(spec.Inputs) > 0 || spec.Files > 0) {
		return fmt.Errorf("inputs or files, whose descriptors come only with a new process: %w", errFrames)
	}
	a.run, err = a.ready(spec)
	return err
}

// take takes note of a frame within an input.
func (a *inputServer) take() error {
	switch {
	case a.in.kind == frameEnd && a.in.left == 0:
		a.ended = true
	case a.in.kind != frameData:
		a.wrong = fmt.Errorf("kind %q: %w", a.in.kind, errFrames)
	}
	return a.wrong
}

// Read implements [io.Reader] for the present input.
func (a *inputServer) Read(p []byte) (int, error) {
	if a.wrong != nil {
		return 0, a.wrong
	}
	for a.in.left == 0 {
		if a.ended {
			return 0, io.EOF
		}
		if err := a.in.next(); err != nil {
			return 0, wire.NoEOF(err)
		}
		if err := a.take(); err != nil {
			return 0, err
		}
	}
	return a.in.Read(p)
}

// A frameOutput is a program's standard output or error. The two are not for use at the same time.
type frameOutput struct {
	a    *inputServer
	kind byte
}

func (v frameOutput) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	return v.a.out.write(v.kind, p)
}

// How long an applet works on the items of one input, and how much their outputs may be. Items after that are sent again.
const (
	itemsTime   = 10 * time.Millisecond
	itemsOutput = 512 << 10
	itemsInput  = 1 << 20
)

// forItems returns a runner whose input are many items and whose output are their answers, see package wire. They are
// written at the end: the gateway waits for all of them.
func forItems(run programs.Runner) programs.Runner {
	return func(ctx context.Context, files programs.IO) int {
		left, err := io.ReadAll(io.LimitReader(files.In, itemsInput))
		if err != nil {
			return jailStatus
		}
		start, last := time.Now(), 0
		var answers []byte
		out := &itemOutput{}
		for len(left) > 0 && (len(answers) == 0 || len(answers) < itemsOutput && time.Since(start) < itemsTime) {
			item, rest, ok := wire.CutItem(left)
			if !ok {
				fmt.Fprintln(files.Err, "the input is cut off within an item")
				return jailStatus
			}
			out.b = out.b[:0]
			said := new(stderr)
			status := run(ctx, programs.IO{In: bytes.NewReader(item), Out: out, Err: said})
			text := out.b
			if status != 0 {
				text = []byte(said.text())
			}
			if out.over || len(text) > wire.MaxAnswer || !exited(status, string(text)) {
				last = jailStatus
				break
			}
			answers, left = wire.AppendAnswer(answers, status, text), rest
		}
		if _, err := files.Out.Write(answers); err != nil {
			return jailStatus
		}
		return last
	}
}

// exited reports whether an applet with that exit status and message has ended by itself, and not at a limit.
func exited(status int, message string) bool {
	p := process{tool: &tool{reader: true}}
	f := p.byStatus(&wire.Failure{Stderr: message}, status, false)
	return f == nil || f.Reason == wire.Exit
}

// An itemOutput keeps what is written for an item, if that is not too much.
type itemOutput struct {
	b    []byte
	over bool
}

func (o *itemOutput) Write(p []byte) (int, error) {
	if o.over = o.over || len(o.b)+len(p) > wire.MaxAnswer; o.over {
		return 0, io.ErrShortWrite
	}
	o.b = append(o.b, p...)
	return len(p), nil
}
