// Package history keeps what a gateway knows of its runs, live and finished, for people who look at them. It knows nothing of MCP.
//
// # Decisions
//
//   - A run costs a few small values at its begin and its end: its figures are those that its stages count anyway, and they are
//     summed up only while somebody looks. So a run of 100,000 items costs as much as one of ten.
//   - A finished run stays as long as its outputs are kept, within [most] runs and [mostBytes] of the share of kept outputs. A gateway
//     that keeps no outputs forgets a run at its end.
//   - Gateways that share a store show each other's finished runs: each writes every two seconds those that have ended, and reads
//     those of others while somebody looks. Runs wait for a store that fails, as long as they are known here. Live runs are shown, and
//     cancelled, only where they run, except durable ones: those belong to no gateway.
//   - The next holder of a name does not see the runs of the holder before. A restarted gateway does not know who has lost access:
//     it shows the next holder the runs that were written before, as long as they are kept.
//   - Nobody waits for a reader: one that is slow sees the latest state.
package history

import (
	"container/list"
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"
	"unsafe"

	"github.com/mcsh-dev/mcsh/control"
	"github.com/mcsh-dev/mcsh/runs"
	"github.com/mcsh-dev/mcsh/stages"
)

// Bounds of what is kept of finished runs.
const (
	most      = 1000
	mostBytes = 16 << 20
	// liveEvery is how often [History.Wait] wakes while a run is live.
	liveEvery = 500 * time.Millisecond
)

// ErrCancelled is the cause of the end of a run that somebody has cancelled with [History.Cancel].
var ErrCancelled = fmt.Errorf("the operator has cancelled the run: %w", context.Canceled)

// History holds the runs of a gateway. Its methods may be called concurrently.
type History struct {
	kept   *runs.Store // nil: finished runs are forgotten
	shared *sharing    // nil: other gateways do not see them
	others Others      // nil: there are no runs like that

	mu       sync.Mutex
	all      map[string]*Run // by request; guarded by mu, as is everything below
	finished list.List       // of *Run, in the order of their ends
	bytes    int64           // of finished
	live     int
	version  uint64        // counts the changes
	changed  chan struct{} // closed by the next change; nil: nobody waits
}

// New returns an empty history. kept holds the outputs of the runs; nil: nothing does. others may be nil.
func New(kept *runs.Store, others Others) *History {
	h := &History{kept: kept, others: others, all: map[string]*Run{}, version: 1}
	if kept != nil && kept.Shared() != nil {
		h.shared = &sharing{store: kept.Shared(), turn: make(chan struct{}, 1), known: map[string]bool{}, ended: map[string]time.Time{}}
		h.shared.turn <- struct{}{}
	}
	return h
}

// A Begin is what is known of a run when it begins.
type Begin struct {
	Row    control.Run     // without figures and end
	User   string          // the identity of its caller; empty: nobody authenticates
	Owner  string          // of its outputs
	Groups []string        // to whose servers the run is limited
	Within bool            // it is limited to them
	Plan   json.RawMessage // as it was written; not changed any more
	From   string          // the id of the kept run that it begins with; empty: none
	Cancel func(cause error) error
}

// A Run is a run of a gateway.
type Run struct {
	h *History
	Begin

	// Guarded by h.mu:
	asking int                         // open questions
	stages func() []stages.StageReport // while it is live; nil: not yet
	end    *end                        // nil: it is live
	at     *list.Element               // in finished; nil: it is not there

	unwritten bool // other gateways do not know it yet
	other     bool // see [Others]
}

// Begin adds a run, whose End must be called.
func (h *History) Begin(b Begin) *Run {
	r := &Run{h: h, Begin: b}
	h.mu.Lock()
	defer h.mu.Unlock()
	if earlier := h.all[r.Row.Request]; earlier != nil && earlier.at != nil { // an attempt at the same run
		h.forget(earlier)
	}
	h.all[r.Row.Request] = r
	h.live++
	h.change()
	return r
}

// change wakes those who wait.
func (h *History) change() {
	h.version++
	if h.changed != nil {
		close(h.changed)
		h.changed = nil
	}
}

// Follow is called when the stages begin. report describes them at any time.
func (r *Run) Follow(report func() []stages.StageReport) {
	r.h.mu.Lock()
	defer r.h.mu.Unlock()
	r.stages = report
}

// Asking returns an asker whose open questions are known.
func (r *Run) Asking(a *stages.Asker) *stages.Asker {
	if a == nil {
		return nil
	}
	own := *a
	own.Ask = func(ctx context.Context, q stages.Question) (json.RawMessage, error) {
		r.asks(1)
		defer r.asks(-1)
		return a.Ask(ctx, q)
	}
	return &own
}

func (r *Run) asks(n int) {
	r.h.mu.Lock()
	defer r.h.mu.Unlock()
	r.asking += n
	r.h.change()
}

