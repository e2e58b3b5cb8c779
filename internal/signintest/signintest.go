// Package signintest has a real authorization server for tests, npm's oidc-provider, and a browser that agrees to everything.
package signintest

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/internal/parttest"
)

//go:embed server.mjs
var script []byte

// Options are those of a server.
type Options struct {
	Resource string   `json:"resource"` // the only one that it gives tokens for
	TTL      int      `json:"ttl"`      // seconds of an access token
	Rotate   bool     `json:"rotate"`   // refresh tokens work once
	Clients  []Client `json:"clients"`

	Documents map[string]any `json:"documents,omitempty"` // about clients (client ID metadata documents), by their addresses
}

// A Client is registered from the start.
type Client struct {
	ID        string   `json:"client_id"`
	Secret    string   `json:"client_secret,omitempty"`
	Method    string   `json:"token_endpoint_auth_method"`
	Kind      string   `json:"application_type,omitempty"`
	Redirects []string `json:"redirect_uris"`
	Grants    []string `json:"grant_types"`
	Responses []string `json:"response_types"`
}

// reader may ask the server what a token is for.
var reader = Client{ID: "reader", Secret: "reader-secret", Method: "client_secret_post", Redirects: []string{}, Grants: []string{}, Responses: []string{}}

// Start starts a server and returns its issuer.
func Start(t testing.TB, o Options) string {
	t.Helper()
	modules := parttest.Packages(t, "oidc-provider")
	file := filepath.Join(t.TempDir(), "server.mjs")
	if err := os.WriteFile(file, script, 0o600); err != nil {
		t.Fatal(err)
	}
	o.Clients = append([]Client{reader}, o.Clients...)
	options, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, parttest.Node(t), file, modules, string(options))
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait()
	})
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if issuer, ok := strings.CutPrefix(lines.Text(), "issuer "); ok {
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return issuer
		}
	}
	cancel()
	_ = cmd.Wait()
	t.Fatalf("the authorization server does not start\n%s", said.String())
	return ""
}

// Protect serves an endpoint of MCP at /mcp of a server that takes only the tokens of an issuer. It returns the address of the endpoint
// and the issuer. The resource of the options is that address.
func Protect(t testing.TB, o Options, endpoint http.Handler) (address, issuer string) {
	t.Helper()
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	o.Resource = server.URL + "/mcp"
	issuer = Start(t, o)
	mux.HandleFunc("/.well-known/oauth-protected-resource/mcp", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"resource": "`+o.Resource+`", "authorization_servers": ["`+issuer+`"]}`)
	})
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		if _, ok := Active(r.Context(), issuer, o.Resource, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")); !ok {
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+server.URL+`/.well-known/oauth-protected-resource/mcp"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		endpoint.ServeHTTP(w, r)
	})
	return o.Resource, issuer
}

// Active reports whether a token is one of the issuer's for a resource, and with which scopes.
func Active(ctx context.Context, issuer, resource, token string) (scopes []string, ok bool) {
	form := url.Values{"token": {token}, "client_id": {reader.ID}, "client_secret": {reader.Secret}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, issuer+"/token/introspection", strings.NewReader(form.Encode()))
	if err != nil {
		return nil, false
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, false
	}
	defer resp.Body.Close()
	var said struct {
		Active   bool   `json:"active"`
		Audience string `json:"aud"`
		Scope    string `json:"scope"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&said); err != nil {
		return nil, false
	}
	return strings.Fields(said.Scope), said.Active && said.Audience == resource
}

// Browser opens an address, signs in as alice, agrees to everything, and returns the address below stop that it is sent to,
// or the last page where nothing is left to do.
func Browser(t testing.TB, address, stop string) (redirected, page string) {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := http.Client{Jar: jar, Timeout: time.Minute, CheckRedirect: func(req *http.Request, _ []*http.Request) error {
		if stop != "" && strings.HasPrefix(req.URL.String(), stop) {
			redirected = req.URL.String()
			return http.ErrUseLastResponse
		}
		return nil
	}}
	resp, err := client.Get(address)
	for range 10 {
		if err != nil {
			t.Fatal(err)
		}
		raw, err2 := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err2 != nil {
			t.Fatal(err2)
		}
		page = string(raw)
		to, fields := form(page)
		if redirected != "" || to == "" {
			return redirected, page
		}
		at, err2 := resp.Request.URL.Parse(to)
		if err2 != nil {
			t.Fatal(err2)
		}
		resp, err = client.PostForm(at.String(), fields)
	}
	t.Fatal("the pages never end")
	return "", ""
}

var (
	action = regexp.MustCompile(`<form[^>]* action="([^"]*)"`)
	input  = regexp.MustCompile(`<input[^>]*>`)
	member = regexp.MustCompile(`\b(name|value)="([^"]*)"`)
)

// form fills in the form of a page.
func form(page string) (to string, fields url.Values) {
	found := action.FindStringSubmatch(page)
	if found == nil {
		return "", nil
	}
	fields = url.Values{"login": {"alice"}, "password": {"any"}}
	for _, one := range input.FindAllString(page, -1) {
		pair := map[string]string{}
		for _, m := range member.FindAllStringSubmatch(one, -1) {
			pair[m[1]] = html.UnescapeString(m[2])
		}
		if pair["name"] != "" && pair["value"] != "" {
			fields.Set(pair["name"], pair["value"])
		}
	}
	if fields.Get("user_code") != "" {
		fields.Set("confirm", "yes")
	}
	return html.UnescapeString(found[1]), fields
}
