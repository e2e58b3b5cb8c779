package remote

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
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

	mu     sync.Mutex // guards what follows
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
