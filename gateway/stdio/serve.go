package stdio

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/gateway"
)

const (
	// unreadWait is how long answers are waited for that a client does not read.
	unreadWait = time.Second
	// goneWait is how long calls may go on after a client that talked with us has closed our input. That is how clients
	// end a server; one that wants an answer still does not wait long for it.
	goneWait = 500 * time.Millisecond
	// answerWait is the same for whoever piped calls in at once, and waits for the answers. One that died would never
	// take them.
	answerWait = 30 * time.Second
)

// Options say what is served, where, and how it ends.
type Options struct {
	Server *mcp.Server
	In     io.Reader
	Out    io.Writer

	Answerer Answerer // of ordinary calls; nil: Server gets all of them

	// Grace begins the ending: calls in flight may go on until the context that it returns is done. Nil: they are cancelled.
	Grace func() (context.Context, context.CancelFunc)

	// Finish stops the server: nothing is begun any more, and what runs has time until ctx is done. Nil closes the session.
	Finish func(ctx context.Context) error
}

// Serve serves until the input has ended and what it asked for is answered or cancelled, or ctx is done and the ending is
// over. It returns soon after the grace, also where the client takes no answer.
func Serve(ctx context.Context, o Options) error {
	life, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	o.Server.AddReceivingMiddleware(gateway.EndWith(life))
	out := &wholeWriter{w: o.Out}
	direct := newDirect(life, o.Answerer, out)
	in := &messageReader{in: bufio.NewReaderSize(o.In, 64<<10), out: out, direct: direct}
	session, err := o.Server.Connect(ctx, &transport{direct: direct, piped: &in.piped, gone: func() { end(gateway.ErrGone) }, inner: &mcp.IOTransport{
		Reader:        io.NopCloser(in),
		Writer:        keepOpen{out},
		MaxLineLength: -1, // the reader has its own
	}}, nil)
	if err != nil {
		return err
	}
	direct.join(session)
	if o.Finish == nil {
		o.Finish = func(context.Context) error { return session.Close() }
	}
	finished := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { o.finish(end); close(finished) })
	served := make(chan error, 1)
	go func() { served <- session.Wait() }() // for ever, where the client takes no answer
	select {
	case err = <-served:
	case <-finished:
	}
	if !stop() {
		<-finished
	}
	end(nil)
	err = errors.Join(err, direct.close())
	if ctx.Err() != nil || errors.Is(err, io.EOF) || errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}

// finish ends the server. cancel ends the calls that go beside Finish.
func (o Options) finish(cancel context.CancelCauseFunc) {
	grace := o.Grace
	if grace == nil {
		grace = noGrace
	}
	ctx, stop := grace()
	defer stop()
	defer context.AfterFunc(ctx, func() { cancel(nil) })()
	finished := make(chan struct{})
	go func() { _ = o.Finish(ctx); close(finished) }() // what it could not end, the end of the process does
	select {
	case <-finished:
		return
	case <-ctx.Done():
	}
	unread := time.NewTimer(unreadWait)
	defer unread.Stop()
	select {
	case <-finished:
	case <-unread.C:
	}
}

func noGrace() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx, cancel
}

// keepOpen is a stream that stays open: the process has it, not the session.
type keepOpen struct{ io.Writer }

func (keepOpen) Close() error { return nil }

// A wholeWriter keeps messages apart that are written at the same time, each with one Write.
type wholeWriter struct {
	mu sync.Mutex // guards w, also while it is written to: that is what it is for
	w  io.Writer
}

func (w *wholeWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.w.Write(p)
}
