package stdio

import (
	"context"
	"sync"
)

// Bounds of unanswered requests. At a bound the reader stops, so a client that does not read its answers waits.
const (
	maxUnanswered      = 4096
	maxUnansweredBytes = 64 << 20 // of requests
)

// backlog counts the unanswered requests.
type backlog struct {
	mu      sync.Mutex
	count   int           // guarded by mu, as is everything below
	direct  int           // those answered without the SDK
	bytes   int           // of all
	changed chan struct{} // closed at the next change; nil: none waits
}

// add adds requests of so many bytes together; direct of them are answered without the SDK. Negative numbers remove them.
func (b *backlog) add(count, direct, bytes int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.count += count
	b.direct += direct
	b.bytes += bytes
	if b.changed != nil {
		close(b.changed)
		b.changed = nil
	}
}

func (b *backlog) hasRoom() bool  { return b.count < maxUnanswered && b.bytes < maxUnansweredBytes }
func (b *backlog) isEmpty() bool  { return b.count == 0 }
func (b *backlog) noDirect() bool { return b.direct == 0 }

// wait returns when the condition is true, closed is, or ctx is done.
func (b *backlog) wait(ctx context.Context, closed <-chan struct{}, condition func(*backlog) bool) {
	for {
		b.mu.Lock()
		if condition(b) {
			b.mu.Unlock()
			return
		}
		if b.changed == nil {
			b.changed = make(chan struct{})
		}
		changed := b.changed
		b.mu.Unlock()
		select {
		case <-changed:
		case <-closed:
			return
		case <-ctx.Done():
			return
		}
	}
}
