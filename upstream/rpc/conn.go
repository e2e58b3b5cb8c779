package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// How fast a server may send what nobody asked for, in messages of at most 4 KiB, before it is read slowly.
const (
	unaskedRate  = 1000
	unaskedBurst = 5000
	unaskedSize  = 4 << 10
)

// tellWait is how long telling the server something may take, such as that a request was given up: it may not read at
// all.
const tellWait = time.Second

// A Wire carries messages, both ways.
type Wire interface {
	// Next returns the next message, or what was sent in its place. The bytes are the caller's. An *[Overlong] is not
	// the end of the wire; any other error is.
	Next() ([]byte, error)

	// Send sends one message, in whose spare capacity it may write. The error wraps [ErrNotSent] if the other side
	// cannot have understood any of it.
	Send(ctx context.Context, msg []byte) error

	// Close ends the wire and wakes a Next that waits. It may be called more than once.
	Close() error
}

// A Transport is a wire that the SDK's session and requests of our own share.
type Transport struct {
	Open func(ctx context.Context) (Wire, error)
	Junk func(line []byte) // told of what is no message; may be nil

	changed func()
	conn    *Conn // set by Connect
}

// Notify has changed called when the server says that its tool list has changed. It is called before Connect.
func (t *Transport) Notify(changed func()) { t.changed = changed }

// Connect implements [mcp.Transport].
func (t *Transport) Connect(ctx context.Context) (mcp.Connection, error) {
	wire, err := t.Open(ctx)
	if err != nil {
		return nil, err
	}
	t.conn = &Conn{
		wire: wire, junk: t.Junk, changed: t.changed, pace: Pace{PerSecond: unaskedRate, Burst: unaskedBurst},
		next: FirstID, waiting: map[int64]chan answer{}, done: make(chan struct{}),
	}
	return t.conn, nil
}

// Request makes a request on the connection that Connect has made.
func (t *Transport) Request(ctx context.Context, r *Request) (json.RawMessage, *Failure) {
	return t.conn.request(ctx, r)
}

// HangUp ends the connection by force, if there is one.
func (t *Transport) HangUp() {
	if t.conn != nil {
		_ = t.conn.Close()
	}
}

// Settle waits, at most for a moment, until the server has been told of all requests that were given up.
func (t *Transport) Settle() {
	if t.conn != nil {
		t.conn.cancels.Wait()
	}
}

// An answer is what came for a request.
type answer struct {
	result json.RawMessage
	err    error
	lost   bool
}

// A Conn is a connection with requests of our own beside those of the SDK, which reads it.
type Conn struct {
	wire    Wire
	junk    func([]byte)
	changed func()
	pace    Pace

	replies Replies
	cancels sync.WaitGroup // notifications on their way
	done    chan struct{}  // closed by Close
	once    sync.Once

	mu      sync.Mutex // guards what follows
	next    int64
	waiting map[int64]chan answer
	ended   error // why no answer will come any more
}

var _ mcp.Connection = (*Conn)(nil)

// SessionID is empty: a wire is one session.
func (c *Conn) SessionID() string { return "" }

// Close ends the connection. Requests that wait fail.
func (c *Conn) Close() error {
	c.once.Do(func() { close(c.done) })
	err := c.wire.Close()
	c.end(io.ErrClosedPipe)
	return err
}

// end fails all that waits.
func (c *Conn) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended == nil {
		c.ended = err
	}
	for id, w := range c.waiting {
		delete(c.waiting, id)
		w <- answer{err: c.ended, lost: true}
	}
}

// Write sends a message of the SDK's.
func (c *Conn) Write(ctx context.Context, msg jsonrpc.Message) error {
	b, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return fmt.Errorf("%w: encoding a message: %w", ErrNotSent, err)
	}
	return c.wire.Send(ctx, b)
}

// Read returns the next message for the SDK, and on the way to it takes what is not. The context is not looked at: the
// SDK never ends it, and Close wakes the read.
func (c *Conn) Read(context.Context) (jsonrpc.Message, error) {
	for {
		line, err := c.wire.Next()
		var long *Overlong
		switch {
		case errors.As(err, &long):
			if err = c.tooLong(long); err == nil {
				continue
			}
			fallthrough
		case err != nil:
			c.end(err)
			return nil, err
		}
		if msg := c.take(line); msg != nil {
			return msg, nil
		}
	}
}

// tooLong fails the request that a message over the limit answers. If it cannot be told which that is, it is the only
// one that waits, or the session is over.
func (c *Conn) tooLong(o *Overlong) error {
	if e, _ := Scan(o.Head); e.Method != nil {
		return nil // nobody waits for it
	}
	if id, ok := EdgeID(o.Head, o.Tail); ok {
		n, err := strconv.ParseInt(id, 10, 64)
		if err == nil && n >= FirstID {
			c.deliver(n, answer{err: o})
			return nil
		}
	}
	if !c.deliverOnly(answer{err: o}) {
		return fmt.Errorf("reading a message of %d bytes: %w", o.Size, ErrTooLarge)
	}
	return nil
}

// deliverOnly gives an answer to the only request that waits, and reports whether there is just one.
func (c *Conn) deliverOnly(a answer) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) != 1 {
		return false
	}
	for id, w := range c.waiting {
		delete(c.waiting, id)
		w <- a
	}
	return true
}

