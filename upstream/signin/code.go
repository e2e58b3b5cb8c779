package signin

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/oauth2"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/upstream/logins"
)

// An Attempt is one sign-in in a browser.
type Attempt struct {
	URL   string // for the browser
	State string // what the redirected address repeats

	target      *Target
	client      logins.Client
	redirectURI string
	verifier    string // of PKCE
	used        atomic.Bool
}

// Begin starts a sign-in in a browser, which ends at redirectURI. It registers a client first if there is none.
func (t *Target) Begin(ctx context.Context, redirectURI string) (*Attempt, error) {
	if t.issuer.AuthorizationEndpoint == "" {
		return nil, fmt.Errorf("%s signs nobody in with a browser", texts.Cut(t.Issuer, maxWords))
	}
	at, err := parse(t.server.HTTP, t.issuer.AuthorizationEndpoint)
	if err != nil {
		return nil, err
	}
	client, err := t.client(ctx, redirectURI)
	if err != nil {
		return nil, err
	}
	a := &Attempt{target: t, client: client, redirectURI: redirectURI, verifier: oauth2.GenerateVerifier(), State: rand.Text() + rand.Text()} // 260 random bits
	query := at.Query()
	for name, value := range map[string]string{
		"response_type": "code", "client_id": client.ID, "redirect_uri": redirectURI, "state": a.State, "resource": t.Resource,
		"code_challenge": oauth2.S256ChallengeFromVerifier(a.verifier), "code_challenge_method": "S256",
	} {
		query.Set(name, value)
	}
	if len(t.Scopes) > 0 {
		query.Set("scope", joined(t.Scopes))
	}
	if slices.Contains(t.Scopes, offlineScope) {
		query.Set("prompt", "consent") // OpenID Connect ignores the scope without it
	}
	at.RawQuery = query.Encode()
	a.URL = at.String()
	return a, nil
}

// errState is the error of an address with the state of another sign-in.
var errState = errors.New("the address does not belong to this sign-in: its state is another one")

// Finish exchanges the address that the browser was redirected to for a login. An address of another sign-in is refused, and the
// right one may still come.
func (a *Attempt) Finish(ctx context.Context, redirected string) (logins.Login, error) {
	code, err := a.code(redirected)
	if err != nil {
		return logins.Login{}, err
	}
	t := a.target
	answer, err := post(ctx, t.server.HTTP, t.issuer.TokenEndpoint, a.client, url.Values{
		"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {a.redirectURI},
		"code_verifier": {a.verifier}, "resource": {t.Resource},
	})
	if err != nil {
		return logins.Login{}, err
	}
	return tokens(answer).into(t.login(a.client))
}

// Answers reports whether an address that somebody brings is the answer to this sign-in: it has the state, and the issuer where
// that names itself. Anybody may have written another one, so it does not end the wait for the right one.
func (a *Attempt) Answers(redirected string) bool {
	query, err := a.answer(redirected)
	return err == nil && (query.Get("code") != "" || query.Get("error") != "")
}

// answer checks the redirected address and returns its query.
func (a *Attempt) answer(redirected string) (url.Values, error) {
	if len(redirected) > maxToken {
		return nil, errors.New("the address is too long")
	}
	u, err := url.Parse(redirected)
	if err != nil {
		return nil, errors.New("this is not an address")
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, errors.New("the query of the address is malformed")
	}
	for _, name := range []string{"code", "state", "iss", "error"} {
		if len(query[name]) > 1 {
			return nil, fmt.Errorf("the address has %q twice", name)
		}
	}
	if subtle.ConstantTimeCompare([]byte(query.Get("state")), []byte(a.State)) != 1 {
		return nil, errState
	}
	return query, a.checkIssuer(query)
}

// code returns the code in the redirected address. One attempt has one code.
func (a *Attempt) code(redirected string) (string, error) {
	query, err := a.answer(redirected)
	if err != nil {
		return "", err
	}
	if query.Get("error") != "" {
		return "", refusalOf(query.Get("error"), query.Get("error_description"), query.Get("code"), a.State)
	}
	switch code := query.Get("code"); {
	case code == "":
		return "", errors.New("the address has no code")
	case a.used.Swap(true):
		return "", errors.New("this sign-in has ended: begin another one")
	default:
		return code, nil
	}
}

// checkIssuer refuses the answer of another issuer (RFC 9207), which would get its code from us otherwise.
func (a *Attempt) checkIssuer(query url.Values) error {
	t := a.target
	switch {
	case query.Has("iss") && query.Get("iss") != t.Issuer:
		return fmt.Errorf("the sign-in was answered by another issuer, %q, than %q",
			texts.Cut(query.Get("iss"), maxWords), texts.Cut(t.Issuer, maxWords))
	case !query.Has("iss") && t.issuer.AuthorizationResponseIssParameterSupported:
		return errors.New("the answer does not name its issuer, although the issuer says that its answers do")
	}
	return nil
}

// login is the login of a target, without tokens.
func (t *Target) login(client logins.Client) logins.Login {
	return logins.Login{
		Key:    logins.Key{Server: t.server.Name, Resource: t.Resource, Issuer: t.Issuer},
		Scopes: t.Scopes, Made: time.Now().Round(0), Client: client,
		TokenEndpoint: t.issuer.TokenEndpoint, RevocationEndpoint: t.issuer.RevocationEndpoint,
	}
}
