package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/internal/memory"
)

// TestMessageLength: only a call of a tool may be long, and says so at its beginning.
func TestMessageLength(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	initialize := func(client string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"experimental":{"a":["` + client +
			`"]}},"clientInfo":{"name":"` + client + `","version":"1"}}}`
	}
	call := func(before, arg, behind string) string {
		return `{` + before + `"jsonrpc":"2.0","id":1,"params":{"name":"list_all_tools","arguments":{"query":"` + arg + `"}}` + behind + `}`
	}
	const method = `"method":"tools/call"`
	for _, tt := range []struct {
		name, body string
		session    bool
		code       int
		text       string
	}{
		{"initialize of usual length", initialize(long(1000)), false, 200, `"serverInfo"`},
		{"initialize that is long", initialize(long(30_000)), false, 200, `"serverInfo"`},
		{"initialize that is too long", initialize(long(40_000)), false, 413, "longer than 65536 bytes (limit message): at least "},
		{"another message that is long and opens no session", `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"a":"` + long(5000) + `"}}}`, false, 400, "a session begins with initialize"},
		{"no JSON", long(5000), false, 400, "is not valid JSON"},
		{"a long call", call(method+",", long(100_000), ""), true, 200, `"result"`},
		{"a long call whose method comes last", call("", long(100_000), ","+method), true, 413, "with its method within the first 65536 bytes; the operator can raise this with --limit message=128KiB"},
		{"a short call whose method comes last", call("", long(1000), ","+method), true, 200, `"result"`},
		{"a long call with two methods", call(method+",", long(100_000), `,"method":"initialize"`), true, 413, "limit message"},
		{"a long call with something like a method", call(method+",", long(100_000), `,"Method":"initialize"`), true, 413, "limit message"},
		{"a long call with a method in disguise", call(method+",", long(100_000), `,"\u006dethod":"initialize"`), true, 413, "limit message"},
		{"a long list", "[" + call(method+",", long(100_000), "") + "]", true, 413, "limit message"},
		{"a long notification", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"reason":"` + long(100_000) + `"}}`, true, 413, "limit message"},
		{"a call that is too long", call(method+",", long(8<<20), ""), true, 413, "longer than 8388608 bytes (limit body): 8388"},
	} {
		for _, chunked := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, chunked %v", tt.name, chunked), func(t *testing.T) {
				bodies := memory.New(384<<20).Share("bodies", 96<<20)
				g := gateway.New(gateway.Options{HTTP: gateway.HTTPOptions{Bodies: bodies}})
				a := &httpAgent{h: g.Handler(), version: "2025-06-18"}
				if tt.session {
					a = newAgent(t, g.Handler(), "2025-06-18")
				}
				r := a.request(t.Context(), http.MethodPost, tt.body)
				if chunked {
					r.ContentLength = -1
				}
				w := httptest.NewRecorder()
				a.h.ServeHTTP(w, r)
				if w.Code != tt.code || !strings.Contains(w.Body.String(), tt.text) {
					t.Errorf("got %d %.300s, want %d %s", w.Code, w.Body, tt.code, tt.text)
				}
				if n := bodies.Used(); n != 0 {
					t.Errorf("%d bytes still count", n)
				}
				for s := range g.Server().Sessions() {
					checkKept(t, s.InitializeParams())
				}
			})
		}
	}
}

// TestAnnouncedLength: a length that is announced is refused as it stands, and the hint is a size that the limit takes.
func TestAnnouncedLength(t *testing.T) {
	for announced, hint := range map[int64]string{
		8<<20 + 1:     "--limit body=16384KiB",
		16<<20 + 1:    "--limit body=16385KiB",
		math.MaxInt64: "--limit body=9007199254740991KiB",
	} {
		a := &httpAgent{h: gateway.New(gateway.Options{}).Handler(), version: "2025-06-18"}
		r := a.request(t.Context(), http.MethodPost, "{}")
		r.ContentLength = announced
		w := httptest.NewRecorder()
		a.h.ServeHTTP(w, r)
		if text := strings.TrimSpace(w.Body.String()); w.Code != http.StatusRequestEntityTooLarge || !strings.HasSuffix(text, hint) {
			t.Errorf("%d: got %d %s, want %s", announced, w.Code, text, hint)
		}
	}
}

// checkKept sees that a session keeps little of its initialize.
func checkKept(t *testing.T, p *mcp.InitializeParams) {
	t.Helper()
	if len(p.ClientInfo.Name) > 300 || p.Capabilities.Experimental != nil {
		t.Errorf("the session keeps a name of %d bytes and %d capabilities", len(p.ClientInfo.Name), len(p.Capabilities.Experimental))
	}
}

// TestStalledBodies: what has come of many messages that do not come to their end takes no more than its share, and one
// that is short is answered meanwhile. Nothing is left when they are gone.
func TestStalledBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 8 << 20
		bodies := memory.New(limit).Share("bodies", limit)
		g := gateway.New(gateway.Options{HTTP: gateway.HTTPOptions{Bodies: bodies}})
		a := newAgent(t, g.Handler(), "2025-06-18")
		var work sync.WaitGroup
		gone := make(chan struct{})
		refused := make(chan *httptest.ResponseRecorder, 30)
		for range 30 {
			r := a.request(t.Context(), http.MethodPost, "")
			r.ContentLength = -1
			r.Body = io.NopCloser(io.MultiReader(
				strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_all_tools","arguments":{"query":"`+strings.Repeat("x", 600<<10)), stalled(gone)))
			work.Go(func() {
				w := httptest.NewRecorder()
				a.h.ServeHTTP(w, r)
				refused <- w
			})
		}
		synctest.Wait()
		if n := bodies.Used(); n > limit || n == 0 {
			t.Errorf("they take %d bytes of %d", n, limit)
		}
		if w := a.send(t.Context(), `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"list_all_tools","arguments":{}}}`); w.Code != http.StatusOK {
			t.Errorf("a short message: %d %s", w.Code, w.Body)
		}
		close(gone)
		work.Wait()
		close(refused)
		codes := map[int]int{}
		for w := range refused {
			codes[w.Code]++
			if w.Code == http.StatusServiceUnavailable && (w.Header().Get("Retry-After") != "1" || !strings.Contains(w.Body.String(), "raise --memory")) {
				t.Errorf("got %s", w.Body)
			}
		}
		if codes[http.StatusServiceUnavailable] == 0 || codes[http.StatusBadRequest] == 0 {
			t.Errorf("got %v, want some that found no room, and some that ended with their client", codes)
		}
		if n := bodies.Used(); n != 0 {
			t.Errorf("%d bytes still count", n)
		}
		if !bodies.Try(limit) {
			t.Fatal("no room")
		}
		if w := a.send(t.Context(), `{"jsonrpc":"2.0","id":3,"method":"ping"}`); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") != "1" {
			t.Errorf("where there is no room: %d %s", w.Code, w.Body)
		}
		_ = g.Close(t.Context())
	})
}

