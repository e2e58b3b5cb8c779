package upstream_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
)

// reports counts the reports of updates.
type reports struct {
	mu sync.Mutex
	n  map[string]int
}

func (r *reports) of(name string) func(string) {
	return func(string) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.n == nil {
			r.n = map[string]int{}
		}
		r.n[name]++
	}
}

func (r *reports) count(name string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.n[name]
}

// await waits until something has been reported more often than before.
func (r *reports) await(t *testing.T, name string, before int) {
	t.Helper()
	eventually(t, "an update of "+name+" is reported", func() bool { return r.count(name) > before })
}

// liveServers are ways to reach a [mcptest.Live] with doc://1 and doc://2.
func liveServers(t *testing.T) map[string]upstream.Server {
	live := func() *mcptest.Live { return mcptest.NewLive("doc://1", "doc://2") }
	return map[string]upstream.Server{
		"program, newer era":         {Dial: upstream.Stdio(mcptest.Child(t, "live"))},
		"program, older era":         {Dial: upstream.Stdio(mcptest.Child(t, "live")), Protocol: upstream.OnlyOlder},
		"HTTP, newer era":            {Dial: upstream.HTTP(upstream.Endpoint{URL: live().HTTP(t, &mcp.StreamableHTTPOptions{Stateless: true}).URL})},
		"HTTP, older era":            {Dial: upstream.HTTP(upstream.Endpoint{URL: live().HTTP(t, nil).URL})},
		"HTTP of 2024 (two streams)": {Dial: upstream.HTTP(upstream.Endpoint{URL: live().SSE(t).URL, LegacySSE: true})},
		"of this process":            {Dial: live().Dial, InProcess: true},
	}
}

func touch(t *testing.T, p *upstream.Pool, uri string) {
	t.Helper()
	if _, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: "touch", Args: []byte(`{"uri":` + strconv.Quote(uri) + `}`)}); err != nil {
		t.Fatal(err)
	}
}

// TestSubscribe: with a server of each era and transport, subscribers of a resource get its updates, share one subscription with
// the server, and leave none behind.
func TestSubscribe(t *testing.T) {
	for name, s := range liveServers(t) {
		t.Run(name, func(t *testing.T) {
			s.Name = "s"
			p := mcptest.NewPool(t, upstream.Options{Sources: []upstream.Source{upstream.Static{s}}})
			var r reports
			subscribe := func(who, uri string) func() {
				t.Helper()
				server, cancel, err := p.Subscribe(t.Context(), "mcsh://servers/s/"+uri, r.of(who))
				if err != nil || server != "s" {
					t.Fatal(server, err)
				}
				return cancel
			}
			one, again, two := subscribe("one", "doc://1"), subscribe("again", "doc://1"), subscribe("two", "doc://2")
			subscribed := func() string { return call(t, p, "s", "subscribed") }
			if got := subscribed(); got != "doc://1 doc://2" {
				// A newer server over HTTP may see the request before the last one for a moment.
				eventually(t, "one subscription for each resource", func() bool { return subscribed() == "doc://1 doc://2" })
			}
			touch(t, p, "doc://1")
			r.await(t, "one", 0)
			r.await(t, "again", 0)
			touch(t, p, "doc://2")
			r.await(t, "two", 0)
			one()
			one()
			before, gone := r.count("again"), r.count("one")
			touch(t, p, "doc://1")
			r.await(t, "again", before)
			if got := r.count("one"); got != gone {
				t.Errorf("a subscriber that has left got %d updates", got-gone)
			}
			again()
			two()
			eventually(t, "no subscription is left", func() bool { return subscribed() == "" })
			if _, _, err := p.Subscribe(t.Context(), "mcsh://servers/s/doc://refused", r.of("refused")); err == nil || !strings.Contains(err.Error(), "not found") {
				t.Errorf("refused: got %v", err)
			}
			before = r.count("one")
			defer subscribe("one", "doc://1")()
			touch(t, p, "doc://1")
			r.await(t, "one", before)
		})
	}
}

