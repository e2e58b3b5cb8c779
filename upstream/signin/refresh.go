package signin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/mcsh-dev/mcsh/upstream/logins"
)

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