// End ends a run with its report, the bytes of the reply to its client, and its error. It may be called again, without effect.
func (r *Run) End(report stages.Report, returned int64, err error) {
	e := newEnd(report, returned, err)
	h := r.h
	h.mu.Lock()
	defer h.mu.Unlock()
	if r.end != nil {
		return
	}
	if e.plan = len(r.Plan); e.plan > mostPlan {
		r.Plan = nil
	}
	e.fit(r.size())
	h.live--
	r.end, r.stages, r.Cancel = e, nil, nil
	switch {
	case h.all[r.Row.Request] != r: // another attempt at the same run goes on
	case h.keep(r):
		h.insert(r)
		h.share(r)
	default:
		delete(h.all, r.Row.Request)
	}
	h.change()
}

// Leave forgets a run that another gateway goes on with.
func (r *Run) Leave() {
	h := r.h
	h.mu.Lock()
	defer h.mu.Unlock()
	h.live--
	if h.all[r.Row.Request] == r { // else another attempt at the same run has begun
		delete(h.all, r.Row.Request)
	}
	h.change()
}

// size returns how much memory the texts of the begin take.
func (b *Begin) size() int64 {
	n := len(b.Plan) + len(b.User) + len(b.Owner) + len(b.From) + len(b.Row.Caller) + len(b.Row.Client) + len(b.Row.Tool)
	for _, group := range b.Groups {
		n += int(unsafe.Sizeof(group)) + len(group)
	}
	return int64(n)
}

// keep makes room for a run that has ended, and reports whether there is some.
func (h *History) keep(r *Run) bool {
	if h.kept == nil {
		return false
	}
	for front := h.finished.Front(); front != nil && h.expired(front.Value.(*Run)); front = h.finished.Front() {
		h.forget(front.Value.(*Run))
	}
	for h.finished.Len() >= most || h.finished.Len() > 0 && h.bytes+r.end.size > mostBytes {
		h.forget(h.finished.Front().Value.(*Run))
	}
	for !h.kept.Memory().Try(r.end.size) {
		if h.finished.Len() == 0 {
			return false
		}
		h.forget(h.finished.Front().Value.(*Run))
	}
	return true
}

// insert adds a finished run in the order of the ends.
func (h *History) insert(r *Run) {
	h.bytes += r.end.size
	before := h.finished.Back()
	for before != nil && before.Value.(*Run).end.at.After(r.end.at) {
		before = before.Prev()
	}
	if before == nil {
		r.at = h.finished.PushFront(r)
		return
	}
	r.at = h.finished.InsertAfter(r, before)
}

// expired reports whether the outputs of a finished run are gone. Calls without outputs stay as long.
func (h *History) expired(r *Run) bool {
	if r.end.id != "" && !r.end.elsewhere {
		return !h.kept.Has(r.end.id)
	}
	return time.Since(r.end.at) > h.kept.TTL()
}

// forget removes a finished run.
func (h *History) forget(r *Run) {
	h.finished.Remove(r.at)
	h.bytes -= r.end.size
	h.kept.Memory().Give(r.end.size)
	delete(h.all, r.Row.Request)
}

// EndUser hides the runs of an identity that has lost access from its next holder.
func (h *History) EndUser(user string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range h.all {
		if r.User == user {
			r.User = ""
		}
	}
	if h.shared != nil {
		h.shared.endUser(user, h.kept.TTL())
	}
}

// Close forgets all finished runs.
func (h *History) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for h.finished.Len() > 0 {
		h.forget(h.finished.Front().Value.(*Run))
	}
}

// Wait implements [control.Runs].
func (h *History) Wait(ctx context.Context, cursor uint64) (uint64, error) {
	if h.watched() {
		h.refresh(ctx)
	}
	h.mu.Lock()
	if cursor != h.version {
		defer h.mu.Unlock()
		return h.version, nil
	}
	if h.changed == nil {
		h.changed = make(chan struct{})
	}
	changed, live := h.changed, h.live > 0
	h.mu.Unlock()
	var tick <-chan time.Time
	switch {
	case live:
		tick = time.After(liveEvery)
	case h.shared != nil:
		tick = time.After(shareEvery)
	}
	select {
	case <-changed:
	case <-tick:
	case <-ctx.Done():
		return cursor, context.Cause(ctx)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.version, nil
}

// Cancel implements [control.Runs].
func (h *History) Cancel(v control.Viewer, request string) error {
	h.mu.Lock()
	r, err := h.find(v, request)
	if err == nil && r.end != nil {
		err = &control.Error{Status: 409, Message: "run " + request + " has ended", Hint: "there is nothing to cancel"}
	}
	if err != nil {
		h.mu.Unlock()
		return err
	}
	cancel := r.Begin.Cancel
	h.mu.Unlock()
	return cancel(ErrCancelled)
}
