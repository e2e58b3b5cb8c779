package gateway

import (
	"context"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/conformancetest"
	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/upstream"
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

// TestConformanceBehind serves a gateway with the server of the suite behind it: its resources, prompts and completions come
// through as the suite wants them. By day the suite asks as a client of the newer era.
func TestConformanceBehind(t *testing.T) {
	t.Parallel()
	server, _ := newFixture()
	pool := mcptest.NewPool(t, upstream.Options{Sources: []upstream.Source{upstream.Static{{Name: "suite", Dial: upstream.InProcess(server, nil, nil)}}}})
	for _, kind := range []upstream.Kind{upstream.Resources, upstream.Templates, upstream.Prompts} {
		if list, err := pool.OffersOf(t.Context(), "suite", kind); err != nil || len(list) == 0 {
			t.Fatalf("the server offers %v, %v", list, err)
		}
	}
	g := New(Options{Upstream: pool, Version: "test"})
	t.Cleanup(func() { g.Close(context.Background()) })
	listener := httptest.NewServer(Hosts{}.Check(g.Handler()))
	t.Cleanup(listener.Close)
	for _, revision := range []string{"2026-07-28", "2025-11-25"}[:parttest.Times(1, 2)] {
		conformancetest.Run{Revision: revision, Baseline: "testdata/conformance_behind.yml"}.Server(t, listener.URL+"/mcp")
	}
}
