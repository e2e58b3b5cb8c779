package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/memory"
)

// MaxHandshake bounds an answer to a request of the SDK's, in bytes. The SDK decodes all of it, which takes many times
// the memory, and keeps it as long as the session.
const MaxHandshake = 1 << 20

// AnswerWait is how long sending an answer to a request of the server may take.
const AnswerWait = 30 * time.Second

// notifyWait is how long sending a notification may take: a server may not read at all.
const notifyWait = time.Second

// A Wire carries messages in both directions.
type Wire interface {
	// Next returns the next message, or the other data that was sent instead. The caller owns the bytes. After an *[Overlong] the
	// wire goes on; any other error is its end.
	Next() ([]byte, error)

	// Send sends one message; it may write to its spare capacity. The error wraps [ErrNotSent] if the other side cannot
	// have understood any of it.
	Send(ctx context.Context, msg []byte) error

	// Prepare counts messages in share, if the wire can, and bounds each to max bytes; 0: [DefaultMax]. It is called
	// before the first Next.
	Prepare(share *memory.Share, max int)

	// Lease is the memory of the last message, nil if it is not counted. The next Next frees it.
	Lease() *memory.Lease

	// Close ends the wire and wakes a waiting Next. It may be called more than once.
	Close() error
}

// A Transport is a wire that the SDK's session and requests of our own share.
type Transport struct {
	Open   func(ctx context.Context) (Wire, error)
	OnJunk func(line []byte) // called with lines that are not messages; may be nil
	Kind   Traits

	noted func(News)
	role  Role
	share *memory.Share
	max   int   // bytes of one message
	conn  *Conn // set by Connect
}

// Traits are what a session with a server needs to know about its transport.
type Traits struct {
	Program    bool // it starts a program on this machine
	OlderOnly  bool // it is used with the older protocol only
	NoListener bool // there is no standing stream: notifications come only with answers, so the tool list is refreshed by time
}

// Traits returns Kind.
func (t *Transport) Traits() Traits { return t.Kind }

// Prepare sets a function that is called with the news of the server, and the share that messages count in, each of at
// most max bytes. It is called before Connect.
func (t *Transport) Prepare(noted func(News), share *memory.Share, max int) {
	t.noted, t.share, t.max = noted, share, max
}

// Play sets what we do for the server. It is called before Connect.
func (t *Transport) Play(role Role) { t.role = role }

// Connect implements [mcp.Transport].
func (t *Transport) Connect(ctx context.Context) (mcp.Connection, error) {
	wire, err := t.Open(ctx)
	if err != nil {
		return nil, err
	}
	wire.Prepare(t.share, t.max)
	t.conn = &Conn{
		wire: wire, onJunk: t.OnJunk, noted: t.noted, limiter: UnaskedLimiter(),
		next: FirstID, pending: map[int64]pendingRequest{}, done: make(chan struct{}),
	}
	t.conn.replies.Role = t.role
	return t.conn, nil
}

// Hold notes that somebody waits for a task, as [InFlight.Hold].
func (t *Transport) Hold(task *Request) (release func()) {
	return t.conn.replies.InFlight.Hold(task)
}

// Request makes a request on the connection that Connect has made.
func (t *Transport) Request(ctx context.Context, r *Request) (json.RawMessage, *Failure) {
	return t.conn.request(ctx, r)
}

// Abort ends the connection by force, if there is one.
func (t *Transport) Abort() {
	if t.conn != nil {
		_ = t.conn.Close()
	}
}

// FlushCancelled waits, for a moment at most, until the server has been notified of all cancelled requests.
func (t *Transport) FlushCancelled() {
	if t.conn != nil {
		t.conn.cancels.Wait()
	}
}

// A pendingRequest is a request that waits for its response.
type pendingRequest struct {
	result  chan response
	request *Request
}

// A response is the result of a request.
type response struct {
	result json.RawMessage
	err    error
	lost   bool
}

// A Conn is a connection with requests of our own beside those of the SDK, which reads it.
type Conn struct {
	wire    Wire
	onJunk  func([]byte)
	noted   func(News)
	limiter Limiter

	replies Replies
	cancels sync.WaitGroup // notifications being sent
	done    chan struct{}  // closed by Close
	once    sync.Once

	mu      sync.Mutex // guards the fields below
	next    int64
	pending map[int64]pendingRequest
	ended   error // why no more responses will come
}

var _ mcp.Connection = (*Conn)(nil)

