package upstream

import (
	"context"
	"slices"
	"sync"
	"time"
)

// slotLimit is how long a program that starts may keep others from starting.
const slotLimit = 3 * time.Second

// A startQueue limits how many programs start at the same time: a runtime that loads its modules keeps a processor busy,
// and many of them together take longer than one after another. Those that a plan waits for come first.
type startQueue struct {
	mu      sync.Mutex // guards the fields below
	free    int
	waiting []*startWaiter
}

// A startWaiter is a program that waits for a slot.
type startWaiter struct {
	needed  func() bool
	granted chan struct{} // closed when it has a slot
}

// acquire waits for a slot. The slot is free again after [slotLimit], or when release is called.
func (q *startQueue) acquire(ctx context.Context, needed func() bool) (release func(), err error) {
	q.mu.Lock()
	t := &startWaiter{needed, make(chan struct{})}
	q.waiting = append(q.waiting, t)
	q.grant()
	q.mu.Unlock()
	free := sync.OnceFunc(func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.free++
		q.grant()
	})
	select {
	case <-t.granted:
		timer := time.AfterFunc(slotLimit, free)
		return func() { timer.Stop(); free() }, nil
	case <-ctx.Done():
	}
	q.mu.Lock()
	i := slices.Index(q.waiting, t)
	if i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	}
	q.mu.Unlock()
	if i < 0 { // it was given one meanwhile
		free()
	}
	return nil, ctx.Err()
}

// grant gives the free slots to waiters. q.mu is held.
func (q *startQueue) grant() {
	for q.free > 0 && len(q.waiting) > 0 {
		i := max(0, slices.IndexFunc(q.waiting, func(t *startWaiter) bool { return t.needed() }))
		close(q.waiting[i].granted)
		q.waiting = slices.Delete(q.waiting, i, i+1)
		q.free--
	}
}
