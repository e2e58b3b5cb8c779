package gateway

import (
	"context"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// An Endpoint serves any server over HTTP as a [Gateway] serves its own.
type Endpoint struct{ front }

// NewEndpoint adds middleware to the server, so call it once for each.
func NewEndpoint(server *mcp.Server, o HTTPOptions) *Endpoint {
	e := &Endpoint{newFront(server, o)}
	server.AddReceivingMiddleware(EndWith(e.calls.life), e.counted, e.sessions.track)
	return e
}

// Answer makes Direct answer calls of the server's tools, by name, as the server does. They may go on for the grace after their
// client has gone.
func (e *Endpoint) Answer(self *mcp.Implementation, tools map[string]mcp.ToolHandler, grace time.Duration) {
	e.self, e.handlers, e.grace = self, tools, grace
	e.handle = e.counted(func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		ctx, end := e.outlasting(ctx)
		defer end()
		return e.callTool(ctx, method, req)
	})
}

// counted is middleware. It registers calls of tools.
func (e *Endpoint) counted(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if method != toolsCall {
			return next(ctx, method, req)
		}
		ctx, end, open := e.calls.begin(ctx, callerOf(req.GetExtra()))
		if !open {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the server is shutting down: call again when it is back"}
		}
		defer end()
		return next(ctx, method, req)
	}
}
