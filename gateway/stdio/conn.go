package stdio

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sync/semaphore"

	"github.com/mcsh-dev/mcsh/gateway"
)

// A conn is the connection of the SDK's session with the client, and answers ordinary calls without the SDK. It suits a shell
// that pipes in a few lines: the end of the input does not cancel the calls before it, and a tools/call may come without a
// handshake.
type conn struct {
	in   *bufio.Reader
	out  io.Writer
	take direct
	life context.Context
	end  context.CancelCauseFunc // ends life, and so the calls

	session *mcp.ServerSession // set before the first message is read
	opened  atomic.Bool        // the handshake is answered: calls need not go to the SDK

	unanswered *semaphore.Weighted // the weights of unanswered requests: at the bound the reader stops
	direct     *semaphore.Weighted // requests that are answered without the SDK

	line   []byte // the buffer of lines
	begun  bool   // the first message has come
	piped  bool   // the client did not wait for the first answer
	err    error  // after the last line
	parsed chan parsed
	open   context.Context // until Close
	close  context.CancelFunc

	greeted bool              // the SDK has a first message; only Read uses it
	ahead   []jsonrpc.Message // to be read next; only Read uses it

	writing sync.Mutex  // guards out, and writes of framed
	framed  bool        // messages have headers before them; else each is a line
	mute    atomic.Bool // drops all later writes

	mu        sync.Mutex
	lost      error           // of the write of an answer without the SDK; guarded by mu
	asked     map[any][]int64 // weights of the SDK's calls that have not ended, by id; guarded by mu
	cancelled map[any]bool    // of asked, by the client; guarded by mu
}

// parsed is a message for the SDK, or the reason why there are no more.
type parsed struct {
	message jsonrpc.Message
	weight  int64 // that the message has of unanswered
	err     error
}

// Bounds of unanswered requests. A client that does not read its answers waits.
const (
	maxUnanswered = 4096
	maxWeight     = 64 << 20 // of the requests together, in bytes
)

// weight returns the share of a request in maxWeight, so that there are at most maxUnanswered.
func weight(bytes int) int64 { return int64(max(bytes, maxWeight/maxUnanswered)) }

func newConn(life context.Context, end context.CancelCauseFunc, o Options) *conn {
	c := &conn{
		in: bufio.NewReaderSize(o.In, 64<<10), out: o.Out, take: o.Direct, life: life, end: end,
		unanswered: semaphore.NewWeighted(maxWeight), direct: semaphore.NewWeighted(maxUnanswered),
		parsed: make(chan parsed), asked: map[any][]int64{}, cancelled: map[any]bool{},
	}
	c.open, c.close = context.WithCancel(context.Background())
	return c
}

// Connect implements [mcp.Transport]. It may be called once.
func (c *conn) Connect(context.Context) (mcp.Connection, error) { return c, nil }

// SessionID implements [mcp.Connection].
func (c *conn) SessionID() string { return "" }

// Close ends the session.
func (c *conn) Close() error {
	c.close()
	return nil
}

// handshakeID is the id of a handshake that the client left out.
const handshakeID = "mcsh-handshake"

// Read returns the next message for the SDK. At the end of the input it returns an error, and only after the answers to all
// calls.
func (c *conn) Read(ctx context.Context) (jsonrpc.Message, error) {
	if len(c.ahead) > 0 {
		m := c.ahead[0]
		c.ahead = c.ahead[1:]
		return m, nil
	}
	var next parsed
	select {
	case next = <-c.parsed:
	case <-c.open.Done():
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if next.err != nil {
		c.finish(ctx)
	}
	first := !c.greeted
	c.greeted = true
	req, ok := next.message.(*jsonrpc.Request)
	if !ok {
		return next.message, next.err
	}
	c.note(req, next.weight)
	if first && req.Method == "tools/call" && !stateless(req) {
		return c.shakeHands(req)
	}
	return req, nil
}

// stateless reports whether a request is of the protocol without a handshake.
func stateless(req *jsonrpc.Request) bool {
	var params struct {
		Meta map[string]json.RawMessage `json:"_meta"`
	}
	return json.Unmarshal(req.Params, &params) == nil && params.Meta[mcp.MetaKeyProtocolVersion] != nil
}

// shakeHands returns the handshake that a one-shot call left out, and queues the call.
func (c *conn) shakeHands(call *jsonrpc.Request) (jsonrpc.Message, error) {
	id, err := jsonrpc.MakeID(handshakeID)
	if err != nil {
		return nil, err
	}
	c.ahead = []jsonrpc.Message{&jsonrpc.Request{Method: "notifications/initialized"}, call}
	return &jsonrpc.Request{
		ID: id, Method: "initialize",
		Params: json.RawMessage(`{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"one-shot","version":"1"}}`),
	}, nil
}

// note records calls with their weights, and their cancellations: a cancelled call gets no answer.
func (c *conn) note(req *jsonrpc.Request, weight int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if req.ID.IsValid() {
		id := req.ID.Raw()
		c.asked[id] = append(c.asked[id], weight) // calls with equal ids get an answer each
		return
	}
	var cancelled struct {
		ID any `json:"requestId"`
	}
	if req.Method != "notifications/cancelled" || json.Unmarshal(req.Params, &cancelled) != nil {
		return
	}
	if id, err := jsonrpc.MakeID(cancelled.ID); err == nil && len(c.asked[id.Raw()]) > 0 {
		c.cancelled[id.Raw()] = true
	}
}

// isCancelled reports whether the client has cancelled a call in flight.
func (c *conn) isCancelled(id any) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cancelled[id]
}

// forget removes a call.
func (c *conn) forget(id any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	weights := c.asked[id]
	if len(weights) == 0 {
		return
	}
	c.unanswered.Release(weights[0])
	if c.asked[id] = weights[1:]; len(weights) == 1 {
		delete(c.asked, id)
		delete(c.cancelled, id)
	}
}

// Write sends a message of the SDK. It drops the answers to a handshake that the client left out and to cancelled calls.
func (c *conn) Write(ctx context.Context, m jsonrpc.Message) (err error) {
	res, ok := m.(*jsonrpc.Response)
	dropped := ok && (c.isCancelled(res.ID.Raw()) || res.ID.Raw() == any(handshakeID) && res.Error == nil)
	if !dropped {
		err = c.write(ctx, m)
	}
	if ok {
		if c.session.InitializeParams() != nil {
			c.opened.Store(true)
		}
		c.forget(res.ID.Raw())
	}
	return err
}

// write encodes and sends a message, unless its context is done.
func (c *conn) write(ctx context.Context, m jsonrpc.Message) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	text, err := encode(m)
	if err != nil {
		return err
	}
	return c.send(text)
}

// encode writes a message on a line. A result is JSON without newlines already, and is not read again: that takes long if it is large.
func encode(m jsonrpc.Message) ([]byte, error) {
	res, ok := m.(*jsonrpc.Response)
	if !ok || len(res.Result) == 0 {
		text, err := jsonrpc.EncodeMessage(m)
		return append(text, '\n'), err
	}
	id, err := json.Marshal(res.ID.Raw())
	return slices.Concat([]byte(`{"jsonrpc":"2.0","id":`), id, []byte(`,"result":`), res.Result, []byte("}\n")), err
}

// send writes a whole message, which ends with a newline.
func (c *conn) send(message []byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.mute.Load() {
		return nil
	}
	if c.framed {
		message = framed(message)
	}
	_, err := c.out.Write(message)
	return err
}

// finish returns after all answers, or cancels the calls that take too long.
func (c *conn) finish(ctx context.Context) {
	limit := goneWait
	if c.piped {
		limit = answerWait
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	defer context.AfterFunc(c.open, cancel)()
	_ = c.unanswered.Acquire(ctx, maxWeight) // nothing comes after the end of the input
	if !c.piped {
		c.mute.Store(true)
	}
	c.end(gateway.ErrGone)
}
