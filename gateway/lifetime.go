package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/pausing"
	"github.com/mcsh-dev/mcsh/stages"
)

// DefaultGrace is how long a call with effects may go on after its client has gone.
const DefaultGrace = 10 * time.Second

// ErrGone is the cause of the end of a call whose client has gone without cancelling it. Calls that only read end at once;
// calls with effects that were sent have the grace to finish, since the client has not decided against them.
var ErrGone = fmt.Errorf("the client has gone: %w", context.Canceled)

// errUnwanted is the cause of the end of a call whose client has cancelled it or ended its session. The protocol wants no
// answer then.
var errUnwanted = fmt.Errorf("the client has cancelled the call: %w", context.Canceled)

// outlasting returns the context of calls with effects that were sent. It ends with ctx, or with the grace if ctx ended
// because the client has gone.
func (f *front) outlasting(ctx context.Context) (context.Context, context.CancelFunc) {
	own, end := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		cause := context.Cause(ctx)
		if cause == ErrGone {
			select {
			case <-time.After(f.grace):
			case <-f.calls.life.Done():
			case <-own.Done():
			}
		}
		end(cause)
	})
	return own, func() { stop(); end(nil) }
}

// follow ends a call at the grace after its HTTP request has ended. A lost connection is not a cancellation in the protocol, but
// the answer can no longer reach the client.
func (c *Call) follow(r *http.Request) (stop func() bool) {
	return context.AfterFunc(r.Context(), func() {
		timer := time.AfterFunc(c.front.grace, func() { c.cancel(nil) })
		context.AfterFunc(c.ctx, func() { timer.Stop() })
	})
}

// EndWith ends all requests of a server with life, and with its cause.
func EndWith(life context.Context) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			ctx, cancel := within(ctx, life)
			defer cancel()
			return next(ctx, method, req)
		}
	}
}

// within returns a context that ends also with life, and then with its cause.
func within(ctx, life context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(life, func() { cancel(context.Cause(life)) })
	return ctx, func() { stop(); cancel(nil) }
}

// errSpent is the cause of a check that ended with the timeout of its call.
var errSpent = fmt.Errorf("the time of the call is up: %w", context.Canceled)

// CallTime is the timeout of a call. It includes the wait for servers.
type CallTime struct {
	Timeout time.Duration
	Begun   time.Time
	Limits  stages.Limits  // of the operator, for the error
	Clock   *pausing.Clock // on which the time passes; nil: it never stands still
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
