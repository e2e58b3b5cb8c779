package mcptest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/upstream"
)

// Pool makes a pool of servers, closed at the end of the test.
func Pool(t testing.TB, servers map[string]*Upstream) *upstream.Pool {
	t.Helper()
	var list upstream.Static
	for name, u := range servers {
		list = append(list, upstream.Server{Name: name, Dial: u.Dial})
	}
	slices.SortFunc(list, func(a, b upstream.Server) int { return compare(a.Name, b.Name) })
	return NewPool(t, upstream.Options{Sources: []upstream.Source{list}})
}

func compare(a, b string) int {
	if a < b {
		return -1
	}
	return 1
}

// NewPool makes a pool, closed at the end of the test.
func NewPool(t testing.TB, o upstream.Options) *upstream.Pool {
	t.Helper()
	p := upstream.NewPool(o)
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("closing the pool: %v", err)
		}
	})
	return p
}

// HTTP serves over streamable HTTP until the end of the test and returns the server, whose URL is the endpoint.
func (u *Upstream) HTTP(t testing.TB, o *mcp.StreamableHTTPOptions) *httptest.Server {
	t.Helper()
	return u.Serve(t, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return u.server }, o))
}

// SSE serves over the transport of 2024-11-05, as HTTP does over its successor.
func (u *Upstream) SSE(t testing.TB) *httptest.Server {
	t.Helper()
	return u.Serve(t, mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return u.server }, nil))
}

// Serve serves a handler that leads to u until the end of the test.
func (u *Upstream) Serve(t testing.TB, handler http.Handler) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(func() {
		u.close() // closing waits for the tools that run, whose calls may not have been cancelled
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// ServeStdio serves on standard input and output until the input ends.
func (u *Upstream) ServeStdio() {
	_ = u.server.Run(context.Background(), &mcp.StdioTransport{MaxLineLength: -1}) // the error is the end of input
}

// childVariable names the child that a process is to be.
const childVariable = "MCPTEST_CHILD"

// Main is the TestMain of a package whose tests start the test binary itself as a server. A process started by
// [Child] runs its function of children and exits; any other runs the tests.
func Main(m *testing.M, children map[string]func()) {
	RunChild(children)
	os.Exit(m.Run())
}

// RunChild is the part of [Main] that does not return in a process started by [Child], for packages whose TestMain has
// more to do.
func RunChild(children map[string]func()) {
	name := os.Getenv(childVariable)
	if name == "" {
		return
	}
	run := children[name]
	if run == nil {
		panic("mcptest: there is no child " + name)
	}
	run()
	os.Exit(0)
}

// Child is the command that runs a child of [Main].
func Child(t testing.TB, name string) upstream.Command {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return upstream.Command{Name: path, Env: map[string]string{childVariable: name, "GORACE": "atexit_sleep_ms=0"}, Lookup: os.LookupEnv}
}
