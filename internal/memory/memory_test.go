package memory_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcsh-dev/mcsh/internal/memory"
)

// TestNeverOver has many goroutines take, grow and give back at random. At no time is a share or the budget exceeded,
// and at the end everything is free again.
func TestNeverOver(t *testing.T) {
	const total = 8 << 20
	b := memory.New(total)
	shares := []*memory.Share{b.Share("results", 6<<20), b.Share("bodies", 3<<20), b.Share("runs", 2<<20)}
	var work sync.WaitGroup
	for seed := range uint64(16) {
		work.Go(func() {
			random := rand.New(rand.NewPCG(seed, 15))
			for range 2000 {
				s := shares[random.IntN(len(shares))]
				n := random.Int64N(s.Limit() / 4)
				if s.Try(n) {
					look(t, b, total, shares)
					s.Give(n)
				}
				l := s.Lease()
				for range random.IntN(8) {
					if l.Grow(random.Int64N(512<<10)) != nil {
						break
					}
				}
				look(t, b, total, shares)
				l.Grow(-random.Int64N(l.Used() + 1))
				l.Close()
			}
		})
	}
	work.Wait()
	if b.Used() != 0 {
		t.Errorf("%d bytes are still taken", b.Used())
	}
}

func look(t *testing.T, b *memory.Budget, total int64, shares []*memory.Share) {
	t.Helper()
	if n := b.Used(); n > total || n < 0 {
		t.Errorf("%d of %d bytes are taken", n, total)
	}
	for _, s := range shares {
		if n := s.Used(); n > s.Limit() || n < 0 {
			t.Errorf("a share grants %d of %d bytes", n, s.Limit())
		}
	}
}

// TestTakeWaits: first come, first served, even if the second needs less; and only for a moment.
func TestTakeWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(100)
		s, other := b.Share("bodies", 100), b.Share("sessions", 100)
		if err := s.Take(t.Context(), 80); err != nil {
			t.Fatal(err)
		}
		served := make(chan int64, 2)
		for _, n := range []int64{90, 20} {
			go func() {
				if err := s.Take(t.Context(), n); err != nil {
					t.Error(err)
				}
				served <- n
			}()
			synctest.Wait()
		}
		if !other.Try(5) {
			t.Error("those who wait in one share hold up another one")
		}
		other.Give(5)
		if !s.Try(5) {
			t.Error("those who hold cannot go before those who wait")
		}
		s.Give(5)
		s.Give(80)
		if first := <-served; first != 90 {
			t.Errorf("the one that came second is served first")
		}
		s.Give(90)
		<-served
		s.Try(80)
		begin := time.Now()
		err := s.Take(t.Context(), 1)
		var full *memory.Full
		if !errors.As(err, &full) || *full != (memory.Full{Share: "bodies", Want: 1, Limit: 100, Total: 100}) || time.Since(begin) != memory.WaitTime {
			t.Errorf("after %v: %v", time.Since(begin), err)
		}
		if err := s.Take(t.Context(), 101); !errors.As(err, &full) || time.Since(begin) != memory.WaitTime {
			t.Errorf("what never fits does not end at once: %v", err)
		}
	})
}

// TestWaitersOfSharesTakeTurns: bytes that come free in one share serve those who wait in another.
func TestWaitersOfSharesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(100)
		holds, waits := b.Share("results", 100), b.Share("bodies", 50)
		holds.Try(100)
		go holds.Take(t.Context(), 90) // does not fit into what comes free
		synctest.Wait()
		done := make(chan error)
		go func() { done <- waits.Take(t.Context(), 40) }()
		synctest.Wait()
		holds.Give(40)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestTakeEndsWithItsContext, and leaves nothing behind that others would wait for.
func TestTakeEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.New(100).Share("bodies", 100)
		s.Try(50)
		ctx, cancel := context.WithCancel(t.Context())
		first, second := make(chan error), make(chan error)
		go func() { first <- s.Take(ctx, 60) }()
		synctest.Wait()
		go func() { second <- s.Take(t.Context(), 40) }()
		synctest.Wait()
		cancel()
		if err := <-first; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if err := <-second; err != nil {
			t.Error(err)
		}
	})
}

// TestLeases: many that want everything get equal parts, and something is left for those that want little.
func TestLeases(t *testing.T) {
	for _, many := range []int{1, 8, 63} {
		const limit = 320 << 20
		s := memory.New(384<<20).Share("results", limit)
		leases := make([]*memory.Lease, many)
		for i := range leases {
			leases[i] = s.Lease()
		}
		for more := true; more; {
			more = false
			for _, l := range leases {
				more = l.Grow(10_000) == nil || more
			}
		}
		part := int64(4 * limit / (4*many + 1))
		for _, l := range leases {
			if l.Used() < part*9/10 || l.Used() > s.LeaseLimit() {
				t.Errorf("one of %d leases has %d bytes, want about %d", many, l.Used(), part)
			}
		}
		small := s.Lease()
		if err := small.Grow(64 << 10); err != nil {
			t.Errorf("beside %d leases: %v", many, err)
		}
		small.Close()
		for _, l := range leases {
			l.Close()
		}
		if s.Used() != 0 {
			t.Errorf("%d bytes are still taken", s.Used())
		}
	}
}

// TestNil: where no budget is set everything is granted.
func TestNil(t *testing.T) {
	var s *memory.Share
	l := s.Lease()
	if err := errors.Join(s.Take(t.Context(), 1<<40), l.Grow(1<<40)); err != nil || !s.Try(1<<40) {
		t.Error(err)
	}
	s.Give(1 << 40)
	l.Close()
}

func TestFullSays(t *testing.T) {
	got := (&memory.Full{Share: "bodies", Want: 12_000_000, Limit: 96 << 20, Total: 384 << 20}).Error()
	want := "the memory of the gateway for bodies is full: 11.4 MiB more do not fit into 96 MiB; raise --memory (384 MiB)"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func BenchmarkGrow(b *testing.B) {
	l := memory.New(384<<20).Share("results", 320<<20).Lease()
	defer l.Close()
	for b.Loop() {
		l.Grow(100)
		l.Grow(-100)
	}
}
