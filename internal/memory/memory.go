// Package memory bounds the memory that a process uses on behalf of others. One [Budget] is divided into named shares.
// Code that keeps data whose size others decide takes the bytes from a share before the data grows. The package counts
// bytes; it does not allocate them and knows nothing of their use.
//
// One rule prevents deadlock: work that holds memory never waits for more. Work that holds none may wait for a moment
// ([Share.Take]). Work that holds some and cannot get more spills to disk, or ends ([Share.Try], [Lease.Grow]).
//
// # Decisions
//
//   - The process has one memory budget, because limits of single runs add up. A lease grows while it has at most four
//     times the free rest of its share: first come, first served would give a few large runs everything.
package memory

import (
	"container/list"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

// WaitTime is the longest wait of [Share.Take].
const WaitTime = time.Second

// A Budget is a number of bytes that all its shares together never exceed.
type Budget struct {
	total int64

	mu     sync.Mutex
	used   int64    // guarded by mu, as is everything in the shares
	shares []*Share // in the order in which they were made
	next   int      // the index of the share to grant first

	collecting  sync.Mutex // held during [Lease.Collect]
	collectFrom time.Time  // the earliest time of the next collection; guarded by collecting
}

// New returns a budget of total bytes.
func New(total int64) *Budget { return &Budget{total: total} }

// Used returns the number of bytes taken from all shares.
func (b *Budget) Used() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// Share adds a share that never exceeds limit bytes. The limits of all shares may add up to more than the budget.
func (b *Budget) Share(name string, limit int64) *Share {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := &Share{b: b, name: name, limit: min(limit, b.total)}
	b.shares = append(b.shares, s)
	return s
}

// A Share is the part of a budget for one purpose. A nil Share grants everything and counts nothing.
type Share struct {
	b     *Budget
	name  string
	limit int64

	// Guarded by b.mu:
	used    int64
	waiting list.List // of *waiter, first come, first served
}

// waiter is a call of Take.
type waiter struct {
	n       int64
	granted chan struct{} // closed with b.mu held
}

// Limit returns the size of the share.
func (s *Share) Limit() int64 {
	if s == nil {
		return 1<<63 - 1
	}
	return s.limit
}

// Used returns the number of bytes taken.
func (s *Share) Used() int64 {
	if s == nil {
		return 0
	}
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	return s.used
}

// Take takes n bytes. If they are not free, it waits in line for at most [WaitTime] and then returns a [*Full], or the
// cause of ctx if that is done first. Only callers that hold nothing of the budget may call it.
func (s *Share) Take(ctx context.Context, n int64) error {
	if s == nil {
		return nil
	}
	s.b.mu.Lock()
	if s.waiting.Len() == 0 && s.fits(n) {
		s.add(n)
		s.b.mu.Unlock()
		return nil
	}
	if n > s.limit {
		s.b.mu.Unlock()
		return s.full(n)
	}
	w := &waiter{n: n, granted: make(chan struct{})}
	place := s.waiting.PushBack(w)
	s.b.mu.Unlock()
	timer := time.NewTimer(WaitTime)
	defer timer.Stop()
	var err error
	select {
	case <-w.granted:
		return nil
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-timer.C:
		err = s.full(n)
	}
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	select {
	case <-w.granted: // at the last moment
		return nil
	default:
	}
	s.waiting.Remove(place)
	s.b.grant() // the next in line may need less
	return err
}

// Try takes n bytes if they are free. It does not wait in line, because its caller may hold the memory that others wait
// for.
func (s *Share) Try(n int64) bool {
	if s == nil {
		return true
	}
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	if !s.fits(n) {
		return false
	}
	s.add(n)
	return true
}

// Give gives n taken bytes back.
func (s *Share) Give(n int64) {
	if s == nil || n == 0 {
		return
	}
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	s.add(-n)
	if s.used < 0 {
		panic("memory: " + s.name + ": more was given back than taken")
	}
	s.b.grant()
}

// free returns the bytes that the share can grant. b.mu is held.
func (s *Share) free() int64 { return min(s.limit-s.used, s.b.total-s.b.used) }

// fits reports whether n bytes are free. b.mu is held.
func (s *Share) fits(n int64) bool { return n <= s.free() }

// add takes n bytes. b.mu is held.
func (s *Share) add(n int64) {
	s.used += n
	s.b.used += n
}

// grant serves the waiters of each share in order, while they fit. The shares take turns in being first. b.mu is held.
func (b *Budget) grant() {
	b.next++
	for i := range b.shares {
		s := b.shares[(b.next+i)%len(b.shares)]
		for first := s.waiting.Front(); first != nil; first = s.waiting.Front() {
			w := first.Value.(*waiter)
			if !s.fits(w.n) {
				break
			}
			s.add(w.n)
			s.waiting.Remove(first)
			close(w.granted)
		}
	}
}

// Full is the error of a share that has too few free bytes.
type Full struct {
	Share string // its name
	Want  int64  // the bytes requested
	Limit int64  // the size of the share
	Total int64  // the size of the budget: --memory
}

func (f *Full) Error() string {
	return fmt.Sprintf("the memory of the gateway for %s is full: %s more do not fit into %s; raise --memory (%s)",
		f.Share, texts.Bytes(f.Want), texts.Bytes(f.Limit), texts.Bytes(f.Total))
}

func (s *Share) full(n int64) *Full {
	return &Full{Share: s.name, Want: n, Limit: s.limit, Total: s.b.total}
}
