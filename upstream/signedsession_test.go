package upstream_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
	"github.com/mcsh-dev/mcsh/upstream/logins"
)

// accounts are a server of the SDK, which binds each session to the account of its token, "token of ACCOUNT".
func accounts(t *testing.T, handler http.Handler) (address string, seen func() []string) {
	t.Helper()
	var mu sync.Mutex
	var given []string
	verify := func(_ context.Context, token string, r *http.Request) (*auth.TokenInfo, error) {
		mu.Lock()
		defer mu.Unlock()
		if given = append(given, token); strings.HasPrefix(token, "old") {
			return nil, auth.ErrInvalidToken
		}
		return &auth.TokenInfo{UserID: token, Expiration: time.Now().Add(time.Hour)}, nil
	}
	var s *httptest.Server
	s = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/token" {
			respond(w, `{"access_token":"token-of-alice-again","token_type":"Bearer","refresh_token":"r","expires_in":3600}`)
			return
		}
		auth.RequireBearerToken(verify, &auth.RequireBearerTokenOptions{ResourceMetadataURL: s.URL + "/about"})(handler).ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return append([]string(nil), given...)
	}
}

// loginAt is a login for a resource at a server.
func loginAt(address, path, token string, made time.Time) logins.Login {
	return logins.Login{
		Key:  logins.Key{Server: "s", Resource: address + path, Issuer: address},
		Made: made, AccessToken: token, RefreshToken: "r", Expiry: time.Now().Add(time.Hour),
		Client: logins.Client{ID: "c", AuthMethod: "none"}, TokenEndpoint: address + "/token",
	}
}

func streamable(o *mcp.StreamableHTTPOptions) http.Handler {
	u := mcptest.New(mcptest.Tool{Name: "one"})
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return u.MCP() }, o)
}

// TestOtherAccount: after a login as another account, calls go to a new session, of that account.
func TestOtherAccount(t *testing.T) {
	t.Parallel()
	u := mcptest.New(mcptest.Tool{Name: "one"})
	for name, c := range map[string]struct {
		handler http.Handler
		older   bool
	}{
		"sessions":    {handler: streamable(nil)},
		"no sessions": {handler: streamable(&mcp.StreamableHTTPOptions{Stateless: true})},
		"events":      {mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return u.MCP() }, nil), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address, seen := accounts(t, c.handler)
			kept, now := newLogins(t), time.Now()
			p := httpPool(t, upstream.Endpoint{URL: address + "/mcp", Name: "s", Logins: kept, LegacySSE: c.older})
			for i, account := range []string{"alice", "bob", "alice"} {
				kept.put(t, loginAt(address, "/mcp", "token-of-"+account, now.Add(time.Duration(i)*time.Minute)))
				before := len(seen())
				var wg sync.WaitGroup
				for range 4 {
					wg.Go(func() {
						if _, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: "one"}); err != nil {
							t.Errorf("as %s: %v", account, err)
						}
					})
				}
				wg.Wait()
				for _, token := range seen()[before:] {
					if token != "token-of-"+account {
						t.Errorf("as %s: %s was used", account, token)
					}
				}
			}
		})
	}
}

// TestStaleStream: a server of the older transport is asked again with a refreshed token for its stream.
func TestStaleStream(t *testing.T) {
	t.Parallel()
	u := mcptest.New(mcptest.Tool{Name: "one"})
	address, _ := accounts(t, mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return u.MCP() }, nil))
	kept := newLogins(t)
	kept.put(t, loginAt(address, "/sse", "old-token", time.Now()))
	p := httpPool(t, upstream.Endpoint{URL: address + "/sse", Name: "s", Logins: kept, LegacySSE: true})
	if _, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: "one"}); err != nil {
		t.Error(err)
	}
}

// TestTokenPlaces: a token goes with a redirect only to addresses in the resource of its login, and to the address for messages
// that the stream of an older server names.
func TestTokenPlaces(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		resource, to string
		token        bool
	}{
		{"/mcp", "/mcp/", true}, {"/mcp", "/mcp/v2", true}, {"", "/other", true}, {"/mcp", "/other", false}, {"/mcp", "/mcp2", false},
	} {
		t.Run(c.resource+" "+c.to, func(t *testing.T) {
			t.Parallel()
			var given atomic.Pointer[string]
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/mcp" {
					http.Redirect(w, r, c.to, http.StatusTemporaryRedirect)
					return
				}
				token := r.Header.Get("Authorization")
				given.CompareAndSwap(nil, &token)
				w.WriteHeader(http.StatusUnauthorized)
			}))
			t.Cleanup(s.Close)
			kept := newLogins(t)
			login := loginAt(s.URL, c.resource, "token-of-alice", time.Now())
			login.RefreshToken = ""
			kept.put(t, login)
			p := httpPool(t, upstream.Endpoint{URL: s.URL + "/mcp", Name: "s", Logins: kept})
			if _, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: "one"}); err == nil {
				t.Error("no error of a server that refuses everything")
			}
			if got := given.Load(); got == nil || (*got != "") != c.token {
				t.Errorf("the redirect got %v, want a token: %t", got, c.token)
			}
		})
	}
}

// TestOneRefusal: a login without a refresh token outlives a refusal, which may be a mistake of the server.
func TestOneRefusal(t *testing.T) {
	t.Parallel()
	d, kept := newDoorman(t), newLogins(t)
	login := d.login("access-token-of-old")
	login.RefreshToken = ""
	kept.put(t, login)
	p := httpPool(t, d.endpoint(kept))
	if _, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: "one"}); err == nil {
		t.Fatal("no error of a server that refuses everything")
	}
	d.set("access-token-of-old", "")
	eventually(t, "the login works again", func() bool {
		_, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: "one"})
		return err == nil
	})
}

// A slowStore is a store whose file cannot be read soon.
type slowStore struct {
	keptLogins
	blocked atomic.Bool
	asked   chan struct{} // for each reading that blocks
	open    chan struct{}
}

func (s *slowStore) Of(server, resource string) ([]logins.Login, error) {
	if s.blocked.Load() {
		s.asked <- struct{}{}
		<-s.open
	}
	return s.keptLogins.Of(server, resource)
}

// TestSlowStore: the status of a server that was refused is known while its logins are being read.
func TestSlowStore(t *testing.T) {
	t.Parallel()
	d := newDoorman(t)
	kept := &slowStore{keptLogins: newLogins(t), asked: make(chan struct{}, 1000), open: make(chan struct{})}
	p := httpPool(t, upstream.Endpoint{URL: d.url + "/mcp", Name: "s", Logins: kept})
	call := func() { _, _ = p.CallTool(t.Context(), stages.Call{Server: "s", Name: "one"}) }
	for range 8 { // until the pool waits long between two starts
		call()
	}
	kept.blocked.Store(true)
	var wg sync.WaitGroup
	wg.Go(call)
	<-kept.asked
	known := make(chan []upstream.ServerStatus, 1)
	go func() { known <- p.Statuses() }()
	select {
	case list := <-known:
		if len(list) != 1 || list[0].Status != upstream.StatusFailed {
			t.Errorf("got %v", list)
		}
	case <-time.After(30 * time.Second):
		t.Error("the status waits for the logins")
	}
	close(kept.open)
	wg.Wait()
}
