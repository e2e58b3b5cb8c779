package upstream

import (
	"context"
	"sync"
	"time"
)

// A clock bounds the time of a call. It stands still while a question of the call is open.
type clock struct {
	mu    sync.Mutex
	timer *time.Timer
	left  time.Duration // when it last stood still
	since time.Time     // when it last went on
	open  int           // questions
}

// newClock returns a context that ends after a time of the clock, with the cause [errCallTimeout].
func newClock(ctx context.Context, limit time.Duration) (context.Context, *clock, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	k := &clock{left: limit, since: time.Now(), timer: time.AfterFunc(limit, func() { cancel(errCallTimeout) })}
	return ctx, k, func() {
		k.timer.Stop()
		cancel(nil)
	}
}

// stop makes the clock stand still until start is called as often.
func (k *clock) stop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.open++; k.open == 1 {
		k.timer.Stop()
		k.left -= time.Since(k.since)
	}
}

func (k *clock) start() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.open--; k.open == 0 {
		k.since = time.Now()
		k.timer.Reset(max(0, k.left))
	}
}
