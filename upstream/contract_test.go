package upstream_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
	"github.com/mcsh-dev/mcsh/upstream/upstreamtest"
)

// children are what a test binary started by mcptest.Child may be.
var children = map[string]func(){
	"chaos": chaosChild,
	"get": func() {
		mcptest.New(mcptest.Tool{
			Name: "get", ReadOnly: true, Schema: `{"type":"object","properties":{"n":{}},"required":["n"]}`,
			Do: func(args map[string]any) (string, error) { return fmt.Sprint(args["n"]), nil },
		}).ServeStdio()
	},
	"suite": func() { upstreamtest.NewServer().ServeStdio() },
	"banner": func() {
		os.Stdout.WriteString("Server v1.0 is starting\n{\"level\":\"info\"}\n\n")
		upstreamtest.NewServer().ServeStdio()
	},
}

func TestInProcess(t *testing.T) {
	t.Parallel() // it waits
	upstreamtest.Run(t, func(t *testing.T) upstreamtest.Subject {
		return upstreamtest.Subject{Small: !parttest.Night(), Server: upstream.Server{Dial: upstreamtest.NewServer().Dial}}
	})
}

func TestStdio(t *testing.T) {
	t.Parallel() // it waits
	upstreamtest.Run(t, func(t *testing.T) upstreamtest.Subject {
		return upstreamtest.Subject{
			Server: upstream.Server{Dial: upstream.Stdio(mcptest.Child(t, "suite"))},
			Kill: func(t *testing.T, p *upstream.Pool) {
				if _, err := p.CallTool(t.Context(), stages.Call{Server: "subject", Name: "die"}); err == nil {
					t.Error("the call that ended the server has succeeded")
				} else {
					wantError(t, err, "SERVER_UNAVAILABLE", "exit status 3", "check its command, args and env")
				}
			},
		}
	})
}

func TestStdioBanner(t *testing.T) {
	p := staticPool(t, upstream.Options{}, upstream.Server{Name: "subject", Dial: upstream.Stdio(mcptest.Child(t, "banner"))})
	l := p.Catalog(t.Context())
	want := `wrote 2 lines to standard output that are not MCP messages (ignored), the first: "Server v1.0 is starting"`
	if l[0].Status != upstream.StatusReady || l[0].Note != want {
		t.Errorf("got %s %q %v, want note %q", l[0].Status, l[0].Note, l[0].Err, want)
	}
}

// TestHTTP: by day a server without sessions answers with events only, as one with sessions does in two ways.
func TestHTTP(t *testing.T) {
	t.Parallel() // it waits
	for name, o := range map[string]*mcp.StreamableHTTPOptions{
		"stateful SSE":   {},
		"stateful JSON":  {JSONResponse: true},
		"stateless SSE":  {Stateless: true, PropagateRequestCancellation: true},
		"stateless JSON": {Stateless: true, JSONResponse: true, PropagateRequestCancellation: true},
	} {
		if o.Stateless && o.JSONResponse && !parttest.Night() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			upstreamtest.Run(t, func(t *testing.T) upstreamtest.Subject {
				s := upstreamtest.NewServer()
				web := s.HTTP(t, o)
				return upstreamtest.Subject{
					Small:  o.Stateless || o.JSONResponse && !parttest.Night(),
					Deaf:   o.JSONResponse,
					Server: upstream.Server{Dial: upstream.HTTP(upstream.Endpoint{URL: web.URL})},
					Kill:   func(t *testing.T, _ *upstream.Pool) { forgetSessions(t, s) },
				}
			})
		})
	}
}

// TestTransportOfTheSDK: a server whose Dial makes a transport of others is refused, with the reason.
func TestTransportOfTheSDK(t *testing.T) {
	for _, foreign := range []mcp.Transport{&mcp.StreamableClientTransport{Endpoint: "http://127.0.0.1:1"}, nil} {
		p := staticPool(t, upstream.Options{}, upstream.Server{Name: "s", Dial: func(context.Context) (mcp.Transport, error) { return foreign, nil }})
		want := fmt.Sprintf("its transport is a %T, and not one of package upstream: Stdio, HTTP or InProcess", foreign)
		if l := p.Catalog(t.Context())[0]; l.Err == nil || !strings.Contains(l.Err.Error(), want) {
			t.Errorf("got %v, want %s", l.Err, want)
		}
	}
}

// forgetSessions makes the server forget its sessions, as one does that was started anew.
func forgetSessions(t *testing.T, s *mcptest.Upstream) {
	t.Helper()
	for session := range s.MCP().Sessions() {
		if err := session.Close(); err != nil && !errors.Is(err, mcp.ErrConnectionClosed) {
			t.Errorf("closing a session: %v", err)
		}
	}
}

func TestLegacySSE(t *testing.T) {
	t.Parallel() // it waits
	upstreamtest.Run(t, func(t *testing.T) upstreamtest.Subject {
		web := upstreamtest.NewServer().SSE(t)
		return upstreamtest.Subject{Small: !parttest.Night(), Server: upstream.Server{Dial: upstream.HTTP(upstream.Endpoint{URL: web.URL, LegacySSE: true})}}
	})
}
