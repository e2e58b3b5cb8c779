package gateway_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdkauth "github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/upstream"
)

// watched is a gateway over a server with resources, served over HTTP to callers who name themselves with their tokens.
type watched struct {
	*gateway.Gateway
	live *mcptest.Live
	url  string
}

func newWatched(t *testing.T) *watched {
	t.Helper()
	w := &watched{live: mcptest.NewLive("doc://1", "doc://2")}
	pool := mcptest.NewPool(t, upstream.Options{Sources: []upstream.Source{upstream.Static{
		{Name: "live", Dial: w.live.Dial, InProcess: true, Resources: upstream.Filter{Deny: []string{"doc://secret"}}},
		{Name: "plain", Dial: mcptest.New().Dial, InProcess: true},
	}}})
	pool.Catalog(t.Context())
	awaitOffers(t, pool, upstream.Resources, 2)
	w.Gateway = gateway.New(gateway.Options{Upstream: pool, Version: "test"})
	t.Cleanup(w.end)
	verify := func(_ context.Context, token string, _ *http.Request) (*sdkauth.TokenInfo, error) {
		return &sdkauth.TokenInfo{UserID: token, Expiration: time.Now().Add(time.Hour)}, nil
	}
	server := httptest.NewServer(sdkauth.RequireBearerToken(verify, nil)(gateway.WithDeadlines(w.Handler())))
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	w.url = server.URL + "/mcp"
	return w
}

// end closes the gateway, and gives calls in flight no time.
func (w *watched) end() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	w.Close(ctx)
}

// heard are the notifications that a client has got.
type heard struct {
	mu   sync.Mutex
	list []string
}

func (h *heard) add(what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list = append(h.list, what)
}

func (h *heard) count(what string) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, one := range h.list {
		if one == what {
			n++
		}
	}
	return n
}

// client connects the SDK's client as a caller.
func (w *watched) client(t *testing.T, caller, version string) (*mcp.ClientSession, *heard) {
	t.Helper()
	h := new(heard)
	client := mcp.NewClient(&mcp.Implementation{Name: caller, Version: "1"}, &mcp.ClientOptions{
		ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) { h.add(r.Params.URI) },
		ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) {
			h.add("list")
		},
	})
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{
		Endpoint: w.url, HTTPClient: &http.Client{Transport: bearer(caller)}, MaxRetries: -1,
	}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	return session, h
}

// touch reports updates of an original until a client has heard of one more.
func (w *watched) touch(t *testing.T, h *heard, original, as string) {
	t.Helper()
	before := h.count(as)
	within(t, "a client hears of "+as, func() bool { w.live.Touch(original); return h.count(as) > before })
}

func (w *watched) subscribed(t *testing.T, want ...string) {
	t.Helper()
	within(t, fmt.Sprintf("the server has the subscriptions %q", want), func() bool { return slices.Equal(w.live.Subscribed(), want) })
}

// TestSubscriptions: clients of both eras get the updates of what they have subscribed to, by the URI that they have written, and
// share one subscription with the server, which ends with the last of theirs.
func TestSubscriptions(t *testing.T) {
	t.Parallel() // it waits
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			w := newWatched(t)
			one, heardOne := w.client(t, "one", version)
			two, heardTwo := w.client(t, "two", version)
			const outward = "mcsh://servers/live/doc://1"
			for agent, uris := range map[*mcp.ClientSession][]string{one: {outward, "doc://2"}, two: {outward}} {
				for _, uri := range uris {
					if err := agent.Subscribe(t.Context(), &mcp.SubscribeParams{URI: uri}); err != nil {
						t.Fatal(err)
					}
				}
			}
			w.subscribed(t, "doc://1", "doc://2")
			w.touch(t, heardOne, "doc://1", outward)
			w.touch(t, heardTwo, "doc://1", outward)
			w.touch(t, heardOne, "doc://2", "doc://2")
			w.touch(t, heardOne, "doc://2/part", "doc://2")
			if n := heardTwo.count("doc://2") + heardOne.count("doc://1") + heardTwo.count("mcsh://servers/live/doc://2"); n > 0 {
				t.Errorf("%d updates of what the client has not subscribed to", n)
			}
			if err := one.Unsubscribe(t.Context(), &mcp.UnsubscribeParams{URI: "doc://2"}); err != nil {
				t.Fatal(err)
			}
			w.subscribed(t, "doc://1")
			one.Close()
			w.touch(t, heardTwo, "doc://1", outward)
			two.Close()
			w.subscribed(t)
		})
	}
}

// TestSubscriptionErrors: what cannot be subscribed to is an error that says what to do.
func TestSubscriptionErrors(t *testing.T) {
	w := newWatched(t)
	agent, _ := w.client(t, "one", "2025-11-25")
	for uri, want := range map[string]string{
		"mcsh://runs/r_abc/output":         "-32602: outputs of runs do not change",
		"mcsh://servers/live/doc://secret": "-32602: resource \"doc://secret\" of server \"live\" may not be used: the operator denies it",
		"mcsh://servers/live/refused":      "-32602: Resource not found",
		"mcsh://servers/plain/doc://1":     "-32602: the server does not report changes of its resources",
		"mcsh://servers/nobody/doc://1":    "-32602: there is no server \"nobody\"",
		"doc://nowhere":                    "-32602: resource \"doc://nowhere\" not found",
		"":                                 "-32602: the URI is empty",
	} {
		err := agent.Subscribe(t.Context(), &mcp.SubscribeParams{URI: uri})
		if got := resourceText(nil, err); !strings.HasPrefix(got, want) {
			t.Errorf("%q: got %s, want %s", uri, got, want)
		}
		if err := listenError(t, w, uri); !strings.HasPrefix(err, want) {
			t.Errorf("%q, newer era: got %s, want %s", uri, err, want)
		}
	}
	if err := agent.Unsubscribe(t.Context(), &mcp.UnsubscribeParams{URI: "doc://1"}); err != nil {
		t.Errorf("nothing to end: %v", err)
	}
	w.subscribed(t)
}

