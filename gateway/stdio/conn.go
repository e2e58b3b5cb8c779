package stdio

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A transport makes sessions that work from a shell, where a few lines are piped in: the end of the input does not
// cancel the calls before it, and a tools/call may come without a handshake.
type transport struct {
	inner  mcp.Transport
	direct *direct
	piped  *atomic.Bool // the calls were piped in
	gone   func()       // cancels what is left when the client has gone
}

// Connect implements [mcp.Transport].
func (t *transport) Connect(ctx context.Context) (mcp.Connection, error) {
	inner, err := t.inner.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &conn{Connection: inner, transport: t, asked: map[any]bool{}, changed: make(chan struct{}, 1), closed: make(chan struct{})}, nil
}

type conn struct {
	mcp.Connection
	*transport

	begun bool              // a first message has come; only Read uses it
	ahead []jsonrpc.Message // to be read next; only Read uses it

	changed chan struct{} // holds a value after asked has changed
	closed  chan struct{}
	once    sync.Once // closes closed

	mu    sync.Mutex
	asked map[any]bool // ids of calls that are not answered; guarded by mu
}

// handshakeID is the id of the handshake that stands in for one that was left out.
const handshakeID = "mcsh-handshake"

// Read returns the next message. The end of the input comes when all calls before it are answered.
func (c *conn) Read(ctx context.Context) (jsonrpc.Message, error) {
	if len(c.ahead) > 0 {
		m := c.ahead[0]
		c.ahead = c.ahead[1:]
		return m, nil
	}
	m, err := c.Connection.Read(ctx)
	if errors.Is(err, io.EOF) {
		c.wait(ctx)
	}
	if err != nil {
		return m, err
	}
	first := !c.begun
	c.begun = true
	req, ok := m.(*jsonrpc.Request)
	if !ok {
		return m, nil
	}
	c.note(req)
	if first && req.Method == "tools/call" && !stateless(req) {
		return c.shakeHands(req)
	}
	return m, nil
}

// stateless reports whether a request is of the protocol that has no handshake.
func stateless(req *jsonrpc.Request) bool {
	var params struct {
		Meta map[string]json.RawMessage `json:"_meta"`
	}
	return json.Unmarshal(req.Params, &params) == nil && params.Meta["io.modelcontextprotocol/protocolVersion"] != nil
}

// shakeHands returns the handshake that a one-shot call left out, and keeps the call for later.
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

// note keeps account of calls that want an answer. A call that the client has cancelled may not get one.
func (c *conn) note(req *jsonrpc.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if req.ID.IsValid() {
		c.asked[req.ID.Raw()] = true
		return
	}
	var cancelled struct {
		ID any `json:"requestId"`
	}
	if req.Method != "notifications/cancelled" || json.Unmarshal(req.Params, &cancelled) != nil {
		return
	}
	if id, err := jsonrpc.MakeID(cancelled.ID); err == nil {
		delete(c.asked, id.Raw())
	}
}

// Write sends a message, but for the answer to a handshake that the client knows nothing of.
func (c *conn) Write(ctx context.Context, m jsonrpc.Message) error {
	res, ok := m.(*jsonrpc.Response)
	if !ok {
		return c.Connection.Write(ctx, m)
	}
	if res.ID.Raw() == any(handshakeID) && res.Error == nil {
		c.direct.open()
		return nil
	}
	err := c.Connection.Write(ctx, m)
	c.direct.open()
	c.mu.Lock()
	delete(c.asked, res.ID.Raw())
	c.mu.Unlock()
	select {
	case c.changed <- struct{}{}:
	default:
	}
	return err
}

// wait returns when nothing is left to answer, or the time for it is over. Then the calls that are left are cancelled.
func (c *conn) wait(ctx context.Context) {
	limit := goneWait
	if c.piped.Load() {
		limit = answerWait
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	defer c.gone()
	for {
		c.mu.Lock()
		left := len(c.asked)
		c.mu.Unlock()
		if left == 0 {
			c.direct.wait(ctx, c.closed)
			return
		}
		select {
		case <-c.changed:
		case <-c.closed:
			return
		case <-ctx.Done():
			return
		}
	}
}

// Close ends the session.
func (c *conn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Connection.Close()
}
