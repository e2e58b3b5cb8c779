package gateway_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/upstream"
)

// TestRegroupedSubscriptions: a client hears of a resource as long as its group has the server, and then its subscription with
// the server ends. In a group of one server it subscribes by the original URI, whatever that looks like.
func TestRegroupedSubscriptions(t *testing.T) {
	const odd = "mcsh://servers/other/doc://1"
	for _, era := range eras {
		t.Run(era, func(t *testing.T) {
			live, other := mcptest.NewLive("doc://1", odd), mcptest.NewLive("doc://1")
			source := &memberSource{
				servers: []upstream.Server{{Name: "live", Dial: live.Dial, Version: "1"}, {Name: "other", Dial: other.Dial, Version: "1"}},
				groups:  []upstream.Group{{Name: "solo", Servers: []string{"live"}}, {Name: "dev", Servers: []string{"live", "other"}}},
			}
			pool := mcptest.NewPool(t, upstream.Options{Sources: []upstream.Source{source}})
			if err := pool.Load(t.Context()); err != nil { // until then there are no groups
				t.Fatal(err)
			}
			g := gateway.New(gateway.Options{Upstream: pool})
			t.Cleanup(func() { g.Close(context.Background()) })
			server := httptest.NewServer(g.Handler())
			t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
			connect := func(path string) (*mcp.ClientSession, *heard) {
				h := new(heard)
				agent, err := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, &mcp.ClientOptions{
					ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) { h.add(r.Params.URI) },
				}).Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: server.URL + path}, &mcp.ClientSessionOptions{ProtocolVersion: era})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { agent.Close() })
				return agent, h
			}
			solo, heardSolo := connect("/mcp/solo")
			dev, heardDev := connect("/mcp/dev")
			for uri, agent := range map[string]*mcp.ClientSession{odd: solo, "mcsh://servers/live/doc://1": dev} {
				if err := agent.Subscribe(t.Context(), &mcp.SubscribeParams{URI: uri}); err != nil {
					t.Fatal(err)
				}
			}
			hears := func(h *heard, original, as string) {
				t.Helper()
				before := h.count(as)
				within(t, "a client hears of "+as, func() bool { live.Touch(original); return h.count(as) > before })
			}
			hears(heardSolo, odd, odd)
			hears(heardDev, "doc://1", "mcsh://servers/live/doc://1")
			if len(other.Subscribed()) > 0 {
				t.Errorf("the other server has %q", other.Subscribed())
			}
			source.regroup(t, pool, upstream.Group{Name: "solo", Servers: []string{"live"}}, upstream.Group{Name: "dev", Servers: []string{"other"}})
			last := heardDev.count("mcsh://servers/live/doc://1")
			within(t, "the subscription ends", func() bool { live.Touch("doc://1"); return slices.Equal(live.Subscribed(), []string{odd}) })
			hears(heardSolo, odd, odd)
			if n := heardDev.count("mcsh://servers/live/doc://1"); n > last+1 { // one may have been on its way
				t.Errorf("%d updates came after the groups had changed", n-last)
			}
		})
	}
}

// TestAnswersInGroup: a question that was asked in a group is answered there. The same caller gets nothing of that call
// elsewhere.
func TestAnswersInGroup(t *testing.T) {
	source := &memberSource{
		servers: []upstream.Server{{Name: "shop", Dial: mcptest.New().Dial, Version: "1"}},
		groups:  []upstream.Group{{Name: "dev", Servers: []string{"shop"}}},
	}
	pool := mcptest.NewPool(t, upstream.Options{Sources: []upstream.Source{source}})
	if err := pool.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	g := gateway.New(gateway.Options{Upstream: pool, Watch: &curious{}})
	t.Cleanup(func() { g.Close(context.Background()) })
	all := newStateless(g, "ann")
	dev := *all
	dev.h = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.URL.Path = "/mcp/dev"
		all.h.ServeHTTP(w, r)
	})
	plan := asks(nameForm)
	a := dev.call(t, plan, "")
	if got := all.call(t, plan, a.answers(t, accepted)); !refusal(got) {
		t.Errorf("outside the group: got %+v", got)
	}
	if got := dev.call(t, plan, a.answers(t, accepted)); !strings.Contains(got.text(), "Ann") {
		t.Errorf("in the group: got %+v", got)
	}
}
