package upstream_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/schemas"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
)

// TestClosedInFlight ends the session of a call that may change something, while the call is in flight: the run fails.
func TestClosedInFlight(t *testing.T) {
	for name, reach := range map[string]func(*testing.T, *mcptest.Upstream) func(context.Context) (mcp.Transport, error){
		"memory": func(_ *testing.T, s *mcptest.Upstream) func(context.Context) (mcp.Transport, error) { return s.Dial },
		"sse": func(t *testing.T, s *mcptest.Upstream) func(context.Context) (mcp.Transport, error) {
			return upstream.HTTP(upstream.Endpoint{URL: s.SSE(t).URL, LegacySSE: true})
		},
	} {
		for _, stage := range []string{
			`{"type":"tool","server":"s","name":"write"}`,
			`{"type":"tool","server":"s","name":"write","for_each":true}`,
		} {
			t.Run(name, func(t *testing.T) {
				s := mcptest.New(mcptest.Tool{Name: "write", Latency: time.Hour})
				dial := reach(t, s)
				var session mcp.Transport
				p := staticPool(t, upstream.Options{}, upstream.Server{Name: "s", Dial: func(ctx context.Context) (mcp.Transport, error) {
					var err error
					session, err = dial(ctx)
					return session, err
				}})
				plan, errs := stages.CompileFed(t.Context(), []byte("["+stage+"]"), stages.Deps{Tools: p, Schemas: schemas.Stages()})
				if errs != nil {
					t.Fatal(errs)
				}
				failed := make(chan error, 1)
				var out bytes.Buffer
				go func() {
					_, err := plan.Run(t.Context(), strings.NewReader("{}\n"), &out, stages.RunOptions{})
					failed <- err
				}()
				eventually(t, "the tool runs", func() bool { return s.Running() == 1 })
				session.(interface{ Abort() }).Abort()
				err := <-failed
				var e *stages.Error
				if !errors.As(err, &e) || e.Code != stages.ServerUnavailable || !strings.Contains(e.Msg, "may have taken effect") || errors.Is(err, io.ErrClosedPipe) {
					t.Errorf("output %q, error %v", &out, err)
				}
			})
		}
	}
}
