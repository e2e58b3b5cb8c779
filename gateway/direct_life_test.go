package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/stages"
)

// An httpAgent sends messages by HTTP, as text.
type httpAgent struct {
	h       http.Handler
	session string
	version string
}

// newAgent makes a session, or none in the era that has none.
func newAgent(t *testing.T, h http.Handler, version string) *httpAgent {
	t.Helper()
	a := &httpAgent{h: h, version: version}
	if version < "2026" {
		w := a.send(t.Context(), `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"`+version+`","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
		if a.session = w.Header().Get("Mcp-Session-Id"); a.session == "" {
			t.Fatal(w.Code, w.Body)
		}
	}
	return a
}

func (a *httpAgent) request(ctx context.Context, method, body string) *http.Request {
	r := httptest.NewRequestWithContext(ctx, method, "/mcp", strings.NewReader(body))
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": a.version,
		"Mcp-Session-Id": a.session, "Mcp-Method": "tools/call", "Mcp-Name": "execute_pipeline",
	} {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	return r
}

func (a *httpAgent) send(ctx context.Context, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	a.h.ServeHTTP(w, a.request(ctx, http.MethodPost, body))
	return w
}

// call calls a tool of the shop. The answer comes over the channel.
func (a *httpAgent) call(ctx context.Context, id, tool string) <-chan *httptest.ResponseRecorder {
	meta := ""
	if a.session == "" {
		meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}},`
	}
	answered := make(chan *httptest.ResponseRecorder, 1)
	go func() {
		answered <- a.send(ctx, `{"jsonrpc":"2.0","id":`+id+`,"method":"tools/call","params":{`+meta+
			`"name":"execute_pipeline","arguments":{"timeout":7200,"pipeline":[{"type":"tool","server":"shop","name":"`+tool+`"}]}}}`)
	}()
	return answered
}

// list asks for the gateway's tools.
func (a *httpAgent) list(t *testing.T) *httptest.ResponseRecorder {
	t.Helper()
	params := ""
	if a.session == "" {
		params = `,"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}`
	}
	r := a.request(t.Context(), http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"tools/list"`+params+`}`)
	r.Header.Set("Mcp-Method", "tools/list")
	r.Header.Del("Mcp-Name")
	w := httptest.NewRecorder()
	a.h.ServeHTTP(w, r)
	return w
}

// shop is a gateway over a server with a tool that answers and one that takes an hour.
func shop(t *testing.T) (*gateway.Gateway, *mcptest.Upstream) {
	t.Helper()
	u := mcptest.New(mcptest.Tool{Name: "quick", ReadOnly: true, Text: "here"}, mcptest.Tool{Name: "slow", ReadOnly: true, Latency: time.Hour, Text: "late"})
	g := gateway.New(gateway.Options{Upstream: mcptest.Pool(t, map[string]*mcptest.Upstream{"shop": u}), Runs: 3, Limits: stages.Limits{Run: 2 * time.Hour, Call: 2 * time.Hour}})
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		g.Close(ctx)
	})
	return g, u
}

// text is the text of a result that is answered beside the SDK.
func text(t *testing.T, w *httptest.ResponseRecorder) string {
	t.Helper()
	var answer struct {
		Result struct {
			Content []struct{ Text string }
		}
	}
	if w.Header().Get("Content-Length") == "" {
		t.Errorf("the SDK has answered: %s", w.Body)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || len(answer.Result.Content) != 1 {
		t.Fatalf("got %d %s", w.Code, w.Body)
	}
	return strings.TrimSpace(answer.Result.Content[0].Text)
}

// notYet fails if a call is answered.
func notYet(t *testing.T, answered <-chan *httptest.ResponseRecorder) {
	t.Helper()
	synctest.Wait()
	select {
	case w := <-answered:
		t.Fatalf("too early: %d %s", w.Code, w.Body)
	default:
	}
}

// cancel sends the notification that cancels a call.
func (a *httpAgent) cancel(t *testing.T, id string) {
	t.Helper()
	if w := a.send(t.Context(), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+id+`}}`); w.Code != http.StatusAccepted {
		t.Fatal(w.Code, w.Body)
	}
}

// unanswered fails if a call has got an answer.
func unanswered(t *testing.T, w *httptest.ResponseRecorder) {
	t.Helper()
	if w.Code != http.StatusOK || w.Body.Len() > 0 {
		t.Errorf("a call that its client has cancelled is answered: %d %s", w.Code, w.Body)
	}
}

// TestDirectCancel: within a session a notification cancels, and only that. Then there is no answer.
func TestDirectCancel(t *testing.T) {
	for id, others := range map[string][]string{`5`: {`6`, `"5"`, `null`, `[5]`}, `"5"`: {`5`, `"6"`, `""`}, `0`: {`1`}} {
		synctest.Test(t, func(t *testing.T) {
			g, _ := shop(t)
			a := newAgent(t, g.Handler(), "2025-11-25")
			stranger := newAgent(t, a.h, "2025-11-25")
			ctx, leave := context.WithCancel(t.Context())
			answered := a.call(ctx, id, "slow")
			notYet(t, answered)
			leave()
			stranger.cancel(t, id)
			for _, other := range others {
				a.cancel(t, other)
			}
			notYet(t, answered)
			a.cancel(t, id)
			unanswered(t, <-answered)
			answered = a.call(t.Context(), id, "slow")
			notYet(t, answered)
			a.cancel(t, id)
			if w := <-answered; w.Header().Get("Content-Type") != "text/event-stream" { // one that a client reads to its end
				t.Errorf("id %s: headers %v", id, w.Header())
			} else {
				unanswered(t, w)
			}
			if got := text(t, <-a.call(t.Context(), id, "quick")); got != "here" {
				t.Errorf("the id again: got %q", got)
			}
		})
	}
}

// TestDirectCancelStateless: without sessions a client cancels when it closes the response.
func TestDirectCancelStateless(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, u := shop(t)
		a := newAgent(t, g.Handler(), "2026-07-28")
		ctx, leave := context.WithCancel(t.Context())
		answered := a.call(ctx, "5", "slow")
		notYet(t, answered)
		leave()
		unanswered(t, <-answered)
		synctest.Wait()
		if n := u.Running(); n != 0 {
			t.Errorf("%d calls run on the server", n)
		}
	})
}

// TestSessionTimeout: a session ends that nobody uses, and no other.
func TestSessionTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _ := shop(t)
		h := g.Handler()
		used, unused := newAgent(t, h, "2025-11-25"), newAgent(t, h, "2025-11-25")
		for range 6 {
			time.Sleep(9 * time.Minute)
			if got := text(t, <-used.call(t.Context(), "1", "quick")); got != "here" {
				t.Fatalf("got %q", got)
			}
		}
		gone := func(a *httpAgent, want bool) {
			t.Helper()
			if w := <-a.call(t.Context(), "1", "quick"); (w.Code == http.StatusNotFound) != want {
				t.Errorf("got %d %s", w.Code, w.Body)
			}
		}
		gone(unused, true)
		gone(used, false)
		time.Sleep(11 * time.Minute)
		gone(used, true)

		long := newAgent(t, h, "2025-11-25") // a call is use, as long as it takes
		answered := long.call(t.Context(), "1", "slow")
		time.Sleep(30 * time.Minute)
		notYet(t, answered)
		if got := text(t, <-answered); got != "late" {
			t.Errorf("got %q", got)
		}
		gone(long, false)
	})
}

// TestSessionDelete: a session that is deleted ends its calls, and is none any more.
func TestSessionDelete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _ := shop(t)
		a := newAgent(t, g.Handler(), "2025-11-25")
		answered := a.call(t.Context(), "1", "slow")
		notYet(t, answered)
		deleted := make(chan *httptest.ResponseRecorder, 1)
		go func() {
			w := httptest.NewRecorder()
			a.h.ServeHTTP(w, a.request(t.Context(), http.MethodDelete, ""))
			deleted <- w
		}()
		if w := <-deleted; w.Code != http.StatusNoContent {
			t.Errorf("got %d %s", w.Code, w.Body)
		}
		unanswered(t, <-answered)
		if w := <-a.call(t.Context(), "2", "quick"); w.Code != http.StatusNotFound {
			t.Errorf("a call of a session that has ended: got %d %s", w.Code, w.Body)
		}
	})
}

// TestDeleteRefused: a session that the SDK does not delete goes on with its calls.
func TestDeleteRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _ := shop(t)
		a := newAgent(t, g.Handler(), "2025-11-25")
		answered := a.call(t.Context(), "1", "slow")
		notYet(t, answered)
		r, w := a.request(t.Context(), http.MethodDelete, ""), httptest.NewRecorder()
		r.Header.Set("Mcp-Protocol-Version", "1999-01-01")
		if a.h.ServeHTTP(w, r); w.Code != http.StatusBadRequest {
			t.Errorf("got %d %s", w.Code, w.Body)
		}
		notYet(t, answered)
		if got := text(t, <-a.call(t.Context(), "2", "quick")); got != "here" {
			t.Errorf("got %q", got)
		}
		if got := text(t, <-answered); got != "late" {
			t.Errorf("got %q", got)
		}
	})
}

// TestDirectDuplicate: an id is free again when its call is answered.
func TestDirectDuplicate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _ := shop(t)
		a := newAgent(t, g.Handler(), "2025-11-25")
		answered := a.call(t.Context(), "5", "slow")
		notYet(t, answered)
		const want = `{"jsonrpc":"2.0","id":5,"error":{"code":-32600,"message":"duplicate in-flight request ID 5"}}`
		if w := <-a.call(t.Context(), "5", "quick"); w.Code != http.StatusBadRequest || strings.TrimSpace(w.Body.String()) != want {
			t.Errorf("got %d %s", w.Code, w.Body)
		}
		if got := text(t, <-a.call(t.Context(), `"5"`, "quick")); got != "here" {
			t.Errorf("got %q", got)
		}
		large := a.call(t.Context(), "9007199254740993", "slow")
		notYet(t, large)
		if got := text(t, <-a.call(t.Context(), "9007199254740992", "quick")); got != "here" {
			t.Errorf("an id that is nearly the same: got %q", got)
		}
		a.cancel(t, "9007199254740992")
		notYet(t, large)
		edge := a.call(t.Context(), "9007199254740992", "slow")
		notYet(t, edge)
		a.cancel(t, "9007199254740993") // which the SDK rounds to the other
		notYet(t, edge)
		a.cancel(t, "5")
		<-answered
		if got := text(t, <-a.call(t.Context(), "5", "quick")); got != "here" {
			t.Errorf("got %q", got)
		}
	})
}

// TestDirectLimits: calls beside the SDK have the same slots, and end with the gateway.
func TestDirectLimits(t *testing.T) {
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		synctest.Test(t, func(t *testing.T) {
			g, _ := shop(t)
			a := newAgent(t, g.Handler(), version)
			var running []<-chan *httptest.ResponseRecorder
			for id := range 3 {
				running = append(running, a.call(t.Context(), fmt.Sprint(id), "slow"))
			}
			synctest.Wait()
			if got := text(t, <-a.call(t.Context(), "4", "quick")); !strings.Contains(got, "LIMIT_EXCEEDED") {
				t.Errorf("got %q", got)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := g.Close(ctx); err != nil {
				t.Error(err)
			}
			for _, answered := range running {
				if got := text(t, <-answered); !strings.Contains(got, "CANCELLED") {
					t.Errorf("got %q", got)
				}
			}
			synctest.Wait() // until the session that was closed is forgotten
			if a.session != "" {
				if w := <-a.call(t.Context(), "5", "quick"); w.Code != http.StatusNotFound {
					t.Errorf("got %d %s", w.Code, w.Body)
				}
			} else if got := text(t, <-a.call(t.Context(), "5", "quick")); !strings.Contains(got, "shutting down") {
				t.Errorf("got %q", got)
			}
		})
	}
}

// TestDirectProgress: a client that asks for progress beside the SDK gets it while the call runs, and then the answer.
func TestDirectProgress(t *testing.T) {
	for version, meta := range map[string]string{
		"2025-11-25": "", "2026-07-28": `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},`,
	} {
		synctest.Test(t, func(t *testing.T) {
			g, _ := shop(t)
			a := newAgent(t, g.Handler(), version)
			w := a.send(t.Context(), `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"_meta":{`+meta+`"progressToken":"p <1>"},"name":"execute_pipeline",`+
				`"arguments":{"timeout":12,"pipeline":[{"type":"tool","server":"shop","name":"slow"}]}}}`)
			if kind := w.Header().Get("Content-Type"); kind != "text/event-stream" || w.Header().Get("Connection") != "" {
				t.Errorf("got %q", kind)
			}
			var got []string
			for event := range strings.SplitSeq(strings.TrimSpace(w.Body.String()), "\n\n") {
				data, ok := strings.CutPrefix(event, "event: message\ndata: ")
				var m struct {
					ID     any
					Method string
					Params struct {
						ProgressToken string
						Progress      float64
					}
				}
				if err := json.Unmarshal([]byte(data), &m); err != nil || !ok {
					t.Errorf("%v in %q", err, event)
				}
				got = append(got, fmt.Sprint(m.ID, m.Method, m.Params.ProgressToken, m.Params.Progress))
			}
			want := []string{"<nil>notifications/progressp <1>0.001", "<nil>notifications/progressp <1>0.002", "50"} // every 5 s, of 12
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
