package history

import (
	"context"

	"github.com/mcsh-dev/mcsh/stages"
)

// Others returns the live runs that belong to no gateway: any of them may do one, and any may cancel it.
type Others func(ctx context.Context) ([]OtherRun, error)

// An OtherRun is a live run that belongs to no gateway. Where one does it, that knows more of it.
type OtherRun struct {
	Begin
	Stages []stages.StageReport // nil: none has begun
}

// showOthers replaces the runs of [Others]. Those that this gateway does itself, or that have ended, stay as they are known here.
func (h *History) showOthers(live []OtherRun) {
	h.mu.Lock()
	defer h.mu.Unlock()
	there := map[string]bool{}
	for _, o := range live {
		there[o.Row.Request] = true
		r := h.all[o.Row.Request]
		if r == nil {
			r = &Run{h: h, Begin: o.Begin, other: true}
			if h.shared.isEnded(r.Begin) {
				r.User = ""
			}
			h.all[r.Row.Request] = r
			h.change()
		}
		if r.other {
			r.stages = func() []stages.StageReport { return o.Stages }
		}
	}
	for request, r := range h.all {
		if r.other && !there[request] {
			delete(h.all, request)
			h.change()
		}
	}
}
