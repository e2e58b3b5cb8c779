package pending_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/upstream/logins"
	"github.com/mcsh-dev/mcsh/upstream/pending"
	"github.com/mcsh-dev/mcsh/upstream/signin"
)

// An issuer protects a server at /mcp, and signs everybody in at once, as the account of the query of its token request.
type issuer struct {
	*httptest.Server
	refuse bool // the person says no

	mu    sync.Mutex
	given int // tokens; guarded by mu
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	i := &issuer{}
	mux := http.NewServeMux()
	i.Server = httptest.NewServer(mux)
	t.Cleanup(i.Close)
	answer := func(w http.ResponseWriter, v any) {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(v)
	}
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", "Bearer")
		w.WriteHeader(http.StatusUnauthorized)
	})
	mux.HandleFunc("/.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{
			"issuer": i.URL, "authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.URL + "/token",
			"registration_endpoint": i.URL + "/register", "device_authorization_endpoint": i.URL + "/device",
			"response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"},
			"authorization_response_iss_parameter_supported": true,
		})
	})
	mux.HandleFunc("/register", func(w http.ResponseWriter, _ *http.Request) { answer(w, map[string]any{"client_id": "client"}) })
	mux.HandleFunc("/authorize", func(w http.ResponseWriter, r *http.Request) {
		query := url.Values{"state": {r.FormValue("state")}, "iss": {i.URL}, "code": {"code"}}
		if i.refuse {
			query.Del("code")
			query.Set("error", "access_denied")
		}
		http.Redirect(w, r, r.FormValue("redirect_uri")+"?"+query.Encode(), http.StatusFound)
	})
	mux.HandleFunc("/device", func(w http.ResponseWriter, _ *http.Request) {
		if i.refuse {
			w.WriteHeader(http.StatusBadRequest)
			answer(w, map[string]any{"error": "access_denied"})
			return
		}
		answer(w, map[string]any{"device_code": "d", "user_code": "ABCD", "verification_uri": i.URL + "/enter", "expires_in": 600, "interval": 1})
	})
	mux.HandleFunc("/token", func(w http.ResponseWriter, _ *http.Request) {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.given++
		answer(w, map[string]any{"access_token": fmt.Sprint("access-", i.given), "token_type": "Bearer", "expires_in": 3600})
	})
	return i
}

func (i *issuer) tokens() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.given
}

func (i *issuer) server(name string) signin.Server {
	return signin.Server{Name: name, URL: i.URL + "/mcp", HTTP: signin.NewHTTP(signin.Options{Server: i.URL})}
}

// A gateway has pages below a path of its public address.
type gateway struct {
	*pending.SignIns
	store  *logins.Store
	public string
}

func newGateway(t *testing.T, o pending.Options) *gateway {
	t.Helper()
	store, err := logins.Open(filepath.Join(t.TempDir(), "logins"), logins.Options{})
	if err != nil {
		t.Fatal(err)
	}
	g := &gateway{store: store}
	mux := http.NewServeMux()
	web := httptest.NewServer(mux)
	g.public = web.URL + "/team/oauth"
	o.Store, o.Public = store, g.public
	g.SignIns = pending.New(o)
	mux.Handle("/team/oauth/", g)
	t.Cleanup(func() { web.Close(); g.Close(); store.Close() })
	return g
}

// A browser keeps cookies, and follows redirections unless stop is set.
type browser struct {
	t    *testing.T
	http http.Client
	stop bool
}

func newBrowser(t *testing.T) *browser {
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	b := &browser{t: t}
	b.http = http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error {
		if b.stop {
			return http.ErrUseLastResponse
		}
		return nil
	}}
	return b
}

// do makes a request and returns its status, page and header.
func (b *browser) do(req *http.Request) (int, string, http.Header) {
	b.t.Helper()
	resp, err := b.http.Do(req)
	if err != nil {
		b.t.Error(err)
		return 0, "", nil
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body), resp.Header
}

