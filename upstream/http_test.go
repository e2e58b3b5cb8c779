package upstream_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
)

// handMade is an HTTP server that answers JSON-RPC by hand; call handles tools/call.
func handMade(t *testing.T, call func(w http.ResponseWriter, r *http.Request, id json.RawMessage)) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req struct {
			ID     json.RawMessage
			Method string
		}
		if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&req) != nil {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		switch answer := legacyAnswers[req.Method]; {
		case req.Method == "tools/call" && call != nil:
			call(w, r, req.ID)
		case req.ID == nil:
			w.WriteHeader(http.StatusAccepted)
		case answer == "":
			respond(w, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`, req.ID))
		default:
			w.Header().Set("Mcp-Session-Id", "one")
			respond(w, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, req.ID, answer))
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func respond(w http.ResponseWriter, body string) {
	w.Header().Set("Content-Type", "application/json")
	io.WriteString(w, body)
}

func httpPool(t *testing.T, e upstream.Endpoint) *upstream.Pool {
	t.Helper()
	return staticPool(t, upstream.Options{}, upstream.Server{Name: "s", Dial: upstream.HTTP(e), Endpoint: &e})
}

// TestHTTPMistakes are the mistakes that people make with an address, and the errors that they get.
func TestHTTPMistakes(t *testing.T) {
	status := func(code int, body string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			io.WriteString(w, body)
		}))
		t.Cleanup(s.Close)
		return s.URL + "/mcp?key=hidden"
	}
	const refused = "127.0.0.1:1" // a port that no test gets
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	for _, c := range []struct{ name, url, msg, hint string }{
		{"401", status(401, `{"error":"invalid_token"}`), "401 Unauthorized at http://127.0.0.1:", "Authorization"},
		{"403", status(403, "Access is only allowed at localhost:8931"), "403 Forbidden at", "host name"},
		{"403 words", status(403, "Access is only allowed at localhost:8931"), "Access is only allowed at localhost:8931", ""},
		{"404", status(404, "<html>nothing here</html>"), "404 Not Found at", "/mcp"},
		{"500", status(500, `{"error":{"message":"boom"}}`), "boom", "logs"},
		{"429 in JSON-RPC", status(429, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"slow down"}}`), "slow down", "concurrency"},
		{"refused", "http://" + refused + "/mcp", "nothing listens on " + refused, "start the server"},
		{"no scheme", "127.0.0.1:1/mcp", "url needs http:// or https:// before the host", "url (mcp.json:4)"},
		{"other scheme", "ftp://127.0.0.1", `scheme "ftp"`, "url"},
		{"https to http", strings.Replace(plain.URL, "http:", "https:", 1), "speaks http, not https", "http://"},
		{"no such host", "http://host.invalid/mcp", "", "url"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := httpPool(t, upstream.Endpoint{URL: c.url, Where: "mcp.json:4"})
			_, err := p.Tool(t.Context(), "s", "x")
			wantError(t, err, stages.ServerUnavailable, c.msg, c.hint)
			var e *stages.Error
			if errors.As(err, &e) && contains(e.Msg+e.Hint, "hidden") {
				t.Errorf("%q shows the query of the address", e.Msg)
			}
		})
	}
}

// TestHeadersStayHome redirects to another host, which gets neither headers nor the request.
func TestHeadersStayHome(t *testing.T) {
	var leaked, seen atomic.Bool
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		leaked.Store(true)
		w.WriteHeader(http.StatusTeapot)
	}))
	t.Cleanup(other.Close)
	home := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen.Store(seen.Load() || r.Header.Get("X-Key") == "secret")
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	}))
	t.Cleanup(home.Close)
	p := httpPool(t, upstream.Endpoint{URL: home.URL, Headers: http.Header{"X-Key": {"secret"}}})
	_, err := p.Tool(t.Context(), "s", "x")
	wantError(t, err, stages.ServerUnavailable, "redirects to "+other.URL, "set url")
	if leaked.Load() || !seen.Load() {
		t.Errorf("at home: %v, elsewhere: %v; want it at home only", seen.Load(), leaked.Load())
	}
}

