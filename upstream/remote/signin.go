package remote

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/mcsh-dev/mcsh/upstream/logins"
	"github.com/mcsh-dev/mcsh/upstream/signin"
)

// SignIn is how people sign in to an endpoint.
type SignIn = signin.Settings

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
	return signin.Server{Name: e.Name, URL: e.URL, HTTP: e.signInClient(own, others), Settings: e.SignIn}, nil
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

// Login returns the one of the logins of the endpoint's name that it uses: the newest, even if that has ended, because an older
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

// A signing says how the requests of one session are signed with logins. Their contexts hold it.
type signing struct {
	plain    bool                      // without a token
	messages string                    // the address for messages that a server of the older transport has named
	by       atomic.Pointer[signature] // of the first request; nil: there was none
}

// A signature is one sign-in of somebody. A refresh does not change it.
type signature struct {
	logins.Key
	made int64
}

// signingKey is the key of a signing in a context.
type signingKey struct{}

func (s *signing) in(ctx context.Context) context.Context {
	return context.WithValue(ctx, signingKey{}, s)
}

// signingOf returns the signing of a request. One outside of sessions has its own.
func signingOf(req *http.Request) *signing {
	if s, ok := req.Context().Value(signingKey{}).(*signing); ok {
		return s
	}
	return new(signing)
}

// errOtherLogin is the error of a request in a session that began with another login. A server binds a session to its account,
// so that another one needs a new session.
var errOtherLogin = errors.New("somebody has signed in or out since the session began")

// check refuses a login that is not the one with which the session began.
func (s *signing) check(login logins.Login) error {
	now := signature{login.Key, login.Made.UnixNano()}
	if !s.by.CompareAndSwap(nil, &now) && *s.by.Load() != now {
		return errOtherLogin
	}
	return nil
}

// allows reports whether a request gets the token of a login: its address is in the resource of the login. The address for
// messages gets the token too: the server of the stream, which has the token, names that address on its own origin.
func (s *signing) allows(login logins.Login, req *http.Request) bool {
	to := req.URL.String()
	return !s.plain && (signin.Covers(login.Resource, to) || s.messages != "" && to == s.messages)
}

// A signer adds tokens to requests, and gets others when they are refused.
type signer interface {
	// sign adds the current token to a request, if there is one for it, and returns the token.
	sign(req *http.Request) (token string, err error)

	// renew gets another token after a refusal, and reports whether the request should be made again. If not, and there is
	// no error, it leaves the answer as it is.
	renew(ctx context.Context, refused string, req *http.Request, resp *http.Response) (retry bool, err error)
}

// signer returns what signs the requests to the endpoint, or nil: nothing else than its headers do.
func (t *client) signer(own, others *tls.Config) (signer, error) {
	switch {
	case t.OAuth != nil:
		return t.OAuth.signer(t.base, t.baseTransport(others), t.target)
	case t.signsPerson():
		return newPerson(t.Endpoint, own, others), nil
	}
	return nil, nil
}

// signs reports whether requests have tokens: a program signs in, or somebody has done so.
func (t *client) signs() bool {
	p, ok := t.auth.(*person)
	return t.auth != nil && (!ok || p.signedIn())
}
