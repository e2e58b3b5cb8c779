package memory

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// A Lease holds memory of a share for one piece of work. It takes more than requested, so that small steps seldom lock
// the budget.
//
// A lease grows while it has at most [fairness] times the free rest of its share. So a single lease gets four fifths of
// the share, many get equal parts, and small requests always fit. A nil Lease grants everything.
type Lease struct {
	s *Share

	mu     sync.Mutex
	used   int64 // requested bytes; guarded by mu, as is everything below
	taken  int64 // bytes taken from the share
	closed bool
}

const (
	fairness     = 4
	smallestStep = 4 << 10
	largestStep  = 1 << 20
)

// Lease returns an empty lease of the share. It must be closed.
func (s *Share) Lease() *Lease { return &Lease{s: s} }

// LeaseLimit returns the largest possible size of a lease.
func (s *Share) LeaseLimit() int64 {
	if s == nil {
		return s.Limit()
	}
	return s.limit / (fairness + 1) * fairness
}

// Grow takes n more bytes without waiting. Its error is a [*Full]. A negative n gives bytes back and never fails. On a
// closed lease Grow does nothing.
func (l *Lease) Grow(n int64) error {
	if l == nil || l.s == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	missing := l.used + n - l.taken
	if missing > 0 {
		step := min(max(l.taken/8, smallestStep), largestStep)
		if more := max(missing, step); l.s.extend(l.taken, more) {
			l.taken += more
		} else if l.s.extend(l.taken, missing) {
			l.taken += missing
		} else {
			return l.s.full(n)
		}
	}
	if l.used += n; l.used < 0 {
		panic("memory: " + l.s.name + ": more was given back than a lease has")
	}
	if spare := l.taken - l.used; spare > 2*largestStep {
		l.taken -= spare - largestStep
		l.s.Give(spare - largestStep)
	}
	return nil
}

// Take takes n bytes and waits for them like [Share.Take]. The lease must be empty.
func (l *Lease) Take(ctx context.Context, n int64) error {
	if l == nil || l.s == nil {
		return nil
	}
	if err := l.s.Take(ctx, n); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.used += n
	l.taken += n
	return nil
}

// Adopt moves the bytes of another lease of the same share to l, and closes that lease.
func (l *Lease) Adopt(from *Lease) {
	if from == nil || from.s == nil {
		return
	}
	from.mu.Lock()
	used, taken := from.used, from.taken
	from.used, from.taken, from.closed = 0, 0, true
	from.mu.Unlock()
	if l == nil || l.s != from.s {
		from.s.Give(taken)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		l.s.Give(taken)
		return
	}
	l.used += used
	l.taken += taken
}

// Used returns the bytes requested and not given back.
func (l *Lease) Used() int64 {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.used
}

// Close gives everything back. It may be called more than once.
func (l *Lease) Close() {
	if l == nil || l.s == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.s.Give(l.taken)
	l.used, l.taken, l.closed = 0, 0, true
}

// extend takes n more bytes for a lease with taken bytes, if that is fair.
func (s *Share) extend(taken, n int64) bool {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	left := s.free() - n
	if left < 0 || taken+n > fairness*left {
		return false
	}
	s.add(n)
	return true
}

// After a collection for a lease, the next one of the budget waits for collectRest, or for collectShare times the duration of the
// first if that is longer: collections take at most a twentieth of the time, however large the heap is.
const (
	collectRest  = 100 * time.Millisecond
	collectShare = 20
)

// Collect collects the garbage of the process before work that needs much memory. It does nothing too soon after the last
// collection: others may decide how often there is such work, and a collection slows the whole process.
func (l *Lease) Collect() {
	if l == nil || l.s == nil || !l.s.b.collecting.TryLock() {
		return
	}
	b := l.s.b
	defer b.collecting.Unlock()
	begun := time.Now()
	if begun.Before(b.collectFrom) {
		return
	}
	runtime.GC()
	ended := time.Now()
	b.collectFrom = ended.Add(max(collectRest, collectShare*ended.Sub(begun)))
}
