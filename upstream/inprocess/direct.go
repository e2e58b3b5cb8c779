package inprocess

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/memory"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

// direct is the transport to a server in this process. It answers calls of tools that have a handler, without the SDK.
type direct struct {
	*rpc.Transport
	handlers map[string]mcp.ToolHandler
	share    *memory.Share // that results count in
	max      int           // bytes of one

	beginning func() (end func() error) // see [Dial]

	session *mcp.ServerSession // set by begin
	life    context.Context    // ends with the connection
	cancel  context.CancelFunc // of life

	mu    sync.Mutex
	ended bool           // guarded by mu
	calls sync.WaitGroup // running; none is added once ended
}

// Prepare implements the Transport of package sessions.
func (t *direct) Prepare(noted func(rpc.News), share *memory.Share, max int) {
	t.share, t.max = share, cmp.Or(max, rpc.DefaultMax)
	t.Transport.Prepare(noted, share, max)
}

// begin starts the session. It returns what frees the resources of the server after it.
func (t *direct) begin(session *mcp.ServerSession) (end func() error) {
	t.session = session
	t.life, t.cancel = context.WithCancel(context.Background())
	return t.beginning()
}

// end cancels all calls and waits for them.
func (t *direct) end() {
	t.mu.Lock()
	t.ended = true
	t.mu.Unlock()
	t.cancel()
	t.calls.Wait()
}

// enter counts a call, and reports false after end.
func (t *direct) enter() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.ended {
		t.calls.Add(1)
	}
	return !t.ended
}

// An outcome is the result of a call as JSON, or an error.
type outcome struct {
	result []byte
	err    error
	cut    bool // the call was cancelled before its end
}

// Request implements the Transport of package sessions. It returns when ctx ends, even if the tool does not.
func (t *direct) Request(ctx context.Context, r *rpc.Request) (json.RawMessage, *rpc.Failure) {
	handler := t.handlers[r.Name]
	if handler == nil || r.Method != "tools/call" {
		return t.Transport.Request(ctx, r)
	}
	if !r.MaySend() {
		<-ctx.Done() // it refuses only when ctx ends
		return nil, &rpc.Failure{Err: ctx.Err()}
	}
	if !t.enter() {
		return nil, &rpc.Failure{Err: rpc.ErrClosed, Lost: true}
	}
	inner, cancel := context.WithCancel(t.life) // without the values of ctx, as of another program
	defer context.AfterFunc(ctx, cancel)()
	done := make(chan outcome, 1)
	go func() {
		defer t.calls.Done()
		defer cancel()
		done <- t.call(inner, handler, r)
	}()
	select {
	case o := <-done:
		if !o.cut {
			return t.take(o, r.Lease)
		}
	case <-ctx.Done():
	case <-t.life.Done():
	}
	if ctx.Err() != nil {
		return nil, &rpc.Failure{Err: ctx.Err(), Sent: true}
	}
	return nil, &rpc.Failure{Err: rpc.ErrClosed, Sent: true, Lost: true}
}

// call calls the handler.
func (t *direct) call(ctx context.Context, handler mcp.ToolHandler, r *rpc.Request) (o outcome) {
	params := &mcp.CallToolParamsRaw{Name: r.Name}
	rpc.Members(r.Params, func(name, value []byte) {
		if string(name) == "arguments" {
			params.Arguments = value
		}
	})
	res, err := handler(ctx, &mcp.CallToolRequest{Session: t.session, Params: params})
	cut := ctx.Err() != nil
	var text bytes.Buffer
	if err == nil {
		e := json.NewEncoder(&text)
		e.SetEscapeHTML(false)
		err = e.Encode(rpc.ResultOf(res))
	}
	if _, ok := errors.AsType[*jsonrpc.Error](err); err != nil && !ok {
		err = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
	}
	return outcome{bytes.TrimSpace(text.Bytes()), err, cut}
}

// take counts a result as that of any other server.
func (t *direct) take(o outcome, lease *memory.Lease) (json.RawMessage, *rpc.Failure) {
	counted := t.share.Lease()
	if len(o.result) > t.max {
		o.err = &rpc.TooLarge{Size: int64(len(o.result)), Max: int64(t.max)}
	} else if o.err == nil {
		o.err = counted.Grow(int64(cap(o.result)))
	}
	if lease.Adopt(counted); o.err != nil {
		return nil, &rpc.Failure{Err: o.err, Sent: true}
	}
	return o.result, nil
}
