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

// InProcess reaches a server that runs in this process, over a pipe in memory. Results may be of any size up to the
// limit of messages. A tool that panics fails its call and nothing else: for that, InProcess adds a middleware to s,
// so it is called once for a server, before the server is used.
func InProcess(s *mcp.Server) func(context.Context) (mcp.Transport, error) {
	s.AddReceivingMiddleware(recoverPanic)
	return func(context.Context) (mcp.Transport, error) {
		return &inProcess{rpc.Transport{Open: func(ctx context.Context) (rpc.Wire, error) { return connect(ctx, s) }}}, nil
	}
}

// recoverPanic turns a panic of a handler into an error: the SDK lets it end the process.
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

// An inProcess is a transport to a server in this process.
type inProcess struct{ rpc.Transport }

// Plain reports that the server speaks the older protocol, with which a call costs the least.
func (t *inProcess) Plain() bool { return true }

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