func (b *browser) get(address string) (int, string, http.Header) {
	b.t.Helper()
	req, err := http.NewRequest(http.MethodGet, address, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	return b.do(req)
}

// press presses the button of a page.
func (b *browser) press(address string, header ...string) (int, string, http.Header) {
	b.t.Helper()
	page, query, _ := strings.Cut(address, "?")
	req, err := http.NewRequest(http.MethodPost, page, strings.NewReader(query))
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	return b.do(req)
}

// back presses the button, and returns the address that the issuer sends the browser to.
func (b *browser) back(address string) string {
	b.t.Helper()
	b.stop = true
	defer func() { b.stop = false }()
	status, page, header := b.press(address)
	if status != http.StatusSeeOther {
		b.t.Fatalf("the button: %d %s", status, page)
	}
	_, _, header = b.get(header.Get("Location"))
	return header.Get("Location")
}

// TestPage signs in from the page to the end.
func TestPage(t *testing.T) {
	i := newIssuer(t)
	g, b := newGateway(t, pending.Options{}), newBrowser(t)
	s, err := g.Begin(t.Context(), i.server("box<b>"), "")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(s.Address, g.public+"/start?login=") || s.Issuer != i.URL {
		t.Errorf("the address is %s, of %s", s.Address, s.Issuer)
	}
	status, page, header := b.get(s.Address)
	host := strings.TrimPrefix(i.URL, "http://")
	for _, want := range []string{"box&lt;b&gt;", "at <b>" + host + "</b>", "Go on to " + host, "just asked for this yourself", "All who may use the gateway"} {
		if status != http.StatusOK || !strings.Contains(page, want) {
			t.Errorf("%d, want %q in %s", status, want, page)
		}
	}
	for name, want := range map[string]string{
		"Cache-Control": "no-store", "X-Robots-Tag": "noindex, nofollow", "Content-Security-Policy": "default-src 'none'; base-uri 'none'; frame-ancestors 'none'",
	} {
		if got := header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if strings.Contains(page, "<script") || len(header["Set-Cookie"]) > 0 {
		t.Errorf("a look at the page has effects: %v %s", header, page)
	}
	status, page, _ = b.press(s.Address)
	if status != http.StatusOK || !strings.Contains(page, "You are signed in to box&lt;b&gt;") {
		t.Errorf("%d %s", status, page)
	}
	login, err := g.Wait(t.Context(), s.ID)
	if err != nil || login.AccessToken != "access-1" {
		t.Errorf("%+v, %v", login, err)
	}
	if list, err := g.store.All(); err != nil || len(list) != 1 || list[0].Server != "box<b>" {
		t.Errorf("the store has %v, %v", list, err)
	}
	if status, page, _ = b.press(s.Address); status != http.StatusNotFound {
		t.Errorf("a second time: %d %s", status, page)
	}
}

// TestStrangers: other browsers than the one of the sign-in get the same answer to everything, and end nothing.
func TestStrangers(t *testing.T) {
	i := newIssuer(t)
	g, b, stranger := newGateway(t, pending.Options{}), newBrowser(t), newBrowser(t)
	s, err := g.Begin(t.Context(), i.server("box"), "")
	if err != nil {
		t.Fatal(err)
	}
	_, unknown, _ := stranger.get(g.public + "/start?login=unknown")
	for _, header := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Origin", "https://evil.example"}} {
		if status, page, h := stranger.press(s.Address, header...); status != http.StatusNotFound || page != unknown || len(h["Set-Cookie"]) > 0 {
			t.Errorf("the button on another page, %v: %d %s", header, status, page)
		}
	}
	right := b.back(s.Address)
	at, _ := url.Parse(right)
	state := at.Query().Get("state")
	callback := g.public + "/callback"
	for name, c := range map[string]struct {
		who     *browser
		address string
	}{
		"a stolen answer":              {stranger, right},
		"a forged refusal":             {stranger, callback + "?error=access_denied&state=" + state + "&iss=" + url.QueryEscape(i.URL)},
		"a guess":                      {stranger, callback + "?code=code&state=guess"},
		"nothing":                      {stranger, callback},
		"the page":                     {stranger, s.Address},
		"a guessed page":               {stranger, g.public + "/start?login=guess"},
		"no page":                      {stranger, g.public + "/other"},
		"a long query":                 {stranger, callback + "?state=" + state + "&x=" + strings.Repeat("x", 100<<10)},
		"another issuer":               {b, callback + "?code=code&state=" + state + "&iss=https://evil.example"},
		"no issuer":                    {b, callback + "?code=code&state=" + state},
		"another issuer refuses":       {b, callback + "?error=access_denied&state=" + state + "&iss=https://evil.example"},
		"a refusal of another sign-in": {b, callback + "?error=access_denied&state=x&iss=" + url.QueryEscape(i.URL)},
		"no code":                      {b, callback + "?state=" + state + "&iss=" + url.QueryEscape(i.URL)},
	} {
		if status, page, h := c.who.get(c.address); status != http.StatusNotFound || page != unknown || len(h["Set-Cookie"]) > 0 {
			t.Errorf("%s: %d %s", name, status, page)
		}
	}
	if status, page, _ := stranger.press(s.Address); status != http.StatusNotFound || page != unknown {
		t.Errorf("the button in another browser: %d %s", status, page)
	}
	for _, method := range []string{http.MethodPost, http.MethodHead, http.MethodPut} {
		req, _ := http.NewRequest(method, right, nil)
		if status, _, h := b.do(req); status != http.StatusMethodNotAllowed || h.Get("Allow") != "GET" {
			t.Errorf("%s: %d", method, status)
		}
	}
	if i.tokens() > 0 {
		t.Error("a code was used")
	}
	if status, page, _ := b.get(right); status != http.StatusOK || !strings.Contains(page, "signed in") {
		t.Errorf("the right one: %d %s", status, page)
	}
	if status, _, _ := b.get(right); status != http.StatusNotFound || i.tokens() != 1 {
		t.Errorf("the right one again: %d, %d tokens", status, i.tokens())
	}
}

// TestPhished: an address of the issuer that somebody has sent to a person ends nothing in their browser.
func TestPhished(t *testing.T) {
	i := newIssuer(t)
	g, attacker, victim := newGateway(t, pending.Options{}), newBrowser(t), newBrowser(t)
	s, err := g.Begin(t.Context(), i.server("box"), "")
	if err != nil {
		t.Fatal(err)
	}
	attacker.stop = true
	_, _, header := attacker.press(s.Address)
	if status, page, _ := victim.get(header.Get("Location")); status != http.StatusNotFound || i.tokens() > 0 {
		t.Errorf("%d %s", status, page)
	}
}

// TestEnds: how sign-ins end that do not end well, and what that leaves.
func TestEnds(t *testing.T) {
	i := newIssuer(t)
	for name, c := range map[string]struct {
		lifetime time.Duration
		do       func(*gateway, *pending.SignIn)
		want     error
	}{
		"the browser never comes": {time.Millisecond, func(*gateway, *pending.SignIn) {}, pending.ErrLate},
		"the browser never comes back": {time.Second, func(_ *gateway, s *pending.SignIn) {
			b := newBrowser(t)
			b.stop = true
			b.press(s.Address)
		}, pending.ErrLate},
		"given up": {0, func(g *gateway, s *pending.SignIn) {
			if err := g.Cancel(s.ID); err != nil {
				t.Error(err)
			}
		}, pending.ErrUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGateway(t, pending.Options{Lifetime: c.lifetime})
			s, err := g.Begin(t.Context(), i.server("box"), "")
			if err != nil {
				t.Fatal(err)
			}
			c.do(g, s)
			if _, err := g.Wait(t.Context(), s.ID); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			if status, page, _ := newBrowser(t).get(s.Address); status != http.StatusNotFound {
				t.Errorf("afterwards: %d %s", status, page)
			}
		})
	}
}

