package stdio

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sync/semaphore"

	"github.com/mcsh-dev/mcsh/gateway"
)

// A conn is the connection of the SDK's session with the client, and answers ordinary calls without the SDK. It suits a shell
// that pipes in a few lines: the end of the input does not cancel the calls before it, and a tools/call may come without a
// handshake.
type conn struct {
	in       *bufio.Reader
	out      io.Writer
	take     direct
	answered func(ss *mcp.ServerSession, message []byte) bool // takes answers; nil: there are none
	life     context.Context
	end      context.CancelCauseFunc // ends life, and so the calls

	session *mcp.ServerSession // set before the first message is read
	opened  atomic.Bool        // the handshake is answered: calls need not go to the SDK

	unanswered *semaphore.Weighted // the weights of unanswered requests: at the bound the reader stops
	direct     *semaphore.Weighted // requests that are answered without the SDK
	calls      chan func()         // taken by goroutines of earlier calls
	resting    *semaphore.Weighted // such goroutines

	line   []byte // the buffer of lines
	begun  bool   // the first message has come
	piped  bool   // the client did not wait for the first answer
	err    error  // after the last line
	parsed chan parsed
	open   context.Context // until Close
	close  context.CancelFunc
	input  context.Context // until its end
	ended  context.CancelFunc

	greeted bool              // the SDK has a first message; only Read uses it
	ahead   []jsonrpc.Message // to be read next; only Read uses it

	writing sync.Mutex  // guards out, and writes of framed and opened
	framed  bool        // messages have headers before them; else each is a line
	mute    atomic.Bool // drops all later writes

	mu        sync.Mutex
	lost      error         // of the write of an answer without the SDK; guarded by mu
	asked     map[any]int64 // weights of the SDK's calls that have not ended, by id; guarded by mu
	cancelled map[any]bool  // of asked, by the client; guarded by mu
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

// maxResting is how many goroutines wait for the next call. A new one spends a sixth of the time of a small call on the growth of
// its stack.
const maxResting = 8

// weight returns the share of a request in maxWeight, so that there are at most maxUnanswered.
func weight(bytes int) int64 { return int64(max(bytes, maxWeight/maxUnanswered)) }

func newConn(life context.Context, end context.CancelCauseFunc, o Options) *conn {
	c := &conn{
		in: bufio.NewReaderSize(o.In, 64<<10), out: o.Out, take: o.Direct, answered: o.Answered, life: life, end: end,
		unanswered: semaphore.NewWeighted(maxWeight), direct: semaphore.NewWeighted(maxUnanswered),
		calls: make(chan func()), resting: semaphore.NewWeighted(maxResting),
		parsed: make(chan parsed), asked: map[any]int64{}, cancelled: map[any]bool{},
	}
	c.open, c.close = context.WithCancel(context.Background())
	c.input, c.ended = context.WithCancel(context.Background())
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
	for {
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
		req, ok := next.message.(*jsonrpc.Request)
		switch {
		case !ok:
			c.greeted = true
			return next.message, next.err
		case c.note(req, next.weight):
			return c.deliver(req)
		}
		c.unanswered.Release(next.weight)
		if err := c.send(gateway.ErrorAnswer(nil, gateway.Duplicate(req.ID.Raw()))); err != nil { // the SDK would not answer it
			return nil, err
		}
	}
}

// deliver returns a request for the SDK, or the handshake that was left out before it.
func (c *conn) deliver(req *jsonrpc.Request) (jsonrpc.Message, error) {
	first := !c.greeted
	c.greeted = true
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

// note records calls with their weights, and their cancellations: a cancelled call gets no answer. It reports false for a call
// whose id is in flight.
func (c *conn) note(req *jsonrpc.Request, weight int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if req.ID.IsValid() {
		_, twice := c.asked[req.ID.Raw()]
		if !twice {
			c.asked[req.ID.Raw()] = weight
		}
		return !twice
	}
	var cancelled struct {
		ID any `json:"requestId"`
	}
	if req.Method != "notifications/cancelled" || json.Unmarshal(req.Params, &cancelled) != nil {
		return true
	}
	if id, err := jsonrpc.MakeID(cancelled.ID); err == nil {
		if _, ok := c.asked[id.Raw()]; ok {
			c.cancelled[id.Raw()] = true
		}
	}
	return true
}

// forget removes a call, and returns its weight and whether the client has cancelled it.
func (c *conn) forget(id any) (weight int64, cancelled bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	weight, cancelled = c.asked[id], c.cancelled[id]
	delete(c.asked, id)
	delete(c.cancelled, id)
	return weight, cancelled
}

// Write sends a message of the SDK. It drops the answers to a handshake that the client left out and to cancelled calls.
func (c *conn) Write(ctx context.Context, m jsonrpc.Message) error {
	res, ok := m.(*jsonrpc.Response)
	if !ok {
		return c.write(ctx, m, false)
	}
	id, opened := res.ID.Raw(), c.session.InitializeParams() != nil
	weight, cancelled := c.forget(id) // before the client reads the answer, and takes the id again
	defer c.unanswered.Release(weight)
	if cancelled || id == any(handshakeID) && res.Error == nil {
		return c.write(ctx, nil, opened)
	}
	return c.write(ctx, coded(res, opened), opened)
}

// coded returns an answer with a code in its error. The SDK gives none to what comes before the handshake.
func coded(res *jsonrpc.Response, opened bool) *jsonrpc.Response {
	fault, ok := errors.AsType[*jsonrpc.Error](res.Error)
	if res.Error == nil || ok && fault.Code != 0 {
		return res
	}
	code := int64(jsonrpc.CodeInvalidRequest)
	if opened {
		code = jsonrpc.CodeInternalError
	}
	return &jsonrpc.Response{ID: res.ID, Error: &jsonrpc.Error{Code: code, Message: res.Error.Error()}}
}

// write encodes and sends a message, unless it is nil or its context is done. If it opens the session, calls that come after it
// need not go to the SDK. No answer to them overtakes it.
func (c *conn) write(ctx context.Context, m jsonrpc.Message, opens bool) error {
	var text []byte
	err := ctx.Err()
	if m != nil && err == nil {
		text, err = encode(m)
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	if opens {
		c.opened.Store(true) // before the client reads the message, and calls
	}
	if m == nil || err != nil {
		return err
	}
	return c.put(text)
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
	return c.put(message)
}

// put is send for a caller that holds c.writing.
func (c *conn) put(message []byte) error {
	if c.mute.Load() {
		return nil
	}
	if c.framed {
		message = framed(message)
	}
	_, err := c.out.Write(message)
	return err
}

// finish returns after all answers. It cancels the calls of a client that has gone. One that piped its calls in waits for the
// answers, as long as the limits of the calls allow.
func (c *conn) finish(ctx context.Context) {
	c.ended()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if !c.piped {
		defer time.AfterFunc(goneWait, cancel).Stop()
	}
	defer context.AfterFunc(c.open, cancel)()
	_ = c.unanswered.Acquire(ctx, maxWeight) // nothing comes after the end of the input
	if !c.piped {
		c.mute.Store(true)
	}
	c.end(gateway.ErrGone)
}
