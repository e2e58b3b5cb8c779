package gateway_test

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/sandbox"
	"github.com/mcsh-dev/mcsh/sandbox/local"
)

// asked is a driver that keeps the callers that workers were started for.
type asked struct {
	sandbox.Driver

	mu      sync.Mutex
	callers []string
}

func (a *asked) Open(ctx context.Context, caller string) (io.ReadWriteCloser, error) {
	a.mu.Lock()
	a.callers = append(a.callers, caller)
	a.mu.Unlock()
	return a.Driver.Open(ctx, caller)
}

// TestCallers: a session is a caller, the client behind pipes is one, and all without a session are one together.
func TestCallers(t *testing.T) {
	driver := &asked{Driver: local.New(local.Options{Worker: []string{workerBinary}})}
	pool, err := sandbox.New(t.Context(), sandbox.Options{Driver: driver, Warm: -1})
	if err != nil {
		t.Skipf("needs a Linux kernel with seccomp and Landlock for the local sandbox: %v", err)
	}
	t.Cleanup(func() { pool.Close() })
	w := newWorld(t)
	w.gateway = gateway.New(gateway.Options{Upstream: w.pool, Sandbox: ready{pool}})
	piped := connect(t, w.gateway, newClient())
	one, two := w.overHTTP(t, false), w.overHTTP(t, false)
	stateless, another := w.overHTTP(t, true), w.overHTTP(t, true)
	for _, agent := range []*mcp.ClientSession{piped, one, two, one, stateless, another} {
		result, err := agent.CallTool(t.Context(), &mcp.CallToolParams{Name: "execute_pipeline", Arguments: json.RawMessage(
			`{"pipeline":[{"type":"command","command":"wc"}]}`)})
		if err != nil || result.IsError {
			t.Fatalf("got %+v, %v", result, err)
		}
	}
	got := driver.callers
	if len(got) != 6 || got[0] != "stdio" || !strings.HasPrefix(got[1], "session ") || got[1] == got[2] || got[1] != got[3] ||
		!strings.HasPrefix(got[2], "session ") || got[4] != "anonymous" || got[5] != "anonymous" {
		t.Errorf("workers were started for %q, want stdio, a session, another, the first again, anonymous twice", got)
	}
}