// stalled is a body of which nothing more comes until its client is gone.
type stalled chan struct{}

func (s stalled) Read([]byte) (int, error) {
	<-s
	return 0, errors.New("the client is gone")
}

// opener opens sessions from addresses.
type opener struct{ h http.Handler }

func (o opener) open(ctx context.Context, from string) *httptest.ResponseRecorder {
	a := &httpAgent{h: o.h, version: "2025-06-18"}
	r := a.request(ctx, http.MethodPost, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	r.RemoteAddr = from + ":1234"
	w := httptest.NewRecorder()
	o.h.ServeHTTP(w, r)
	return w
}

// ping uses a session.
func (o opener) ping(ctx context.Context, id string) int {
	a := &httpAgent{h: o.h, version: "2025-06-18", session: id}
	return a.send(ctx, `{"jsonrpc":"2.0","id":1,"method":"ping"}`).Code
}

// TestSessionPlaces: an address that opens too many sessions loses the one that it has used longest ago, others lose none,
// and when there are too many of all, nobody opens one until another one has ended.
func TestSessionPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		room := memory.New(1<<20).Share("sessions", 1<<20)
		g := gateway.New(gateway.Options{HTTP: gateway.HTTPOptions{Sessions: 5, CallerSessions: 2, SessionBytes: room}})
		o := opener{g.Handler()}
		open := func(from string) string {
			t.Helper()
			w := o.open(t.Context(), from)
			if w.Code != http.StatusOK {
				t.Fatalf("%s: %d %s", from, w.Code, w.Body)
			}
			return w.Header().Get("Mcp-Session-Id")
		}
		ping := func(id string, want int) {
			t.Helper()
			if code := o.ping(t.Context(), id); code != want {
				t.Errorf("got %d, want %d", code, want)
			}
		}
		other := open("192.0.2.7")
		first, second := open("192.0.2.1"), open("192.0.2.1")
		ping(first, 200)
		third := open("192.0.2.1")
		synctest.Wait()
		ping(second, 404) // it was used longest ago
		ping(first, 200)
		ping(third, 200)
		ping(other, 200)
		local := []string{open("127.0.0.1"), open("127.0.0.1")}
		w := o.open(t.Context(), "127.0.0.1")
		if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") != "1" ||
			!strings.Contains(w.Body.String(), "the gateway has 5 sessions, which is the most (limit sessions): try again later; the operator can raise this with --limit sessions=10") {
			t.Errorf("got %d %s", w.Code, w.Body)
		}
		if w := o.open(t.Context(), "192.0.2.9"); w.Code != http.StatusServiceUnavailable {
			t.Errorf("a new address: %d", w.Code)
		}
		a := &httpAgent{h: o.h, session: local[0]}
		o.h.ServeHTTP(httptest.NewRecorder(), a.request(t.Context(), http.MethodDelete, ""))
		open("192.0.2.9")
		rest := 1<<20 - room.Used()
		if !room.Try(rest) {
			t.Fatal("no room")
		}
		if w := o.open(t.Context(), "192.0.2.1"); w.Code != http.StatusServiceUnavailable {
			t.Errorf("without memory for it: %d", w.Code)
		}
		ping(first, 200) // a refused request ends no session
		room.Give(rest)
		if used := room.Used(); used < 5*gateway.SessionCost || used > 6*gateway.SessionCost {
			t.Errorf("five sessions count for %d bytes", used)
		}
		if err := g.Close(t.Context()); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if used := room.Used(); used != 0 {
			t.Errorf("no session counts for %d bytes", used)
		}
	})
}

