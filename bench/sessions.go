package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/mcsh-dev/mcsh/gateway"
)

const (
	idleSessions = 10_000
	perSession   = "KB of an idle session"
	oneMore      = "status of the next one"
)

// openSessions opens as many sessions as a gateway has places for, and one more.
func openSessions(_ context.Context, b *bench) (pair, error) {
	n := min(idleSessions, b.sizes.items*10)
	ours := func(ctx context.Context) ([]quantity, error) {
		g := gateway.New(gateway.Options{HTTP: gateway.HTTPOptions{Sessions: n}})
		h := g.Handler()
		before := needed()
		m := startMeter()
		for range n {
			if code := openSession(ctx, h); code != http.StatusOK {
				return nil, fmt.Errorf("a session is refused with %d", code)
			}
		}
		took := m.stop()
		each := float64(needed()-before) / 1e3 / float64(n)
		q := []quantity{
			{"CPU of one", float64(took.cpu) / float64(n), duration},
			{perSession, each, count},
			{oneMore, float64(openSession(ctx, h)), count},
		}
		return q, g.Close(ctx)
	}
	base := func(context.Context) ([]quantity, error) {
		return []quantity{{perSession, 30, count}, {oneMore, http.StatusServiceUnavailable, count}}, nil
	}
	return pair{base: base, ours: ours}, nil
}

// openSession opens a session and returns the status of the answer.
func openSession(ctx context.Context, h http.Handler) int {
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/mcp", strings.NewReader(
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"`+sessionEra+`","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`))
	r.RemoteAddr = "127.0.0.1:1"
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code
}