// TestRetryOnce: a call that the server has refused to look at is made again on a new session, one that may have
// reached the tool is not. A ping shows what 400 and 404 mean, since tools answer so, too. 404 always begins a new
// session, and is never the tool's own error.
func TestRetryOnce(t *testing.T) {
	t.Parallel() // it waits
	const noSession = `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}`
	const notFound = `{"jsonrpc":"2.0","error":{"code":-32600,"message":"Session not found"},"id":$ID}`
	words := func(status int, body string) func(http.ResponseWriter, string) {
		return func(w http.ResponseWriter, id string) {
			w.WriteHeader(status)
			io.WriteString(w, strings.ReplaceAll(body, "$ID", id))
		}
	}
	again := func(w http.ResponseWriter, _ string) {
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(503)
	}
	for _, c := range []struct {
		name    string
		fail    func(w http.ResponseWriter, id string)
		forgets bool // the server knows the session no more
		calls   int32
		code    stages.Code
		want    string
		sent    bool
		wait    time.Duration
	}{
		{"404", words(404, "no such session"), true, 2, "", "", true, 0},
		{"404 with the id of the request", words(404, notFound), true, 2, "", "", true, 0},
		{"400 in JSON-RPC", words(400, noSession), true, 2, "", "", true, 0},
		{"400 with the id of the request", words(400, notFound), true, 2, "", "", true, 0},
		{"404 of the tool", words(404, "no such issue"), false, 1, stages.ServerUnavailable, "may have taken effect", true, 0},
		{"404 of the tool with the id", words(404, notFound), false, 1, stages.ServerUnavailable, "may have taken effect", true, 0},
		{"400 of the tool in JSON-RPC", words(400, noSession), false, 1, stages.ToolError, "No valid session ID", true, 0},
		{"500", words(500, ""), false, 1, stages.ServerUnavailable, "which may have taken effect", true, 0},
		{"closed", func(http.ResponseWriter, string) { panic(http.ErrAbortHandler) }, false, 1, stages.ServerUnavailable, "which may have taken effect", true, 0},
		{"503", words(503, ""), false, 1, stages.ServerUnavailable, "which may have taken effect", true, 0},
		{"503 with a time", again, false, 1, stages.ServerUnavailable, "503 Service Unavailable", false, 7 * time.Second},
		{"429", words(429, "slow down"), false, 1, stages.ServerUnavailable, "slow down", false, 0},
		{"413", words(413, ""), false, 1, stages.ServerUnavailable, "413", false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var calls, sessions atomic.Int32
			var gone atomic.Bool
			s := handMade(t, func(w http.ResponseWriter, _ *http.Request, id json.RawMessage) {
				if calls.Add(1) == 1 {
					gone.Store(c.forgets)
					c.fail(w, string(id))
					return
				}
				respond(w, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, legacyAnswers["tools/call"]))
			})
			inner := s.Config.Handler
			s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body := peek(r)
				if gone.Load() && r.Header.Get("Mcp-Session-Id") != "" {
					_, id, _ := strings.Cut(body, `"id":`)
					id, _, _ = strings.Cut(id, ",")
					c.fail(w, id)
					return
				} else if gone.Load() {
					gone.Store(false)
				}
				if strings.Contains(body, `"initialize"`) {
					sessions.Add(1)
				}
				inner.ServeHTTP(w, r)
			})
			p := httpPool(t, upstream.Endpoint{URL: s.URL})
			sent := 0
			res, err := p.CallTool(t.Context(), stages.Call{
				Server: "s", Name: "one", MaySend: func() bool { sent++; return true }, Unsent: func() { sent-- },
			})
			var e *stages.Error
			if c.code != "" {
				wantError(t, err, c.code, c.want, "")
				if errors.As(err, &e) && (e.RetryAfter != c.wait || strings.Contains(e.Msg, "may have taken effect") && !c.sent) {
					t.Errorf("got %+v, want to wait %v", e, c.wait)
				}
			} else if err != nil || string(res.Data) != "hand made" {
				t.Errorf("got %q, %v", res.Data, err)
			}
			if calls.Load() != c.calls || (sent == 1) != c.sent {
				t.Errorf("%d calls, want %d; %d taken for sent, want %v", calls.Load(), c.calls, sent, c.sent)
			}
			if res, err = p.CallTool(t.Context(), stages.Call{Server: "s", Name: "one"}); err != nil || string(res.Data) != "hand made" {
				t.Errorf("afterwards: got %q, %v", res.Data, err)
			}
			if again := c.forgets || strings.HasPrefix(c.name, "404"); (sessions.Load() == 2) != again {
				t.Errorf("%d sessions, want another one: %t", sessions.Load(), again)
			}
		})
	}
}

