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

	mu      sync.Mutex // guards what follows
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

// command is what a person runs after a refusal; empty: signing in may not help.
func (p *person) command(resp *http.Response) string {
	if resp.StatusCode == http.StatusUnauthorized {
		p.note(resp.Request)
	}
	run := loginCommand(p.endpoint.Name)
	for _, header := range resp.Header.Values("WWW-Authenticate") {
		c := signin.ParseChallenge(header)
		switch {
		case resp.StatusCode == http.StatusForbidden && c.Code == "insufficient_scope":
			return "the server wants more rights than were granted: " + run + scopeFlags(c.Scopes)
		case resp.StatusCode == http.StatusUnauthorized && c.Metadata != "":
			return "signed out: " + run
		}
	}
	if resp.StatusCode == http.StatusUnauthorized && p.signedIn() {
		return "signed out: " + run
	}
	return ""
}

// lacking returns the scopes that a refused request needs and nobody has granted.
func (p *person) lacking(resp *http.Response) []string {
	for _, header := range resp.Header.Values("WWW-Authenticate") {
		if c := signin.ParseChallenge(header); resp.StatusCode == http.StatusForbidden && c.Code == "insufficient_scope" {
			return c.Scopes
		}
	}
	return nil
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
