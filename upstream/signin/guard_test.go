package signin

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/net/dns/dnsmessage"

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
		{"https://10.0.0.1/mcp", "", "https://100.64.0.1/", true},
		{"https://10.0.0.1/mcp", "", "https://127.0.0.1/", true},
		{"https://mcp.example/mcp", "", "https://10.0.0.1/", true},
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

// TestGuardResolved: a name is refused when it is dialled, by the address that it resolves to then. The server's own name
// resolving to a private address allows nothing else.
func TestGuardResolved(t *testing.T) {
	t.Parallel()
	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	_, port, err := net.SplitHostPort(web.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	resolver := resolving(t, map[string][4]byte{
		"mcp.example.": {10, 0, 0, 1}, "private.example.": {10, 0, 0, 2}, "shared.example.": {100, 64, 0, 1},
		"metadata.example.": {169, 254, 169, 254}, "here.example.": {127, 0, 0, 1},
	})
	for _, c := range []struct {
		trusted, to string
		refused     string // its kind; empty: reached
	}{
		{"", "private.example", "private"},
		{"", "PRIVATE.example", "private"},
		{"", "shared.example", "carrier-grade NAT"},
		{"", "metadata.example", "link-local"},
		{"", "here.example", "loopback"},
		{"https://other.example/", "here.example", "loopback"},
		{"https://here.example/issuer", "here.example", ""},
	} {
		g := NewHTTP(Options{Server: "https://mcp.example/mcp", Trusted: []string{c.trusted}}).Transport.(*guard)
		g.resolver = resolver
		conn, err := g.dial(t.Context(), "tcp", net.JoinHostPort(c.to, port))
		if conn != nil {
			conn.Close()
		}
		got := ""
		if refused, ok := errors.AsType[*publicip.Refused](err); ok {
			got = refused.What
		}
		if got != c.refused || (err == nil) != (c.refused == "") {
			t.Errorf("%s, trusting %q: got %v, want %q refused", c.to, c.trusted, err, c.refused)
		}
	}
}

// resolving returns a resolver of names that a server of our own knows.
func resolving(t *testing.T, names map[string][4]byte) *net.Resolver {
	t.Helper()
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	go func() {
		packet := make([]byte, 1<<16)
		for {
			n, from, err := server.ReadFrom(packet)
			if err != nil {
				return
			}
			if answer := answerTo(packet[:n], names); answer != nil {
				_, _ = server.WriteTo(answer, from)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", server.LocalAddr().String())
	}}
}

// answerTo answers a question for an IPv4 address; another question has no answers.
func answerTo(packet []byte, names map[string][4]byte) []byte {
	var m dnsmessage.Message
	if err := m.Unpack(packet); err != nil || len(m.Questions) != 1 {
		return nil
	}
	m.Response, m.Additionals = true, nil
	q := m.Questions[0]
	if address, ok := names[strings.ToLower(q.Name.String())]; ok && q.Type == dnsmessage.TypeA {
		m.Answers = []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}, Body: &dnsmessage.AResource{A: address},
		}}
	}
	answer, err := m.Pack()
	if err != nil {
		return nil
	}
	return answer
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
		{challenge: []string{"d"}, configured: []string{"c"}, supported: []string{"a"}, want: []string{"c"}},
		{challenge: []string{"d"}, configured: []string{"c"}, more: []string{"d"}, want: []string{"c", "d"}},
		{challenge: []string{"d"}, supported: []string{"a"}, want: []string{"d"}},
		{challenge: []string{"d"}, more: []string{"old", "d"}, want: []string{"d", "old"}},
		{supported: []string{"a"}, issuer: []string{"offline_access", "x"}, want: []string{"a", "offline_access"}},
		{supported: []string{"a b", "", "\x1b", "\"", "ok"}, want: []string{"ok"}},
	} {
		s := Server{Settings: Settings{Scopes: c.configured}, More: c.more}
		got := s.scopes(Challenge{Scopes: c.challenge}, &oauthex.ProtectedResourceMetadata{ScopesSupported: c.supported},
			&issuer{AuthServerMeta: oauthex.AuthServerMeta{ScopesSupported: c.issuer}})
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v: got %q", c, got)
		}
	}
}