// TestLostWhileRunning: a server that restarts while it answers has lost the call, which is not made again.
func TestLostWhileRunning(t *testing.T) {
	var calls atomic.Int32
	var gone atomic.Bool
	s := handMade(t, func(w http.ResponseWriter, _ *http.Request, id json.RawMessage) {
		if calls.Add(1) > 1 {
			respond(w, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, legacyAnswers["tools/call"]))
			return
		}
		gone.Store(true)
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "id: 1\nretry: 1\ndata:\n\n")
	})
	inner := s.Config.Handler
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if gone.Load() && r.Header.Get("Mcp-Session-Id") != "" {
			http.Error(w, "Session not found", http.StatusNotFound)
			return
		}
		gone.Store(false)
		inner.ServeHTTP(w, r)
	})
	p := httpPool(t, upstream.Endpoint{URL: s.URL})
	_, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: "one"})
	wantError(t, err, stages.ServerUnavailable, "may have taken effect", "lost its session")
	if res, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: "one"}); err != nil || calls.Load() != 2 {
		t.Errorf("afterwards: got %q, %v after %d calls", res.Data, err, calls.Load())
	}
}

// TestListAfterRestart: a tool list is read on a new session where the server has lost the kept one.
func TestListAfterRestart(t *testing.T) {
	var lists atomic.Int32
	s := handMade(t, nil)
	inner := s.Config.Handler
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body := peek(r); strings.Contains(body, `"tools/list"`) && lists.Add(1) == 1 {
			_, id, _ := strings.Cut(body, `"id":`)
			id, _, _ = strings.Cut(id, ",")
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprintf(w, `{"jsonrpc":"2.0","error":{"code":-32600,"message":"Session not found"},"id":%s}`, id)
			return
		}
		inner.ServeHTTP(w, r)
	})
	p := httpPool(t, upstream.Endpoint{URL: s.URL})
	if _, err := p.Tool(t.Context(), "s", "one"); err != nil || lists.Load() != 2 {
		t.Errorf("got %v after %d lists", err, lists.Load())
	}
}

// peek reads the body of a request and puts it back.
func peek(r *http.Request) string {
	b, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(b))
	return string(b)
}

// TestAnswerForms are forms of an answer that servers have, and that the SDK's own server has not.
func TestAnswerForms(t *testing.T) {
	exact := `"structuredContent":{"n":12345678901234567890}`
	for _, c := range []struct{ name, media, body, want string }{
		{"event in several lines", "text/event-stream", "id: 1\nevent: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":ID,\ndata: \"result\":{" + exact + "}}\n\n", `{"n":12345678901234567890}`},
		{"CRLF", "text/event-stream", "data: {\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{" + exact + "}}\r\n\r\n", `{"n":12345678901234567890}`},
		{"comment, empty and notification first", "text/event-stream", ": hi\n\ndata:\n\ndata:{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":1}}\n\ndata:{\"result\":{" + exact + "},\"id\":ID,\"jsonrpc\":\"2.0\"}\n\n", `{"n":12345678901234567890}`},
		{"JSON with spaces", "application/json; charset=utf-8", "\n {\"jsonrpc\" : \"2.0\", \"id\" : ID, \"result\" : {" + exact + "} }\n", `{"n":12345678901234567890}`},
		{"protocol error", "application/json", `{"jsonrpc":"2.0","id":ID,"error":{"code":-32603,"message":"column \"nope\" does not exist"}}`, `TOOL_ERROR column "nope" does not exist`},
		{"too large JSON", "application/json", `{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"` + strings.Repeat("x", 2<<20) + `"}]}}`, "LIMIT_EXCEEDED"},
		{"too large event", "text/event-stream", `data: {"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"` + strings.Repeat("x", 2<<20) + "\"}]}}\n\n", "LIMIT_EXCEEDED"},
		{"cut short", "text/event-stream", "data: {\"jsonrpc\":\"2.0\",\"id\":ID", "SERVER_UNAVAILABLE"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var calls atomic.Int32
			s := handMade(t, func(w http.ResponseWriter, _ *http.Request, id json.RawMessage) {
				if calls.Add(1) > 1 {
					respond(w, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, legacyAnswers["tools/call"]))
					return
				}
				w.Header().Set("Content-Type", c.media)
				io.WriteString(w, strings.ReplaceAll(c.body, "ID", string(id)))
			})
			p := staticPool(t, upstream.Options{ResultMax: 64 << 10}, upstream.Server{Name: "s", Dial: upstream.HTTP(upstream.Endpoint{URL: s.URL})})
			res, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: "one"})
			got := string(res.Data)
			var e *stages.Error
			if errors.As(err, &e) {
				got = string(e.Code) + " " + e.Msg
			}
			if !strings.HasPrefix(got, c.want) {
				t.Errorf("got %.200q, %v; want %q", got, err, c.want)
			}
			if res, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: "one"}); err != nil || string(res.Data) != "hand made" {
				t.Errorf("afterwards: got %q, %v", res.Data, err)
			}
		})
	}
}

