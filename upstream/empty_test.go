package upstream_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
)

// TestEmptyAnswers: a server that answers what begins a session, or asks for its tools, with neither a result nor an error
// is refused at once: nothing else will come.
func TestEmptyAnswers(t *testing.T) {
	const neither = `{"jsonrpc":"2.0","id":ID}`
	bodies := map[string][2]string{
		"JSON":     {"application/json", neither},
		"no error": {"application/json", `{"jsonrpc":"2.0","id":ID,"error":null}`},
		"stream":   {"text/event-stream", "data: " + neither + "\n\n"},
	}
	dials := map[string]func(*testing.T) upstream.Server{}
	for name, body := range bodies {
		for _, method := range []string{"initialize", "tools/list"} {
			dials["HTTP, "+method+", "+name] = func(t *testing.T) upstream.Server {
				s := emptyServer(t, method, body[0], body[1])
				return upstream.Server{Name: "s", Dial: upstream.HTTP(upstream.Endpoint{URL: s.URL})}
			}
		}
	}
	for _, fault := range []string{"stdio opens with nothing", "stdio opens with no error", "stdio lists nothing"} {
		dials[fault] = func(t *testing.T) upstream.Server { return stdioPatient(t, fault).server }
	}
	for _, name := range slices.Sorted(maps.Keys(dials)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := dials[name](t)
			p := staticPool(t, upstream.Options{StartTimeout: time.Hour, ListTimeout: time.Hour}, server)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err := p.CallTool(ctx, stages.Call{Server: server.Name, Name: "one"})
			wantError(t, err, stages.ServerUnavailable, "neither a result nor an error", "")
		})
	}
}

// emptyServer answers one method with a body.
func emptyServer(t *testing.T, method, media, body string) *httptest.Server {
	t.Helper()
	s := handMade(t, nil)
	inner := s.Config.Handler
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req struct {
			ID     json.RawMessage
			Method string
		}
		if r.Method == http.MethodPost && json.Unmarshal([]byte(peek(r)), &req) == nil && req.Method == method {
			w.Header().Set("Content-Type", media)
			fmt.Fprint(w, strings.ReplaceAll(body, "ID", string(req.ID)))
			return
		}
		inner.ServeHTTP(w, r)
	})
	return s
}
