package gateway

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/mcsh-dev/mcsh/stages"
)

// checkWait is how long a plan waits for servers that it needs and that are still starting.
const checkWait = 30 * time.Second

// errSpent is the cause of a check that ends because the time of its call is up.
var errSpent = errors.New("the time of the call is up")

// CallTime is the time of a call, which covers the waiting for servers as well.
type CallTime struct {
	Timeout time.Duration
	Begun   time.Time
	Limits  stages.Limits // of the operator, for what is said when the time is up
}

// Bound returns a context that ends with the time of the call. That time ends a wait is no sign that a server hangs, so
// it is no deadline.
func (c CallTime) Bound(ctx context.Context) (context.Context, context.CancelFunc) {
	bound, spend := context.WithCancelCause(ctx)
	timer := time.AfterFunc(c.Timeout-time.Since(c.Begun), func() { spend(errSpent) })
	return bound, func() { timer.Stop(); spend(nil) }
}

// Late is what a call comes to that has failed with err, or nil if the time, with which bound ends, is not the reason.
func (c CallTime) Late(bound context.Context, err error) *stages.Error {
	if !errors.Is(err, context.Canceled) || context.Cause(bound) != errSpent {
		return nil
	}
	return c.late(waitOf(err.Error()), "see what takes so long")
}

func (c CallTime) late(waits, try string) *stages.Error {
	return stages.Late(c.Timeout, c.Limits, "nothing was called; "+waits, try)
}

// waitOf is what was waited for when the time was up.
func waitOf(msg string) string { return strings.TrimSuffix(msg, ": "+context.Canceled.Error()) }

// Check has a pipeline compiled within the time of its call; late is what it comes to if that was too short.
func (c CallTime) Check(ctx context.Context, compile func(context.Context) (*stages.Pipeline, []*stages.Error)) (p *stages.Pipeline, errs []*stages.Error, late *stages.Error) {
	checking, cancel := context.WithTimeout(ctx, checkWait)
	defer cancel()
	checking, end := c.Bound(checking)
	defer end()
	p, errs = compile(checking)
	if errs == nil || context.Cause(checking) != errSpent {
		return p, errs, nil
	}
	var waits []string
	for _, e := range errs {
		if !errors.Is(e, context.Canceled) {
			return nil, errs, nil // there is more to mend than the time
		}
		if wait := waitOf(e.Msg); !slices.Contains(waits, wait) {
			waits = append(waits, wait)
		}
	}
	return nil, nil, c.late(strings.Join(waits, "; "), "try again soon, when the server has started")
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }
