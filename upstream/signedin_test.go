package upstream_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
	"github.com/mcsh-dev/mcsh/upstream/logins"
	"github.com/mcsh-dev/mcsh/upstream/remote"
	"github.com/mcsh-dev/mcsh/upstream/signin"
)

// clientDocument is where the suite expects the document about a client.
const clientDocument = "https://conformance-test.local/client-metadata.json"

// keptLogins are logins in a store.
type keptLogins struct{ *logins.Store }

// openLogins opens a store in a directory.
func openLogins(dir string) (keptLogins, error) {
	store, err := logins.Open(dir, logins.Options{})
	return keptLogins{store}, err
}

func newLogins(t *testing.T) keptLogins {
	t.Helper()
	kept, err := openLogins(filepath.Join(t.TempDir(), "logins"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := kept.Close(); err != nil {
			t.Error(err)
		}
	})
	return kept
}

// put keeps a login.
func (k keptLogins) put(t *testing.T, l logins.Login) {
	t.Helper()
	if err := k.Put(t.Context(), l); err != nil {
		t.Fatal(err)
	}
}

// signIn signs in as mcsh login does, with a browser that agrees to everything.
func (k keptLogins) signIn(ctx context.Context, e upstream.Endpoint, scopes []string) error {
	server, err := e.SignInServer()
	if err != nil {
		return err
	}
	server.More = scopes
	before, err := k.Of(e.Name, "")
	if err != nil {
		return err
	}
	for _, login := range before {
		server.More = append(server.More, login.Scopes...)
	}
	target, err := signin.Discover(ctx, server, "")
	if err != nil {
		return err
	}
	attempt, err := target.Begin(ctx, "http://127.0.0.1:3000/oauth/callback")
	if err != nil {
		return err
	}
	browser := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := browser.Get(attempt.URL)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.Header.Get("Location") == "" {
		return fmt.Errorf("the browser is not sent back: %s", answer.Status)
	}
	login, err := attempt.Finish(ctx, answer.Header.Get("Location"))
	if err != nil {
		return err
	}
	return k.Put(ctx, login)
}

// A doorman lets requests with the current token through to a server made by hand, and gives tokens.
type doorman struct {
	url string

	mu      sync.Mutex
	good    string // the current access token
	next    int    // of the tokens that it gives
	refresh string // the only one that works; used once
	lacks   string // a scope that every call lacks
	tokens  int    // requests for tokens
	seen    map[string]int
	call    func(w http.ResponseWriter) // answers a call of a tool; it holds mu; nil: the server by hand does
	other   http.Handler                // in the place of the server by hand; it holds mu
}

func newDoorman(t *testing.T) *doorman {
	t.Helper()
	d := &doorman{refresh: "refresh-0", seen: map[string]int{}}
	return d.guard(handMade(t, func(w http.ResponseWriter, _ *http.Request, id json.RawMessage) {
		if d.call != nil {
			d.call(w)
			return
		}
		respond(w, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, legacyAnswers["tools/call"]))
	}))
}

// guard puts the doorman before what a server serves.
func (d *doorman) guard(s *httptest.Server) *doorman {
	inner := s.Config.Handler
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.mu.Lock()
		defer d.mu.Unlock()
		given := r.Header.Get("Authorization")
		switch {
		case r.URL.Path == "/token":
			d.give(w, r)
			return
		case given != "Bearer "+d.good || d.good == "":
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+s.URL+`/.well-known/oauth-protected-resource/mcp"`)
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, "no entry with %s", given)
			return
		case d.lacks != "":
			w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="`+d.lacks+`"`)
			w.WriteHeader(http.StatusForbidden)
			return
		}
		d.seen[given]++
		if d.other != nil {
			d.other.ServeHTTP(w, r)
			return
		}
		inner.ServeHTTP(w, r)
	})
	d.url = s.URL
	return d
}

// give answers a request for tokens. d.mu is held.
func (d *doorman) give(w http.ResponseWriter, r *http.Request) {
	d.tokens++
	_ = r.ParseForm()
	if r.PostForm.Get("refresh_token") != d.refresh || r.PostForm.Get("resource") != d.url+"/mcp" {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"error":"invalid_grant"}`)
		return
	}
	d.next++
	d.good, d.refresh = fmt.Sprintf("access-token-%d", d.next), fmt.Sprintf("refresh-%d", d.next)
	respond(w, fmt.Sprintf(`{"access_token":%q,"token_type":"Bearer","refresh_token":%q,"expires_in":3600}`, d.good, d.refresh))
}

// login is one that the doorman knows, with an access token of ours.
func (d *doorman) login(token string) logins.Login {
	d.mu.Lock()
	defer d.mu.Unlock()
	return logins.Login{
		Key:  logins.Key{Server: "s", Resource: d.url + "/mcp", Issuer: d.url},
		Made: time.Now(), AccessToken: token, RefreshToken: d.refresh, Expiry: time.Now().Add(time.Hour),
		Client: logins.Client{ID: "c", AuthMethod: "none"}, TokenEndpoint: d.url + "/token",
	}
}

