package gateway

import (
	"io"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	maxRequestBody = 8 << 20
	versionHeader  = "Mcp-Protocol-Version"
	// statelessEra is the first version of the protocol without sessions. Versions are dates and sort as text.
	statelessEra = "2026-07-28"
)

// Handler serves /mcp, for clients of both protocol eras on one URL, and /healthz. A client that takes nothing of what is
// written for it loses its connection after a while: it would hold what a call of it needs.
func (g *Gateway) Handler() http.Handler { return g.handler() }

// Handler serves any server as [Gateway.Handler] serves the gateway. It adds a middleware to the server, so it is
// called once for one.
func Handler(server *mcp.Server) http.Handler {
	f := newFront(server)
	server.AddReceivingMiddleware(f.sessions.attend)
	return f.handler()
}

func (f *front) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/mcp", http.NewCrossOriginProtection().Handler(f.endpoint()))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok\n") })
	return patience{mux}
}

func (f *front) endpoint() *endpoint {
	server := func(*http.Request) *mcp.Server { return f.server }
	return &endpoint{
		front:    f,
		versions: mcp.SupportedProtocolVersions(),
		modern: mcp.NewStreamableHTTPHandler(server, &mcp.StreamableHTTPOptions{
			Stateless: true, PropagateRequestCancellation: true, MaxRequestBodyBytes: maxRequestBody,
		}),
		// It has no timeout of sessions: those count requests that the SDK does not see.
		legacy: mcp.NewStreamableHTTPHandler(server, &mcp.StreamableHTTPOptions{MaxRequestBodyBytes: maxRequestBody}),
	}
}
