package stages

import (
	"context"
	"strings"
)

// stageKey is where the context of a run has [RunOptions.Stage]. It stands there and not in the run, whose types are linked
// into every program that knows this package's errors, the sandbox worker among them.
type stageKey struct{}

// watch returns a context for a link that begins, and what is told of its end.
func (l *link) watch(ctx context.Context) (context.Context, func(error)) {
	begin, _ := ctx.Value(stageKey{}).(func(context.Context, Place, string) (context.Context, func(error)))
	if begin == nil {
		return ctx, func(error) {}
	}
	names := make([]string, len(l.steps))
	for i, s := range l.steps {
		names[i] = s.Label
	}
	ctx, end := begin(ctx, l.steps[0].place, strings.Join(names, " | "))
	return ctx, func(err error) {
		if echo(err) {
			err = nil
		}
		end(err)
	}
}
