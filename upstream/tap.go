package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A capture receives the undecoded result of one request. The SDK decodes results into Go values, which rounds
// integers above 2^53, loses the order of keys and costs many times the memory; so the tap takes the bytes before the
// SDK sees them and gives it a stub instead.
type capture struct {
	mu      sync.Mutex
	raw     json.RawMessage
	err     error // why the result was not taken, if it was not
	sent    bool  // whether the request may have reached the server
	release func()
}

func (c *capture) take(raw json.RawMessage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.raw = raw
}

func (c *capture) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
}

func (c *capture) setSent(sent bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent = sent
}

func (c *capture) state() (raw json.RawMessage, sent bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.raw, c.sent, c.err
}

type captureKey struct{}

// withCapture attaches a capture to the context of a request. The context is the only thing that the SDK hands down
// unchanged from a call to the connection or the HTTP request that carries it.
func withCapture(ctx context.Context) (context.Context, *capture) {
	c := new(capture)
	return context.WithValue(ctx, captureKey{}, c), c
}

func captureOf(ctx context.Context) *capture {
	c, _ := ctx.Value(captureKey{}).(*capture)
	return c
}

// stub is what the SDK gets in place of a captured result. It decodes as the result of a call and of a list.
var stub = json.RawMessage(`{"content":[],"tools":[],"resultType":"complete"}`)

// tapTransport taps any transport but the SDK's streamable one, whose connection must not be wrapped.
type tapTransport struct {
	mcp.Transport
	conn mcp.Connection // set by Connect
}

func (t *tapTransport) Connect(ctx context.Context) (mcp.Connection, error) {
	c, err := t.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	t.conn = &tapConn{Connection: c, waiting: map[jsonrpc.ID]*capture{}}
	return t.conn, nil
}

func (t *tapTransport) hangUp() {
	if t.conn != nil {
		_ = t.conn.Close()
	}
}

type tapConn struct {
	mcp.Connection

	mu      sync.Mutex
	waiting map[jsonrpc.ID]*capture // guarded by mu
}

func (c *tapConn) forget(id jsonrpc.ID) *capture {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := c.waiting[id]
	delete(c.waiting, id)
	return found
}

// Write notes who waits for the answer to a request.
func (c *tapConn) Write(ctx context.Context, msg jsonrpc.Message) error {
	req, ok := msg.(*jsonrpc.Request)
	capt := captureOf(ctx)
	if !ok || capt == nil || !req.IsCall() {
		return c.Connection.Write(ctx, msg)
	}
	c.mu.Lock()
	c.waiting[req.ID] = capt
	c.mu.Unlock()
	capt.release = func() { c.forget(req.ID) }
	capt.setSent(true)
	err := c.Connection.Write(ctx, msg)
	if errors.Is(err, errNotSent) {
		capt.setSent(false)
	}
	return err
}

// Read takes the result out of a response that somebody waits for.
func (c *tapConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	msg, err := c.Connection.Read(ctx)
	resp, ok := msg.(*jsonrpc.Response)
	if err != nil || !ok {
		return msg, err
	}
	capt := c.forget(resp.ID)
	switch {
	case capt == nil:
	case resp.Error != nil:
		capt.fail(resp.Error)
	case resp.Result != nil:
		capt.take(resp.Result)
		resp.Result = stub
	}
	return msg, nil
}
