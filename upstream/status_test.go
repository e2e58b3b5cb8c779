package upstream_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
)

// The status of servers is known without starting them or waiting for them; one that is woken is tried, again and again.
func TestStatuses(t *testing.T) {
	shop := mcptest.New(mcptest.Tool{Name: "x", Text: "1"})
	var up atomic.Bool
	hung := make(chan struct{})
	defer close(hung)
	down := upstream.Down("it is down", "wait")
	p := upstream.NewPool(upstream.Options{Sources: []upstream.Source{upstream.Static{
		{Name: "idle", Dial: shop.Dial},
		{Name: "hangs", Dial: func(ctx context.Context) (mcp.Transport, error) {
			select {
			case <-hung:
			case <-ctx.Done():
			}
			return nil, context.Canceled
		}},
		{Name: "comes", Dial: func(ctx context.Context) (mcp.Transport, error) {
			if up.Load() {
				return shop.Dial(ctx)
			}
			return down(ctx)
		}},
	}}})
	defer p.Close()
	if err := p.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.Wake("hangs")
	p.Wake("nobody")
	want := func(status string, code stages.Code) {
		t.Helper()
		all := []upstream.ServerStatus{
			{Server: "comes", Status: status, Code: code}, {Server: "hangs", Status: upstream.StatusStarting}, {Server: "idle", Status: upstream.StatusIdle},
		}
		var diff string
		for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
			if diff = cmp.Diff(all, p.Statuses()); diff == "" {
				return
			}
			p.Wake("comes")
		}
		t.Fatalf("(-want +got):\n%s", diff)
	}
	if s := p.Statuses()[0]; s.Status != upstream.StatusIdle {
		t.Errorf("at first: %+v", s)
	}
	want(upstream.StatusFailed, stages.ServerUnavailable)
	up.Store(true)
	want(upstream.StatusReady, "")
}

// Secrets are hidden as they are and as a line of the log quotes them, those of every server.
func TestHide(t *testing.T) {
	shop := mcptest.New()
	p := upstream.NewPool(upstream.Options{Sources: []upstream.Source{upstream.Static{
		{Name: "a", Dial: shop.Dial, Secrets: []string{`pass"word`}}, {Name: "b", Dial: shop.Dial, Secrets: []string{"token1"}},
	}}})
	defer p.Close()
	if err := p.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := p.Hide(`{"msg":"pass\"word, pass"word and token1"}`); got != `{"msg":"***, *** and ***"}` {
		t.Error(got)
	}
}
