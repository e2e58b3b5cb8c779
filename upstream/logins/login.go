package logins

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

// Errors of logins that cannot be used.
var (
	// ErrEnded is wrapped by the error of a login that its issuer no longer accepts. A function that refreshes wraps it when
	// the issuer answers invalid_grant.
	ErrEnded = errors.New("the sign-in has ended")

	// ErrNone is wrapped by the error of a login that is not there, because somebody has signed out.
	ErrNone = errors.New("nobody has signed in")
)

// A Key names a login. Two accounts on one address are two logins, because their servers have two names.
type Key struct {
	Server   string `json:"server"`   // its name in the configuration
	Resource string `json:"resource"` // canonical URI of the server, as the authorization server knows it
	Issuer   string `json:"issuer"`   // of the authorization server
}

// text returns a text that only this key has.
func (k Key) text() string { return strings.Join([]string{k.Server, k.Resource, k.Issuer}, "\x00") }

func (k Key) compare(other Key) int {
	return cmp.Or(strings.Compare(k.Server, other.Server), strings.Compare(k.Resource, other.Resource), strings.Compare(k.Issuer, other.Issuer))
}

// A Login is a person's sign-in to a server, with its tokens.
type Login struct {
	Key
	Account string    `json:"account,omitzero"` // who has signed in, for people; empty: the issuer does not say
	Scopes  []string  `json:"scopes,omitzero"`  // granted
	Made    time.Time `json:"made"`

	// Ended is when the issuer refused to refresh the login; zero: it did not. An ended login has no tokens. It is kept so that
	// lists can say who has to sign in again.
	Ended time.Time `json:"ended,omitzero"`

	AccessToken  string    `json:"accessToken"`
	RefreshToken string    `json:"refreshToken,omitzero"`
	Expiry       time.Time `json:"expiry,omitzero"` // of AccessToken; zero: unknown

	Client Client `json:"client"`

	TokenEndpoint      string `json:"tokenEndpoint"`
	RevocationEndpoint string `json:"revocationEndpoint,omitzero"`
}

// A Client is what the authorization server knows us as.
type Client struct {
	ID         string    `json:"id"`
	Secret     string    `json:"secret,omitzero"`
	AuthMethod string    `json:"authMethod,omitzero"` // none, client_secret_basic or client_secret_post
	Expiry     time.Time `json:"expiry,omitzero"`     // of Secret, as dynamic registration gave it; zero: never
}

// Bounds of a login, which an issuer decides on, and of the store.
const (
	maxLogins = 1000
	maxToken  = 64 << 10 // bytes of a token or a client's secret
	maxText   = 8 << 10  // bytes of any other text
	MaxScopes = 200
	MaxScope  = 256 // bytes of one
)

// check refuses a login that is incomplete or too large to keep.
func (l Login) check() error {
	for _, text := range []struct {
		name, value string
		most        int
		required    bool
	}{
		{"server", l.Server, maxText, true},
		{"resource", l.Resource, maxText, true},
		{"issuer", l.Issuer, maxText, true},
		{"account", l.Account, maxText, false},
		{"access token", l.AccessToken, maxToken, l.Ended.IsZero()},
		{"refresh token", l.RefreshToken, maxToken, false},
		{"client id", l.Client.ID, maxText, false},
		{"client secret", l.Client.Secret, maxToken, false},
		{"authentication method", l.Client.AuthMethod, maxText, false},
		{"token endpoint", l.TokenEndpoint, maxText, false},
		{"revocation endpoint", l.RevocationEndpoint, maxText, false},
	} {
		switch {
		case text.required && text.value == "":
			return fmt.Errorf("a login has no %s", text.name)
		case len(text.value) > text.most:
			return fmt.Errorf("the %s of a login has more than %s", text.name, texts.Bytes(int64(text.most)))
		}
	}
	if len(l.Scopes) > MaxScopes {
		return fmt.Errorf("a login has %d scopes, more than %d", len(l.Scopes), MaxScopes)
	}
	if slices.ContainsFunc(l.Scopes, func(scope string) bool { return len(scope) > MaxScope }) {
		return fmt.Errorf("a scope of a login has more than %s", texts.Bytes(MaxScope))
	}
	return nil
}

// Works reports whether a login can be used without a person: its token is good, or can be refreshed.
func (l Login) Works(now time.Time) bool {
	return l.Ended.IsZero() && l.AccessToken != "" && (l.RefreshToken != "" || l.Expiry.IsZero() || l.Expiry.After(now))
}

// ended returns the login without its tokens.
func (l Login) ended(at time.Time) Login {
	l.Ended, l.AccessToken, l.RefreshToken, l.Expiry = at.UTC().Truncate(time.Second), "", "", time.Time{}
	return l
}

// sameTokens reports whether nobody has signed in again or refreshed the login since it was the other one.
func (l Login) sameTokens(other Login) bool {
	return l.AccessToken == other.AccessToken && l.RefreshToken == other.RefreshToken
}
