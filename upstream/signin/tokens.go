package signin

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/upstream/logins"
)

const (
	maxToken  = 64 << 10             // bytes of one token
	maxExpiry = 366 * 24 * time.Hour // after which a token counts as ended
)

// secretForm are the members of a form that errors must not repeat.
var secretForm = []string{"code", "code_verifier", "refresh_token", "device_code", "token", "client_secret"}

// post sends a form to an endpoint of the authorization server, as a client, and returns the answer if it is no refusal. The
// person's consent may already be used up by it, so nothing sends it again.
func post(ctx context.Context, c *http.Client, endpoint string, client logins.Client, form url.Values) ([]byte, error) {
	if _, err := parse(c, endpoint); err != nil {
		return nil, err
	}
	secrets := []string{client.Secret}
	for _, name := range secretForm {
		secrets = append(secrets, form.Get(name))
	}
	if client.AuthMethod != authBasic {
		form.Set("client_id", client.ID)
	}
	if client.AuthMethod == authPost {
		form.Set("client_secret", client.Secret)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, errors.New("an address of the authorization server is malformed")
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	if client.AuthMethod == authBasic {
		req.SetBasicAuth(url.QueryEscape(client.ID), url.QueryEscape(client.Secret))
	}
	status, _, answer, err := do(c, req)
	if err == nil {
		err = refusalIn(req.URL, status, answer, secrets...)
	}
	return answer, err
}

// errAnswer is the error of an answer with tokens that cannot be used. It does not show the answer.
var errAnswer = errors.New("the authorization server's answer has no token that can be used")

// An answer is what a token endpoint answers.
type answer struct {
	Access  string          `json:"access_token"`
	Type    string          `json:"token_type"`
	Refresh string          `json:"refresh_token"`
	Expires json.RawMessage `json:"expires_in"` // a number; some servers write a string
	Scope   *string         `json:"scope"`
	ID      string          `json:"id_token"`
}

// into puts the tokens of an answer into a login. Fields that the answer lacks stay as they were.
func (t tokens) into(login logins.Login) (logins.Login, error) {
	var a answer
	if err := json.Unmarshal(t, &a); err != nil {
		return login, errAnswer
	}
	switch {
	case !usable(a.Access) || a.Refresh != "" && !usable(a.Refresh):
		return login, errAnswer
	case !strings.EqualFold(a.Type, "Bearer"):
		return login, errors.New("the authorization server gives tokens of another type than Bearer")
	}
	login.AccessToken = a.Access
	login.RefreshToken = cmp.Or(a.Refresh, login.RefreshToken)
	login.Expiry = a.expiry(time.Now())
	if a.Scope != nil {
		login.Scopes = scopesIn(*a.Scope)
	}
	login.Account = cmp.Or(account(a.ID), login.Account)
	return login, nil
}

// tokens is the answer of a token endpoint.
type tokens []byte

func usable(token string) bool {
	return token != "" && len(token) <= maxToken && httpguts.ValidHeaderFieldValue(token) && strings.TrimSpace(token) == token
}

// expiry is when the access token ends; zero: the answer does not say.
func (a answer) expiry(now time.Time) time.Time {
	seconds, err := strconv.ParseFloat(strings.Trim(string(a.Expires), `"`), 64)
	if err != nil || seconds <= 0 || math.IsNaN(seconds) {
		return time.Time{}
	}
	return now.Add(time.Duration(min(seconds, maxExpiry.Seconds()) * float64(time.Second))).Round(0)
}

// account reads from an ID token who has signed in, for people. The token has come from the issuer itself, and nothing is
// allowed because of it, so that its signature does not matter.
func account(token string) string {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return ""
	}
	payload, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	if err != nil {
		return ""
	}
	var claims struct {
		Email    string `json:"email"`
		Username string `json:"preferred_username"`
		Subject  string `json:"sub"`
	}
	if err := json.Unmarshal(payload, &claims); err != nil {
		return ""
	}
	return plain(cmp.Or(claims.Email, claims.Username, claims.Subject), 100, nil)
}

func joined(scopes []string) string { return strings.Join(scopes, " ") }

// Refresh returns a login with new tokens. The issuer may have used up the old refresh token: then the new login is the
// only one that works. The error wraps [logins.ErrEnded] if a person has to sign in again.
func Refresh(ctx context.Context, c *http.Client, login logins.Login) (logins.Login, error) {
	if login.RefreshToken == "" {
		return login, fmt.Errorf("the issuer has given no token to refresh it with: %w", logins.ErrEnded)
	}
	answer, err := post(ctx, c, login.TokenEndpoint, login.Client, url.Values{
		"grant_type": {"refresh_token"}, "refresh_token": {login.RefreshToken}, "resource": {login.Resource},
	})
	if refused, ok := errors.AsType[*Refusal](err); ok && refused.Code == "invalid_grant" {
		return login, fmt.Errorf("%w: %w", err, logins.ErrEnded)
	}
	if err != nil {
		return login, err
	}
	return tokens(answer).into(login)
}

// ErrNoRevocation is the error of an issuer that cannot end a login: its tokens work until they expire.
var ErrNoRevocation = errors.New("the issuer does not end sign-ins")

// Revoke ends a login at its issuer (RFC 7009): the refresh token first, because most issuers then end the other too.
func Revoke(ctx context.Context, c *http.Client, login logins.Login) error {
	if login.RevocationEndpoint == "" {
		return ErrNoRevocation
	}
	var failed []error
	for _, one := range []struct{ kind, token string }{
		{"refresh_token", login.RefreshToken}, {"access_token", login.AccessToken},
	} {
		if one.token == "" {
			continue
		}
		_, err := post(ctx, c, login.RevocationEndpoint, login.Client, url.Values{"token": {one.token}, "token_type_hint": {one.kind}})
		if refused, ok := errors.AsType[*Refusal](err); ok && refused.Code == "unsupported_token_type" {
			continue // this issuer ends only the other kind
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// Revoke ends a login that was kept before. The tokens go only where the metadata of its issuer says now, and to no other issuer
// than the one that the operator has chosen: a login is a record in a file.
func (s Server) Revoke(ctx context.Context, login logins.Login) error {
	if login.RevocationEndpoint == "" {
		return ErrNoRevocation
	}
	if s.Issuer != "" && !SameIssuer(login.Issuer, s.Issuer) {
		return fmt.Errorf("the sign-in is of %s, and the configuration has another issuer", texts.Cut(login.Issuer, maxWords))
	}
	var found *issuer
	var err error
	if s.MetadataURL != "" {
		found, err = configuredIssuer(ctx, s)
	} else {
		found, err = findIssuer(ctx, s.HTTP, login.Issuer)
	}
	switch {
	case err != nil:
		return err
	case !SameIssuer(found.Issuer, login.Issuer):
		return fmt.Errorf("the sign-in is of %s, and the configuration has another issuer", texts.Cut(login.Issuer, maxWords))
	}
	login.RevocationEndpoint = found.RevocationEndpoint
	return Revoke(ctx, s.HTTP, login)
}
