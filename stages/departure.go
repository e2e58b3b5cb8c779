package stages

import (
	"cmp"
	"context"
)

// A departure follows one call of a tool until it is sent.
type departure struct {
	m      *Meter
	stage  context.Context
	around *attempt // that the call belongs to
	left   bool     // the call was sent

	end  context.CancelCauseFunc // of the call's own context; nil: the call ends with its stage
	stay func() bool             // cuts the call's context from the stage's, and reports whether that was in time
}

// letFinish returns a context for a call with effects: it ends with the stage until the call is sent, and from then on
// with nothing less than the run's own caller.
func (d *departure) letFinish(r *Run) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancelCause(context.WithoutCancel(d.stage))
	stop := context.AfterFunc(r.outer, func() { end(context.Cause(r.outer)) })
	d.end = end
	d.follow()
	return ctx, func() { stop(); d.stay(); end(nil) }
}

// follow ends the call when the stage ends.
func (d *departure) follow() {
	d.stay = context.AfterFunc(d.stage, func() { d.end(context.Cause(d.stage)) })
}

// sent implements [Call.Sent]. Where the call may not leave any more, its context has ended: the error that the call ends
// with is there already.
func (d *departure) sent() bool {
	if d.end == nil && d.stage.Err() != nil {
		return false
	}
	if d.end != nil && (!d.stay() || !d.around.send()) {
		d.end(cmp.Or(context.Cause(d.stage), errBroken)) // of an item that ends the stage hears a moment later
		return false
	}
	d.left = true
	d.m.calls.Add(1)
	return true
}

// unsent implements [Call.Unsent].
func (d *departure) unsent() {
	d.left = false
	d.m.calls.Add(-1)
	if d.end != nil {
		d.around.unsend()
		d.follow()
	}
}
