package upstream_test

import (
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
	"github.com/mcsh-dev/mcsh/upstream/logins"
	"github.com/mcsh-dev/mcsh/upstream/state"
)

// accountServers is a server that is another one for each account.
func accountServers(t *testing.T, servers map[string]*mcp.Server) (address string) {
	t.Helper()
	address, _ = accounts(t, mcp.NewStreamableHTTPHandler(func(r *http.Request) *mcp.Server {
		return servers[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer token-of-")]
	}, nil))
	return address
}

// toolsOfAccounts are servers with a tool and a resource that have the name of the account.
func toolsOfAccounts() map[string]*mcp.Server {
	servers := map[string]*mcp.Server{}
	for _, account := range []string{"alice", "bob"} {
		servers[account] = mcptest.New(mcptest.Tool{Name: "tool_of_" + account}).MCP()
		servers[account].AddResource(&mcp.Resource{Name: account, URI: "file:///" + account}, nil)
	}
	return servers
}

// logOut removes the login of an address.
func (k keptLogins) logOut(t *testing.T, address string) {
	t.Helper()
	if _, err := k.Delete(t.Context(), logins.Key{Server: "s", Resource: address + "/mcp", Issuer: address}); err != nil {
		t.Fatal(err)
	}
}

// TestAccountLists: what a server has listed to one account is not shown to the next one, or to nobody, also by a later process.
func TestAccountLists(t *testing.T) {
	t.Parallel()
	address := accountServers(t, toolsOfAccounts())
	kept, path, now := newLogins(t), filepath.Join(t.TempDir(), "state"), time.Now()
	e := upstream.Endpoint{URL: address + "/mcp", Name: "s", Logins: kept}
	open := func() *upstream.Pool {
		dir, err := state.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		return staticPool(t, upstream.Options{State: dir}, upstream.Server{Name: "s", Dial: upstream.HTTP(e), Endpoint: &e})
	}
	first := open()
	check := func(p *upstream.Pool, want string) {
		t.Helper()
		l := p.Catalog(t.Context(), "s")[0]
		var has []string
		for _, tool := range l.Tools {
			has = append(has, tool.Tool.Signature)
		}
		if got := strings.Join(has, " "); want == "" && got != "" || !strings.HasPrefix(got, want) {
			t.Errorf("the tools are %q, want %q; %v", got, want, l.Err)
		}
		if want == "" {
			if list := p.Offers(t.Context(), upstream.Resources); len(list) > 0 {
				t.Errorf("nobody has signed in, and sees %v", list)
			}
			return
		}
		if list, err := p.OffersOf(t.Context(), "s", upstream.Resources); err != nil || len(list) != 1 || list[0].Key != "file:///"+strings.TrimPrefix(want, "tool_of_") {
			t.Errorf("the resources are %v, %v; want those beside %s", list, err, want)
		}
	}
	check(first, "")
	for i, account := range []string{"alice", "bob"} {
		kept.put(t, loginAt(address, "/mcp", "token-of-"+account, now.Add(time.Duration(i)*time.Minute)))
		check(first, "tool_of_"+account)
		check(open(), "tool_of_"+account)
	}
	kept.logOut(t, address)
	check(first, "")
	if l := open().Saved(t.Context())[0]; len(l.Tools) > 0 {
		t.Errorf("a later process shows %v", l.Tools)
	}
}

// TestAccountExposed: exposed tools of an account are not listed any more after a sign-in as another one, or a logout, and
// clients hear of that before any list is read.
func TestAccountExposed(t *testing.T) {
	t.Parallel()
	address := accountServers(t, toolsOfAccounts())
	kept, now := newLogins(t), time.Now()
	e := upstream.Endpoint{URL: address + "/mcp", Name: "s", Logins: kept}
	p := staticPool(t, upstream.Options{Expose: []string{"s/*"}}, upstream.Server{Name: "s", Dial: upstream.HTTP(e), Endpoint: &e})
	var news atomic.Int32
	p.OnTools(func() { news.Add(1) })
	p.AwaitExposed(t.Context(), true)
	for i, account := range []string{"alice", "bob", ""} {
		had, before := exposedNames(p), news.Load()
		_, generation := p.Exposed()
		if account == "" {
			kept.logOut(t, address)
		} else {
			kept.put(t, loginAt(address, "/mcp", "token-of-"+account, now.Add(time.Duration(i)*time.Minute)))
		}
		p.AwaitExposed(t.Context(), false) // which asks no server
		if p.Generation() == generation || news.Load() == before {
			t.Errorf("after the change to %q: generation %d, was %d; %d notifications", account, p.Generation(), generation, news.Load()-before)
		}
		for _, name := range exposedNames(p) {
			if slices.Contains(had, name) {
				t.Errorf("after the change to %q: %s is still exposed", account, name)
			}
		}
		p.AwaitExposed(t.Context(), true)
		if got := strings.Join(exposedNames(p), " "); account != "" && got != "s/tool_of_"+account || account == "" && got != "" {
			t.Errorf("%q are exposed to %q", got, account)
		}
	}
}

// TestAccountUpdates: after a sign-in as another account, updates of a resource come over its session, also while a call of the
// former account runs.
func TestAccountUpdates(t *testing.T) {
	t.Parallel()
	alice, bob := mcptest.NewLive("doc://1"), mcptest.NewLive("doc://1")
	entered, open := make(chan struct{}), make(chan struct{})
	alice.Add(mcptest.Tool{Name: "wait", Do: func(map[string]any) (string, error) {
		close(entered)
		<-open
		return "", nil
	}})
	address := accountServers(t, map[string]*mcp.Server{"alice": alice.MCP(), "bob": bob.MCP()})
	kept, now := newLogins(t), time.Now()
	e := upstream.Endpoint{URL: address + "/mcp", Name: "s", Logins: kept}
	p := staticPool(t, upstream.Options{}, upstream.Server{Name: "s", Dial: upstream.HTTP(e), Endpoint: &e})
	kept.put(t, loginAt(address, "/mcp", "token-of-alice", now))
	var r reports
	_, cancel, err := p.Subscribe(t.Context(), "mcsh://servers/s/doc://1", r.of("one"))
	if err != nil {
		t.Fatal(err)
	}
	defer cancel()
	alice.Touch("doc://1")
	r.await(t, "one", 0)
	ended := make(chan error, 1)
	go func() {
		_, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: "wait", Timeout: 10 * time.Minute})
		ended <- err
	}()
	<-entered
	kept.put(t, loginAt(address, "/mcp", "token-of-bob", now.Add(time.Minute)))
	call(t, p, "s", "pid")
	eventually(t, "a subscription of the second account", func() bool { return len(bob.Subscribed()) == 1 })
	before := r.count("one")
	eventually(t, "an update for the second account", func() bool {
		touch(t, p, "doc://1")
		return r.count("one") > before
	})
	close(open)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