// TestRefused: the person says no, and the waiting caller gets the reason.
func TestRefused(t *testing.T) {
	i := newIssuer(t)
	i.refuse = true
	g, b := newGateway(t, pending.Options{}), newBrowser(t)
	s, err := g.Begin(t.Context(), i.server("box"), "")
	if err != nil {
		t.Fatal(err)
	}
	if status, page, _ := b.press(s.Address); status != http.StatusOK || !strings.Contains(page, "has failed") || strings.Contains(page, "access_denied") {
		t.Errorf("%d %s", status, page)
	}
	if _, err := g.Wait(t.Context(), s.ID); err == nil || !strings.Contains(err.Error(), "access_denied") {
		t.Errorf("got %v", err)
	}
}

// TestDeviceRefused: a sign-in on another device that the issuer refuses fails with its reason.
func TestDeviceRefused(t *testing.T) {
	i := newIssuer(t)
	i.refuse = true
	g := newGateway(t, pending.Options{})
	for range 20 { // an end of the sign-in was a matter of luck
		if _, err := g.Device(t.Context(), i.server("box")); err == nil || !strings.Contains(err.Error(), "access_denied") {
			t.Fatalf("got %v", err)
		}
	}
	g.Close()
	if _, err := g.Device(t.Context(), i.server("box")); err == nil {
		t.Error("a closed gateway begins a sign-in")
	}
}

