// Package toolhivetest is an API server like ToolHive's, for tests: the same routes and forms of answers, with workloads
// that the test sets. It runs nothing.
package toolhivetest

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// An API is a server. Its methods may be called concurrently.
type API struct {
	URL string // http://127.0.0.1:PORT, or unix:// and the path of a socket

	server *httptest.Server

	mu       sync.Mutex // guards the fields below
	nonce    string
	list     []json.RawMessage // nil is null, as with ToolHive
	token    string
	failure  int
	raw      string
	requests []*http.Request
}

// New serves on a port of loopback until the end of the test.
func New(t testing.TB) *API {
	t.Helper()
	a := &API{nonce: "5c1f0a77be5542f0b6e7a1e2d3c4b5a6"}
	a.server = httptest.NewServer(a)
	a.URL = a.server.URL
	t.Cleanup(a.Close)
	return a
}

// NewSocket serves on a unix socket until the end of the test.
func NewSocket(t testing.TB) *API {
	t.Helper()
	dir, err := os.MkdirTemp("", "thv") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "api.sock")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	a := &API{nonce: "0a77be5542f0b6e7a1e2d3c4b5a65c1f", URL: "unix://" + path}
	a.server = httptest.NewUnstartedServer(a)
	_ = a.server.Listener.Close()
	a.server.Listener = listener
	a.server.Start()
	t.Cleanup(a.Close)
	return a
}

// Close ends the server, with the connections that are open.
func (a *API) Close() {
	a.server.CloseClientConnections()
	a.server.Close()
}

// Set sets the workloads, each a JSON object.
func (a *API) Set(entries ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.list = nil
	for _, e := range entries {
		a.list = append(a.list, json.RawMessage(e))
	}
}

// SetRaw sets the answer to the request for the list. Empty: the list again.
func (a *API) SetRaw(body string) { a.locked(func() { a.raw = body }) }

// SetToken makes the API demand a bearer token.
func (a *API) SetToken(token string) { a.locked(func() { a.token = token }) }

// Fail makes every request fail with a status. 0: no more.
func (a *API) Fail(status int) { a.locked(func() { a.failure = status }) }

// SetNonce changes the nonce, as a restart does, and closes the open connections.
func (a *API) SetNonce(nonce string) {
	a.locked(func() { a.nonce = nonce })
	a.server.CloseClientConnections()
}

// Tokens returns the Authorization header of each request for a path, such as "/health".
func (a *API) Tokens(path string) []string {
	var list []string
	a.locked(func() {
		for _, r := range a.requests {
			if r.URL.Path == path {
				list = append(list, r.Header.Get("Authorization"))
			}
		}
	})
	return list
}

func (a *API) locked(do func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	do()
}

// Discovery writes ToolHive's discovery file into a directory of the test and returns its path.
func (a *API) Discovery(t testing.TB) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "server.json")
	a.Rewrite(t, name)
	return name
}

// Rewrite writes a discovery file with the current address and nonce.
func (a *API) Rewrite(t testing.TB, name string) {
	t.Helper()
	var text string
	a.locked(func() {
		text = fmt.Sprintf(`{"url":%q,"pid":%d,"nonce":%q,"started_at":"2026-11-20T18:17:50.274083422Z"}`, a.URL, os.Getpid(), a.nonce)
	})
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// ServeHTTP implements [http.Handler].
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.requests = append(a.requests, r)
	if a.failure != 0 {
		http.Error(w, http.StatusText(a.failure), a.failure)
		return
	}
	if r.URL.Path == "/health" {
		w.Header().Set("X-Toolhive-Nonce", a.nonce)
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if a.token != "" && r.Header.Get("Authorization") != "Bearer "+a.token {
		http.Error(w, "Unauthorized", http.StatusUnauthorized)
		return
	}
	switch r.URL.Path {
	case "/api/v1beta/version":
		write(w, map[string]string{"version": "v0.44.0"})
	case "/api/v1beta/workloads":
		if a.raw != "" {
			_, _ = w.Write([]byte(a.raw))
			return
		}
		write(w, map[string]any{"workloads": a.picked(r)})
	default:
		http.NotFound(w, r)
	}
}

// picked is the list as the request wants it.
func (a *API) picked(r *http.Request) []json.RawMessage {
	if r.URL.Query().Get("all") == "true" {
		return a.list
	}
	var running []json.RawMessage
	for _, entry := range a.list {
		if text := string(entry); strings.Contains(text, `"status":"running"`) || strings.Contains(text, `"status":"auth_retrying"`) {
			running = append(running, entry)
		}
	}
	return running
}

func write(w http.ResponseWriter, answer any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // the client may have gone
}

// Running is a workload that runs, with the address of its proxy. More are further members, such as `"group":"tools"`.
func Running(name, url string, more ...string) string {
	return entry(name, fmt.Sprintf(`"url":%q,"transport_type":"streamable-http","proxy_mode":"streamable-http","status":"running"`, url), more)
}

// Stuck is a workload with another status, and no address.
func Stuck(name, status, context string, more ...string) string {
	return entry(name, fmt.Sprintf(`"url":"","port":0,"transport_type":"","status":%q,"status_context":%q`, status, context), more)
}

func entry(name, members string, more []string) string {
	all := append([]string{fmt.Sprintf(`"name":%q,"package":"example:1",%s`, name, members)}, more...)
	return "{" + strings.Join(append(all, `"created_at":"2026-11-20T18:18:34.015344194Z","started_at":"0001-01-01T00:00:00Z"`), ",") + "}"
}
