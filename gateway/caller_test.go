package gateway_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/sandbox"
	"github.com/mcsh-dev/mcsh/sandbox/local"
	"github.com/mcsh-dev/mcsh/stages"
)

// asked is a driver that keeps the callers that workers were started for.
type asked struct {
	sandbox.Driver

	mu      sync.Mutex
	present string // whose plan was compiled last
	callers []string
}

func (a *asked) Open(ctx context.Context) (sandbox.Worker, error) {
	a.mu.Lock()
	a.callers = append(a.callers, a.present)
	a.mu.Unlock()
	return a.Driver.Open(ctx)
}

// A listener is a sandbox that tells a driver whose plans it gets.
type listener struct {
	ready
	driver *asked
}

func (l listener) Plan(caller, owner, workersOf string) stages.CommandPlan {
	l.driver.mu.Lock()
	defer l.driver.mu.Unlock()
	l.driver.present = workersOf
	return l.ready.Plan(caller, owner, workersOf)
}

// TestWorkersOf: where nobody is asked who they are, an address is a caller, in both eras: this machine is one, and behind
// a trusted proxy the address that it names. A request that an unknown proxy has forwarded shares a worker with none.
func TestWorkersOf(t *testing.T) {
	driver := &asked{Driver: local.New(local.Options{Worker: []string{workerBinary}})}
	pool, err := sandbox.New(t.Context(), sandbox.Options{Driver: driver, Warm: -1, Lasting: true})
	if err != nil {
		t.Skipf("needs a Linux kernel with seccomp and Landlock for the local sandbox: %v", err)
	}
	t.Cleanup(func() { pool.Close() })
	w := newWorld(t)
	w.gateway = gateway.New(gateway.Options{Upstream: w.pool, Sandbox: listener{ready{pool}, driver}})
	behindProxy := gateway.New(gateway.Options{Upstream: w.pool, Sandbox: listener{ready{pool}, driver}, HTTP: gateway.HTTPOptions{
		Proxies: gateway.Proxies{netip.MustParsePrefix("127.0.0.0/8")},
	}})
	forwarded := func(g *gateway.Gateway, era, from string) *mcp.ClientSession {
		server := httptest.NewServer(g.Handler())
		t.Cleanup(server.Close)
		session, err := newClient().Connect(t.Context(), &mcp.StreamableClientTransport{
			Endpoint: server.URL + "/mcp", HTTPClient: &http.Client{Transport: viaProxy(from)}, DisableStandaloneSSE: true,
		}, &mcp.ClientSessionOptions{ProtocolVersion: era})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { session.Close() })
		return session
	}
	for _, test := range []struct {
		name  string
		agent *mcp.ClientSession
		want  string // the caller of a worker that is started; empty: the one of an earlier row serves
	}{
		{"standard input", connect(t, w.gateway, newClient()), "stdio"},
		{"a session", w.overHTTP(t, false), "address local"},
		{"another one", w.overHTTP(t, false), ""},
		{"without sessions", w.overHTTP(t, true), ""},
		{"through a proxy that adds no header", forwarded(w.gateway, eras[0], ""), ""},
		{"through an unknown proxy", forwarded(w.gateway, eras[0], "192.0.2.1"), "anonymous"},
		{"through it again", forwarded(w.gateway, eras[1], "192.0.2.1"), "anonymous"},
		{"an address", forwarded(behindProxy, eras[0], "192.0.2.1"), "address 192.0.2.1"},
		{"the same in the other era", forwarded(behindProxy, eras[1], "192.0.2.1"), ""},
		{"another address", forwarded(behindProxy, eras[1], "192.0.2.2"), "address 192.0.2.2"},
		{"this machine again", w.overHTTP(t, true), ""},
	} {
		before := len(driver.callers)
		text, _ := pipe(t, test.agent, `[{"type":"command","command":"jq","args":["-n","1"]}]`)
		got := strings.Join(driver.callers[before:], ", ")
		if !strings.Contains(text, "1") || got != test.want {
			t.Errorf("%s: workers were started for %q, want %q; the reply is %q", test.name, got, test.want, text)
		}
	}
}

// viaProxy says in each request that it was forwarded for an address, or nothing if that is empty.
type viaProxy string

func (p viaProxy) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if p != "" {
		r.Header.Set("X-Forwarded-For", string(p))
	}
	return http.DefaultTransport.RoundTrip(r)
}
