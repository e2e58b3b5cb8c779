package upstream_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/upstream"
	"github.com/mcsh-dev/mcsh/upstream/logins"
	"github.com/mcsh-dev/mcsh/upstream/state"
)

// TestAccountLists: what a server has listed to one account is not shown to the next one, or to nobody, also by a later process.
func TestAccountLists(t *testing.T) {
	t.Parallel()
	servers := map[string]*mcp.Server{}
	for _, account := range []string{"alice", "bob"} {
		servers[account] = mcptest.New(mcptest.Tool{Name: "tool_of_" + account}).MCP()
		servers[account].AddResource(&mcp.Resource{Name: account, URI: "file:///" + account}, nil)
	}
	address, _ := accounts(t, mcp.NewStreamableHTTPHandler(func(r *http.Request) *mcp.Server {
		return servers[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer token-of-")]
	}, nil))
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
	if _, err := kept.Delete(t.Context(), logins.Key{Server: "s", Resource: address + "/mcp", Issuer: address}); err != nil {
		t.Fatal(err)
	}
	check(first, "")
	if l := open().Saved(t.Context())[0]; len(l.Tools) > 0 {
		t.Errorf("a later process shows %v", l.Tools)
	}
}
