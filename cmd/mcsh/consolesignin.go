package main

import (
	"context"

	"github.com/mcsh-dev/mcsh/ui"
	"github.com/mcsh-dev/mcsh/upstream/signin"
)

// A consoleIssuer signs people in to the console, at the issuer of the tokens of callers. Its tokens are for the same audience,
// so a person is the same caller in the console and with an MCP client.
type consoleIssuer struct {
	name, audience string
	server         signin.Server
}

var _ ui.Issuer = (*consoleIssuer)(nil)

// Name implements [ui.Issuer].
func (c *consoleIssuer) Name() string { return c.name }

// Begin implements [ui.Issuer].
func (c *consoleIssuer) Begin(ctx context.Context, redirect string) (ui.SignIn, error) {
	target, err := signin.At(ctx, c.server, c.audience)
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
