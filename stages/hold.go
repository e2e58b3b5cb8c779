package stages

import (
	"context"
	"sync"
	"time"
)

// An effectHold is the context of a call that may change something, or of an attempt of an item whose stages make such
// calls. Until a call is sent, it ends with the context around it. From then on the call is let finish, and so are the
// other stages of its item when something else fails: half of an item can be neither used nor resumed. The time of the
// run and early stop still end the item; the caller of the run ends both.
type effectHold struct {
	ctx    context.Context
	around context.Context
	caller context.Context // of the run
	item   *effectHold     // of the item around; nil: none
	call   bool            // it is that of a call

	end   context.CancelCauseFunc
	mu    sync.Mutex
	sent  int   // calls that may change something; guarded by mu, as is everything below
	cause error // of the end of the context around; nil: it has not ended
	over  bool
	stops []func() bool
}

// holdEffects returns the hold of a call or an attempt, and what is called at its end.
func holdEffects(around, caller context.Context, item *effectHold, call bool) (h *effectHold, release func()) {
	h = &effectHold{around: around, caller: caller, item: item, call: call}
	h.ctx, h.end = context.WithCancelCause(context.WithoutCancel(around))
	if !call {
		h.ctx = lasting{h.ctx, around}
	}
	stop := context.AfterFunc(around, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.interrupt()
	})
	return h, func() {
		stop()
		h.mu.Lock()
		defer h.mu.Unlock()
		h.close(nil)
	}
}

// lasting is a context that has the deadline of another.
type lasting struct {
	context.Context
	of context.Context
}

// Deadline implements [context.Context].
func (l lasting) Deadline() (time.Time, bool) { return l.of.Deadline() }

// close ends the context. The caller has mu.
func (h *effectHold) close(cause error) {
	h.over = true
	h.end(cause)
	for _, stop := range h.stops {
		stop()
	}
	h.stops = nil
}

// interrupt is called when the context around has ended. The caller has mu.
func (h *effectHold) interrupt() {
	if h.over || h.cause != nil {
		return
	}
	h.cause = context.Cause(h.around)
	if h.sent == 0 || !h.call && h.cause != errBroken {
		h.close(h.cause)
		return
	}
	late := func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.close(h.cause)
	}
	h.stops = append(h.stops, context.AfterFunc(h.caller, late))
	if at, limited := h.around.Deadline(); limited && !h.call {
		h.stops = append(h.stops, time.AfterFunc(time.Until(at), late).Stop)
	}
}

// send permits to send a call, and notes that it is sent. Where it may not be, the context has ended. A nil hold permits
// everything.
func (h *effectHold) send() bool {
	if h == nil {
		return true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.around.Err() != nil {
		h.interrupt()
	}
	if !h.over && !h.item.send() {
		h.close(context.Cause(h.item.ctx))
	}
	if !h.over {
		h.sent++
	}
	return !h.over
}

// unsend notes that a call was not sent after all.
func (h *effectHold) unsend() {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.sent--; h.sent == 0 && h.cause != nil {
		h.close(h.cause)
	}
	h.item.unsend()
}
