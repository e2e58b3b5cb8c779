package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcsh-dev/mcsh/internal/pausing"
	"github.com/mcsh-dev/mcsh/stages"
)

// errSpent is the cause of a check that ended with the timeout of its call.
var errSpent = fmt.Errorf("the time of the call is up: %w", context.Canceled)

// CallTime is the timeout of a call. It includes the wait for servers.
type CallTime struct {
	Timeout time.Duration
	Begun   time.Time
	Limits  stages.Limits  // of the operator, for the error
	Clock   *pausing.Clock // on which the time passes; nil: it is never paused
}

// Bound returns a context that ends with the timeout. Its error is not that of a deadline, because upstream takes a deadline that
// passes for a server that hangs.
func (c CallTime) Bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if c.Clock != nil {
		return c.Clock.WithTimeout(ctx, c.Timeout-time.Since(c.Begun), errSpent)
	}
	bound, spend := context.WithCancelCause(ctx)
	timer := time.AfterFunc(c.Timeout-time.Since(c.Begun), func() { spend(errSpent) })
	return bound, func() { timer.Stop(); spend(nil) }
}

// Late returns the timeout error of a call that failed with err, or nil if bound ended for another reason.
func (c CallTime) Late(bound context.Context, err error) *stages.Error {
	if !errors.Is(err, context.Canceled) || context.Cause(bound) != errSpent {
		return nil
	}
	return c.late(waitOf(err.Error()), "check which server or stage is slow")
}

func (c CallTime) late(waits, try string) *stages.Error {
	return stages.Late(c.Timeout, c.Limits, "nothing was called; "+waits, try)
}

// waitOf names what the call waited for when its time ended.
func waitOf(msg string) string { return strings.TrimSuffix(msg, ": "+context.Canceled.Error()) }

// Check compiles a pipeline within the timeout of its call; late is the error of a timeout. The wait for each server also
// ends with that server's startTimeout.
func (c CallTime) Check(ctx context.Context, compile func(context.Context) (*stages.Pipeline, []*stages.Error)) (p *stages.Pipeline, errs []*stages.Error, late *stages.Error) {
	checking, end := c.Bound(ctx)
	defer end()
	p, errs = compile(checking)
	if errs == nil || context.Cause(checking) != errSpent {
		return p, errs, nil
	}
	var waits []string
	try := "send the plan again"
	for _, e := range errs {
		if !errors.Is(e, context.Canceled) {
			return nil, errs, nil // the plan has other mistakes too
		}
		if wait := waitOf(e.Msg); !slices.Contains(waits, wait) {
			waits = append(waits, wait)
		}
		if e.Code == stages.ServerUnavailable {
			try = "try again soon, when the server has started"
		}
	}
	return nil, nil, c.late(strings.Join(waits, "; "), try)
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }
