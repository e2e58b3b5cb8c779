package remote

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"net/http"
	"time"

	"github.com/mcsh-dev/mcsh/upstream/logins"
	"github.com/mcsh-dev/mcsh/upstream/signin"
)

// SignIn is how people sign in to an endpoint. The zero value leaves everything to the server.
type SignIn struct {
	ClientID, ClientSecret string   // of a client that is registered already
	ClientMetadataURL      string   // of the document that describes us
	CallbackPort           int      // of the redirect address; 0: any
	MetadataURL            string   // of the authorization server's metadata
	Issuer                 string   // the only one that is accepted; empty: any that the server names
	Scopes                 []string // to ask for
}

// SignInServer returns the endpoint as package signin wants it.
func (e Endpoint) SignInServer() (signin.Server, error) {
	own, err := e.TLS.config()
	if err != nil {
		return signin.Server{}, err
	}
	others, err := e.TLS.elsewhere()
	if err != nil {
		return signin.Server{}, err
	}
	s := e.SignIn
	return signin.Server{
		Name: e.Name, URL: e.URL, HTTP: e.signInClient(own, others),
		ClientID: s.ClientID, ClientSecret: s.ClientSecret, ClientMetadataURL: s.ClientMetadataURL, CallbackPort: s.CallbackPort,
		MetadataURL: s.MetadataURL, Issuer: s.Issuer, Scopes: s.Scopes,
	}, nil
}

func (e Endpoint) signInClient(own, others *tls.Config) *http.Client {
	return signin.NewHTTP(signin.Options{
		Server: e.URL, Trusted: []string{e.SignIn.Issuer, e.SignIn.MetadataURL}, Proxy: e.Proxy, Own: own, Other: others,
	})
}

// LoginID names the login that requests are made with; "": there is none. It stays the same when the login is refreshed.
func (e Endpoint) LoginID() (string, error) {
	if !e.signsPerson() {
		return "", nil
	}
	all, err := e.Logins.Of(e.Name, "")
	if err != nil {
		return "", err
	}
	login, found := e.Login(all)
	if !found {
		return "", nil
	}
	sum := sha256.Sum256([]byte(login.Resource + "\x00" + login.Issuer + "\x00" + login.Made.UTC().Format(time.RFC3339Nano)))
	return hex.EncodeToString(sum[:16]), nil
}

// signsPerson reports whether requests are made with the logins of people.
func (e Endpoint) signsPerson() bool {
	return e.OAuth == nil && e.Logins != nil && e.Headers.Get("Authorization") == ""
}

// Login returns the one of the logins of the endpoint's name that it uses: the newest, also if that has ended, because an older
// one may be of another account. A login for a resource that does not cover the address is that of another server, which once
// had the name. It reports false if there is none.
func (e Endpoint) Login(of []logins.Login) (login logins.Login, found bool) {
	for _, one := range of {
		fits := signin.Covers(one.Resource, e.URL) && (e.SignIn.Issuer == "" || signin.SameIssuer(one.Issuer, e.SignIn.Issuer))
		if fits && (!found || one.Made.After(login.Made)) {
			login, found = one, true
		}
	}
	return login, found
}