// TestCookie: only the host of the pages can give a browser their cookie, where that is possible.
func TestCookie(t *testing.T) {
	i := newIssuer(t)
	for public, secure := range map[string]bool{
		"https://mcp.example/oauth": true, "https://mcp.example/team/oauth": true, "http://127.0.0.1:8808/oauth": false,
	} {
		g := newGateway(t, pending.Options{})
		pages := pending.New(pending.Options{Store: g.store, Public: public})
		defer pages.Close()
		s, err := pages.Begin(t.Context(), i.server("box"), "")
		if err != nil {
			t.Fatal(err)
		}
		req := httptest.NewRequest(http.MethodPost, public+"/start", strings.NewReader("login="+s.ID))
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		got := httptest.NewRecorder()
		pages.ServeHTTP(got, req)
		cookies := got.Result().Cookies()
		if len(cookies) != 1 || got.Header().Get("Referrer-Policy") != "no-referrer" {
			t.Fatalf("%s: %d %v", public, got.Code, got.Header())
		}
		c := cookies[0]
		if strings.HasPrefix(c.Name, "__Host-") != secure || c.Secure != secure || c.Path != "/" || c.Domain != "" || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode {
			t.Errorf("%s: the cookie is %s", public, c)
		}
	}
}

// TestMoved: people hear that a server names another issuer than at the last sign-in, in a browser and on another device.
func TestMoved(t *testing.T) {
	i := newIssuer(t)
	old := func(resource, issuer string, age time.Duration) logins.Login {
		return logins.Login{Key: logins.Key{Server: "box", Resource: resource, Issuer: issuer}, Made: time.Now().Add(-age), AccessToken: "a"}
	}
	for name, c := range map[string]struct {
		before []logins.Login
		issuer string // of the configuration
		warns  bool
	}{
		"the first":            {},
		"the same issuer":      {before: []logins.Login{old(i.URL+"/mcp", i.URL+"/", time.Hour)}},
		"another issuer":       {before: []logins.Login{old(i.URL+"/mcp", "https://old.example", time.Hour)}, warns: true},
		"another one long ago": {before: []logins.Login{old(i.URL+"/mcp", i.URL, time.Hour), old(i.URL+"/mcp", "https://old.example", 2*time.Hour)}},
		"another one since":    {before: []logins.Login{old(i.URL+"/mcp", i.URL, time.Hour), old(i.URL+"/mcp", "https://old.example", time.Minute)}, warns: true},
		"of another server":    {before: []logins.Login{old("https://other.example/mcp", "https://old.example", time.Hour)}},
		"chosen":               {before: []logins.Login{old(i.URL+"/mcp", "https://old.example", time.Hour)}, issuer: i.URL},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGateway(t, pending.Options{})
			for _, l := range c.before {
				if err := g.store.Put(t.Context(), l); err != nil {
					t.Fatal(err)
				}
			}
			server := i.server("box")
			server.Issuer = c.issuer
			begun, err := g.Begin(t.Context(), server, "")
			if err != nil {
				t.Fatal(err)
			}
			const want = "the last sign-in was at https://old.example"
			if _, page, _ := newBrowser(t).get(begun.Address); strings.Contains(page, want) != c.warns || strings.Contains(begun.Warning, want) != c.warns {
				t.Errorf("the warning is %q, want one: %t; %s", begun.Warning, c.warns, page)
			}
			begun, err = g.Device(t.Context(), server)
			if err != nil || strings.Contains(begun.Warning, want) != c.warns {
				t.Errorf("on another device: %v, %v", begun, err)
			}
		})
	}
}

// TestRestart: a gateway that was started again knows nothing of the sign-ins before, and begins new ones.
func TestRestart(t *testing.T) {
	i := newIssuer(t)
	g, b := newGateway(t, pending.Options{}), newBrowser(t)
	s, err := g.Begin(t.Context(), i.server("box"), "")
	if err != nil {
		t.Fatal(err)
	}
	right := b.back(s.Address)
	waited := make(chan error, 1)
	go func() { _, err := g.Wait(t.Context(), s.ID); waited <- err }()
	g.Close()
	if err := <-waited; err == nil {
		t.Error("the wait ends well")
	}
	g.SignIns = pending.New(pending.Options{Store: g.store, Public: g.public})
	if status, page, _ := b.get(right); status != http.StatusNotFound {
		t.Errorf("%d %s", status, page)
	}
	if _, err := g.Finish(t.Context(), s.ID, right); !errors.Is(err, pending.ErrUnknown) {
		t.Errorf("got %v", err)
	}
	if s, err = g.Begin(t.Context(), i.server("box"), ""); err != nil {
		t.Fatal(err)
	}
	if status, page, _ := b.press(s.Address); status != http.StatusOK {
		t.Errorf("the next one: %d %s", status, page)
	}
}

