package stdio

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/gateway"
)

const (
	// unreadWait is how long the end waits for a client to read its answers.
	unreadWait = time.Second
	// goneWait is how long calls may go on after the client has closed the input, by which clients end a server.
	goneWait = 500 * time.Millisecond
)

// Options configure [Serve].
type Options struct {
	Server *mcp.Server
	In     io.Reader
	Out    io.Writer

	// Direct answers ordinary calls of the session without the SDK, as [gateway.Gateway.Direct]. Nil: Server gets all calls.
	Direct direct

	// Answered takes the answers of the session to questions that Direct's calls have sent, as [gateway.Gateway.Answered].
	// Nil: there are none.
	Answered func(ss *mcp.ServerSession, message []byte) bool

	// Grace starts the end: calls in flight may go on until its context is done. Nil cancels them.
	Grace func() (context.Context, context.CancelFunc)

	// Finish stops the server: it refuses new calls and waits for others until ctx is done. Nil closes the session.
	Finish func(ctx context.Context) error
}

type direct func(ctx context.Context, ss *mcp.ServerSession, message []byte) (*gateway.Call, *jsonrpc.Error)

// Serve serves until the input has ended and all calls are answered or cancelled, or until ctx is done and the grace is over.
// It returns soon after the grace even if the client reads no answer.
func Serve(ctx context.Context, o Options) error {
	life, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	o.Server.AddReceivingMiddleware(gateway.EndWith(life))
	c := newConn(life, end, o)
	session, err := o.Server.Connect(ctx, c, nil)
	if err != nil {
		return err
	}
	c.session = session
	go c.readAll()
	if o.Finish == nil {
		o.Finish = func(context.Context) error { return session.Close() }
	}
	finished := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { o.finish(end); close(finished) })
	served := make(chan error, 1)
	go func() { served <- session.Wait() }() // never returns if the client reads no answer
	select {
	case err = <-served:
	case <-finished:
	}
	if !stop() {
		<-finished
	}
	end(nil)
	err = errors.Join(err, c.flushed())
	if ctx.Err() != nil || errors.Is(err, io.EOF) || errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}

// flushed waits a while for answers in writing, and returns the error of a lost one.
func (c *conn) flushed() error {
	ctx, cancel := context.WithTimeout(context.Background(), unreadWait)
	defer cancel()
	_ = c.direct.Acquire(ctx, maxUnanswered)
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lost
}

// finish ends the server. cancel cancels the calls in flight.
func (o Options) finish(cancel context.CancelCauseFunc) {
	grace := o.Grace
	if grace == nil {
		grace = func() (context.Context, context.CancelFunc) { return context.WithTimeout(context.Background(), 0) }
	}
	ctx, stop := grace()
	defer stop()
	defer context.AfterFunc(ctx, func() { cancel(nil) })()
	finished := make(chan struct{})
	go func() { _ = o.Finish(ctx); close(finished) }() // the end of the process ends the rest
	select {
	case <-finished:
		return
	case <-ctx.Done():
	}
	select {
	case <-finished:
	case <-time.After(unreadWait):
	}
}