func (d *doorman) set(good, lacks string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.good, d.lacks = good, lacks
}

func (d *doorman) asked() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.tokens
}

// endpoint is that of the doorman, with logins.
func (d *doorman) endpoint(kept keptLogins) upstream.Endpoint {
	return upstream.Endpoint{URL: d.url + "/mcp", Name: "s", Logins: kept}
}

// TestLogin: requests have the token of a login, which is refreshed early and after a refusal, once for all of them.
func TestLogin(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		token   string
		expiry  time.Duration
		refresh string // instead of the right one
		asked   int
		err     string
	}{
		"fresh":           {token: "access-token-of-old", expiry: time.Hour},
		"no expiry":       {token: "access-token-of-old"},
		"ended":           {token: "access-token-of-old", expiry: -time.Minute, asked: 1},
		"refused":         {token: "forgotten-token", expiry: time.Hour, asked: 1},
		"refused for all": {token: "forgotten-token", expiry: time.Hour, refresh: "refresh-of-thief", asked: -1, err: "signed out: run mcsh login s"},
		"ended for all":   {token: "access-token-of-old", expiry: -time.Minute, refresh: "refresh-of-thief", asked: -1, err: "signed out: run mcsh login s"},
		"none left":       {token: "forgotten-token", expiry: time.Hour, refresh: "none", err: "signed out: run mcsh login s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, kept := newDoorman(t), newLogins(t)
			d.set("access-token-of-old", "")
			login := d.login(c.token)
			login.Expiry = time.Time{}
			if c.expiry != 0 {
				login.Expiry = time.Now().Add(c.expiry)
			}
			if c.refresh != "" {
				login.RefreshToken = strings.TrimSuffix(c.refresh, "none")
			}
			kept.put(t, login)
			p := httpPool(t, d.endpoint(kept))
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					_, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: "one"})
					switch {
					case c.err != "":
						wantError(t, err, stages.ServerUnavailable, c.err, "a person runs the command")
						if !remote.NeedsSignIn(err) || strings.Contains(fmt.Sprintf("%+v", err), "token-of-old") {
							t.Errorf("the error needs no sign-in, or shows a token: %v", err)
						}
					case err != nil:
						t.Error(err)
					}
				})
			}
			wg.Wait()
			if n := d.asked(); c.asked >= 0 && n != c.asked {
				t.Errorf("tokens were asked for %d times, want %d", n, c.asked)
			}
		})
	}
}

// TestLoginLater: a server that was refused works as soon as somebody has signed in, on the same pool, and needs a person for
// more scopes.
func TestLoginLater(t *testing.T) {
	t.Parallel()
	d, kept := newDoorman(t), newLogins(t)
	p := httpPool(t, d.endpoint(kept))
	for range 8 { // until the pool waits long between two starts
		_, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: "one"})
		wantError(t, err, stages.ServerUnavailable, "signed out: run mcsh login s", "a person runs the command")
	}
	d.set("access-token-of-old", "")
	kept.put(t, d.login("access-token-of-old"))
	if got := call(t, p, "s", "one"); got != "hand made" {
		t.Errorf("after the sign-in: got %q", got)
	}
	d.set("access-token-of-old", "files:write admin")
	_, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: "one"})
	if err == nil || !strings.Contains(err.Error(), "run mcsh login s --scope files:write --scope admin") || !remote.NeedsSignIn(err) {
		t.Errorf("without the scope: got %v, want the command", err)
	}
	d.set("access-token-of-new", "")
	kept.put(t, d.login("access-token-of-new"))
	if got := call(t, p, "s", "one"); got != "hand made" {
		t.Errorf("after the second sign-in: got %q", got)
	}
	if d.asked() > 0 {
		t.Error("a login that works was refreshed")
	}
}

// TestLoginOfOthers: a login goes to no other server than the one that it is for, and not beside a header of the operator.
func TestLoginOfOthers(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*logins.Login, *upstream.Endpoint){
		"another host":   func(l *logins.Login, _ *upstream.Endpoint) { l.Resource = "https://other.example/mcp" },
		"another path":   func(l *logins.Login, _ *upstream.Endpoint) { l.Resource += "/more" },
		"another issuer": func(_ *logins.Login, e *upstream.Endpoint) { e.SignIn.Issuer = "https://issuer.example" },
		"header": func(_ *logins.Login, e *upstream.Endpoint) {
			e.Headers = http.Header{"Authorization": {"Bearer of the operator"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, kept := newDoorman(t), newLogins(t)
			d.set("access-token-of-old", "")
			login, endpoint := d.login("access-token-of-old"), d.endpoint(kept)
			change(&login, &endpoint)
			kept.put(t, login)
			_, err := httpPool(t, endpoint).CallTool(t.Context(), stages.Call{Server: "s", Name: "one"})
			if !remote.NeedsSignIn(err) {
				t.Errorf("got %v, want that nobody has signed in", err)
			}
			if len(d.seen) > 0 || d.asked() > 0 {
				t.Error("the login was used")
			}
		})
	}
}
