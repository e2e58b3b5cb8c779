package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"syscall"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/upstream/browser"
	"github.com/mcsh-dev/mcsh/upstream/logins"
	"github.com/mcsh-dev/mcsh/upstream/signin"
)

// person lets a person sign in: on another device if that is wanted or nothing else is possible, or else in a browser.
func (p *program) person(ctx context.Context, o *loginOptions, target *signin.Target, port int) (logins.Login, error) {
	_, missing := browser.Find(runtime.GOOS, p.env)
	if o.device || missing != nil && !o.noBrowser && target.CanDevice() {
		return p.onDevice(ctx, target)
	}
	listener, err := browser.Listen(port)
	switch {
	case err != nil && target.CanDevice() && port == 0:
		return p.onDevice(ctx, target)
	case err != nil:
		return logins.Login{}, portError(port, err)
	}
	attempt, err := target.Begin(ctx, listener.URI)
	if err != nil {
		return logins.Login{}, errors.Join(err, listener.Close())
	}
	p.invite(o, invitation{issuer: target.Issuer, address: attempt.URL, warning: target.Warning()})
	address, err := p.inBrowser(ctx, o, listener, attempt.Answers)
	if err != nil {
		return logins.Login{}, err
	}
	return attempt.Finish(ctx, address)
}

// portError is the error of a port that cannot be listened on.
func portError(port int, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("port %d, its callbackPort, is in use: another mcsh login of the server may be waiting there: %w", port, err)
	}
	return err
}

func (p *program) onDevice(ctx context.Context, target *signin.Target) (logins.Login, error) {
	return target.Device(ctx, func(address, code string) {
		p.showInvitation(invitation{issuer: target.Issuer, address: address, code: code, warning: target.Moved()})
	})
}

// An invitation is what a person opens to sign in.
type invitation struct {
	issuer, address string
	code            string // to enter there, on any device; empty: none
	warning         string // empty: none
}

// invite shows an invitation, and opens its address in a browser if there is one and the flags do not say otherwise.
func (p *program) invite(o *loginOptions, i invitation) {
	opener, missing := browser.Find(runtime.GOOS, p.env)
	if missing != nil && p.env["BROWSER"] != "" && !o.noBrowser {
		fmt.Fprintf(p.stderr, "$BROWSER names no program that is there, so open the address yourself.\n")
	}
	p.showInvitation(i)
	if missing != nil || o.noBrowser {
		return
	}
	failed := func(err error) { // at any time
		fmt.Fprintf(p.stderr, "The browser could not be opened (%v). Open this address yourself:\n\n  %s\n\n", err, gateway.Plain(i.address, false))
	}
	if err := opener.Open(i.address, failed); err != nil {
		failed(err)
	}
}

// showInvitation prints an invitation.
func (p *program) showInvitation(i invitation) {
	if i.warning != "" {
		fmt.Fprintf(p.stderr, "warning: %s\n", gateway.Plain(i.warning, false))
	}
	where, issuer, address := "in a browser to sign in at "+i.issuer, gateway.Plain(i.issuer, false), gateway.Plain(i.address, false)
	if i.code != "" {
		fmt.Fprintf(p.stderr, "Open this address on any device to sign in at %s, and enter the code %s:\n\n  %s\n\n", issuer, gateway.Plain(i.code, false), address)
		return
	}
	fmt.Fprintf(p.stderr, "Open this address %s:\n\n  %s\n\n", gateway.Plain(where, false), address)
}

// errPasted ends the wait for the browser.
var errPasted = errors.New("the address was pasted")

// inBrowser waits for the browser, and for a person who pastes the address that it ended at. It returns that address.
func (p *program) inBrowser(ctx context.Context, o *loginOptions, listener *browser.Listener, right func(address string) bool) (string, error) {
	waiting, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	pasted := make(chan string, 1)
	if o.noBrowser || isTerminal(p.stdin) {
		fmt.Fprintln(p.stderr, "If the browser is on another machine, it ends at an address that does not open: paste that address here.")
		go p.readPasted(waiting, right, func(address string) {
			pasted <- address
			stop(errPasted)
		})
	}
	address, err := listener.Wait(waiting, right)
	if errors.Is(err, errPasted) {
		return <-pasted, nil
	}
	return address, err
}
