package gateway

import (
	"context"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/conformancetest"
)

// TestConformance serves the tools, resources and prompts that the official suite asks for as the gateway is served:
// for both eras on one URL, behind the check of names, with ordinary calls beside the SDK.
func TestConformance(t *testing.T) {
	t.Parallel()
	server, plain := newFixture()
	f := newFront(server, HTTPOptions{})
	f.self = fixtureSelf
	f.handlers = plain
	var beside atomic.Int64
	f.handle = func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		beside.Add(1)
		return f.callTool(ctx, method, req)
	}
	server.AddReceivingMiddleware(f.sessions.track)
	listener := httptest.NewServer(Hosts{}.Check(f.Handler()))
	t.Cleanup(listener.Close)
	for _, run := range []conformancetest.Run{
		{Revision: "2025-11-25", Also: []string{"server-session-lifecycle", "json-schema-2020-12"}},
		{Revision: "2026-07-28", Also: []string{"json-schema-2020-12", "http-header-validation", "http-custom-header-server-validation"}},
	} {
		before := beside.Load()
		run.Server(t, listener.URL+"/mcp")
		if n := beside.Load() - before; n < int64(len(plain)-1) {
			t.Errorf("%s: %d calls went beside the SDK, fewer than there are tools for it", run.Revision, n)
		}
	}
}
