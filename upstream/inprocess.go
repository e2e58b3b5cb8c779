package upstream

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

// InProcess reaches a server in this process, over a pipe in memory. Results may have any size up to the limit of a
// message. A tool that panics fails its call only: for that InProcess adds a middleware to s, so it is called once per
// server, before the server is used.
func InProcess(s *mcp.Server) func(context.Context) (mcp.Transport, error) {
	s.AddReceivingMiddleware(recoverPanic)
	return func(context.Context) (mcp.Transport, error) {
		open := func(ctx context.Context) (rpc.Wire, error) { return connect(ctx, s) }
		return &rpc.Transport{Open: open, Kind: rpc.Traits{OlderOnly: true}}, nil // a call costs least with the older protocol
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
func connect(ctx context.Context, s *mcp.Server) (rpc.Wire, error) {
	near, far := net.Pipe()
	session, err := s.Connect(ctx, &mcp.IOTransport{Reader: far, Writer: far, MaxLineLength: -1}, nil)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting a session: %w", err), near.Close(), far.Close())
	}
	return rpc.NewLine(near, near, rpc.LineOptions{Close: func() error {
		err := near.Close()
		_ = session.Wait() // its error is that the pipe has ended
		return err
	}}), nil
}
