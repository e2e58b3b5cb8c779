package stages

import (
	"context"
	"sync"
	"time"
)

// begun is what lets an item end well that has begun to change something. A failure elsewhere ends an item until then,
// and none that is further: what is done by half can neither be used nor be taken up by another run. The time of the
// run, early stop and the run's caller end any item.
type begun struct {
	mu     sync.Mutex
	sent   int                     // of what may change something; guarded by mu, as is everything below
	broken bool                    // something else has failed
	over   bool                    // the item has ended, or is about to
	end    context.CancelCauseFunc // of the item's own context
	stops  []func() bool
}

// lasting is a context that has the deadline of another.
type lasting struct {
	context.Context
	of context.Context
}

// Deadline implements [context.Context].
func (l lasting) Deadline() (time.Time, bool) { return l.of.Deadline() }

// context returns the context of an item's stages, and what is called when they have ended.
func (b *begun) context(around, outer context.Context) (context.Context, func()) {
	own, end := context.WithCancelCause(context.WithoutCancel(around))
	b.end = end
	stop := context.AfterFunc(around, func() { b.interrupt(around, outer) })
	return lasting{own, around}, func() {
		stop()
		b.mu.Lock()
		defer b.mu.Unlock()
		b.close(nil)
	}
}

// close ends the item's context; the caller has mu.
func (b *begun) close(cause error) {
	b.over = true
	b.end(cause)
	for _, stop := range b.stops {
		stop()
	}
	b.stops = nil
}

// interrupt is called when what is around the item has ended.
func (b *begun) interrupt(around, outer context.Context) {
	b.mu.Lock()
	defer b.mu.Unlock()
	cause := context.Cause(around)
	b.broken = cause == errBroken
	switch {
	case b.over:
		return
	case !b.broken || b.sent == 0:
		b.close(cause)
		return
	}
	late := func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.close(errBroken)
	}
	b.stops = append(b.stops, context.AfterFunc(outer, late))
	if at, limited := around.Deadline(); limited {
		b.stops = append(b.stops, time.AfterFunc(time.Until(at), late).Stop)
	}
}

// send notes that something is sent that may change something, and reports whether it still may be.
func (b *begun) send() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.over {
		b.sent++
	}
	return !b.over
}

// unsend takes that back: it was not sent after all.
func (b *begun) unsend() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sent--; b.sent == 0 && b.broken && !b.over {
		b.close(errBroken)
	}
}

// send is that of all items that the attempt belongs to.
func (a *attempt) send() bool {
	for at := a; at != nil; at = at.around {
		if !at.begun.send() {
			for ; a != at; a = a.around {
				a.begun.unsend()
			}
			return false
		}
	}
	return true
}

// unsend is that of all items that the attempt belongs to.
func (a *attempt) unsend() {
	for ; a != nil; a = a.around {
		a.begun.unsend()
	}
}
