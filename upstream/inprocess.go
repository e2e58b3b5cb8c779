package upstream

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// InProcess reaches a server that runs in this process, over a pipe in memory. Results may be of any size up to the
// limit of messages. A tool that panics fails its call and nothing else: for that, InProcess adds a middleware to s,
// so it is called once for a server, before the server is used.
func InProcess(s *mcp.Server) func(context.Context) (mcp.Transport, error) {
	s.AddReceivingMiddleware(recoverPanic)
	return func(context.Context) (mcp.Transport, error) {
		return &tapTransport{Transport: &inProcess{server: s}}, nil
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

type inProcess struct{ server *mcp.Server }

// Connect starts a session of the server at the other end of a new pipe.
func (t *inProcess) Connect(ctx context.Context) (mcp.Connection, error) {
	near, far := net.Pipe()
	session, err := t.server.Connect(ctx, &mcp.IOTransport{Reader: far, Writer: far, MaxLineLength: -1}, nil)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting a session: %w", err), near.Close(), far.Close())
	}
	return newLineConn(near, near, 0, func() error {
		err := near.Close()
		_ = session.Wait() // its error is that the pipe has ended
		return err
	}), nil
}

// plain reports that the server speaks the older protocol, with which a call costs the least.
func (t *inProcess) plain() bool { return true }
