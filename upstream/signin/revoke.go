package signin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/mcsh-dev/mcsh/internal/texts"
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
