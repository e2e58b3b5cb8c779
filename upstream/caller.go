package upstream

import (
	"context"

	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream/questions"
	"github.com/mcsh-dev/mcsh/upstream/results"
)

type callerKey struct{}

// ForCaller returns a context for the lists and calls of a caller, who can be asked through a; nil: the caller cannot be asked. Without it, any
// session with a server will do.
func ForCaller(ctx context.Context, a *stages.Asker) context.Context {
	return context.WithValue(ctx, callerKey{}, questions.By(a))
}

// forCall is [ForCaller] for a call that has an Asker. A task is known only on the session that began it.
func forCall(ctx context.Context, c stages.Call) context.Context {
	if c.Task != nil && c.Task.Handle != "" {
		if d := results.DeclaredFor(c.Task.Handle); d != nil {
			return context.WithValue(ctx, callerKey{}, *d)
		}
	}
	if c.Asker == nil {
		return ctx
	}
	return ForCaller(ctx, c.Asker)
}
