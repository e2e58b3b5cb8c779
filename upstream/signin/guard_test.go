package signin

import (
	"crypto/tls"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/mcsh-dev/mcsh/internal/publicip"
)

// TestGuard: which addresses a sign-in reaches, by where the server is.
func TestGuard(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		server, trusted, to string
		refused             bool
	}{
		{"https://8.8.8.8/mcp", "", "https://1.1.1.1/", false},
		{"https://8.8.8.8/mcp", "", "https://127.0.0.1/", true},
		{"https://8.8.8.8/mcp", "", "http://127.0.0.1:1/", true},
		{"https://8.8.8.8/mcp", "", "http://localhost:1/", true},
		{"https://8.8.8.8/mcp", "", "https://a.localhost./", true},
		{"https://8.8.8.8/mcp", "", "https://[::1]/", true},
		{"https://8.8.8.8/mcp", "", "https://[::ffff:10.0.0.1]/", true},
		{"https://8.8.8.8/mcp", "", "https://10.0.0.1/", true},
		{"https://8.8.8.8/mcp", "", "https://169.254.169.254/", true},
		{"https://8.8.8.8/mcp", "", "http://1.1.1.1/", true},
		{"https://8.8.8.8/mcp", "", "ftp://1.1.1.1/", true},
		{"https://8.8.8.8/mcp", "https://10.0.0.1/x", "https://10.0.0.1/token", false},
		{"https://8.8.8.8/mcp", "https://10.0.0.1/x", "https://10.0.0.2/token", true},
		{"https://10.0.0.1/mcp", "", "https://10.0.0.1/", false},
		{"https://10.0.0.1/mcp", "", "https://192.168.1.1/", false},
		{"https://10.0.0.1/mcp", "", "https://127.0.0.1/", true},
		{"https://10.0.0.1/mcp", "", "https://169.254.169.254/", true},
		{"http://127.0.0.1/mcp", "", "http://127.0.0.1:9/", false},
		{"http://127.0.0.1/mcp", "", "https://10.0.0.1/", false},
		{"http://127.0.0.1/mcp", "", "http://10.0.0.1/", true},
		{"http://127.0.0.1/mcp", "", "https://169.254.169.254/", true},
	} {
		g := NewHTTP(Options{Server: c.server, Trusted: []string{c.trusted}}).Transport.(*guard)
		u, err := url.Parse(c.to)
		if err != nil {
			t.Fatal(err)
		}
		if err := g.check(u); (err != nil) != c.refused {
			t.Errorf("%s names %s: got %v, want refused %t", c.server, c.to, err, c.refused)
		}
	}
}

// TestGuardResolved: a name that resolves to this machine is refused when it is dialled, and without a connection.
func TestGuardResolved(t *testing.T) {
	t.Parallel()
	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	g := NewHTTP(Options{Server: "https://8.8.8.8/"}).Transport.(*guard)
	conn, err := g.dial(t.Context(), "tcp", web.Listener.Addr().String())
	if conn != nil {
		conn.Close()
	}
	if _, ok := errors.AsType[*publicip.Refused](err); !ok {
		t.Errorf("got %v, want that the address is refused", err)
	}
}

// TestGuardCertificates: certificates are checked, whatever the options say.
func TestGuardCertificates(t *testing.T) {
	t.Parallel()
	web := httptest.NewTLSServer(http.NotFoundHandler())
	defer web.Close()
	insecure := &tls.Config{InsecureSkipVerify: true}
	client := NewHTTP(Options{Server: web.URL, Own: insecure, Other: insecure})
	resp, err := client.Get(web.URL)
	if err == nil {
		resp.Body.Close()
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); !ok {
		t.Errorf("got %v, want that the certificate is not accepted", err)
	}
}

// TestGuardProxy: a proxy gets the requests, and addresses that are not public are refused before.
func TestGuardProxy(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 1)
	proxy := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.Method + " " + r.Host }))
	defer proxy.Close()
	at, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	client := NewHTTP(Options{Server: "https://8.8.8.8/", Proxy: func(*http.Request) (*url.URL, error) { return at, nil }})
	for _, c := range []struct{ to, asked string }{{"https://1.1.1.1/", "CONNECT 1.1.1.1:443"}, {"https://10.0.0.1/", ""}} {
		resp, err := client.Get(c.to)
		if err == nil {
			resp.Body.Close()
		}
		got := ""
		select {
		case got = <-asked:
		default:
		}
		if got != c.asked {
			t.Errorf("%s: the proxy was asked for %q (%v), want %q", c.to, got, err, c.asked)
		}
	}
}

// TestCovers: the servers that a token for a resource may go to.
func TestCovers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		resource, address string
		want              bool
	}{
		{"https://h/mcp", "https://h/mcp", true},
		{"https://h/mcp/", "https://h/mcp", true},
		{"https://h", "https://h/mcp", true},
		{"https://H:443", "https://h/mcp", true},
		{"https://h/a", "https://h/a/b?token=x", true},
		{"https://h/a/b", "https://h/a", false},
		{"https://h/a", "https://h/ab", false},
		{"https://h/a/..", "https://h/b", false},
		{"http://h/mcp", "https://h/mcp", false},
		{"https://h:8443/mcp", "https://h/mcp", false},
		{"https://x.h/mcp", "https://h/mcp", false},
		{"https://u@h/mcp", "https://h/mcp", false},
		{"https://h/mcp?x", "https://h/mcp", false},
		{"https://h/mcp#x", "https://h/mcp", false},
		{"", "https://h/mcp", false},
		{"/mcp", "https://h/mcp", false},
		{"https:mcp", "https://h/mcp", false},
		{"://", "https://h/mcp", false},
	} {
		if got := Covers(c.resource, c.address); got != c.want {
			t.Errorf("Covers(%q, %q) = %t", c.resource, c.address, got)
		}
	}
}

// TestScopes: what a sign-in asks for.
func TestScopes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		challenge, configured, supported, more, issuer, want []string
	}{
		{want: nil},
		{supported: []string{"a", "b"}, want: []string{"a", "b"}},
		{configured: []string{"c"}, supported: []string{"a"}, want: []string{"c"}},
		{challenge: []string{"d"}, configured: []string{"c"}, supported: []string{"a"}, want: []string{"d"}},
		{challenge: []string{"d"}, more: []string{"old", "d"}, want: []string{"d", "old"}},
		{supported: []string{"a"}, issuer: []string{"offline_access", "x"}, want: []string{"a", "offline_access"}},
		{supported: []string{"a b", "", "\x1b", "\"", "ok"}, want: []string{"ok"}},
	} {
		s := Server{Scopes: c.configured, More: c.more}
		got := s.scopes(Challenge{Scopes: c.challenge}, &oauthex.ProtectedResourceMetadata{ScopesSupported: c.supported},
			&issuer{AuthServerMeta: oauthex.AuthServerMeta{ScopesSupported: c.issuer}})
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v: got %q", c, got)
		}
	}
}
