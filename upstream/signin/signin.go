package signin

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"net/url"

	"github.com/mcsh-dev/mcsh/upstream/logins"
)

// A Target is where a person signs in to a server: its resource, authorization server and endpoints.
type Target struct {
	Issuer   string   // of the authorization server
	Resource string   // what the server calls itself
	Scopes   []string // that the sign-in asks for
}

// Discover finds where to sign in. challenge is the WWW-Authenticate of the server's refusal; if it is empty, Discover asks
// the server for it.
func Discover(context.Context, Server, string) (*Target, error) { return nil, errors.ErrUnsupported }

// An Attempt is one sign-in in a browser.
type Attempt struct {
	URL   string // for the browser
	State string // what the redirected address repeats
}

// Begin starts a sign-in in a browser. It registers a client first if there is none.
func (t *Target) Begin(context.Context, string) (*Attempt, error) { return nil, errors.ErrUnsupported }

// Finish changes the address that the browser was redirected to for a login.
func (a *Attempt) Finish(context.Context, string) (logins.Login, error) {
	return logins.Login{}, errors.ErrUnsupported
}

// CanDevice reports whether a person can sign in on another device (RFC 8628).
func (t *Target) CanDevice() bool { return false }

// Device signs in on another device: show is called with the address to open there, and the code to enter.
func (t *Target) Device(context.Context, func(address, code string)) (logins.Login, error) {
	return logins.Login{}, errors.ErrUnsupported
}

// Refresh replaces the tokens of a login.
func Refresh(context.Context, *http.Client, logins.Login) (logins.Login, error) {
	return logins.Login{}, errors.ErrUnsupported
}

// Revoke ends a login at its authorization server.
func Revoke(context.Context, *http.Client, logins.Login) error { return errors.ErrUnsupported }

// Options are those of a client for the requests of sign-ins.
type Options struct {
	Server  string                                // address of the MCP server
	Trusted []string                              // addresses that the operator has configured
	Proxy   func(*http.Request) (*url.URL, error) // nil: none
	TLS     *tls.Config                           // for hosts other than the server; nil: the system's
}

// NewHTTP makes a client for the requests of sign-ins with one server.
func NewHTTP(Options) (*http.Client, error) { return nil, errors.ErrUnsupported }

// Covers reports whether a login for a resource may be used at a server's address.
func Covers(resource, address string) bool { return false }
