package gateway

import (
	"context"
	"errors"

	"github.com/mcsh-dev/mcsh/stages"
)

// signIn asks the caller's person to sign in to the servers that a plan has failed for, and reports whether somebody has.
func (g *Gateway) signIn(ctx context.Context, asker *stages.Asker, errs []*stages.Error) bool {
	if len(errs) == 0 || g.o.Upstream == nil {
		return false
	}
	var all []error
	for _, err := range errs {
		all = append(all, err)
	}
	return g.o.Upstream.SignIn(ctx, asker, errors.Join(all...))
}