// TestMany: some sign-ins at once, also in one browser; one too many has to wait until another one ends.
func TestMany(t *testing.T) {
	i := newIssuer(t)
	g, b := newGateway(t, pending.Options{}), newBrowser(t)
	var all []*pending.SignIn
	for n := range pending.Most {
		s, err := g.Begin(t.Context(), i.server(fmt.Sprint("box", n%3)), "")
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	if _, err := g.Begin(t.Context(), i.server("box"), ""); !errors.Is(err, pending.ErrMany) {
		t.Errorf("got %v", err)
	}
	backs := []string{b.back(all[0].Address), b.back(all[1].Address), b.back(all[3].Address)}
	for _, back := range backs {
		if status, page, _ := b.get(back); status != http.StatusOK || !strings.Contains(page, "signed in") {
			t.Errorf("%d %s", status, page)
		}
	}
	if _, err := g.Begin(t.Context(), i.server("box"), ""); err != nil {
		t.Error(err)
	}
	if list, err := g.store.All(); err != nil || len(list) != 2 {
		t.Errorf("there are %v, %v", list, err)
	}
}

// TestForwarded: the caller waits for the browser, at an address of its own machine only.
func TestForwarded(t *testing.T) {
	i := newIssuer(t)
	g := newGateway(t, pending.Options{})
	for _, bad := range []string{
		"https://evil.example/callback", "http://127.0.0.1/callback", "http://127.0.0.1:1/other", "http://127.0.0.1:1/callback?x=y",
		"http://u@127.0.0.1:1/callback", "http://127.0.0.1.evil.example:1/callback", "x",
	} {
		if _, err := g.Begin(t.Context(), i.server("box"), bad); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
	s, err := g.Begin(t.Context(), i.server("box"), "http://127.0.0.1:1/callback")
	if err != nil {
		t.Fatal(err)
	}
	b := newBrowser(t)
	b.stop = true
	_, _, header := b.get(s.Address)
	right := header.Get("Location")
	if !strings.HasPrefix(right, "http://127.0.0.1:1/callback?") {
		t.Fatalf("the browser goes to %s", right)
	}
	if status, page, _ := b.get(g.public + "/callback?" + strings.SplitN(right, "?", 2)[1]); status != http.StatusNotFound {
		t.Errorf("our page takes it: %d %s", status, page)
	}
	if _, err := g.Finish(t.Context(), s.ID, strings.Replace(right, "state=", "state=x", 1)); !errors.Is(err, pending.ErrAddress) {
		t.Errorf("another state: %v", err)
	}
	if login, err := g.Finish(t.Context(), s.ID, right); err != nil || login.AccessToken == "" {
		t.Errorf("%v, %v", login, err)
	}
	if server := i.server("box"); true {
		server.CallbackPort = 1234
		if _, err := g.Begin(t.Context(), server, ""); !errors.Is(err, pending.ErrListen) {
			t.Errorf("a registered port: %v", err)
		}
	}
}

// TestDevice signs in on another device.
func TestDevice(t *testing.T) {
	i := newIssuer(t)
	g := newGateway(t, pending.Options{})
	s, err := g.Device(t.Context(), i.server("box"))
	if err != nil {
		t.Fatal(err)
	}
	if s.Address != i.URL+"/enter" || s.Code != "ABCD" {
		t.Errorf("%s %s", s.Address, s.Code)
	}
	if _, err := g.Finish(t.Context(), s.ID, "?code=x"); !errors.Is(err, pending.ErrAddress) {
		t.Errorf("got %v", err)
	}
	if login, err := g.Wait(t.Context(), s.ID); err != nil || login.AccessToken == "" {
		t.Errorf("%v, %v", login, err)
	}
}

// TestHere: a page of this machine is there while somebody waits. The wait ends even when somebody signs in elsewhere.
func TestHere(t *testing.T) {
	i := newIssuer(t)
	g := newGateway(t, pending.Options{})
	for name, sign := range map[string]func(address string){
		"page": func(address string) {
			if _, page, _ := newBrowser(t).get(address); strings.Contains(page, "All who may use") || !strings.Contains(page, "just asked for this yourself") {
				t.Errorf("the page is %s", page)
			}
			if status, page, _ := newBrowser(t).press(address); status != http.StatusOK || !strings.Contains(page, "signed in") {
				t.Errorf("%d %s", status, page)
			}
		},
		"elsewhere": func(string) {
			err := g.store.Put(t.Context(), logins.Login{
				Key: logins.Key{Server: "elsewhere", Resource: i.URL + "/mcp", Issuer: i.URL}, Made: time.Now().Add(time.Minute), AccessToken: "a",
			})
			if err != nil {
				t.Error(err)
			}
		},
	} {
		address, wait, err := g.Here(t.Context(), i.server(name))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(address, "http://127.0.0.1:") {
			t.Errorf("the address is %s", address)
		}
		var signing sync.WaitGroup
		signing.Go(func() { sign(address) })
		if err := wait(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		signing.Wait()
	}
}
