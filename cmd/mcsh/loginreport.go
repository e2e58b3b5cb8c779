package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcsh-dev/mcsh/control"
	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/upstream/logins"
)

// rowOf describes a login without its tokens.
func rowOf(l logins.Login, place string, sealed bool) control.Login {
	return control.Login{
		Server: l.Server, Resource: l.Resource, Issuer: l.Issuer, Account: l.Account, Scopes: append([]string{}, l.Scopes...),
		SignedIn: l.Made, Expires: timeOrNil(l.Expiry), Refreshed: l.RefreshToken != "", Ended: timeOrNil(l.Ended), Stored: place, Sealed: sealed,
	}
}

func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// describe returns a login of the store for people and programs.
func describe(store *logins.Store, l logins.Login) (control.Login, error) {
	place, sealed, err := store.Place()
	if err != nil {
		return control.Login{}, configError("", err)
	}
	return rowOf(l, place, sealed), nil
}

// signedIn says what the person has now.
func (p *program) signedIn(ctx context.Context, s settings, l control.Login) error {
	if err := p.reportLogin(l, func(text string) { fmt.Fprintln(p.stderr, text) }); err != nil {
		return err
	}
	p.sayPlace(l, "this command and the gateway")
	p.sayGateways(ctx, s, l.Server)
	return nil
}

// reportLogin prints a new login, and says its text.
func (p *program) reportLogin(l control.Login, say func(text string)) error {
	if err := p.print(l, ""); err != nil {
		return err
	}
	as := ""
	if l.Account != "" {
		as = " as " + l.Account
	}
	say(gateway.Plain(fmt.Sprintf("signed in to %s%s; scopes: %s; %s", l.Server, as,
		cmp.Or(strings.Join(l.Scopes, " "), "those of the issuer"), expiryText(l, time.Now())), false))
	return nil
}

// sayPlace says where the tokens are. whose are the programs that need the key.
func (p *program) sayPlace(l control.Login, whose string) {
	fmt.Fprintf(p.stderr, "the tokens are in %s\n", gateway.Plain(l.Stored, false))
	if !l.Sealed {
		fmt.Fprintf(p.stderr, "note: this file is not sealed; to seal it, give --token-key-file to %s\n", whose)
	}
}

// expiryText says how long a login lasts, for people.
func expiryText(l control.Login, now time.Time) string {
	renewed := ", and is refreshed before that"
	if !l.Refreshed {
		renewed = "; nothing refreshes it"
	}
	switch {
	case l.Ended != nil:
		return "signed out: run mcsh login " + texts.ShellWord(l.Server)
	case l.Expires == nil:
		return "the access token has no known end"
	case !l.Refreshed && !l.Expires.After(now):
		return "expired: run mcsh login " + texts.ShellWord(l.Server)
	}
	return "the access token ends at " + l.Expires.Local().Format(time.RFC3339) + renewed
}

// gatewayWait bounds the questions to running gateways.
const gatewayWait = 5 * time.Second

// sayGateways names the running gateways that have a server. They read the new login with their next request.
func (p *program) sayGateways(ctx context.Context, s settings, server string) {
	state, _ := p.statePath(s)
	clients, err := control.Find(state)
	if err != nil || len(clients) == 0 {
		fmt.Fprintln(p.stderr, "no gateway with this state directory is running; the next one uses the sign-in")
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), gatewayWait)
	defer cancel()
	answers, _ := askAll(clients, func(_ string, c *control.Client) (bool, error) {
		list, err := c.Servers(ctx)
		return slices.ContainsFunc(list, func(one control.Server) bool { return one.Name == server }), err
	})
	n := 0
	for _, has := range answers {
		if has {
			n++
		}
	}
	fmt.Fprintf(p.stderr, "of %s running with this state directory, %d with a server of this name: the sign-in counts from the next call on\n",
		texts.Count(len(clients), "gateway"), n)
}