// TestCancelWithinAnswer ends a call while its answer comes; the session must survive that.
func TestCancelWithinAnswer(t *testing.T) {
	began := make(chan struct{}, 1)
	var calls atomic.Int32
	s := handMade(t, func(w http.ResponseWriter, r *http.Request, id json.RawMessage) {
		if calls.Add(1) > 1 {
			respond(w, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, legacyAnswers["tools/call"]))
			return
		}
		respond(w, `{"jsonrpc":"2.0",`)
		_ = http.NewResponseController(w).Flush()
		began <- struct{}{}
		<-r.Context().Done()
	})
	p := httpPool(t, upstream.Endpoint{URL: s.URL})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-began; cancel() }()
	if _, err := p.CallTool(ctx, stages.Call{Server: "s", Name: "one"}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that it was cancelled", err)
	}
	if res, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: "one"}); err != nil || string(res.Data) != "hand made" {
		t.Errorf("afterwards: got %q, %v", res.Data, err)
	}
}

// TestConnectionsAreReused makes calls one after another, which need few connections.
func TestConnectionsAreReused(t *testing.T) {
	var opened atomic.Int32
	server := mcptest.New(mcptest.Tool{Name: "hi", Text: "hi"})
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server.MCP() }, nil)
	web := httptest.NewUnstartedServer(handler)
	web.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	web.Start()
	t.Cleanup(web.Close)
	p := httpPool(t, upstream.Endpoint{URL: web.URL})
	for range 200 {
		if _, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: "hi"}); err != nil {
			t.Fatal(err)
		}
	}
	if n := opened.Load(); n > 20 {
		t.Errorf("200 calls one after another opened %d connections", n)
	}
}

// TestQuestionsPileUp: a server that asks and asks within its answer, and does not read the answers, takes few
// connections here.
func TestQuestionsPileUp(t *testing.T) {
	var waiting, most atomic.Int32
	release := make(chan struct{})
	s := httptest.NewServer(nil)
	t.Cleanup(s.Close)
	t.Cleanup(func() { close(release) })
	answering := handMade(t, func(w http.ResponseWriter, r *http.Request, id json.RawMessage) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 2000 {
			fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"ping\"}\n\n", i)
		}
		w.(http.Flusher).Flush()
		for most.Load() < 16 {
			select {
			case <-r.Context().Done():
				return
			case <-time.After(time.Millisecond):
			}
		}
		fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[]}}\n\n", id)
	}).Config.Handler
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || !bytes.Contains(body, []byte(`"result":{}`)) {
			r.Body = io.NopCloser(bytes.NewReader(body))
			answering.ServeHTTP(w, r)
			return
		}
		n := waiting.Add(1)
		defer waiting.Add(-1)
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	p := httpPool(t, upstream.Endpoint{URL: s.URL})
	if _, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: "one"}); err != nil {
		t.Fatal(err)
	}
	if n := most.Load(); n == 0 || n > 32 {
		t.Errorf("%d answers to its questions were on their way at the same time", n)
	}
}

// TestNamelessEvents: an event that has a name and no data is none, and does not name the next one.
func TestNamelessEvents(t *testing.T) {
	s := handMade(t, func(w http.ResponseWriter, _ *http.Request, id json.RawMessage) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "event: keepalive\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"here\"}]}}\n\n", id)
	})
	res, err := httpPool(t, upstream.Endpoint{URL: s.URL}).CallTool(t.Context(), stages.Call{Server: "s", Name: "one"})
	if err != nil || string(res.Data) != "here" {
		t.Errorf("got %q, %v", res.Data, err)
	}
}

// TestReadingTakesNoEffect: what failed of a tool that only reads is not said to have taken effect.
func TestReadingTakesNoEffect(t *testing.T) {
	for name, answer := range map[string]func(w http.ResponseWriter, r *http.Request, id json.RawMessage){
		"cut":     body("application/json", `{"jsonrpc":"2.0","id":ID,"result":{"content"`, false),
		"nothing": body("application/json", `{"jsonrpc":"2.0","id":ID}`, false),
		"502":     status(502, "bad gateway"),
		"closed":  func(http.ResponseWriter, *http.Request, json.RawMessage) { panic(http.ErrAbortHandler) },
	} {
		for _, reads := range []bool{true, false} {
			p := mcptest.NewPool(t, upstream.Options{Sources: []upstream.Source{upstream.Static{
				{Name: "s", Dial: upstream.HTTP(upstream.Endpoint{URL: handMade(t, answer).URL}), ReadOnly: []string{"one"}},
			}}})
			_, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: "one", Reading: reads})
			var e *stages.Error
			if !errors.As(err, &e) || strings.Contains(e.Msg+e.Hint, "may have taken effect") == reads {
				t.Errorf("%s, reading %t: got %v, hint %q", name, reads, err, e.Hint)
			}
		}
	}
}
