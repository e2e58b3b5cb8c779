package upstream_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/upstream"
)

// carrying serves a [mcptest.Live] over HTTP, of the newer era or the older one. What carries updates, subscriptions/listen or
// the standing stream, is answered by a function of the test instead, unless that is nil.
func carrying(t *testing.T, live *mcptest.Live, newer bool, limit time.Duration, answer http.HandlerFunc) *upstream.Pool {
	t.Helper()
	real := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return live.MCP() }, &mcp.StreamableHTTPOptions{Stateless: newer})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		carries := r.Method == http.MethodGet || r.Header.Get("Mcp-Method") == "subscriptions/listen"
		if carries && answer != nil {
			answer(w, r)
			return
		}
		real.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	s := upstream.Server{Name: "s", Dial: upstream.HTTP(upstream.Endpoint{URL: server.URL})}
	if !newer {
		s.Protocol = upstream.OnlyOlder
	}
	return mcptest.NewPool(t, upstream.Options{CallTimeout: limit, Sources: []upstream.Source{upstream.Static{s}}})
}

// sends answers with a stream of these messages, and then ends or hangs.
func sends(hangs bool, messages ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, id, _ := strings.Cut(string(body), `"id":`)
		id, _, _ = strings.Cut(id, ",")
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusOK)
		for _, m := range messages {
			fmt.Fprintf(w, "data: %s\n\n", strings.ReplaceAll(m, "ID", id))
		}
		w.(http.Flusher).Flush()
		if hangs {
			<-r.Context().Done()
		}
	}
}

func acknowledging(uris string) string {
	return `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":ID},"notifications":{"resourceSubscriptions":[` + uris + `]}}}`
}

// TestHostileSubscriptions: a server whose stream is not as it should be costs an error within the time of a call, and nothing
// stays open.
func TestHostileSubscriptions(t *testing.T) {
	for name, test := range map[string]struct {
		newer  bool
		answer http.HandlerFunc
		want   string
	}{
		"never acknowledges":           {true, sends(true), "did not answer within 2s"},
		"acknowledges another":         {true, sends(true, acknowledging(`"doc://2"`)), "does not report changes of this resource"},
		"acknowledges nothing":         {true, sends(true, acknowledging("")), "does not report changes of this resource"},
		"acknowledges nonsense":        {true, sends(true, `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":7}`), "did not answer within 2s"},
		"ends before":                  {true, sends(false), "server"},
		"an error":                     {true, sends(false, `{"jsonrpc":"2.0","id":ID,"error":{"code":-32000,"message":"not today"}}`), "not today"},
		"no stream":                    {true, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }, "server"},
		"no standing stream":           {false, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusMethodNotAllowed) }, "has no stream for notifications"},
		"a standing page":              {false, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<p>hello") }, "of type \"text/html\""},
		"a standing stream that hangs": {false, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "did not answer within 2s"},
	} {
		t.Run(name, func(t *testing.T) {
			limit := time.Minute
			if strings.Contains(test.want, "within 2s") {
				limit = 2 * time.Second
			}
			p := carrying(t, mcptest.NewLive("doc://1"), test.newer, limit, test.answer)
			if _, err := p.OffersOf(t.Context(), "s", upstream.Resources); err != nil {
				t.Fatal(err)
			}
			before := runtime.NumGoroutine()
			if _, _, err := p.Subscribe(t.Context(), "mcsh://servers/s/doc://1", func(string) {}); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			eventually(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= before+4 })
		})
	}
}

// TestForeignUpdates: updates of what nobody has subscribed to, and of other servers' resources, reach nobody.
func TestForeignUpdates(t *testing.T) {
	update := func(uri string) string {
		return `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":` + uri + `}}`
	}
	long := `"doc://` + strings.Repeat("x/", 40_000) + `"`
	p := carrying(t, mcptest.NewLive("doc://1"), true, time.Minute, sends(true, acknowledging(`"doc://1"`), update(`"doc://2"`), update(`"mcsh://servers/other/doc://1"`),
		update(`"doc://10"`), update("7"), update(long), update(`"doc://1\u0000"`), update(`"doc:"`), update(`""`), update(`"doc://1/a/b"`)))
	var r reports
	_, cancel, err := p.Subscribe(t.Context(), "mcsh://servers/s/doc://1", r.of("one"))
	if err != nil {
		t.Fatal(err)
	}
	defer cancel()
	r.await(t, "one", 0) // of the part, the last one
	if n := r.count("one"); n != 1 {
		t.Errorf("%d updates, want 1", n)
	}
}

// TestStreamsThatEnd: a stream that ends is opened again, and everybody gets an update then.
func TestStreamsThatEnd(t *testing.T) {
	t.Parallel() // it waits
	for name, newer := range map[string]bool{"newer": true, "older": false} {
		t.Run(name, func(t *testing.T) {
			cut := make(chan struct{})
			answer := sends(false)
			if newer {
				answer = sends(false, acknowledging(`"doc://1"`))
			}
			p := carrying(t, mcptest.NewLive("doc://1"), newer, time.Minute, func(w http.ResponseWriter, r *http.Request) {
				answer(w, r)
				select {
				case <-cut:
				case <-r.Context().Done():
				}
			})
			var r reports
			_, cancel, err := p.Subscribe(t.Context(), "mcsh://servers/s/doc://1", r.of("one"))
			if err != nil {
				t.Fatal(err)
			}
			defer cancel()
			for range 3 {
				before := r.count("one")
				select {
				case cut <- struct{}{}:
				case <-time.After(time.Minute):
					t.Fatal("the stream is not opened again")
				}
				r.await(t, "one", before)
			}
		})
	}
}

// TestOneOfMany: one resource that the server refuses does not keep others from being subscribed to, in one request or in many.
func TestOneOfMany(t *testing.T) {
	for name, newer := range map[string]bool{"newer": true, "older": false} {
		t.Run(name, func(t *testing.T) {
			live := mcptest.NewLive("doc://1")
			p := carrying(t, live, newer, time.Minute, nil)
			var all sync.WaitGroup
			var failed, fine atomic.Int64
			var mu sync.Mutex
			var cancels []func()
			for i := range 300 {
				uri := fmt.Sprintf("mcsh://servers/s/doc://%d", i)
				if i%30 == 0 {
					uri += "/refused"
				}
				all.Go(func() {
					_, cancel, err := p.Subscribe(t.Context(), uri, func(string) {})
					if err != nil {
						failed.Add(1)
						return
					}
					fine.Add(1)
					mu.Lock()
					defer mu.Unlock()
					cancels = append(cancels, cancel)
				})
			}
			all.Wait()
			if failed.Load() != 10 || fine.Load() != 290 {
				t.Errorf("%d have failed, and %d not", failed.Load(), fine.Load())
			}
			eventually(t, "the server has the others, once each", func() bool { return len(live.Subscribed()) == 290 })
			for _, cancel := range cancels {
				cancel()
			}
			eventually(t, "no subscription is left", func() bool { return len(live.Subscribed()) == 0 })
		})
	}
}

// TestSubscriptionsOfReplacedServers: a server that takes the place of another gets its subscriptions, and so does one that
// returns, if the operator still allows them.
func TestSubscriptionsOfReplacedServers(t *testing.T) {
	first, second := mcptest.NewLive("doc://1"), mcptest.NewLive("doc://1")
	server := func(version string, live *mcptest.Live, deny ...string) upstream.Server {
		return upstream.Server{Name: "s", Version: version, Dial: live.Dial, Resources: upstream.Filter{Deny: deny}}
	}
	source := newChangingSource(server("1", first))
	p := mcptest.NewPool(t, upstream.Options{Sources: []upstream.Source{source}, OnChange: func(c upstream.Change) { source.changes <- c }})
	var r reports
	_, cancel, err := p.Subscribe(t.Context(), "mcsh://servers/s/doc://1", r.of("one"))
	if err != nil {
		t.Fatal(err)
	}
	source.change(t, nil, server("2", second))
	r.await(t, "one", 0)
	eventually(t, "the new server has the subscription", func() bool { return len(second.Subscribed()) == 1 })
	before := r.count("one")
	second.Touch("doc://1")
	r.await(t, "one", before)
	source.change(t, nil)
	third := mcptest.NewLive("doc://1")
	source.change(t, nil, server("3", third, "doc://*"))
	call(t, p, "s", "pid")
	fourth := mcptest.NewLive("doc://1")
	before = r.count("one")
	source.change(t, nil, server("4", fourth))
	r.await(t, "one", before)
	if n := third.Asked(); n > 0 {
		t.Errorf("a server whose resources the operator denies got %d requests", n)
	}
	cancel()
	eventually(t, "no subscription is left", func() bool { return len(fourth.Subscribed()) == 0 })
}

// TestSubscriptionOfReturned: a server that returns while its subscription is being refused gets it all the same.
func TestSubscriptionOfReturned(t *testing.T) {
	server := func(live *mcptest.Live) upstream.Server { return upstream.Server{Name: "s", Dial: live.Dial} }
	source := newChangingSource(server(mcptest.NewLive("doc://1")))
	p := source.pool(t)
	refusing, returned := make(chan struct{}), make(chan struct{})
	begin := sync.OnceFunc(func() { close(refusing) })
	p.Beside(func(context.Context) []string {
		begin()
		<-returned
		return nil
	})
	var r reports
	if _, _, err := p.Subscribe(t.Context(), "mcsh://servers/s/doc://1", r.of("one")); err != nil {
		t.Fatal(err)
	}
	source.change(t, nil)
	<-refusing
	live := mcptest.NewLive("doc://1")
	source.change(t, nil, server(live))
	close(returned)
	eventually(t, "the server has the subscription", func() bool { return len(live.Subscribed()) == 1 })
	r.await(t, "one", 0)
}
