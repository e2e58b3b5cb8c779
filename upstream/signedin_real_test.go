package upstream_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/internal/signintest"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
	"github.com/mcsh-dev/mcsh/upstream/logins"
	"github.com/mcsh-dev/mcsh/upstream/remote"
	"github.com/mcsh-dev/mcsh/upstream/signin"
)

const realCallback = "http://127.0.0.1:1/callback" // nothing listens there: the browser stops before it

// TestLoginReal: two gateways with one login, whose tokens have ended and whose refresh token works once at a real
// authorization server. Each of their calls succeeds, because one of them refreshes for both. A revoked login is signed out.
func TestLoginReal(t *testing.T) {
	t.Parallel()
	issuer := ""
	s := handMade(t, nil)
	inner := s.Config.Handler
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "oauth-protected-resource") {
			respond(w, `{"resource":"`+s.URL+`/mcp","authorization_servers":["`+issuer+`"],"scopes_supported":["read"]}`)
			return
		}
		if _, ok := signintest.Active(r.Context(), issuer, s.URL+"/mcp", strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")); !ok {
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+s.URL+`/.well-known/oauth-protected-resource/mcp"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(w, r)
	})
	issuer = signintest.Start(t, signintest.Options{Resource: s.URL + "/mcp", TTL: 3600, Rotate: true})
	dir := filepath.Join(t.TempDir(), "logins")
	var pools []*upstream.Pool
	var kept keptLogins
	for range 2 {
		var err error
		if kept, err = openLogins(dir); err != nil {
			t.Fatal(err)
		}
		pools = append(pools, httpPool(t, upstream.Endpoint{URL: s.URL + "/mcp", Name: "s", Logins: kept}))
	}
	login := realLogin(t, upstream.Endpoint{URL: s.URL + "/mcp", Name: "s", Logins: kept})
	login.Expiry = time.Now().Add(-time.Minute)
	kept.put(t, login)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			if got := call(t, pools[i%2], "s", "one"); got != "hand made" {
				t.Errorf("got %q", got)
			}
		})
	}
	wg.Wait()
	now, err := kept.Of("s", "")
	if err != nil || len(now) != 1 || now[0].RefreshToken == login.RefreshToken {
		t.Fatalf("the login was not refreshed: %d logins, %v", len(now), err)
	}
	if err := signin.Revoke(t.Context(), http.DefaultClient, now[0]); err != nil {
		t.Fatal(err)
	}
	_, err = pools[0].CallTool(t.Context(), stages.Call{Server: "s", Name: "one"})
	if err == nil || !strings.Contains(err.Error(), "signed out: run mcsh login s") || !remote.NeedsSignIn(err) {
		t.Errorf("after the login was revoked: got %v", err)
	}
}

// realLogin signs in with a browser.
func realLogin(t *testing.T, e upstream.Endpoint) logins.Login {
	t.Helper()
	server, err := e.SignInServer()
	if err != nil {
		t.Fatal(err)
	}
	target, err := signin.Discover(t.Context(), server, "")
	if err != nil {
		t.Fatal(err)
	}
	attempt, err := target.Begin(t.Context(), realCallback)
	if err != nil {
		t.Fatal(err)
	}
	redirected, page := signintest.Browser(t, attempt.URL, realCallback)
	if redirected == "" {
		t.Fatalf("the browser is not sent back: %s", page)
	}
	login, err := attempt.Finish(t.Context(), redirected)
	if err != nil {
		t.Fatal(err)
	}
	return login
}
