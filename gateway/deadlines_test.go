package gateway_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/internal/mcptest"
)

// dial connects to a server that ends with the test.
func dial(t *testing.T, h http.Handler) (connect func() net.Conn) {
	t.Helper()
	p := mcptest.NewPipes()
	server, served := &http.Server{Handler: h}, make(chan struct{})
	go func() { server.Serve(p); close(served) }()
	t.Cleanup(func() { server.Close(); <-served })
	return func() net.Conn { return p.Dial(t) }
}

// ask writes a call that wants progress.
func (a *httpAgent) ask(t *testing.T, to net.Conn, id int, params string) {
	t.Helper()
	meta := `"_meta":{"progressToken":1},`
	if a.session == "" {
		meta = `"_meta":{"progressToken":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}},`
	}
	r := a.request(context.Background(), http.MethodPost, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{%s}}`, id, meta+params))
	if err := r.Write(to); err != nil {
		t.Error(err)
	}
}

// slowCall are parameters of a call of the tool that takes an hour.
const slowCall = `"name":"execute_pipeline","arguments":{"timeout":7200,"pipeline":[{"type":"tool","server":"shop","name":"slow"}]}`

// TestClientThatStopsReading: a client that takes nothing holds its slot no longer than its call takes.
func TestClientThatStopsReading(t *testing.T) {
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		for _, sdk := range []string{"", `"extra":1,`} { // what the call has is unknown beside the SDK
			synctest.Test(t, func(t *testing.T) {
				g, _ := shop(t)
				h := gateway.WithDeadlines(g.Handler())
				a, connect := newAgent(t, h, version), dial(t, h)
				for id := range 3 { // all slots
					a.ask(t, connect(), id, sdk+slowCall)
				}
				synctest.Wait()
				if got := text(t, <-a.call(t.Context(), "4", "quick")); !strings.Contains(got, "LIMIT_EXCEEDED") {
					t.Errorf("%s %s: got %q, want no slot left", version, sdk, got)
				}
				time.Sleep(time.Hour + time.Minute)
				synctest.Wait()
				if got := text(t, <-newAgent(t, h, version).call(t.Context(), "5", "quick")); got != "here" {
					t.Errorf("%s %s: got %q", version, sdk, got)
				}
			})
		}
	}
}

// TestSlowReader: a client that reads slowly but on gets everything, and its connection stays as long as it likes.
func TestSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _ := shop(t)
		h := gateway.WithDeadlines(g.Handler())
		a, conn := newAgent(t, h, "2026-07-28"), dial(t, h)()
		slow := bufio.NewReaderSize(readerFunc(func(p []byte) (int, error) {
			time.Sleep(20 * time.Second)
			return conn.Read(p[:min(len(p), 64<<10)])
		}), 64<<10)
		for id := range 2 {
			a.ask(t, conn, id, slowCall)
			response, err := http.ReadResponse(slow, nil)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(response.Body)
			if err != nil || !strings.Contains(string(body), `"late`) {
				t.Fatalf("%v: got %q", err, body)
			}
			time.Sleep(time.Hour)
		}
	})
}

// TestUnwantedBody: a client that reads nothing before it has sent all gets to read why that is not taken, whatever of it
// was read, and a body that is far too long is not read to its end.
func TestUnwantedBody(t *testing.T) {
	g, _ := shop(t)
	refuses := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "no", http.StatusUnauthorized)
		r.Body.Close()
	})
	for _, tt := range []struct {
		name   string
		h      http.Handler
		length int
		code   int // 0: the connection is lost
	}{
		{"too long for the gateway", gateway.WithDeadlines(g.Handler()), 40 << 20, http.StatusRequestEntityTooLarge},
		{"of nobody", gateway.WithDeadlines(refuses), 40 << 20, http.StatusUnauthorized},
		{"short, of nobody", gateway.WithDeadlines(refuses), 1 << 10, http.StatusUnauthorized},
		{"endless", gateway.WithDeadlines(refuses), 1 << 30, 0},
	} {
		for _, chunked := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, chunked %v", tt.name, chunked), func(t *testing.T) {
				t.Parallel()
				server := httptest.NewServer(tt.h)
				t.Cleanup(server.Close)
				conn, err := net.Dial("tcp", server.Listener.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				r, err := http.NewRequest(http.MethodPost, server.URL+"/mcp", io.LimitReader(readerFunc(func(p []byte) (int, error) { return len(p), nil }), int64(tt.length)))
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set("Accept", "application/json, text/event-stream")
				if r.ContentLength = int64(tt.length); chunked {
					r.ContentLength = -1
				}
				if err := r.Write(conn); (err == nil) != (tt.code > 0) {
					t.Fatalf("sending it: %v", err)
				}
				if tt.code == 0 {
					return
				}
				w, err := http.ReadResponse(bufio.NewReader(conn), r)
				if err != nil || w.StatusCode != tt.code {
					t.Errorf("got %+v, %v", w, err)
				}
			})
		}
	}
}

// TestAborted: what a handler has given up is not answered, and least of all as a success.
func TestAborted(t *testing.T) {
	server := httptest.NewServer(gateway.WithDeadlines(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })))
	defer server.Close()
	if w, err := http.Post(server.URL, "text/plain", strings.NewReader(strings.Repeat("x", 1<<20))); err == nil {
		w.Body.Close()
		t.Errorf("got %s", w.Status)
	}
}

// TestPatientWriter: every part of a large response has its own time, and a part that is not taken is an error.
func TestPatientWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		large := strings.Repeat("x", 8<<20)
		wrote := make(chan error, 2)
		connect := dial(t, gateway.WithDeadlines(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, err := io.WriteString(w, large)
			wrote <- err
		})))
		conn := connect()
		fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		started, n := time.Now(), 0
		buf := make([]byte, 64<<10)
		for ; n < len(large); time.Sleep(10 * time.Second) {
			m, err := io.ReadFull(conn, buf)
			if n += m; err != nil {
				t.Fatal(n, err)
			}
		}
		if took := time.Since(started); took < 10*time.Minute {
			t.Errorf("took %s: not slow enough for the test", took)
		}
		go io.Copy(io.Discard, conn)
		if err := <-wrote; err != nil {
			t.Error(err)
		}
		fmt.Fprint(connect(), "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		if err := <-wrote; err == nil || !errors.Is(err, context.DeadlineExceeded) && !strings.Contains(err.Error(), "timeout") {
			t.Errorf("got %v, want a timeout", err)
		}
	})
}

// TestUnread: of answers that nobody reads 32 MiB are kept, those that have waited the least; who reads gets all of an
// answer all the same.
func TestUnread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		large := strings.Repeat("x", 1<<20)
		var ended []string
		var mu sync.Mutex
		connect := dial(t, gateway.WithDeadlines(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, err := io.WriteString(w, large); err != nil {
				mu.Lock()
				defer mu.Unlock()
				ended = append(ended, r.URL.Path)
			}
		})))
		for i := range 100 {
			fmt.Fprintf(connect(), "GET /%d HTTP/1.1\r\nHost: x\r\n\r\n", i)
			synctest.Wait()
		}
		reads := connect()
		fmt.Fprint(reads, "GET /reads HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		if got, err := io.ReadAll(reads); err != nil || len(got) < len(large) {
			t.Errorf("who reads gets %d bytes, %v", len(got), err)
		}
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if len(ended) != 69 || ended[0] != "/0" || ended[68] != "/68" {
			t.Errorf("%d answers were ended: %v", len(ended), ended)
		}
	})
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
