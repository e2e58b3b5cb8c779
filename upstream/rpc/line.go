package rpc

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

const (
	// DefaultMax bounds one message from a server, the limit of one tool result.
	DefaultMax = 64 << 20

	// lineBuffer is what one read from a pipe may return: the capacity of a pipe on Linux.
	lineBuffer = 64 << 10

	// edgeLength is how much is kept of each end of a message that is too long, to find out whose answer it was.
	edgeLength = 4 << 10
)

// An Overlong is a message over the limit, of which only the ends were kept.
type Overlong struct {
	Head, Tail []byte
	Size       int64
}

func (o *Overlong) Error() string { return fmt.Sprintf("%v (%d bytes)", ErrTooLarge, o.Size) }
func (o *Overlong) Unwrap() error { return ErrTooLarge }

// A Line is a wire of newline-delimited messages. Unlike the SDK's own it has no fixed cap on a message, survives
// messages over its limit, and honours the context when the other side does not read.
type Line struct {
	in    *bufio.Reader
	out   io.Writer
	max   int             // bytes of one message
	ended <-chan struct{} // closed when nobody is there to read any more; may be nil
	close func() error    // ends both directions and frees what is behind them
	pace  Pace            // of bytes that are skipped

	writing chan struct{} // a lock that can be given up when a context ends
	once    sync.Once
	done    chan struct{}
	err     error // of close, once done is closed
}

// LineOptions are the choices for a [Line]. The zero value works.
type LineOptions struct {
	Max   int             // bytes of one message; 0: [DefaultMax]
	Ended <-chan struct{} // closed when the other side is gone, whatever its pipes still take; nil: not known
	Close func() error    // ends both directions and frees what is behind them
}

// NewLine makes a wire of two streams.
func NewLine(in io.Reader, out io.Writer, o LineOptions) *Line {
	if o.Max <= 0 {
		o.Max = DefaultMax
	}
	return &Line{
		in: bufio.NewReaderSize(in, lineBuffer), out: out, max: o.Max, ended: o.Ended, close: o.Close,
		pace: Pace{PerSecond: 64 << 20, Burst: 256 << 20}, writing: make(chan struct{}, 1), done: make(chan struct{}),
	}
}

// Close ends the connection and wakes a Next that waits.
func (l *Line) Close() error {
	l.once.Do(func() {
		close(l.done)
		if l.close != nil {
			l.err = l.close()
		}
	})
	return l.err
}

// Next returns the next line that is not blank, without its end. A last line without a newline comes too.
func (l *Line) Next() ([]byte, error) {
	for {
		line, err := l.readLine()
		line = bytes.TrimSpace(line)
		if len(line) > 0 || err != nil {
			if len(line) > 0 && err == io.EOF {
				err = nil // comes again with the next read
			}
			return line, err
		}
	}
}

// readLine reads to the next newline. The bytes are the caller's to keep.
func (l *Line) readLine() ([]byte, error) {
	var line []byte
	for {
		part, err := l.in.ReadSlice('\n')
		if len(line)+len(part) > l.max {
			return nil, l.skipLine(line, part, err)
		}
		line = grow(line, len(part))
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// grow makes room for n more bytes. It doubles, where append would copy a large message five times over.
func grow(b []byte, n int) []byte {
	if len(b) == 0 || cap(b)-len(b) >= n {
		return b
	}
	return append(make([]byte, 0, max(2*cap(b), len(b)+n)), b...)
}

// skipLine reads the rest of a line that is too long, keeping its ends. The result is an *Overlong, unless reading
// failed.
func (l *Line) skipLine(line, part []byte, err error) error {
	o := &Overlong{Size: int64(len(line) + len(part))}
	o.Head = append(o.Head, line[:min(len(line), edgeLength)]...)
	o.Head = append(o.Head, part[:min(len(part), edgeLength-len(o.Head))]...)
	for {
		o.Tail = append(o.Tail, part...)
		o.Tail = append(o.Tail[:0], o.Tail[max(0, len(o.Tail)-edgeLength):]...)
		if err == nil {
			return o
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
		l.pace.Wait(float64(len(part)), l.done)
		part, err = l.in.ReadSlice('\n')
		o.Size += int64(len(part))
	}
}

// Send sends a message. When ctx ends while the other side does not read, it returns at once; a message of which a
// part was sent then ends the connection, because what follows could not be told apart from it.
func (l *Line) Send(ctx context.Context, msg []byte) error {
	select {
	case l.writing <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrNotSent, ctx.Err())
	case <-l.done:
		return fmt.Errorf("%w: %w", ErrNotSent, io.ErrClosedPipe)
	}
	defer func() { <-l.writing }()
	select {
	case <-l.ended: // threads that still end may hold the pipe open: a write could succeed
		return fmt.Errorf("%w: %w", ErrNotSent, io.ErrClosedPipe)
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrNotSent, ctx.Err())
	default:
	}
	defer l.writeUntil(ctx)()
	msg = oneLine(msg)
	n, err := l.out.Write(append(msg, '\n'))
	switch {
	case err == nil:
		return nil
	case n <= len(msg): // without its end it is no message
		err = fmt.Errorf("%w: %w", ErrNotSent, err)
	}
	if n > 0 {
		_ = l.Close()
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %w", ctx.Err(), err)
	}
	return err
}

// oneLine returns msg without ends of lines, which JSON has between its tokens only: arguments come as they were found,
// often indented. A carriage return ends a line for some readers too.
func oneLine(msg []byte) []byte {
	if bytes.IndexByte(msg, '\n') < 0 && bytes.IndexByte(msg, '\r') < 0 {
		return msg
	}
	line := bytes.Clone(msg)
	for i, b := range line {
		if b == '\r' || b == '\n' {
			line[i] = ' '
		}
	}
	return line
}

// writeUntil makes a blocked write return when ctx ends. The function returned undoes that.
func (l *Line) writeUntil(ctx context.Context) func() {
	d, ok := l.out.(interface{ SetWriteDeadline(time.Time) error })
	if !ok || ctx.Done() == nil {
		return func() {}
	}
	fired := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_ = d.SetWriteDeadline(time.Unix(1, 0))
		close(fired)
	})
	return func() {
		if !stop() {
			<-fired
			_ = d.SetWriteDeadline(time.Time{})
		}
	}
}
