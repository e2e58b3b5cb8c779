package gateway

import (
	"context"

	"github.com/mcsh-dev/mcsh/stages"
)

// A Hearing is told how a pipeline fares that somebody runs at a page, before its call has a reply.
type Hearing struct {
	Checked func(plan stages.Plan, wrong []*stages.Error) // the plan is checked; nil: nobody asks
	Begun   func(request string)                          // a run has begun; nil: nobody asks
}

type hearingKey struct{}

// Heard returns a context whose calls of execute_pipeline are told to h.
func Heard(ctx context.Context, h Hearing) context.Context {
	return context.WithValue(ctx, hearingKey{}, &h)
}

func hearingOf(ctx context.Context) *Hearing {
	h, _ := ctx.Value(hearingKey{}).(*Hearing)
	return h
}

// checked tells of the check of a plan.
func (h *Hearing) checked(pipeline *stages.Pipeline, wrong []*stages.Error, late *stages.Error) {
	switch {
	case h == nil || h.Checked == nil:
	case late != nil:
		h.Checked(stages.Plan{}, []*stages.Error{late})
	case wrong != nil:
		h.Checked(stages.Plan{}, wrong)
	default:
		h.Checked(pipeline.Plan(), nil)
	}
}

// client returns the name of the program that calls: a page is none.
func (h *Hearing) client(name string) string {
	if h == nil {
		return name
	}
	return "console"
}

// begun tells of the begin of a run.
func (h *Hearing) begun(request string) {
	if h != nil && h.Begun != nil {
		h.Begun(request)
	}
}