// deliver gives an answer to the request that it is for, and reports whether there is one.
func (c *Conn) deliver(id int64, a answer) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.waiting[id]
	if w != nil {
		delete(c.waiting, id)
		w <- a
	}
	return w != nil
}

// take handles a line that is not the SDK's, or returns its message.
func (c *Conn) take(line []byte) jsonrpc.Message {
	e, ok := Scan(line)
	if !ok {
		return c.salvage(line)
	}
	id, known := e.number()
	ours := e.IsAnswer() && known && id >= FirstID
	if ours {
		result, err := e.Answer()
		if c.deliver(id, answer{result: result, err: err}) {
			return nil
		}
	}
	c.pace.Wait(1+float64(len(line)/unaskedSize), c.done)
	switch {
	case ours:
		return nil // nobody waits for it any more
	case e.Method != nil: // the SDK keeps what it is told and asked in a queue without end
		c.heard(e)
		return nil
	}
	msg, err := jsonrpc.DecodeMessage(line)
	if known && e.IsAnswer() && bytes.Contains(line, []byte(`"jsonrpc"`)) {
		if flaw := e.flaw(err); flaw != nil {
			return broken(id, flaw)
		}
	}
	if err != nil {
		c.note(line)
		return nil
	}
	return msg
}

// broken is the answer to a request of the SDK's that the server has answered with what is no answer: nothing else will
// come for it.
func broken(id int64, why error) jsonrpc.Message {
	key, err := jsonrpc.MakeID(float64(id))
	if err != nil { // cannot be: it is a number
		return nil
	}
	return &jsonrpc.Response{ID: key, Error: why}
}

// heard takes what the server tells or asks by itself.
func (c *Conn) heard(e Envelope) {
	switch {
	case e.ID != nil:
		c.replies.Give(e, c.tell)
	case string(e.Method) == `"notifications/tools/list_changed"` && c.changed != nil:
		c.changed()
	}
}

// starts are how messages begin.
var starts = [][]byte{[]byte(`{"jsonrpc"`), []byte(`{"result"`), []byte(`{"id"`)}

// salvage makes the best of a line that is no message: a server that died within one, or whose writes are mixed up, has
// left half of an answer, and maybe a whole one behind it.
func (c *Conn) salvage(line []byte) jsonrpc.Message {
	broken := answer{err: fmt.Errorf("%w: %.100q…", ErrBroken, line)}
	begun := slices.ContainsFunc(starts, func(start []byte) bool { return bytes.HasPrefix(line, start) })
	id, known := "", false
	if begun {
		id, known = EdgeID(line[:min(len(line), edgeLength)], nil)
	}
	if n, err := strconv.ParseInt(id, 10, 64); known && err == nil {
		c.deliver(n, broken)
	}
	for _, start := range starts {
		if i := bytes.LastIndex(line, start); i > 0 {
			if e, ok := Scan(line[i:]); ok && e.Answers() {
				c.note(line[:i])
				return c.take(line[i:])
			}
		}
	}
	if begun && !known {
		c.deliverOnly(broken)
	}
	c.note(line)
	return nil
}

// note tells of a line that is no message. Servers print banners and logs where only messages belong; their clients
// ignore that, and so do we.
func (c *Conn) note(line []byte) {
	c.pace.Wait(1+float64(len(line)/unaskedSize), c.done)
	if c.junk != nil {
		c.junk(line)
	}
}

// request makes a request and waits for its answer.
func (c *Conn) request(ctx context.Context, r *Request) (json.RawMessage, *Failure) {
	w := make(chan answer, 1)
	c.mu.Lock()
	if c.ended != nil {
		defer c.mu.Unlock()
		return nil, &Failure{Err: c.ended, Lost: true}
	}
	id := c.next
	c.next++
	c.waiting[id] = w
	c.mu.Unlock()
	if !r.Leave() {
		c.forget(id)
		<-ctx.Done() // it was its end that kept the request from leaving
		return nil, &Failure{Err: ctx.Err()}
	}
	if err := c.wire.Send(ctx, r.Message(id)); err != nil {
		c.forget(id)
		f := &Failure{Err: err, Sent: !errors.Is(err, ErrNotSent), Lost: ctx.Err() == nil || c.over()}
		if f.Sent && !f.Lost {
			c.cancel(id)
		}
		return nil, f
	}
	select {
	case a := <-w:
		if a.err != nil {
			return nil, &Failure{Err: a.err, Sent: true, Lost: a.lost}
		}
		return a.result, nil
	case <-ctx.Done():
		if c.forget(id) {
			c.cancel(id)
		}
		return nil, &Failure{Err: ctx.Err(), Sent: true}
	}
}

// over reports whether no answer will come any more.
func (c *Conn) over() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.done:
		return true
	default:
		return c.ended != nil
	}
}

// forget waits for an answer no more, and reports whether it had not come.
func (c *Conn) forget(id int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, waiting := c.waiting[id]
	delete(c.waiting, id)
	return waiting
}

// cancel tells the server that nobody waits for an answer, behind the caller's return.
func (c *Conn) cancel(id int64) {
	c.cancels.Go(func() { c.tell(Cancelled(id)) })
}

// tell sends what needs no answer. A server that cannot be told will find out.
func (c *Conn) tell(msg []byte) {
	ctx, stop := context.WithTimeout(context.Background(), tellWait)
	defer stop()
	_ = c.wire.Send(ctx, msg)
}
