package gateway_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/upstream"
)

// TestSubscribedSessions: a session whose client waits for updates on its stream is not idle; the timeout counts again without
// the stream.
func TestSubscribedSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		live := mcptest.NewLive("doc://1")
		pool := upstream.NewPool(upstream.Options{Sources: []upstream.Source{upstream.Static{{Name: "live", Dial: live.Dial, InProcess: true}}}})
		defer pool.Close()
		g := gateway.New(gateway.Options{Upstream: pool})
		defer g.Close(t.Context())
		a := newAgent(t, g.Handler(), "2025-11-25")
		a.send(t.Context(), `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		if w := a.send(t.Context(), `{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"mcsh://servers/live/doc://1"}}`); !strings.Contains(w.Body.String(), `"result":{}`) {
			t.Fatal(w.Code, w.Body)
		}
		ctx, leave := context.WithCancel(t.Context())
		stream, over := httptest.NewRecorder(), make(chan struct{})
		go func() {
			defer close(over)
			a.h.ServeHTTP(stream, a.request(ctx, http.MethodGet, ""))
		}()
		time.Sleep(time.Hour)
		live.Touch("doc://1")
		time.Sleep(time.Minute)
		if got := live.Subscribed(); len(got) != 1 {
			t.Errorf("after an hour the subscriptions are %q", got)
		}
		leave()
		<-over
		if !strings.Contains(stream.Body.String(), `"uri":"mcsh://servers/live/doc://1"`) {
			t.Errorf("the stream has %s", stream.Body)
		}
		time.Sleep(time.Hour)
		if got := live.Subscribed(); len(got) > 0 {
			t.Errorf("an hour after the end of the stream the subscriptions are %q", got)
		}
	})
}
