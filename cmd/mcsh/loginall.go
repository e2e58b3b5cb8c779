package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mcsh-dev/mcsh/control"
	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/upstream"
	"github.com/mcsh-dev/mcsh/upstream/logins"
	"github.com/mcsh-dev/mcsh/upstream/signin"
)

// loginAll signs in to each server that nobody has signed in to, one after another, and says in one line what came of each.
func (p *program) loginAll(ctx context.Context, o *loginOptions, store *logins.Store, servers []upstream.Server) error {
	say := func(server, format string, args ...any) {
		text := server + ": " + fmt.Sprintf(format, args...)
		fmt.Fprintln(p.stderr, gateway.Plain(strings.Join(strings.Fields(text), " "), false))
	}
	var errs []error
	for _, s := range servers {
		skipped, login, err := p.loginIfNeeded(ctx, o, store, s)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			f := loginFailure(s.Name, err)
			errs = append(errs, f)
			say(s.Name, "failed: %v; %s", err, hintOf(f))
		case skipped != "":
			say(s.Name, "skipped: %s", skipped)
		default:
			if err := p.reportLogin(login, func(text string) { say(s.Name, "ok: %s", text) }); err != nil {
				return err
			}
		}
	}
	if len(servers) == 0 {
		fmt.Fprintln(p.stderr, "the configuration has no server")
	}
	if len(errs) == 0 || p.json {
		return errors.Join(errs...)
	}
	return reportedStatus(statusOfAll(errs))
}

// loginIfNeeded signs in to a server, or says why it does not.
func (p *program) loginIfNeeded(ctx context.Context, o *loginOptions, store *logins.Store, s upstream.Server) (skipped string, login control.Login, err error) {
	if why := noPerson(s); why != "" {
		return why, login, nil
	}
	list, err := store.Of(s.Name, "")
	if err != nil {
		return "", login, configError("", err)
	}
	if l, _ := s.Endpoint.Login(list); l.Works(time.Now()) {
		return "already signed in", login, nil
	}
	login, err = p.loginTo(ctx, o, store, *s.Endpoint)
	if errors.Is(err, signin.ErrNotNeeded) {
		return worksWithout, login, nil
	}
	return "", login, err
}

// hintOf returns the hint of an error.
func hintOf(err error) string {
	f, _ := errors.AsType[*failure](err)
	if f == nil {
		return ""
	}
	return f.hint
}

// statusOfAll returns the exit status that all errors share, or that of a failed sign-in.
func statusOfAll(errs []error) int {
	status := exitAuth
	for i, err := range errs {
		f, _ := errors.AsType[*failure](err)
		switch {
		case f == nil, i > 0 && f.status != status:
			return exitAuth
		default:
			status = f.status
		}
	}
	return status
}
