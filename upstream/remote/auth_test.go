package remote

import (
	"crypto/tls"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"testing"
)

// TestElsewhere: an authorization server is trusted by its certificate alone, whatever the settings of the MCP server
// allow, and does not see the certificate that is meant for that.
func TestElsewhere(t *testing.T) {
	var shown bool
	web := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		shown = shown || len(r.TLS.PeerCertificates) > 0
	}))
	web.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	web.StartTLS()
	defer web.Close()
	dir := t.TempDir()
	ca := filepath.Join(dir, "ca.pem")
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw})
	if err := os.WriteFile(ca, cert, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		tls     TLS
		trusted bool
	}{
		{"system", TLS{}, false},
		{"insecure", TLS{Insecure: true}, false},
		{"CA", TLS{CA: ca}, true},
		{"own certificate", TLS{CA: ca, Cert: ca, Key: ca}, true},
	} {
		config, err := c.tls.elsewhere()
		if err != nil {
			t.Fatal(err)
		}
		client := http.Client{Transport: Endpoint{}.baseTransport(config)}
		answer, err := client.Get(web.URL)
		if err == nil {
			answer.Body.Close()
		}
		var distrust *tls.CertificateVerificationError
		if c.trusted != (err == nil) || err != nil && !errors.As(err, &distrust) {
			t.Errorf("%s: got %v, trusted should be %t", c.name, err, c.trusted)
		}
		client.CloseIdleConnections()
	}
	if shown {
		t.Error("our certificate was shown")
	}
	if _, err := (TLS{CA: filepath.Join(dir, "none")}).elsewhere(); err == nil {
		t.Error("a missing file of certificates is no error")
	}
}

// TestSignInHosts: which requests of a sign-in go to whom, and by which way.
func TestSignInHosts(t *testing.T) {
	var way string
	by := func(name string) http.RoundTripper {
		return roundTrip(func(*http.Request) (*http.Response, error) { way = name; return new(http.Response), nil })
	}
	e := signInTripper{
		own: by("own"), others: by("others"),
		secretTo: map[string]bool{"https://issuer.example": true}, readFrom: "https://mcp.example",
	}
	for _, c := range []struct{ method, url, way string }{
		{"GET", "https://mcp.example/.well-known/x", "own"},
		{"POST", "https://mcp.example/token", ""},
		{"GET", "https://issuer.example/x", "others"},
		{"POST", "https://issuer.example/token", "others"},
		{"GET", "https://elsewhere.example/", ""},
		{"GET", "http://mcp.example/", ""},
	} {
		way = ""
		u, err := url.Parse(c.url)
		if err != nil {
			t.Fatal(err)
		}
		_, err = e.RoundTrip(&http.Request{Method: c.method, URL: u})
		if way != c.way || (err != nil) != (c.way == "") {
			t.Errorf("%s %s went by %q (%v), want %q", c.method, c.url, way, err, c.way)
		}
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (r roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return r(req) }
