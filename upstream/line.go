package upstream

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// defaultMaxMessage bounds one message from a server, the limit of one tool result.
	defaultMaxMessage = 64 << 20

	// lineBuffer is what one read from a pipe may return: the capacity of a pipe on Linux.
	lineBuffer = 64 << 10

	// edgeLength is how much is kept of each end of a message that is too long, to find out whose answer it was.
	edgeLength = 4 << 10
)

var (
	// errTooLarge is the cause of a call whose result was over the limit and was not taken.
	errTooLarge = errors.New("the result is larger than the limit")

	// errNotSent marks an error of a write of which no byte has left: the server cannot have seen the message.
	errNotSent = errors.New("nothing was sent")
)

// lineConn is a connection of newline-delimited JSON-RPC. Unlike the SDK's own it has no fixed cap on a message,
// survives messages over its limit and lines that are no messages, honours the context when the other side does not
// read, and does not look into results.
type lineConn struct {
	in    *bufio.Reader
	out   io.Writer
	max   int               // bytes of one message
	junk  func(line []byte) // told of each line that is no message; may be nil
	close func() error      // ends both directions and frees what is behind them

	writing chan struct{} // a lock that can be given up when a context ends
	once    sync.Once
	done    chan struct{}
	err     error // of close, once done is closed
}

var _ mcp.Connection = (*lineConn)(nil)

func newLineConn(in io.Reader, out io.Writer, limit int, closing func() error) *lineConn {
	if limit <= 0 {
		limit = defaultMaxMessage
	}
	return &lineConn{
		in: bufio.NewReaderSize(in, lineBuffer), out: out, max: limit, close: closing,
		writing: make(chan struct{}, 1), done: make(chan struct{}),
	}
}

// SessionID is empty: a pair of pipes is one session.
func (l *lineConn) SessionID() string { return "" }

// Close ends the connection and wakes a Read that waits.
func (l *lineConn) Close() error {
	l.once.Do(func() {
		close(l.done)
		l.err = l.close()
	})
	return l.err
}

// Read returns the next message. The context is not looked at: the SDK never ends it, and Close wakes the read.
func (l *lineConn) Read(context.Context) (jsonrpc.Message, error) {
	for {
		line, err := l.readLine()
		var long *overlong
		switch {
		case errors.As(err, &long):
			id, ok := edgeID(long.head, long.tail)
			if !ok {
				return nil, fmt.Errorf("reading a message of %d bytes: %w", long.size, errTooLarge)
			}
			return &jsonrpc.Response{ID: id, Error: long}, nil
		case err != nil && len(line) == 0:
			return nil, err
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		msg, decodeErr := decodeMessage(line)
		if decodeErr == nil {
			return msg, nil
		}
		// Servers print banners and logs where only messages belong. Their clients ignore that, and so do we.
		if l.junk != nil {
			l.junk(line)
		}
	}
}

// overlong is a message over the limit, of which only the ends were kept.
type overlong struct {
	head, tail []byte
	size       int64
}

func (o *overlong) Error() string { return fmt.Sprintf("%v (%d bytes)", errTooLarge, o.size) }
func (o *overlong) Unwrap() error { return errTooLarge }

// readLine reads to the next newline. The bytes are the caller's to keep. A last line without a newline comes with
// the error that ended it.
func (l *lineConn) readLine() ([]byte, error) {
	var line []byte
	for {
		part, err := l.in.ReadSlice('\n')
		if len(line)+len(part) > l.max {
			return nil, l.skipLine(line, part, err)
		}
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// skipLine reads the rest of a line that is too long, keeping its ends. The result is an *overlong, unless reading
// failed.
func (l *lineConn) skipLine(line, part []byte, err error) error {
	o := &overlong{size: int64(len(line) + len(part))}
	o.head = append(o.head, line[:min(len(line), edgeLength)]...)
	o.head = append(o.head, part[:min(len(part), edgeLength-len(o.head))]...)
	for {
		o.tail = append(o.tail, part...)
		o.tail = append(o.tail[:0], o.tail[max(0, len(o.tail)-edgeLength):]...)
		if err == nil {
			return o
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
		part, err = l.in.ReadSlice('\n')
		o.size += int64(len(part))
	}
}

// Write sends a message. When ctx ends while the other side does not read, it returns at once; a message of which a
// part was sent then ends the connection, because what follows could not be told apart from it.
func (l *lineConn) Write(ctx context.Context, msg jsonrpc.Message) error {
	b, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return fmt.Errorf("%w: encoding a message: %w", errNotSent, err)
	}
	select {
	case l.writing <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", errNotSent, ctx.Err())
	case <-l.done:
		return fmt.Errorf("%w: %w", errNotSent, io.ErrClosedPipe)
	}
	defer func() { <-l.writing }()
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %w", errNotSent, ctx.Err())
	}
	defer l.writeUntil(ctx)()
	n, err := l.out.Write(append(b, '\n'))
	switch {
	case err == nil:
		return nil
	case n == 0:
		err = fmt.Errorf("%w: %w", errNotSent, err)
	default:
		_ = l.Close()
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %w", ctx.Err(), err)
	}
	return err
}

// writeUntil makes a blocked write return when ctx ends. The function returned undoes that.
func (l *lineConn) writeUntil(ctx context.Context) func() {
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
