package upstream_test

import (
	"bytes"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/schemas"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
)

// TestBusyServer: a call that a 503 answers is tried again where that does no harm, and where the server has said when to
// come back: without that a proxy may have lost the server while it worked.
func TestBusyServer(t *testing.T) {
	t.Parallel() // it waits
	for _, tt := range []struct {
		name  string
		tool  mcptest.Tool
		after string // Retry-After
		calls int32
	}{
		{"only reads", mcptest.Tool{ReadOnly: true}, "", 3},
		{"idempotent", mcptest.Tool{Idempotent: true}, "", 3},
		{"changes something", mcptest.Tool{Destructive: true}, "", 1},
		{"changes something, and is asked back", mcptest.Tool{Destructive: true}, "1", 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.tool.Name, tt.tool.Text = "one", "done"
			u := mcptest.New(tt.tool)
			inner := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return u.MCP() }, nil)
			var calls atomic.Int32
			s := u.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.Contains(peek(r), `"tools/call"`) && calls.Add(1) < 3 {
					if tt.after != "" {
						w.Header().Set("Retry-After", tt.after)
					}
					w.WriteHeader(http.StatusServiceUnavailable)
					return
				}
				inner.ServeHTTP(w, r)
			}))
			p, errs := stages.CompileFed(t.Context(), []byte(`[{"type":"tool","server":"s","name":"one","for_each":true,"retries":2}]`),
				stages.Deps{Tools: httpPool(t, upstream.Endpoint{URL: s.URL}), Schemas: schemas.Stages()})
			if errs != nil {
				t.Fatal(errs)
			}
			var out bytes.Buffer
			_, err := p.Run(t.Context(), strings.NewReader("{}\n"), &out, stages.RunOptions{})
			if tried := tt.calls > 1; tried != (err == nil) || tried != (out.String() == "[\"done\"]\n") || calls.Load() != tt.calls {
				t.Errorf("%d calls, want %d; output %q, error %v", calls.Load(), tt.calls, &out, err)
			}
		})
	}
}