// TestSubscriptionsOutlastTheSession: after the end of a program, a new one starts with the same subscriptions, and everybody
// gets an update, since one may have been missed. An unused program with a subscription is not ended.
func TestSubscriptionsOutlastTheSession(t *testing.T) {
	t.Parallel() // it waits
	for name, protocol := range map[string]upstream.Protocol{"newer": upstream.AnyProtocol, "older": upstream.OnlyOlder} {
		t.Run(name, func(t *testing.T) {
			p := mcptest.NewPool(t, upstream.Options{IdleStop: time.Second, Sources: []upstream.Source{upstream.Static{
				{Name: "s", Dial: upstream.Stdio(mcptest.Child(t, "live")), Protocol: protocol},
			}}})
			var r reports
			_, cancel, err := p.Subscribe(t.Context(), "mcsh://servers/s/doc://1", r.of("one"))
			if err != nil {
				t.Fatal(err)
			}
			defer cancel()
			pid := call(t, p, "s", "pid")
			time.Sleep(2500 * time.Millisecond) // without a subscription the program would end now
			if got := call(t, p, "s", "pid"); got != pid {
				t.Errorf("the program has been ended and started again")
			}
			n, _ := strconv.Atoi(pid)
			process, err := os.FindProcess(n)
			if err != nil {
				t.Fatal(err)
			}
			_ = process.Kill()
			r.await(t, "one", 0)
			before := r.count("one")
			touch(t, p, "doc://1")
			r.await(t, "one", before)
			if got := call(t, p, "s", "subscribed"); got != "doc://1" {
				t.Errorf("subscribed are %q", got)
			}
		})
	}
}

// TestManySubscribe: ten thousand subscribers of one resource are one subscription, and a flood of updates costs them little.
func TestManySubscribe(t *testing.T) {
	s := mcptest.NewLive("doc://1")
	p := mcptest.Pool(t, map[string]*mcptest.Upstream{"s": s.Upstream})
	var r reports
	var cancels []func()
	for range 10_000 {
		_, cancel, err := p.Subscribe(t.Context(), "mcsh://servers/s/doc://1", r.of("all"))
		if err != nil {
			t.Fatal(err)
		}
		cancels = append(cancels, cancel)
	}
	if got := s.Asked(); got != 1 {
		t.Errorf("%d requests to subscribe, want 1", got)
	}
	for range 1000 {
		s.Touch("doc://1")
		s.Touch("doc://other")
	}
	eventually(t, "all get an update", func() bool { return r.count("all") >= 10_000 })
	for _, cancel := range cancels {
		cancel()
	}
	eventually(t, "no subscription is left", func() bool { return len(s.Subscribed()) == 0 })
}

// TestSubscribeRefused: an error says what to do.
func TestSubscribeRefused(t *testing.T) {
	live := mcptest.NewLive("doc://1")
	p := mcptest.NewPool(t, upstream.Options{Sources: []upstream.Source{upstream.Static{
		{Name: "live", Dial: live.Dial, Resources: upstream.Filter{Deny: []string{"doc://secret*"}}},
		{Name: "plain", Dial: mcptest.New().Dial},
	}}})
	for uri, want := range map[string]string{
		"mcsh://servers/plain/doc://1":       "does not report changes",
		"mcsh://servers/live/doc://secret/1": "the operator denies it",
		"mcsh://servers/live/doc://refused":  "not found",
		"mcsh://servers/live/":               "is empty",
		"mcsh://servers/nobody/doc://1":      `there is no server "nobody"`,
		"mcsh://servers/resources/doc://1":   `there is no server "resources"`,
		"doc://nowhere":                      "no server lists it",
	} {
		if _, _, err := p.Subscribe(t.Context(), uri, func(string) {}); err == nil || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%s: got %v, want %q", uri, err, want)
		}
	}
	if got := live.Subscribed(); len(got) > 0 {
		t.Errorf("subscribed are %q", got)
	}
}
