package signin

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/mcsh-dev/mcsh/upstream/logins"
)

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
