package gateway

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// DefaultGrace is how long what runs may go on once nobody waits for it any more.
const DefaultGrace = 10 * time.Second

// stuckWait is how long calls that were cancelled are waited for. They end within a second, unless what they wait for
// heeds nothing.
const stuckWait = 5 * time.Second

// ErrGone is the cause with which calls end whose client has gone without cancelling them. It ends what only reads at
// once; calls that may change something and were sent have the grace to finish, since nobody has decided against them.
var ErrGone = fmt.Errorf("the client has gone: %w", context.Canceled)

// outlasting returns the context of calls that may change something and were sent. It ends with ctx, but after the grace
// where that was ended by the client's going.
func (g *Gateway) outlasting(ctx context.Context) (context.Context, context.CancelFunc) {
	own, end := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		cause := context.Cause(ctx)
		if cause == ErrGone {
			grace := time.NewTimer(g.grace)
			defer grace.Stop()
			select {
			case <-grace.C:
			case <-g.over:
			case <-own.Done():
			}
		}
		end(cause)
	})
	return own, func() { stop(); end(nil) }
}

// follow ends a call some time after its request, which is a connection that was lost. The protocol says that this is no
// cancellation, so the call goes on for the grace; but its answer has no way any more, and what nobody hears need not be made.
func (c *Call) follow(r *http.Request) (stop func()) {
	end := context.AfterFunc(r.Context(), func() {
		timer := time.AfterFunc(c.front.grace, func() { c.cancel(nil) })
		context.AfterFunc(c.ctx, func() { timer.Stop() })
	})
	return func() { end() }
}

// EndWith makes all requests of a server end with life, and by its cause.
func EndWith(life context.Context) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			ctx, cancel := context.WithCancelCause(ctx)
			defer cancel(nil)
			defer context.AfterFunc(life, func() { cancel(context.Cause(life)) })()
			return next(ctx, method, req)
		}
	}
}