// SessionID is empty: a wire is one session.
func (c *Conn) SessionID() string { return "" }

// Close ends the connection. Pending requests fail.
func (c *Conn) Close() error {
	c.once.Do(func() { close(c.done) })
	err := c.wire.Close()
	c.end(ErrClosed)
	return err
}

// end fails all pending requests.
func (c *Conn) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended == nil {
		c.ended = err
	}
	for id, w := range c.pending {
		delete(c.pending, id)
		w.result <- response{err: c.ended, lost: true}
	}
}

// Write sends a message of the SDK's.
func (c *Conn) Write(ctx context.Context, msg jsonrpc.Message) error {
	b, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return fmt.Errorf("%w: encoding a message: %w", ErrNotSent, err)
	}
	return c.send(ctx, b)
}

func (c *Conn) send(ctx context.Context, msg []byte) error {
	c.replies.Role.See(true, func() []byte { return msg })
	return NormalizeClosed(c.wire.Send(ctx, msg))
}

// Read returns the next message for the SDK, and handles all others before it. It ignores the context: the SDK never
// cancels it, and Close wakes the read.
func (c *Conn) Read(context.Context) (jsonrpc.Message, error) {
	for {
		c.limiter.Wait(0, c.done) // for what was read before
		line, err := c.wire.Next()
		var long *Overlong
		switch {
		case errors.As(err, &long):
			if err = c.failOverlong(long); err == nil {
				continue
			}
			fallthrough
		case err != nil:
			err = NormalizeClosed(err)
			c.end(err)
			return nil, err
		}
		c.replies.Role.See(false, func() []byte { return line })
		if msg := c.handle(line); msg != nil {
			return msg, nil
		}
	}
}

// failOverlong fails the request that a message over the limit answers. If its id is not found, it is the only pending
// request, or the session is over.
func (c *Conn) failOverlong(o *Overlong) error {
	if e, _ := Scan(o.Head); e.Method != nil {
		return nil // it answers no request
	}
	if id, ok := EdgeID(o.Head, o.Tail); ok {
		n, err := strconv.ParseInt(id, 10, 64)
		if err == nil && n >= FirstID {
			c.deliver(n, response{err: o})
			return nil
		}
	}
	if !c.deliverOnly(response{err: o}) {
		return o
	}
	return nil
}

// deliverOnly gives a response to the only pending request, and reports whether there is exactly one.
func (c *Conn) deliverOnly(a response) bool {
	c.mu.Lock()
	ids := slices.Collect(maps.Keys(c.pending))
	c.mu.Unlock()
	return len(ids) == 1 && c.deliver(ids[0], a)
}

// deliver gives a response to its request, and reports whether that is pending.
func (c *Conn) deliver(id int64, a response) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	w, ok := c.pending[id]
	if ok {
		delete(c.pending, id)
		c.replies.InFlight.End(w.request, id, true)
		if w.request.Lease != nil {
			w.request.Lease.Adopt(c.wire.Lease())
		}
		w.result <- a
	}
	return ok
}

// handle handles a line that is not for the SDK, or returns its message.
func (c *Conn) handle(line []byte) jsonrpc.Message {
	e, ok := Scan(line)
	if !ok {
		return c.recoverMessage(line)
	}
	id, known := e.number()
	ours := e.IsAnswer() && known && id >= FirstID
	if ours {
		result, err := e.Answer()
		if c.deliver(id, response{result: result, err: err}) {
			return nil
		}
	}
	c.limiter.take(MessageCost(len(line)))
	switch {
	case ours:
		c.replies.InFlight.Settle(id) // its request was cancelled
		return nil
	case e.Method != nil: // the SDK would queue these without bound
		c.handleUnasked(e)
		return nil
	}
	if known && e.IsAnswer() && len(line) > MaxHandshake {
		return broken(id, fmt.Errorf("%w: it has %d bytes, of at most %d", ErrBroken, len(line), MaxHandshake))
	}
	msg, err := jsonrpc.DecodeMessage(line)
	if known && e.IsAnswer() && bytes.Contains(line, []byte(`"jsonrpc"`)) {
		if flaw := e.flaw(err); flaw != nil {
			return broken(id, flaw)
		}
	}
	if err != nil {
		c.reportJunk(line)
		return nil
	}
	return msg
}

