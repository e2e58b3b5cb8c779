package stages

import (
	"context"
	"sync"
	"time"

	"github.com/mcsh-dev/mcsh/internal/pausing"
)

// An effectHold is the context of a call that may change something, or of an attempt of an item whose stages make such
// calls. Until a call is sent, it ends with the context around it. From then on the call finishes, and so do the
// other stages of its item when something else fails: half of an item can be neither used nor resumed. The time of the
// run and early stop still end the item; the caller of the run ends both.
type effectHold struct {
	ctx    context.Context
	around context.Context
	caller context.Context // of the run
	clock  *pausing.Clock  // of the run
	item   *effectHold     // of the item around; nil: none
	call   bool            // it is that of a call

	end   context.CancelCauseFunc
	mu    sync.Mutex
	sent  int   // calls that may change something; guarded by mu, as is everything below
	cause error // of the end of the context around; nil: it has not ended
	over  bool
	task  bool // what was sent is a task, which can be waited for again
	stops []func() bool
}

// holdEffects returns the hold of a call or an attempt, and what is called at its end.
func holdEffects(around, caller context.Context, clock *pausing.Clock, item *effectHold, call bool) (h *effectHold, release func()) {
	h = &effectHold{around: around, caller: caller, clock: clock, item: item, call: call}
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

// HoldEffect returns the context of one call that may change something, outside a run. Until the call is sent, it ends with
// around; from then on with caller, or, once its tool has answered with a task, with the time of around as well. It sets MaySend,
// Unsent and Task of the call; release frees the context after the call.
func HoldEffect(around, caller context.Context, c *Call) (ctx context.Context, release func()) {
	h, release := holdEffects(around, caller, nil, nil, true)
	c.MaySend, c.Unsent, c.Task = h.send, h.unsend, &Task{Keep: func(string) { h.letGo() }}
	return h.ctx, release
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
	h.stops = append(h.stops, context.AfterFunc(h.caller, h.late))
	h.limit()
}

// late closes the context some time after the one around has ended.
func (h *effectHold) late() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.close(h.cause)
}

// limit bounds what goes on after the end of the context around it by the time of the run: the stages of an item and the wait
// for a task, which need not finish. The caller has mu.
func (h *effectHold) limit() {
	if h.call && !h.task {
		return
	}
	if h.task && timeIsUp(h.cause) {
		h.close(h.cause)
	} else if at, limited := h.around.Deadline(); limited {
		ends, cancel := h.clock.WithTimeout(context.Background(), time.Until(at), nil)
		h.stops = append(h.stops, context.AfterFunc(ends, h.late), func() bool { cancel(); return true })
	}
}

// letGo notes that the call has become a task. A nil hold holds nothing.
func (h *effectHold) letGo() {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.task = true; h.cause != nil && !h.over {
		h.limit()
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
