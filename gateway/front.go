package gateway

import (
	"context"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// front is what stands between an MCP server and its clients: sessions, and calls beside the SDK.
type front struct {
	server   *mcp.Server
	sessions sessions
	self     *mcp.Implementation        // as clients are told by answers beside the SDK
	handlers map[string]mcp.ToolHandler // of the tools that are called beside the SDK, by name
	handle   mcp.MethodHandler          // calls one of them
	grace    time.Duration              // of calls that nobody waits for any more
}

func newFront(server *mcp.Server) front {
	return front{
		server:   server,
		handlers: map[string]mcp.ToolHandler{},
		sessions: sessions{all: map[*mcp.ServerSession]*session{}, byID: map[string]*session{}},
	}
}

// callTool calls a tool that there is.
func (f *front) callTool(ctx context.Context, _ string, req mcp.Request) (mcp.Result, error) {
	r := req.(*mcp.CallToolRequest)
	return f.handlers[r.Params.Name](ctx, r)
}
