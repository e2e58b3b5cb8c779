package gateway

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
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

// endAfterRequest ends a call at the grace after its HTTP request has ended. A lost connection is not a cancellation in the
// protocol, but the answer can no longer reach the client.
func (c *Call) endAfterRequest(r *http.Request) (stop func() bool) {
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