// listenBody is a request subscriptions/listen.
func listenBody(id string, wants string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"subscriptions/listen","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientCapabilities":{}},"notifications":` + wants + `}}`
}

// listen opens a stream of the newer era.
func (w *watched) listen(t *testing.T, ctx context.Context, caller, body string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2026-07-28",
		"Mcp-Method": "subscriptions/listen", "Authorization": "Bearer " + caller,
	} {
		r.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

func listenError(t *testing.T, w *watched, uri string) string {
	t.Helper()
	resp := w.listen(t, t.Context(), "one", listenBody("1", `{"resourceSubscriptions":[`+strconv.Quote(uri)+`]}`))
	var m struct{ Error jsonrpc.Error }
	if err := json.NewDecoder(resp.Body).Decode(&m); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d: %s", m.Error.Code, m.Error.Message)
}

// nextEvent is the next message of a stream.
func nextEvent(t *testing.T, in *bufio.Reader) string {
	t.Helper()
	for {
		line, err := in.ReadString('\n')
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			return strings.TrimSpace(data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestListen: a request of the newer era is acknowledged first, with what the client gets; each notification names the request;
// at the end of the gateway comes the answer.
func TestListen(t *testing.T) {
	w := newWatched(t)
	in := bufio.NewReader(w.listen(t, t.Context(), "one", listenBody(`"a"`,
		`{"resourceSubscriptions":["doc://2","doc://refused","doc://1","doc://1"],"resourcesListChanged":true,"toolsListChanged":true}`)).Body)
	const meta = `"_meta":{"io.modelcontextprotocol/subscriptionId":"a"}`
	same := func(got, want string) {
		t.Helper()
		var a, b any
		if err := errors.Join(json.Unmarshal([]byte(got), &a), json.Unmarshal([]byte(want), &b)); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(b, a); d != "" {
			t.Error(d)
		}
	}
	same(nextEvent(t, in), `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{`+meta+
		`,"notifications":{"resourcesListChanged":true,"toolsListChanged":true,"resourceSubscriptions":["doc://1","doc://2"]}}}`)
	w.live.Touch("doc://2")
	same(nextEvent(t, in), `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{`+meta+`,"uri":"doc://2"}}`)
	w.live.MCP().AddResource(&mcp.Resource{URI: "doc://3", Name: "3"}, nil)
	same(nextEvent(t, in), `{"jsonrpc":"2.0","method":"notifications/resources/list_changed","params":{`+meta+`}}`)
	w.end()
	if got := nextEvent(t, in); !strings.Contains(got, `"id":"a","result"`) || !strings.Contains(got, `"resultType":"complete"`) {
		t.Errorf("the answer is %s", got)
	}
	if rest, err := io.ReadAll(in); err != nil || strings.Contains(string(rest), "data") {
		t.Errorf("after the answer: %q, %v", rest, err)
	}
}

// TestListenForNothing: a request that gets nothing ends at once.
func TestListenForNothing(t *testing.T) {
	w := newWatched(t)
	in := bufio.NewReader(w.listen(t, t.Context(), "one", listenBody("5", `{}`)).Body)
	if got := nextEvent(t, in); !strings.Contains(got, `"notifications":{}`) {
		t.Errorf("the acknowledgement is %s", got)
	}
	if got := nextEvent(t, in); !strings.Contains(got, `"id":5,"result"`) {
		t.Errorf("the answer is %s", got)
	}
}

// TestVanishedSubscribers: clients that end without a word, or lose access, leave nothing behind.
func TestVanishedSubscribers(t *testing.T) {
	w := newWatched(t)
	before := runtime.NumGoroutine()
	ctx, vanish := context.WithCancel(t.Context())
	for i := range 50 {
		in := bufio.NewReader(w.listen(t, ctx, "one", listenBody(strconv.Itoa(i), `{"resourceSubscriptions":["doc://1"]}`)).Body)
		nextEvent(t, in)
	}
	kept := bufio.NewReader(w.listen(t, t.Context(), "two", listenBody("1", `{"resourceSubscriptions":["doc://2"]}`)).Body)
	nextEvent(t, kept)
	older, _ := w.client(t, "one", "2025-11-25")
	if err := older.Subscribe(t.Context(), &mcp.SubscribeParams{URI: "doc://1"}); err != nil {
		t.Fatal(err)
	}
	w.subscribed(t, "doc://1", "doc://2")
	vanish()
	w.EndUser("one")
	w.subscribed(t, "doc://2")
	w.live.Touch("doc://2")
	if got := nextEvent(t, kept); !strings.Contains(got, `"doc://2"`) {
		t.Errorf("another caller hears %s", got)
	}
	older.Close()
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	within(t, "no goroutine of a subscription is left", func() bool { return runtime.NumGoroutine() <= before+20 })
}

// TestSubscriptionsAreBounded: one session and one caller cannot subscribe without end, and what ends makes room.
func TestSubscriptionsAreBounded(t *testing.T) {
	t.Parallel() // it waits
	w := newWatched(t)
	var uris []string
	for i := range 300 {
		uris = append(uris, fmt.Sprintf("mcsh://servers/live/doc://1/%d", i))
	}
	agent, _ := w.client(t, "one", "2025-11-25")
	for i, uri := range uris[:257] {
		err := agent.Subscribe(t.Context(), &mcp.SubscribeParams{URI: uri})
		if bounded := err != nil && strings.Contains(err.Error(), "the session has 256 subscriptions, which is the most"); bounded != (i == 256) {
			t.Fatalf("the subscription %d: %v", i, err)
		}
	}
	if err := agent.Unsubscribe(t.Context(), &mcp.UnsubscribeParams{URI: uris[0]}); err != nil {
		t.Fatal(err)
	}
	if err := agent.Subscribe(t.Context(), &mcp.SubscribeParams{URI: uris[299]}); err != nil {
		t.Errorf("after the end of another: %v", err)
	}
	wants, err := json.Marshal(map[string]any{"resourceSubscriptions": uris})
	if err != nil {
		t.Fatal(err)
	}
	accepted := func(caller string) int {
		in := bufio.NewReader(w.listen(t, t.Context(), caller, listenBody("1", string(wants))).Body)
		return strings.Count(nextEvent(t, in), "mcsh://servers/live/")
	}
	for _, test := range []struct {
		caller string
		want   int
	}{{"one", 256}, {"one", 256}, {"one", 253}, {"two", 256}} { // each request counts as one more: 256 + 257 + 257 + 254
		if got := accepted(test.caller); got != test.want {
			t.Errorf("%s gets %d subscriptions, want %d", test.caller, got, test.want)
		}
	}
	resp := w.listen(t, t.Context(), "one", listenBody("1", `{"resourcesListChanged":true}`))
	if text, err := io.ReadAll(resp.Body); err != nil || !strings.Contains(string(text), "you have 1024 subscriptions") {
		t.Errorf("one more: %s, %v", text, err)
	}
}

// TestLateStream: a client of the older era that opens its stream only after an update gets it then.
func TestLateStream(t *testing.T) {
	w := newWatched(t)
	do := func(method, session, body string) *http.Response {
		r, err := http.NewRequestWithContext(t.Context(), method, w.url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Authorization": "Bearer one", "Mcp-Session-Id": session} {
			r.Header.Set(name, value)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		return resp
	}
	session := do("POST", "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`).Header.Get("Mcp-Session-Id")
	do("POST", session, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	text, err := io.ReadAll(do("POST", session, `{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"doc://1"}}`).Body)
	if err != nil || !strings.Contains(string(text), `"result":{}`) {
		t.Fatalf("%s, %v", text, err)
	}
	w.live.Touch("doc://1")
	w.live.Touch("doc://1")
	in := bufio.NewReader(do("GET", session, "").Body)
	if got := nextEvent(t, in); !strings.Contains(got, `"uri":"doc://1"`) {
		t.Errorf("got %s", got)
	}
}
