package gateway

import (
	"io"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	maxRequestBody = 8 << 20
	sessionTimeout = 10 * time.Minute
	// statelessEra is the first version of the protocol without sessions. Versions are dates and sort as text.
	statelessEra = "2026-07-28"
)

// Handler serves /mcp, for clients of both protocol eras on one URL, and /healthz.
//
// The stateless era closes the response to cancel, which only a stateless handler hears; a legacy client cancels with
// a notification, which only reaches a call within its session. So each era has its handler, chosen by the header.
func (g *Gateway) Handler() http.Handler {
	server := func(*http.Request) *mcp.Server { return g.server }
	modern := mcp.NewStreamableHTTPHandler(server, &mcp.StreamableHTTPOptions{
		Stateless: true, PropagateRequestCancellation: true, MaxRequestBodyBytes: maxRequestBody,
	})
	legacy := mcp.NewStreamableHTTPHandler(server, &mcp.StreamableHTTPOptions{
		SessionTimeout: sessionTimeout, MaxRequestBodyBytes: maxRequestBody,
	})
	endpoint := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Accel-Buffering", "no") // a proxy that buffers would hold progress back
		if r.Method == http.MethodPost && r.Header.Get(sessionHeader) == "" && r.Header.Get("Mcp-Protocol-Version") >= statelessEra {
			modern.ServeHTTP(w, r)
			return
		}
		legacy.ServeHTTP(w, r)
	})
	mux := http.NewServeMux()
	mux.Handle("/mcp", http.NewCrossOriginProtection().Handler(endpoint))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok\n") })
	return mux
}
