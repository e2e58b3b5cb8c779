package gateway

import (
	"context"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/pausing"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

const (
	updatePause = 100 * time.Millisecond // between two deliveries to one client
	firstTry    = time.Second            // after a delivery that has failed: the client may open its stream soon
	lastTry     = 30 * time.Second
)

// A courier brings the notices of a session of the older protocol to its client. It has a goroutine only while there are any.
type courier struct {
	u       *subscriber
	session *mcp.ServerSession
	life    context.Context // of the session

	again time.Duration // before the next try; only the delivery uses it

	mu   sync.Mutex
	away bool // guarded by mu, as is everything below: delivering, or waiting to try again
	more bool // something was put meanwhile
}

// start delivers what there is, in the background.
func (c *courier) start() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.more = true; !c.away && c.life.Err() == nil {
		c.away = true
		go c.deliver()
	}
}

// deliver delivers until there is nothing more. A client without a stream is tried again later.
func (c *courier) deliver() {
	for c.next() {
		for at, all := 0, c.u.take(); at < len(all); at++ {
			if c.send(all[at]) != nil {
				c.later(all[at:])
				return
			}
			c.again = 0
		}
		if pausing.For(c.life, updatePause) != nil {
			return
		}
	}
}

// next reports whether something was put since the last time. If not, the delivery is over.
func (c *courier) next() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.away, c.more = c.more, false
	return c.away
}

// later puts notices back, and tries again after a wait.
func (c *courier) later(left []notice) {
	c.again = max(firstTry, min(2*c.again, lastTry))
	c.u.put(left...)
	time.AfterFunc(c.again, func() {
		if c.life.Err() == nil {
			c.deliver()
		}
	})
}

// send sends one notice.
func (c *courier) send(n notice) error {
	ctx, cancel := context.WithTimeout(context.WithValue(c.life, noticeKey{}, n), writeWait)
	defer cancel()
	return c.session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{})
}

// noticeKey is the context key of the notice that is sent.
type noticeKey struct{}

// sendNotices is middleware. The SDK cannot send to one session that a resource has changed: it sends progress, which becomes
// that here.
func sendNotices(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		n, ours := ctx.Value(noticeKey{}).(notice)
		session, ok := req.GetSession().(*mcp.ServerSession)
		if !ours || !ok {
			return next(ctx, method, req)
		}
		return next(ctx, rpc.ResourceUpdated, &mcp.ServerRequest[*mcp.ResourceUpdatedNotificationParams]{
			Session: session, Params: &mcp.ResourceUpdatedNotificationParams{URI: n.uri},
		})
	}
}
