package cli

import (
	"context"
	"sync"
	"time"

	"github.com/mcsh-dev/mcsh/ui"
	"github.com/mcsh-dev/mcsh/upstream/signin"
)

// A consoleIssuer signs people in to the console, at the issuer of the tokens of callers. Its tokens are for the same audience,
// so a person is the same caller in the console and with an MCP client.
type consoleIssuer struct {
	name, audience string
	server         signin.Server

	mu    sync.Mutex // a sign-in makes the gateway ask the issuer: once at a time, and not again for a while
	found *signin.Target
	at    time.Time
}

// targetAge is how long the addresses of the issuer are used.
const targetAge = 10 * time.Minute

var _ ui.Issuer = (*consoleIssuer)(nil)

// Name implements [ui.Issuer].
func (c *consoleIssuer) Name() string { return c.name }

// target returns where people sign in.
func (c *consoleIssuer) target(ctx context.Context) (*signin.Target, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.found != nil && time.Since(c.at) < targetAge {
		return c.found, nil
	}
	found, err := signin.At(ctx, c.server, c.audience)
	if err == nil {
		c.found, c.at = found, time.Now()
	}
	return found, err
}

// Begin implements [ui.Issuer].
func (c *consoleIssuer) Begin(ctx context.Context, redirect string) (ui.SignIn, error) {
	target, err := c.target(ctx)
	if err != nil {
		return ui.SignIn{}, err
	}
	attempt, err := target.Begin(ctx, redirect)
	if err != nil {
		return ui.SignIn{}, err
	}
	return ui.SignIn{Address: attempt.URL, Finish: func(ctx context.Context, redirected string) (string, error) {
		login, err := attempt.Finish(ctx, redirected)
		return login.AccessToken, err
	}}, nil
}
