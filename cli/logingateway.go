package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/mcsh-dev/mcsh/control"
	"github.com/mcsh-dev/mcsh/upstream/browser"
)

// one returns the client of the gateway that the flag names.
func (g *gatewayFlags) one(ctx context.Context, p *program) (*control.Client, error) {
	for _, flag := range []string{"config", "toolhive", "token-key-file", "client-metadata-url", "store-logins"} {
		if g.flags.Changed(flag) {
			return nil, usageError("leave one of them out", "--%s is for sign-ins without --gateway: a gateway uses its own", flag)
		}
	}
	found, err := g.find(ctx, p)
	if err != nil {
		return nil, err
	}
	return found[g.gateway], nil
}

// gatewayFailure returns the error of a gateway with its hint and exit status.
func gatewayFailure(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	status := statusOfGateway(err)
	if e, ok := errors.AsType[*control.Error](err); ok && e.Status == http.StatusUnprocessableEntity {
		status = exitAuth
	}
	return &failure{status, err, hintOfGateway(err)}
}

// loginInGateway signs in within a running gateway. The browser comes back to the gateway if it has an address for browsers, or
// else to this command, which passes it on.
func (p *program) loginInGateway(ctx context.Context, o *loginOptions, server string) error {
	if o.all {
		return usageError("name one server; mcsh gateways lists them", "--all is for sign-ins without --gateway")
	}
	client, err := o.one(ctx, p)
	if err != nil {
		return err
	}
	ctx, cancel := o.patience(ctx)
	defer cancel()
	login, err := p.withGateway(ctx, o, client, control.LoginRequest{Server: server, Scopes: o.scopes, Device: o.device})
	switch {
	case tooLate(err):
		return loginFailure(server, err)
	case err != nil:
		return gatewayFailure(err)
	}
	if err := p.reportLogin(login, func(text string) { fmt.Fprintln(p.stderr, text) }); err != nil {
		return err
	}
	login.Stored = ofGateway(login.Stored)
	p.sayPlace(login, "the gateway")
	return nil
}

// ofGateway describes a place of tokens that is not on this machine, maybe.
func ofGateway(place string) string { return "the gateway's " + strings.TrimPrefix(place, "the ") }

// withGateway begins a sign-in in a gateway and waits for its end.
func (p *program) withGateway(ctx context.Context, o *loginOptions, client *control.Client, r control.LoginRequest) (control.Login, error) {
	begun, err := client.BeginLogin(ctx, r)
	if err != nil {
		return control.Login{}, err
	}
	var listener *browser.Listener
	if begun.Listen != nil {
		if listener, err = browser.Listen(*begun.Listen); err != nil {
			return control.Login{}, portError(*begun.Listen, err)
		}
		r.Redirect = listener.URI
		if begun, err = client.BeginLogin(ctx, r); err != nil {
			return control.Login{}, errors.Join(err, listener.Close())
		}
	}
	defer giveUp(ctx, client, begun.ID)
	p.invite(o, invitation{begun.Issuer, begun.Address, begun.Code, begun.Warning})
	if listener == nil {
		return client.WaitLogin(ctx, begun.ID)
	}
	passed := passed{ctx: ctx, client: client, id: begun.ID}
	if _, err := p.inBrowser(ctx, o, listener, passed.on); err != nil {
		return control.Login{}, err
	}
	return passed.result()
}

// cancelWait bounds the request that gives a sign-in up.
const cancelWait = 2 * time.Second

// giveUp ends a sign-in that nobody waits for any more, and does nothing to one that has ended.
func giveUp(ctx context.Context, client *control.Client, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelWait)
	defer cancel()
	_ = client.CancelLogin(ctx, id) // the gateway ends it in the end
}

// passed passes redirected addresses on to a gateway, until one is the right one.
type passed struct {
	ctx    context.Context
	client *control.Client
	id     string

	mu    sync.Mutex
	login control.Login // guarded by mu
	err   error         // guarded by mu
}

// on passes an address on, and reports whether it has ended the sign-in.
func (f *passed) on(address string) bool {
	if !strings.Contains(address, "state=") {
		return false
	}
	login, err := f.client.FinishLogin(f.ctx, f.id, address)
	if e, ok := errors.AsType[*control.Error](err); ok && (e.Status == http.StatusConflict || e.Status == http.StatusRequestEntityTooLarge) {
		return false // it is not the right one: any page can send the browser here
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.login, f.err = login, err
	return true
}

func (f *passed) result() (control.Login, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.login, f.err
}

// logoutInGateway signs out within a running gateway; server "" is all.
func (p *program) logoutInGateway(ctx context.Context, o *logoutOptions, server string) error {
	client, err := o.one(ctx, p)
	if err != nil {
		return err
	}
	list, err := client.Logout(ctx, control.LogoutRequest{Server: server, All: server == ""})
	if err != nil {
		return gatewayFailure(err)
	}
	var errs []error
	for _, l := range list {
		errs = append(errs, p.signedOut(l))
	}
	return errors.Join(errs...)
}
