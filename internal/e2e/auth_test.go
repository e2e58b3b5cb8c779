//go:build linux

package e2e

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/mcsh-dev/mcsh/internal/oidctest"
	"github.com/mcsh-dev/mcsh/internal/porttest"
)

// bearer sends a token with each request.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

func connectAs(t *testing.T, url, token, version string) *mcp.ClientSession {
	t.Helper()
	session := connect(t, &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: bearer(token)}}, version, nil)
	t.Cleanup(func() { session.Close() })
	return session
}

// newToken makes a token as an operator does.
func newToken(t *testing.T, file, name string) string {
	t.Helper()
	out, err := exec.Command(mcshPath(), "token", "new", name, "--file", file).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// request sends one request and returns its answer, with its body read.
func request(t *testing.T, method, url, token, body string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Body.Close()
	text, err := io.ReadAll(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	return w, string(text)
}

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"e2e","version":"1"}}}`

// TestCallersApart: two people with tokens of a file see nothing of each other, in both eras, and one whose token is taken
// away is out at once.
func TestCallersApart(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "tokens")
	alices, bobs := newToken(t, file, "alice"), newToken(t, file, "bob")
	p, url := serveHTTP(t, nil, "--tokens", file, "-v")
	for i, version := range versions {
		alice, bob := connectAs(t, url, alices, version), connectAs(t, url, bobs, version)
		res, err := alice.CallTool(t.Context(), pipelineCall([]object{command("jq", "-n", "41")}))
		if err != nil || res.IsError {
			t.Fatalf("got %+v, %v", res, err)
		}
		from := object{"type": "from", "run": runOf(t, res)}
		if got := mustExecute(t, connectAs(t, url, alices, versions[1-i]), from, command("jq", ".+1")); got != "42\n" {
			t.Errorf("%s: in another session and era the same caller gets %q", version, got)
		}
		if text, failed := execute(t, bob, from); !failed || !strings.Contains(text, "UNKNOWN_RUN") {
			t.Errorf("%s: another caller gets %q", version, text)
		}
	}
	alice, bob := connectAs(t, url, alices, versions[0]), connectAs(t, url, bobs, versions[0])
	if out, err := exec.Command(mcshPath(), "token", "rm", "alice", "--file", file).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if w, text := request(t, http.MethodPost, url, alices, initialize); w.StatusCode != http.StatusUnauthorized || !strings.Contains(text, "mcsh token new NAME") {
		t.Errorf("got %d, %s", w.StatusCode, text)
	}
	if _, err := alice.CallTool(t.Context(), pipelineCall([]object{command("jq", "-n", "1")})); err == nil {
		t.Error("the session of who was removed goes on")
	}
	if got := mustExecute(t, bob, command("jq", "-n", "1")); got != "1\n" {
		t.Errorf("another caller gets %q", got)
	}
	until(t, "the log names the caller", func() bool { return strings.Contains(p.stderr.String(), `"caller": "bob"`) })
	if log := p.stderr.String(); !strings.Contains(log, "a request was refused") || strings.Contains(log, "mcsh_") {
		t.Errorf("the log says %s", log)
	}
}

// TestIssuer: tokens of an issuer admit callers, by themselves and beside a file; who has none learns where to get one.
func TestIssuer(t *testing.T) {
	t.Parallel()
	issuer := oidctest.New(t)
	issuer.SetDown(true)
	file := filepath.Join(t.TempDir(), "tokens")
	own := newToken(t, file, "ci")
	const audience = "https://mcp.example.com/mcp"
	_, url := serveHTTP(t, nil, "--tokens", file, "--oidc-issuer", issuer.URL, "--oidc-audience", audience, "--oidc-scope", "mcp run")
	claims := func(subject, scope string) oidctest.Claims {
		c := issuer.Claims(subject, audience)
		c["scope"] = scope
		return c
	}
	adas := issuer.Sign("1", claims("ada", "run mcp"))

	w, text := request(t, http.MethodPost, url, adas, initialize)
	if w.StatusCode != http.StatusServiceUnavailable || w.Header.Get("Retry-After") == "" || !strings.Contains(text, "cannot be asked at present") {
		t.Errorf("without the issuer: got %d, %s", w.StatusCode, text)
	}
	if got := mustExecute(t, connectAs(t, url, own, versions[0]), command("jq", "-n", "1")); got != "1\n" {
		t.Errorf("without the issuer a token of the file gives %q", got)
	}
	issuer.SetDown(false)
	until(t, "the issuer is found", func() bool {
		w, _ := request(t, http.MethodPost, url, adas, initialize)
		return w.StatusCode == http.StatusOK
	})
	for i, version := range versions {
		ada := connectAs(t, url, adas, version)
		bob := connectAs(t, url, issuer.Sign("1", claims("bob", "mcp run")), version)
		res, err := ada.CallTool(t.Context(), pipelineCall([]object{command("jq", "-n", "41")}))
		if err != nil || res.IsError {
			t.Fatalf("got %+v, %v", res, err)
		}
		from := object{"type": "from", "run": runOf(t, res)}
		renewed := connectAs(t, url, issuer.Sign("1", claims("ada", "mcp run more")), versions[1-i])
		if got := mustExecute(t, renewed, from, command("jq", ".+1")); got != "42\n" {
			t.Errorf("%s: with a new token the same caller gets %q", version, got)
		}
		if text, failed := execute(t, bob, from); !failed || !strings.Contains(text, "UNKNOWN_RUN") {
			t.Errorf("%s: another caller gets %q", version, text)
		}
	}

	base := strings.TrimSuffix(url, "/mcp")
	w, text = request(t, http.MethodPost, url, "", initialize)
	metadata := base + "/.well-known/oauth-protected-resource/mcp"
	if c := w.Header.Get("WWW-Authenticate"); w.StatusCode != http.StatusUnauthorized ||
		!strings.Contains(c, `resource_metadata="`+metadata+`"`) || !strings.Contains(c, `scope="mcp run"`) {
		t.Errorf("without a token: got %d, %q, %s", w.StatusCode, c, text)
	}
	w, text = request(t, http.MethodPost, url, issuer.Sign("1", claims("ada", "mcp")), initialize)
	if c := w.Header.Get("WWW-Authenticate"); w.StatusCode != http.StatusForbidden || !strings.Contains(c, `error="insufficient_scope"`) || !strings.Contains(text, `"run"`) {
		t.Errorf("without a scope: got %d, %q, %s", w.StatusCode, c, text)
	}
	for path, resource := range map[string]string{"/mcp": url, "": base} {
		w, text := request(t, http.MethodGet, base+"/.well-known/oauth-protected-resource"+path, "", "")
		var about struct {
			Resource string
			Servers  []string `json:"authorization_servers"`
			Scopes   []string `json:"scopes_supported"`
		}
		if err := json.Unmarshal([]byte(text), &about); err != nil || w.StatusCode != http.StatusOK || about.Resource != resource ||
			len(about.Servers) != 1 || about.Servers[0] != issuer.URL || len(about.Scopes) != 2 {
			t.Errorf("%q: got %d, %s", path, w.StatusCode, text)
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, metadata, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "evil.example"
	if w, err := http.DefaultClient.Do(r); err != nil || w.StatusCode != http.StatusForbidden {
		t.Errorf("under a name that is not ours: got %+v, %v", w, err)
	}
}

// TestSignIn: the client of the SDK, which knows only the address and its credentials, finds the issuer, signs in and
// calls: for the address as it sees it, with the scopes that are wanted.
func TestSignIn(t *testing.T) {
	t.Parallel()
	issuer := oidctest.New(t)
	address := porttest.Free(t)
	_, url := serveHTTP(t, nil, "--listen", address, "--oidc-issuer", issuer.URL, "--oidc-audience", "http://"+address+"/mcp", "--oidc-scope", "mcp run")
	until(t, "the issuer is found", func() bool {
		w, _ := request(t, http.MethodPost, url, "a.b.c", initialize)
		return w.StatusCode == http.StatusUnauthorized
	})
	for _, version := range versions {
		asked := 0
		handler, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
			PreregisteredClient: &oauthex.ClientCredentials{ClientID: "ada"},
			RedirectURL:         "http://127.0.0.1:1/back",
			AuthorizationCodeFetcher: func(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
				asked++
				return browse(ctx, args.URL)
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		session := connect(t, &mcp.StreamableClientTransport{Endpoint: url, OAuthHandler: handler}, version, nil)
		t.Cleanup(func() { session.Close() })
		if got := mustExecute(t, session, command("jq", "-n", "1")); got != "1\n" || asked != 1 {
			t.Errorf("%s: got %q, asked %d times", version, got, asked)
		}
	}
}

// browse is a browser that follows the issuer's way back.
func browse(ctx context.Context, address string) (*auth.AuthorizationResult, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	w, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	defer w.Body.Close()
	back, err := w.Location()
	if err != nil {
		return nil, err
	}
	return &auth.AuthorizationResult{Code: back.Query().Get("code"), State: back.Query().Get("state")}, nil
}
