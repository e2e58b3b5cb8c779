package pending

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/mcsh-dev/mcsh/upstream/logins"
	"github.com/mcsh-dev/mcsh/upstream/signin"
)

// revokeWait bounds the request to revoke tokens that cannot be kept.
const revokeWait = 10 * time.Second

// A StoreError is the error of a store that cannot be read or written.
type StoreError struct{ Err error }

func (e *StoreError) Error() string { return e.Err.Error() }
func (e *StoreError) Unwrap() error { return e.Err }

// Find finds where to sign in to a server. It asks also for the scopes that the issuer has granted before. A store that cannot be
// read or written says so now, before a person has signed in. An issuer that is not that of the last sign-in is noted in the
// target.
func Find(ctx context.Context, store *logins.Store, server signin.Server) (*signin.Target, error) {
	before, err := store.Of(server.Name, "")
	if err == nil {
		err = store.Writable(ctx)
	}
	if err != nil {
		return nil, &StoreError{err}
	}
	target, err := signin.Discover(ctx, server, "")
	if err != nil {
		return nil, fmt.Errorf("finding where to sign in: %w", err)
	}
	var last logins.Login
	for _, l := range before {
		if signin.Covers(l.Resource, server.URL) && l.Made.After(last.Made) {
			last = l
		}
		if l.Issuer != target.Issuer || l.Resource != target.Resource {
			continue
		}
		for _, scope := range l.Scopes {
			if len(target.Scopes) < logins.MaxScopes && !slices.Contains(target.Scopes, scope) {
				target.Scopes = append(target.Scopes, scope)
			}
		}
	}
	if last.Issuer != "" && !signin.SameIssuer(last.Issuer, target.Issuer) {
		target.Earlier = last.Issuer
	}
	return target, nil
}

// Keep keeps a new login. If it cannot, it makes the issuer revoke the tokens, which nobody has. The end of ctx stops neither:
// the person's consent cannot be used again.
func Keep(ctx context.Context, store *logins.Store, server signin.Server, login logins.Login) error {
	err := store.Put(context.WithoutCancel(ctx), login)
	if err == nil {
		return nil
	}
	revoking, cancel := context.WithTimeout(context.WithoutCancel(ctx), revokeWait)
	defer cancel()
	_ = signin.Revoke(revoking, server.HTTP, login) // nobody has the tokens
	return &StoreError{err}
}
