package signin_test

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/internal/signintest"
	"github.com/mcsh-dev/mcsh/upstream/logins"
	"github.com/mcsh-dev/mcsh/upstream/signin"
)

const callback = "http://127.0.0.1:1/oauth/callback" // nothing listens there: the browser stops before it

// serve serves a resource that names an issuer, and refuses every request.
func serve(t *testing.T) (web *httptest.Server, issuer *string) {
	t.Helper()
	issuer = new(string)
	mux := http.NewServeMux()
	web = httptest.NewServer(mux)
	t.Cleanup(web.Close)
	mux.HandleFunc("/.well-known/oauth-protected-resource/mcp", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"resource":%q,"authorization_servers":[%q],"scopes_supported":["read"]}`, web.URL+"/mcp", *issuer)
	})
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+web.URL+`/.well-known/oauth-protected-resource/mcp"`)
		w.WriteHeader(http.StatusUnauthorized)
	})
	return web, issuer
}

// TestReal signs in at a real authorization server, in every way in which it knows clients, refreshes twice, and revokes.
func TestReal(t *testing.T) {
	t.Parallel()
	web, issuer := serve(t)
	code, device := []string{"authorization_code", "refresh_token"}, []string{"urn:ietf:params:oauth:grant-type:device_code", "refresh_token"}
	const document = "https://client.example/mcsh.json"
	*issuer = signintest.Start(t, signintest.Options{Resource: web.URL + "/mcp", TTL: 600, Rotate: true, Documents: map[string]any{document: map[string]any{
		"client_id": document, "client_name": "mcsh", "token_endpoint_auth_method": "none", "application_type": "native",
		"redirect_uris": []string{callback}, "grant_types": code, "response_types": []string{"code"},
	}}, Clients: []signintest.Client{
		{ID: "public", Method: "none", Kind: "native", Redirects: []string{callback}, Grants: code, Responses: []string{"code"}},
		{ID: "basic", Secret: "secret of basic%", Method: "client_secret_basic", Kind: "native", Redirects: []string{callback}, Grants: code, Responses: []string{"code"}},
		{ID: "devices", Method: "none", Kind: "native", Redirects: []string{}, Grants: device, Responses: []string{}},
	}})
	for name, c := range map[string]struct {
		client, secret string
		device         bool
		document       string
	}{
		"document": {document: document}, "public": {client: "public", document: document}, "secret": {client: "basic", secret: "secret of basic%"}, "registered": {},
		"device": {client: "devices", device: true}, "registered device": {device: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := signin.Server{
				Name: "hosted", URL: web.URL + "/mcp", HTTP: signin.NewHTTP(signin.Options{Server: web.URL}),
				Settings: signin.Settings{ClientID: c.client, ClientSecret: c.secret, ClientMetadataURL: c.document},
				More:     []string{"write", "openid"},
			}
			if c.secret != "" {
				server.Issuer = *issuer
			}
			target, err := signin.Discover(t.Context(), server, "")
			if err != nil {
				t.Fatal(err)
			}
			var login logins.Login
			if c.device {
				login, err = target.Device(t.Context(), func(address, code string) {
					_, page := signintest.Browser(t, address+"?user_code="+url.QueryEscape(code), "")
					if !strings.Contains(page, "Sign-in Success") {
						t.Errorf("the device is not signed in: %s", page)
					}
				})
			} else {
				login, err = byBrowser(t, target)
			}
			if err != nil {
				t.Fatal(err)
			}
			if want := cmp.Or(c.client, c.document); want != "" && login.Client.ID != want {
				t.Errorf("the client is %q, want %q", login.Client.ID, want)
			}
			checkReal(t, server, login)
		})
	}
}

// byBrowser signs in with a browser.
func byBrowser(t *testing.T, target *signin.Target) (logins.Login, error) {
	t.Helper()
	attempt, err := target.Begin(t.Context(), callback)
	if err != nil {
		return logins.Login{}, err
	}
	redirected, page := signintest.Browser(t, attempt.URL, callback)
	if redirected == "" {
		t.Fatalf("the browser is not sent back: %s", page)
	}
	return attempt.Finish(t.Context(), redirected)
}

// checkReal uses a login to its end.
func checkReal(t *testing.T, server signin.Server, login logins.Login) {
	t.Helper()
	active := func(l logins.Login) bool {
		scopes, ok := signintest.Active(t.Context(), l.Issuer, server.URL, l.AccessToken)
		return ok && slices.Contains(scopes, "read") && slices.Contains(scopes, "write")
	}
	if !active(login) || login.RefreshToken == "" || login.Resource != server.URL || login.Server != "hosted" {
		t.Fatalf("the login does not work: %+v", login.Key)
	}
	if left := time.Until(login.Expiry); left <= 0 || left > 600*time.Second {
		t.Errorf("the token ends in %v, want 10 minutes", left)
	}
	if login.Account == "" {
		t.Error("the login has no account")
	}
	fresh, err := signin.Refresh(t.Context(), server.HTTP, login)
	if err != nil {
		t.Fatal(err)
	}
	if !active(fresh) || fresh.RefreshToken == login.RefreshToken || fresh.AccessToken == login.AccessToken {
		t.Error("the refreshed login is not a new one for the resource")
	}
	if err := signin.Revoke(t.Context(), server.HTTP, fresh); err != nil {
		t.Fatal(err)
	}
	if active(fresh) {
		t.Error("a revoked login works")
	}
	_, err = signin.Refresh(t.Context(), server.HTTP, fresh)
	if !errors.Is(err, logins.ErrEnded) || strings.Contains(err.Error(), fresh.RefreshToken) {
		t.Errorf("refreshing a revoked login: got %v, want that it has ended", err)
	}
}

// TestRealReuse: the second use of a refresh token ends the login, and says so.
func TestRealReuse(t *testing.T) {
	t.Parallel()
	web, issuer := serve(t)
	*issuer = signintest.Start(t, signintest.Options{Resource: web.URL + "/mcp", TTL: 600, Rotate: true})
	server := signin.Server{Name: "hosted", URL: web.URL + "/mcp", HTTP: signin.NewHTTP(signin.Options{Server: web.URL})}
	target, err := signin.Discover(t.Context(), server, "")
	if err != nil {
		t.Fatal(err)
	}
	login, err := byBrowser(t, target)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := signin.Refresh(t.Context(), server.HTTP, login); err != nil {
		t.Fatal(err)
	}
	if _, err := signin.Refresh(t.Context(), server.HTTP, login); !errors.Is(err, logins.ErrEnded) {
		t.Errorf("got %v, want that the login has ended", err)
	}
	login.RefreshToken = ""
	if _, err := signin.Refresh(t.Context(), server.HTTP, login); !errors.Is(err, logins.ErrEnded) {
		t.Errorf("without a refresh token: got %v, want that the login has ended", err)
	}
}
