package store

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// An idleLimit ends requests whose server is silent for wait: objects have many sizes, so no request has a bound as a whole.
// The time that the caller takes to write or to read does not count.
type idleLimit struct {
	next http.RoundTripper
	wait time.Duration
}

// RoundTrip implements [http.RoundTripper].
func (l idleLimit) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(request.Context())
	silent := func() { cancel(fmt.Errorf("the server was silent for %s", l.wait)) }
	sending := &clock{wait: l.wait, timer: time.AfterFunc(l.wait, silent)}
	request = request.WithContext(ctx)
	if body := request.Body; body != nil {
		request.Body = &timedBody{ReadCloser: body, ctx: ctx, begin: sending.stop, end: sending.start, close: func() {}}
	}
	response, err := l.next.RoundTrip(request)
	sending.over()
	if err != nil {
		err = causeOf(ctx, err)
		cancel(nil)
		return nil, err
	}
	receiving := &clock{wait: l.wait, timer: time.AfterFunc(l.wait, silent)}
	receiving.stop() // until somebody reads
	response.Body = &timedBody{ReadCloser: response.Body, ctx: ctx, begin: receiving.start, end: receiving.stop, close: func() {
		receiving.over()
		cancel(nil)
	}}
	return response, nil
}

// causeOf returns why a request has ended, which net/http does not always say.
func causeOf(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// A clock runs while somebody waits for the server.
type clock struct {
	wait  time.Duration
	timer *time.Timer

	mu    sync.Mutex
	ended bool // guarded by mu
}

func (c *clock) start() { c.change(func() { c.timer.Reset(c.wait) }) }
func (c *clock) stop()  { c.change(func() { c.timer.Stop() }) }
func (c *clock) over()  { c.change(func() { c.timer.Stop(); c.ended = true }) }

func (c *clock) change(do func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended { // net/http can read the body of a request after its end
		do()
	}
}

// A timedBody tells when a read begins and ends.
type timedBody struct {
	io.ReadCloser
	ctx               context.Context
	begin, end, close func()
}

// Read implements [io.Reader].
func (b *timedBody) Read(p []byte) (int, error) {
	b.begin()
	n, err := b.ReadCloser.Read(p)
	b.end()
	if err != nil && err != io.EOF {
		err = causeOf(b.ctx, err)
	}
	return n, err
}

// Close implements [io.Closer].
func (b *timedBody) Close() error {
	b.close()
	return b.ReadCloser.Close()
}
