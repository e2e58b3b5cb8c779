package remote

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mcsh-dev/mcsh/upstream/logins"
	"github.com/mcsh-dev/mcsh/upstream/signin"
)

const (
	// maxEarly is how long before its end a token is replaced at most; a short one when a tenth of its time is left.
	maxEarly = time.Minute

	maxPatience  = 2 * time.Second // of a request whose token still works
	refreshPause = 5 * time.Second // after the refresh of a token
)

// A refreshed is the end of a refresh.
type refreshed struct {
	token string // the new one, or the one that was not replaced
	at    time.Time
	err   error // nil: token is new
}

// errSlow is the end of maxPatience. The refresh goes on.
var errSlow = errors.New("the authorization server is slow")

// recent returns the end of the last refresh, if the pause after it lasts and it is about a token.
func (p *person) recent(token string) (refreshed, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last, p.last.token == token && time.Since(p.last.at) < refreshPause
}

// ending reports whether the token of a login is so near its end that it is replaced.
func (p *person) ending(login logins.Login, now time.Time) bool {
	if login.AccessToken == "" || login.RefreshToken == "" || login.Expiry.IsZero() {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.token != login.AccessToken || !p.expiry.Equal(login.Expiry) { // some issuers give the same token again
		p.token, p.expiry = login.AccessToken, login.Expiry
		p.replace = login.Expiry.Add(-min(maxEarly, max(0, login.Expiry.Sub(now)/10)))
	}
	return !now.Before(p.replace)
}

// current replaces the token of a login if that is about to end. A token that still works is used where that takes long or
// fails. The result has no token if the login has ended.
func (p *person) current(ctx context.Context, login logins.Login) (logins.Login, error) {
	now := time.Now()
	if !p.ending(login, now) {
		return login, nil
	}
	works := now.Before(login.Expiry)
	switch last, recent := p.recent(login.AccessToken); {
	case recent && works:
		return login, nil
	case recent && last.err != nil && !errors.Is(last.err, errSlow):
		return login, last.err
	}
	if works {
		short, cancel := context.WithTimeoutCause(ctx, maxPatience, errSlow)
		defer cancel()
		ctx = short
	}
	fresh, err := p.refresh(ctx, login)
	switch {
	case err == nil:
		return fresh, nil
	case errors.Is(err, logins.ErrEnded), errors.Is(err, logins.ErrNone):
		return logins.Login{}, nil // the server refuses the request, which says the rest
	case works:
		return login, nil
	}
	return login, err
}

// replaced replaces the token of a login that a server has refused, unless it is new: then another one would be refused too. A
// login that cannot be refreshed stays as it is until its token has expired, because the refusal may be a mistake.
func (p *person) replaced(ctx context.Context, login logins.Login) (logins.Login, error) {
	expired := !login.Expiry.IsZero() && !time.Now().Before(login.Expiry)
	if login.RefreshToken == "" && !expired {
		return login, nil
	}
	if last, recent := p.recent(login.AccessToken); recent && !errors.Is(last.err, errSlow) {
		return login, last.err
	}
	return p.refresh(ctx, login)
}

func (p *person) refresh(ctx context.Context, login logins.Login) (logins.Login, error) {
	again := func(ctx context.Context, login logins.Login) (logins.Login, error) {
		return signin.Refresh(ctx, p.http, login)
	}
	fresh, err := p.endpoint.Logins.Refresh(ctx, login.Key, login.AccessToken, again)
	end := refreshed{token: fresh.AccessToken, at: time.Now()}
	if err != nil {
		err = fmt.Errorf("refreshing the sign-in: %w", err)
		end.token, end.err = login.AccessToken, err
	}
	if err == nil || ctx.Err() == nil || errors.Is(err, errSlow) { // a caller that is cancelled knows nothing
		p.mu.Lock()
		defer p.mu.Unlock()
		p.last = end
	}
	return fresh, err
}
