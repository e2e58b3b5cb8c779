package inprocess

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

// Dial reaches a server in this process, over a pipe in memory. Results may have any size up to the limit of a
// message. A tool that panics fails its call only: for that Dial adds a middleware to s, so it is called once per
// server, before the server is used. Calls of handlers, by the names of tools, do not go over the pipe: an answer of the SDK's
// costs many times as much. They must answer as the server does, recover from panics, and read only the session and the
// arguments of a request. There may be none.
//
// begin is called when a session begins, and what it returns when the session has ended, after its calls. It may be nil.
func Dial(s *mcp.Server, handlers map[string]mcp.ToolHandler, begin func() (end func() error)) func(context.Context) (mcp.Transport, error) {
	s.AddReceivingMiddleware(recoverPanic)
	if begin == nil {
		begin = func() func() error { return func() error { return nil } }
	}
	return func(context.Context) (mcp.Transport, error) {
		t := &direct{handlers: handlers, beginning: begin}
		t.Transport = &rpc.Transport{
			Open: func(ctx context.Context) (rpc.Wire, error) { return t.connect(ctx, s) },
			Kind: rpc.Traits{OlderOnly: true}, // a call costs least with the older protocol
		}
		return t, nil
	}
}

// recoverPanic turns the panic of a handler into an error: with the SDK alone it would end the process.
func recoverPanic(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (res mcp.Result, err error) {
		defer func() {
			if p := recover(); p != nil {
				res, err = nil, &jsonrpc.Error{
					Code: jsonrpc.CodeInternalError, Message: fmt.Sprintf("the tool panicked: %v", p),
				}
			}
		}()
		return next(ctx, method, req)
	}
}

// connect starts a session of the server at the other end of a new pipe.
func (t *direct) connect(ctx context.Context, s *mcp.Server) (rpc.Wire, error) {
	near, far := net.Pipe()
	session, err := s.Connect(ctx, &mcp.IOTransport{Reader: far, Writer: far, MaxLineLength: -1}, nil)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting a session: %w", err), near.Close(), far.Close())
	}
	end := t.begin(session)
	return rpc.NewLine(near, near, rpc.LineOptions{Close: func() error {
		err := near.Close()
		t.end()
		_ = session.Wait() // its error is that the pipe has ended
		return errors.Join(err, end())
	}}), nil
}
