package upstream_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
)

// streaming serves a tool over HTTP with answers in streams, and counts its connections. ended is called when an answer
// has been sent, before its stream ends.
func streaming(t *testing.T, ended func()) (*upstream.Pool, *atomic.Int64) {
	t.Helper()
	u := mcptest.New(mcptest.Tool{Name: "hello", ReadOnly: true, Text: "here"})
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return u.MCP() }, nil)
	var connections atomic.Int64
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler.ServeHTTP(w, r)
		ended()
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	pool := upstream.NewPool(upstream.Options{Sources: []upstream.Source{upstream.Static{{Name: "s", Dial: upstream.HTTP(upstream.Endpoint{URL: s.URL})}}}})
	t.Cleanup(func() { pool.Close() })
	return pool, &connections
}

// Calls one after another share a connection, also where each has a context of its own that ends with it.
func TestStreamsShareConnection(t *testing.T) {
	pool, connections := streaming(t, func() {})
	for range 200 {
		ctx, cancel := context.WithCancel(t.Context())
		if _, err := pool.CallTool(ctx, stages.Call{Server: "s", Name: "hello"}); err != nil {
			t.Fatal(err)
		}
		cancel()
	}
	if n := connections.Load(); n > 10 { // some: a stream may end late
		t.Errorf("%d connections for 200 calls", n)
	}
}

// An answer is given before its stream ends.
func TestStreamsAnswerAtOnce(t *testing.T) {
	release := make(chan struct{})
	var hold atomic.Bool
	pool, _ := streaming(t, func() {
		if hold.Load() {
			<-release
		}
	})
	defer close(release)
	for range 3 {
		if _, err := pool.CallTool(t.Context(), stages.Call{Server: "s", Name: "hello"}); err != nil {
			t.Fatal(err)
		}
		hold.Store(true) // after the handshake
	}
}
