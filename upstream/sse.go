package upstream

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// sseTransport is the SDK's transport of 2024-11-05, whose stream would end with the context of Connect.
type sseTransport struct{ mcp.Transport }

// Connect opens the stream: within ctx, but for as long as the session.
func (t *sseTransport) Connect(ctx context.Context) (mcp.Connection, error) {
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	c, err := t.Transport.Connect(own)
	if !stop() && err == nil {
		_ = c.Close()
		err = ctx.Err()
	}
	if err != nil {
		cancel()
		return nil, err
	}
	return &sseConn{c, cancel}, nil
}

// plain reports that only the older protocol has this transport.
func (t *sseTransport) plain() bool { return true }

type sseConn struct {
	mcp.Connection
	cancel context.CancelFunc
}

func (c *sseConn) Close() error {
	defer c.cancel()
	return c.Connection.Close()
}
