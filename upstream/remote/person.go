package remote

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/upstream/logins"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
	"github.com/mcsh-dev/mcsh/upstream/signin"
)

// Logins keeps the logins of people.
type Logins interface {
	// Of returns the logins of a server, by its name; resource "" is any.
	Of(server, resource string) ([]logins.Login, error)

	// Refresh replaces a login whose access token is stale, by one process at a time. See [logins.Store].
	Refresh(
		ctx context.Context, key logins.Key, stale string, refresh func(context.Context, logins.Login) (logins.Login, error),
	) (logins.Login, error)
}

// A person signs requests with the login of somebody who has signed in. It never begins a sign-in.
type person struct {
	endpoint Endpoint
	http     *http.Client

	mu      sync.Mutex // guards the fields below
	token   string     // that was used last
	expiry  time.Time  // of token
	replace time.Time  // when it is replaced; zero: never
	last    refreshed  // the end of the last refresh
	refused *string    // the token of the last refusal, until another one is used; nil: there was none
	known   bool       // somebody had signed in
	words   [2]string  // the tokens that were used last
	secrets *rpc.Hider // hides them; nil: none
}

func newPerson(e Endpoint, own, others *tls.Config) *person {
	return &person{endpoint: e, http: e.signInClient(own, others)}
}

// login returns the login that the endpoint uses, or the zero value.
func (p *person) login() (logins.Login, error) {
	all, err := p.endpoint.Logins.Of(p.endpoint.Name, "")
	if err != nil {
		return logins.Login{}, fmt.Errorf("reading the logins: %w", err)
	}
	login, found := p.endpoint.Login(all)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known = p.known || found
	return login, nil
}

// sign implements [signer]. It replaces a token that is about to end. Without logins that can be read, a server that needs
// none works; the refusal of another one then says what is wrong.
func (p *person) sign(req *http.Request) (string, error) {
	how := signingOf(req)
	if how.plain {
		return "", nil
	}
	login, err := p.login()
	if err != nil {
		return "", nil
	}
	p.use(login.AccessToken)
	if err := how.check(login); err != nil {
		return "", err
	}
	if !how.allows(login, req) {
		return "", nil
	}
	if login, err = p.current(req.Context(), login); err != nil || login.AccessToken == "" {
		return "", err
	}
	p.remember(login.AccessToken)
	req.Header.Set("Authorization", "Bearer "+login.AccessToken)
	return login.AccessToken, nil
}

// use ends the memory of a refusal when another token is used.
func (p *person) use(token string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refused != nil && *p.refused != token {
		p.refused = nil
	}
}

// remember makes messages hide a token.
func (p *person) remember(token string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.words[0] != token {
		p.words = [2]string{token, p.words[0]}
		p.secrets = rpc.NewHider(slices.DeleteFunc(slices.Clone(p.words[:]), func(word string) bool { return len(word) < minSecret }))
	}
}

func (p *person) hide(text string) string {
	p.mu.Lock()
	secrets := p.secrets
	p.mu.Unlock()
	if secrets == nil {
		return text
	}
	return secrets.Hide(text)
}

// renew implements [signer]. After 401 it makes the request again with a token that is not the refused one: of a login since
// then, or a refreshed one. More scopes than granted need a person.
func (p *person) renew(ctx context.Context, refused string, req *http.Request, resp *http.Response) (bool, error) {
	if resp.StatusCode != http.StatusUnauthorized {
		return false, nil
	}
	login, err := p.login()
	if err != nil || login.AccessToken == "" || !signingOf(req).allows(login, req) {
		return false, err
	}
	if login.AccessToken == refused {
		if login, err = p.replaced(ctx, login); errors.Is(err, logins.ErrEnded) || errors.Is(err, logins.ErrNone) {
			return false, nil
		} else if err != nil {
			return false, err
		}
	}
	if login.AccessToken == "" || login.AccessToken == refused {
		return false, nil
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxRPCError))
	return true, resp.Body.Close()
}

// note keeps the token of a request that was refused.
func (p *person) note(req *http.Request) {
	token := strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer ")
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refused = &token
}

// changed reports whether there is another token than the one that was refused last.
func (p *person) changed() bool {
	login, err := p.login()
	p.mu.Lock()
	defer p.mu.Unlock()
	return err == nil && p.refused != nil && login.AccessToken != "" && login.AccessToken != *p.refused
}

// signedIn reports whether somebody has signed in.
func (p *person) signedIn() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.known
}

// command is what a person runs after a refusal, and the scopes that nobody has granted; empty: signing in may not help.
func (p *person) command(resp *http.Response) (run string, lacking []string) {
	unauthorized := resp.StatusCode == http.StatusUnauthorized
	if unauthorized {
		p.note(resp.Request)
	}
	run = loginCommand(p.endpoint.Name)
	for _, header := range resp.Header.Values("WWW-Authenticate") {
		c := signin.ParseChallenge(header)
		switch {
		case resp.StatusCode == http.StatusForbidden && c.Code == "insufficient_scope":
			return "the server wants more rights than were granted: " + run + scopeFlags(c.Scopes), c.Scopes
		case unauthorized && c.Metadata != "":
			return "signed out: " + run, nil
		}
	}
	if unauthorized && p.signedIn() {
		return "signed out: " + run, nil
	}
	return "", nil
}

// maxFlags bounds the scopes in a command, in bytes.
const maxFlags = 1 << 10

func loginCommand(server string) string { return "run mcsh login " + texts.ShellWord(server) }

// scopeFlags are the flags that ask for scopes. A server chooses their text, and a person copies it into a shell.
func scopeFlags(scopes []string) (flags string) {
	for _, scope := range scopes {
		flag := " --scope " + texts.ShellWord(scope)
		if !strings.Contains(scope, "'") && len(flags)+len(flag) <= maxFlags {
			flags += flag
		}
	}
	return flags
}

// SignInChanged reports whether somebody has signed in since the server refused a request.
func (t *client) SignInChanged() bool {
	p, ok := t.auth.(*person)
	return ok && p.changed()
}

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
