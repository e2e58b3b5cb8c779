package rpc

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/mcsh-dev/mcsh/internal/memory"
)

const (
	// DefaultMax bounds one message of a server if no other limit is set.
	DefaultMax = 64 << 20

	// lineBuffer is the capacity of a pipe on Linux, which one read may return.
	lineBuffer = 64 << 10

	// EdgeLength is how much is kept of each end of a message that is too long, to find its id.
	EdgeLength = 4 << 10
)

// An Overlong is a message over the limit, of which only the ends were kept.
type Overlong struct {
	Head, Tail []byte
	Size       int64
	Max        int64 // the limit of one message
	Why        error // a [*memory.Full]; nil: that limit
}

func (o *Overlong) Error() string { return o.Unwrap().Error() }

// Unwrap returns the reason.
func (o *Overlong) Unwrap() error {
	if o.Why != nil {
		return o.Why
	}
	return &TooLarge{Size: o.Size, Max: o.Max}
}

// Skip reads the rest of a line, of which a part was read with err: [bufio.ErrBufferFull], if there is more. It keeps the
// end of the line.
func (o *Overlong) Skip(in *bufio.Reader, part []byte, err error, limiter *Limiter, done <-chan struct{}) error {
	for {
		o.Tail = append(o.Tail, part...)
		o.Tail = append(o.Tail[:0], o.Tail[max(0, len(o.Tail)-EdgeLength):]...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
		limiter.Wait(float64(len(part)), done)
		part, err = in.ReadSlice('\n')
		o.Size += int64(len(part))
	}
}

// A Line is a wire of newline-delimited messages. Unlike the SDK's, it has no fixed bound of a message, survives
// messages over its limit, and honours the context if the other side does not read.
type Line struct {
	in      *bufio.Reader
	out     io.Writer
	max     int             // bytes of one message
	ended   <-chan struct{} // closed when the other side no longer reads; may be nil
	close   func() error    // ends both directions and frees their resources
	limiter Limiter         // of bytes that are skipped
	share   *memory.Share   // that messages are counted in
	lease   *memory.Lease   // of share, for the last message

	writing chan struct{} // a lock whose wait a context can end
	once    sync.Once
	done    chan struct{}
	err     error // of close, once done is closed
}

// LineOptions are the choices for a [Line]. The zero value works.
type LineOptions struct {
	Ended <-chan struct{} // closed when the other side is gone, even if its pipes are open; nil: not known
	Close func() error    // ends both directions and frees their resources
}

// NewLine makes a wire of two streams.
func NewLine(in io.Reader, out io.Writer, o LineOptions) *Line {
	return &Line{
		in: bufio.NewReaderSize(in, lineBuffer), out: out, max: DefaultMax, ended: o.Ended, close: o.Close,
		limiter: SkipLimiter(), writing: make(chan struct{}, 1), done: make(chan struct{}),
	}
}

// Prepare counts messages in share, and bounds one to max bytes; 0: [DefaultMax]. It is called before the first Next.
func (l *Line) Prepare(share *memory.Share, max int) { l.share, l.max = share, cmp.Or(max, DefaultMax) }

// Lease is the memory of the last message. The next Next frees it.
func (l *Line) Lease() *memory.Lease { return l.lease }

// Close ends the connection and wakes a waiting Next.
func (l *Line) Close() error {
	l.once.Do(func() {
		close(l.done)
		if l.close != nil {
			l.err = l.close()
		}
	})
	return l.err
}

// Next returns the next line that is not blank, without its end. A last line without a newline counts. A server that
// sends many blank lines is read slowly.
func (l *Line) Next() ([]byte, error) {
	for {
		whole, err := l.readLine()
		line := bytes.TrimSpace(whole)
		if len(line) > 0 || err != nil {
			if len(line) > 0 && err == io.EOF {
				err = nil // comes again with the next read
			}
			return line, err
		}
		l.limiter.Wait(float64(lineBuffer+len(whole)), l.done)
	}
}

// How long a message of more than 1 MiB may take, since it counts as memory until it is complete.
const (
	stallTime   = 30 * time.Second // without a byte
	messageTime = 5 * time.Minute  // in all
)

// stallGuard returns a function that ends the connection unless it is called again in time, and one that stops that.
func (l *Line) stallGuard() (alive, stop func()) {
	begun := time.Now()
	timer := time.AfterFunc(stallTime, func() { _ = l.Close() })
	return func() {
		if time.Since(begun) < messageTime {
			timer.Reset(stallTime)
		}
	}, func() { timer.Stop() }
}

// readLine reads to the next newline. The caller owns the bytes. A server that stalls within a long message loses the
// connection, and so does one whose message is lost with its temporary file.
func (l *Line) readLine() ([]byte, error) {
	l.lease.Close()
	l.lease = l.share.Lease()
	line := NewBuffer(l.lease)
	defer line.Close()
	alive, stop := (func())(nil), func() {}
	defer func() { stop() }()
	for {
		part, err := l.in.ReadSlice('\n')
		switch {
		case alive != nil:
			alive()
		case line.Len() > fileFrom:
			alive, stop = l.stallGuard()
		}
		if line.Len()+len(part) > l.max {
			stop()
			return nil, l.skipLine(&line, part, err, nil)
		}
		if _, failed := line.Write(part); failed != nil {
			stop()
			if _, full := errors.AsType[*memory.Full](failed); full {
				return nil, l.skipLine(&line, part, err, failed)
			}
			l.lease.Close()
			return nil, failed
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil && err != io.EOF {
			l.lease.Close()
			return nil, err
		}
		whole, lost := line.Bytes()
		if lost != nil {
			l.lease.Close()
			return nil, lost
		}
		return whole, err
	}
}

// skipLine reads the rest of a line that is too long, keeping its ends. It returns an *Overlong, unless reading fails.
func (l *Line) skipLine(line *Buffer, part []byte, err, why error) error {
	o := &Overlong{Size: int64(line.Len() + len(part)), Max: int64(l.max), Why: why}
	o.Head = append(o.Head, line.Head(EdgeLength)...)
	line.Close()
	l.lease.Close() // a line without an end must not hold memory
	o.Head = append(o.Head, part[:min(len(part), EdgeLength-len(o.Head))]...)
	if err = o.Skip(l.in, part, err, &l.limiter, l.done); err != nil {
		return err
	}
	return o
}

// Send sends a message. When ctx ends while the other side does not read, it returns at once; if a part of the message
// was sent, it also ends the connection, because the next message could not be separated from it.
func (l *Line) Send(ctx context.Context, msg []byte) error {
	select {
	case l.writing <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrNotSent, ctx.Err())
	case <-l.done:
		return fmt.Errorf("%w: %w", ErrNotSent, ErrClosed)
	}
	defer func() { <-l.writing }()
	select {
	case <-l.ended: // ending threads may hold the pipe open, so that a write succeeds
		return fmt.Errorf("%w: %w", ErrNotSent, ErrClosed)
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
	case n <= len(msg): // without its end it is not a message
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

// oneLine returns msg without line ends, which in JSON appear only between tokens: agents often indent arguments. Some
// readers take a carriage return for a line end too.
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

// writeUntil makes a blocked write return when ctx ends. The returned function undoes that.
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