// TestSessionsInUse: where all sessions of an address are in use, it opens no other one.
func TestSessionsInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gateway.New(gateway.Options{HTTP: gateway.HTTPOptions{CallerSessions: 1}})
		o := opener{g.Handler()}
		id := o.open(t.Context(), "192.0.2.1").Header().Get("Mcp-Session-Id")
		ctx, cancel := context.WithCancel(t.Context())
		var stream sync.WaitGroup
		stream.Go(func() {
			a := &httpAgent{h: o.h, version: "2025-06-18", session: id}
			o.h.ServeHTTP(httptest.NewRecorder(), a.request(ctx, http.MethodGet, ""))
		})
		synctest.Wait()
		if w := o.open(t.Context(), "192.0.2.1"); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "(limit caller-sessions)") {
			t.Errorf("got %d %s", w.Code, w.Body)
		}
		cancel()
		stream.Wait()
		if w := o.open(t.Context(), "192.0.2.1"); w.Code != http.StatusOK {
			t.Errorf("got %d %s", w.Code, w.Body)
		}
		_ = g.Close(t.Context())
	})
}

// TestLongMessagesStay: what the SDK keeps of the last message of a session counts for the session, beside its initialize.
func TestLongMessagesStay(t *testing.T) {
	room := memory.New(1<<20).Share("sessions", 1<<20)
	g := gateway.New(gateway.Options{HTTP: gateway.HTTPOptions{SessionBytes: room}})
	longHeader := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("X-Long", strings.Repeat("x", 40_000))
		g.Handler().ServeHTTP(w, r)
	})
	a := newAgent(t, longHeader, "2025-06-18")
	a.h = g.Handler()
	before := room.Used()
	if before < gateway.SessionCost+35_000 {
		t.Errorf("with a long initialize it counts for %d bytes", before)
	}
	long := `{"jsonrpc":"2.0","method":"notifications/x","params":{"a":"` + strings.Repeat("x", 50_000) + `"}}`
	a.send(t.Context(), long)
	a.send(t.Context(), long)
	if more := room.Used() - before; more < 45_000 || more > 60_000 {
		t.Errorf("it counts for %d bytes", more)
	}
	_ = g.Close(t.Context())
}
