package remote

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/namedfile"
)

// idlePerHost is how many connections are kept open; with the default of 2, parallel calls cost a third more.
const idlePerHost = 64

// maxHead bounds the header of an answer, in bytes.
const maxHead = 256 << 10

// An Endpoint is an MCP server that is reached over HTTP.
type Endpoint struct {
	URL     string      // with http:// or https://
	Headers http.Header // sent with every request to the URL's host, and to no other

	// Proxy picks the proxy for a request; nil: none. See [http.ProxyFromEnvironment].
	Proxy func(*http.Request) (*url.URL, error)

	TLS   TLS
	OAuth *OAuth // of a program; nil: none

	// Name is that of the server, for the sign-in of a person, which SignIn describes and Logins keeps. A header named
	// Authorization and OAuth go before it.
	Name   string
	SignIn SignIn
	Logins Logins // nil: nobody signs in

	// LegacySSE uses the transport of 2024-11-05 with its two addresses, instead of streamable HTTP. Either tries
	// streamable HTTP first, and the older transport if the server does not know it.
	LegacySSE, Either bool

	Where string // where it is configured, such as "mcp.json:7", for messages
}

// Check says what is wrong with the address. It shows no secrets in it.
func (e Endpoint) Check() error {
	_, err := parse(e.URL)
	return err
}

// parse checks an address. Its error shows no secrets in it.
func parse(raw string) (*url.URL, error) {
	if !strings.Contains(raw, "://") {
		return nil, fmt.Errorf("url needs http:// or https:// before the host")
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return nil, fmt.Errorf("url is not an address")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("url has the scheme %q, want http or https", u.Scheme)
	case u.Host == "":
		return nil, fmt.Errorf("url has no host")
	}
	return u, nil
}

func at(where string) string {
	if where == "" {
		return ""
	}
	return " (" + where + ")"
}

// Dial reaches a server over HTTP. The function it returns owns the connections of all its sessions.
func Dial(e Endpoint) func(context.Context) (mcp.Transport, error) {
	d := &dialer{endpoint: e}
	return d.dial
}

// dialer makes transports to one endpoint.
type dialer struct {
	endpoint Endpoint

	mu     sync.Mutex // guards the fields below
	client *client    // nil before the first success
	legacy bool       // the server has only the older transport
}

func (d *dialer) dial(context.Context) (mcp.Transport, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.client == nil {
		var err error
		if d.client, err = newClient(d.endpoint); err != nil {
			return nil, err
		}
	}
	if d.client.LegacySSE || d.legacy {
		return newSSE(d.client), nil
	}
	return newTransport(d.client, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.legacy = true
	}), nil
}

// baseTransport makes the transport that sends requests.
func (e Endpoint) baseTransport(config *tls.Config) *http.Transport {
	return &http.Transport{
		Proxy:                  e.Proxy,
		DialContext:            (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSClientConfig:        config,
		TLSHandshakeTimeout:    10 * time.Second,
		ExpectContinueTimeout:  time.Second,
		MaxIdleConnsPerHost:    idlePerHost,
		IdleConnTimeout:        90 * time.Second,
		ForceAttemptHTTP2:      true,
		MaxResponseHeaderBytes: maxHead,
		// No ResponseHeaderTimeout: the header may come with the result, when the tool is done.
	}
}

// TLS says which certificates are trusted and which one we present. The zero value trusts those of the system.
type TLS struct {
	CA        string // path of certificates that are trusted instead of the system's, in PEM
	Cert, Key string // paths of our own certificate and its key, in PEM; read again for every connection
	Insecure  bool   // trust any certificate: others can read and change what is sent
}

func (t TLS) config() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: t.Insecure}
	if t.CA != "" {
		c.RootCAs = x509.NewCertPool()
		if err := t.trust(c.RootCAs); err != nil {
			return nil, err
		}
	}
	if (t.Cert == "") != (t.Key == "") {
		return nil, errors.New("a certificate needs its key, and a key its certificate")
	}
	if t.Cert == "" {
		return c, nil
	}
	if _, err := t.pair(); err != nil {
		return nil, fmt.Errorf("reading the certificate: %w", err)
	}
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		pair, err := t.pair()
		return &pair, err
	}
	return c, nil
}

// MaxPEM bounds a file of certificates or of a key, in bytes: those of all public authorities take 250 KB.
const MaxPEM = 4 << 20

// pair reads our own certificate and its key.
func (t TLS) pair() (tls.Certificate, error) {
	cert, err := namedfile.Read(t.Cert, MaxPEM)
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := namedfile.Read(t.Key, MaxPEM)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(cert, key)
}

// elsewhere returns the settings for hosts other than the server, such as an authorization server, which gets a secret:
// its certificate is always checked, against the system's and CA, and ours is not presented.
func (t TLS) elsewhere() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.CA == "" {
		return c, nil
	}
	var err error
	if c.RootCAs, err = x509.SystemCertPool(); err != nil {
		c.RootCAs = x509.NewCertPool()
	}
	return c, t.trust(c.RootCAs)
}

// trust adds the certificates of CA to pool.
func (t TLS) trust(pool *x509.CertPool) error {
	pem, err := namedfile.Read(t.CA, MaxPEM)
	if err != nil {
		return fmt.Errorf("reading the trusted certificates: %w", err)
	}
	if !pool.AppendCertsFromPEM(pem) {
		return fmt.Errorf("there is no certificate in %s", t.CA)
	}
	return nil
}
