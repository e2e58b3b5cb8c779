package gateway

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/conformancetest"
	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/upstream"
)

// TestConformancePipelines runs the suite against tools that stand behind the gateway: each call is a pipeline of it. By day
// only the newer revision does: pipelines are the same in both, whose differences TestConformance finds.
func TestConformancePipelines(t *testing.T) {
	t.Parallel()
	front, plain := newFixture()
	behind := mcp.NewServer(fixtureSelf, nil)
	add := func(s *mcp.Server, name string, call mcp.ToolHandler) {
		s.AddTool(&mcp.Tool{Name: name, Description: "Of the conformance suite.", InputSchema: json.RawMessage(`{"type":"object"}`)}, call)
	}
	pool := upstream.NewPool(upstream.Options{Sources: []upstream.Source{upstream.Static{{Name: "suite", Dial: upstream.InProcess(behind, nil, nil)}}}})
	t.Cleanup(func() { _ = pool.Close() })
	g := New(Options{Upstream: pool})
	gateway := httptest.NewServer(g.Handler())
	t.Cleanup(func() { gateway.CloseClientConnections(); gateway.Close() })
	heard := make(chan struct{}, 100) // one for each notification of progress
	var pipelines atomic.Int64
	through := func(pipeline ...map[string]any) mcp.ToolHandler {
		return func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			pipelines.Add(1)
			return callThrough(ctx, gateway.URL+"/mcp", req, pipeline, heard)
		}
	}
	for name, call := range plain {
		add(behind, name, call)
		add(front, name, through(map[string]any{"type": "tool", "server": "suite", "name": name}))
	}
	add(behind, "steps", says(text("[{},{},{}]")))
	var calls atomic.Int64
	add(behind, "wait", func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if calls.Add(1)%3 == 1 { // the first item of a run: nothing is done yet
			for len(heard) > 0 {
				<-heard // of the run before
			}
			return replyText("waited"), nil
		}
		select { // progress that comes faster is summed up
		case <-heard:
			return replyText("waited"), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
	add(front, "test_tool_with_progress", through(
		map[string]any{"type": "tool", "server": "suite", "name": "steps"},
		map[string]any{"type": "tool", "server": "suite", "name": "wait", "for_each": true, "concurrency": 1},
	))
	served := httptest.NewServer(NewEndpoint(front, HTTPOptions{}).Handler())
	t.Cleanup(func() { served.CloseClientConnections(); served.Close() })
	for _, revision := range []string{"2026-07-28", "2025-11-25"}[:parttest.Times(1, 2)] {
		before := pipelines.Load()
		conformancetest.Run{Revision: revision}.Server(t, served.URL+"/mcp")
		if n := pipelines.Load() - before; n < int64(len(plain)) {
			t.Errorf("%s: %d pipelines for %d tools", revision, n, len(plain)+1)
		}
	}
}

// callThrough runs a pipeline and hands on its progress and its reply.
func callThrough(ctx context.Context, url string, req *mcp.CallToolRequest, pipeline []map[string]any, progress chan<- struct{}) (*mcp.CallToolResult, error) {
	token := req.Params.GetProgressToken()
	client := mcp.NewClient(fixtureSelf, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, heard *mcp.ProgressNotificationClientRequest) {
			_ = req.Session.NotifyProgress(ctx, heard.Params) // a client that is gone needs none
			select {
			case progress <- struct{}{}:
			default:
			}
		},
	})
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: url}, nil)
	if err != nil {
		return nil, err
	}
	defer session.Close()
	call := &mcp.CallToolParams{Name: "execute_pipeline", Arguments: map[string]any{"pipeline": pipeline}}
	if token != nil {
		call.SetProgressToken(token)
	}
	return session.CallTool(ctx, call)
}
