// Package pausing has timeouts that are paused while somebody is asked, and waits. It knows nothing of questions.
package pausing

import (
	"context"
	"sync"
	"time"
)

// A Clock runs the timeouts of one piece of work, and stops while it is paused. Its methods may be called concurrently.
// A nil Clock is never paused.
type Clock struct {
	mu      sync.Mutex
	pauses  int               // in progress; guarded by mu, as is everything below
	since   time.Time         // when the first of them began
	paused  time.Duration     // in all pauses that have ended
	running map[*timeout]bool // contexts that have not been cancelled
}

// New returns a clock that runs.
func New() *Clock { return &Clock{running: map[*timeout]bool{}} }

// Pause stops the clock until resume is called. The clock runs again when all pauses have ended.
func (c *Clock) Pause() (resume func()) {
	if c == nil {
		return func() {}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pauses++; c.pauses == 1 {
		c.since = time.Now()
		for t := range c.running {
			t.stop()
		}
	}
	return sync.OnceFunc(c.resume)
}

func (c *Clock) resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pauses--; c.pauses == 0 {
		c.paused += time.Since(c.since)
		for t := range c.running {
			t.start()
		}
	}
}

// Paused is how long the clock was paused, in pauses that have ended.
func (c *Clock) Paused() time.Duration {
	if c == nil {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.paused
}

// WithTimeout returns a context that ends with ctx, or with cause after d on the clock. Its deadline moves while the clock is
// paused, and its error is [context.Canceled].
func (c *Clock) WithTimeout(ctx context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc) {
	if c == nil {
		return context.WithTimeoutCause(ctx, d, cause)
	}
	t := &timeout{clock: c, left: d, began: time.Now()}
	inner, cancel := context.WithCancelCause(ctx)
	t.Context = inner
	c.mu.Lock()
	defer c.mu.Unlock()
	t.timer = time.AfterFunc(d, func() {
		if t.over() {
			cancel(cause)
		}
	})
	if c.running[t] = true; c.pauses > 0 {
		t.stop()
	}
	return t, func() {
		cancel(nil)
		c.mu.Lock()
		defer c.mu.Unlock()
		t.timer.Stop()
		delete(c.running, t)
	}
}

// A timeout is a context that ends after some time on a clock.
type timeout struct {
	context.Context
	clock *Clock
	timer *time.Timer
	began time.Time     // when the timer was started; guarded by clock.mu, as is left
	left  time.Duration // of the timer, when it was started or stopped
}

// stop stops the timer. The caller has clock.mu.
func (t *timeout) stop() {
	t.timer.Stop()
	t.left -= time.Since(t.began)
}

// start starts the timer again. The caller has clock.mu.
func (t *timeout) start() {
	t.began = time.Now()
	t.timer.Reset(t.left)
}

// over reports whether the timer has fired at its time: a pause may have stopped it too late.
func (t *timeout) over() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	return t.clock.pauses == 0 && time.Since(t.began) >= t.left
}

// Deadline implements [context.Context].
func (t *timeout) Deadline() (time.Time, bool) {
	t.clock.mu.Lock()
	at := t.began.Add(t.left)
	if t.clock.pauses > 0 {
		at = time.Now().Add(t.left)
	}
	t.clock.mu.Unlock()
	if outer, limited := t.Context.Deadline(); limited && outer.Before(at) {
		return outer, true
	}
	return at, true
}