// broken is the response to a request of the SDK's that the server has answered with an invalid message: no other answer
// will come.
func broken(id int64, why error) jsonrpc.Message {
	key, err := jsonrpc.MakeID(float64(id))
	if err != nil { // cannot be: it is a number
		return nil
	}
	return &jsonrpc.Response{ID: key, Error: why}
}

// handleUnasked handles requests and notifications of the server.
func (c *Conn) handleUnasked(e Envelope) {
	switch {
	case c.replies.Take(e, nil, c.answer):
	case e.IsNews() && c.noted != nil:
		c.noted(e.News())
	case e.IsAcknowledgement():
		c.routeAcknowledgement(e.Params)
	case string(e.Method) == `"notifications/progress"`:
		c.routeProgress(e.Params)
	}
}

// starts are how messages begin.
var starts = [][]byte{[]byte(`{"jsonrpc"`), []byte(`{"result"`), []byte(`{"id"`)}

// recoverMessage handles a line that is not a message. A server that died while writing, or that mixes up its writes, has
// left a part of an answer, and maybe a complete one behind it.
func (c *Conn) recoverMessage(line []byte) jsonrpc.Message {
	broken := response{err: fmt.Errorf("%w: %.100q…", ErrBroken, line)}
	begun := slices.ContainsFunc(starts, func(start []byte) bool { return bytes.HasPrefix(line, start) })
	id, known := "", false
	if begun {
		id, known = EdgeID(line[:min(len(line), EdgeLength)], nil)
	}
	if n, err := strconv.ParseInt(id, 10, 64); known && err == nil {
		c.deliver(n, broken)
	}
	for _, start := range starts {
		if i := bytes.LastIndex(line, start); i > 0 {
			if e, ok := Scan(line[i:]); ok && e.Answers() {
				c.reportJunk(line[:i])
				return c.handle(line[i:])
			}
		}
	}
	if begun && !known {
		c.deliverOnly(broken)
	}
	c.reportJunk(line)
	return nil
}

// reportJunk reports a line that is not a message. Servers print banners and logs between messages; clients ignore that.
func (c *Conn) reportJunk(line []byte) {
	c.limiter.take(MessageCost(len(line)))
	if c.onJunk != nil {
		c.onJunk(line)
	}
}

// request makes a request and waits for its response.
func (c *Conn) request(ctx context.Context, r *Request) (json.RawMessage, *Failure) {
	w := make(chan response, 1)
	c.mu.Lock()
	if c.ended != nil {
		defer c.mu.Unlock()
		return nil, &Failure{Err: c.ended, Lost: true}
	}
	id := c.next
	c.next++
	c.pending[id] = pendingRequest{w, r}
	c.replies.InFlight.Begin(r)
	c.mu.Unlock()
	if !r.MaySend() {
		c.abandon(id)
		c.replies.InFlight.Settle(id)
		<-ctx.Done() // BeforeSend refuses only when ctx ends
		return nil, &Failure{Err: ctx.Err()}
	}
	if err := c.send(ctx, r.Message(id)); err != nil {
		c.abandon(id)
		f := &Failure{Err: err, Sent: !errors.Is(err, ErrNotSent), Lost: ctx.Err() == nil || c.isClosed()}
		if !f.Sent {
			c.replies.InFlight.Settle(id)
		}
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
		if c.abandon(id) {
			c.cancel(id)
		}
		return nil, &Failure{Err: ctx.Err(), Sent: true}
	}
}

// isClosed reports whether no more responses will come.
func (c *Conn) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.done:
		return true
	default:
		return c.ended != nil
	}
}

// abandon removes a pending request, and reports whether it was still pending.
func (c *Conn) abandon(id int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	w, pending := c.pending[id]
	delete(c.pending, id)
	if pending {
		c.replies.InFlight.End(w.request, id, false)
	}
	return pending
}

// cancel notifies the server that a request is cancelled, in the background.
func (c *Conn) cancel(id int64) {
	c.cancels.Go(func() { c.notify(Cancelled(id)) })
}

// notify sends a message that needs no answer. Errors are ignored.
func (c *Conn) notify(msg []byte) { c.sendWithin(notifyWait, msg) }

// answer sends an answer to a request of the server, which waits for it. Errors are ignored.
func (c *Conn) answer(msg []byte) { c.sendWithin(AnswerWait, msg) }

func (c *Conn) sendWithin(limit time.Duration, msg []byte) {
	ctx, stop := context.WithTimeout(context.Background(), limit)
	defer stop()
	_ = c.send(ctx, msg)
}
