package stages

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// RunWithin runs p as the work of a call of a tool, as a part of the run that makes the call ([Call.Run]): its limits count both,
// commands of both share a sandbox session, and nothing of it is kept apart. The call counts as sent with the first call within
// it that may change something. The caller closes the memory of the result.
func (p *Pipeline) RunWithin(ctx context.Context, call Call) (result Result, err error) {
	around := call.Run
	timeout := cmp.Or(call.Timeout, p.deps.Limits.Run)
	clock := call.Asker.Clock()
	inner, cancel := clock.WithTimeout(ctx, timeout, errTimeout)
	defer cancel()
	r := &Run{
		asker: call.Asker, clock: clock, deps: p.deps, plan: p.commands, caller: around.caller, outer: around.outer, trace: call.Trace,
		progress: around.silent(), within: &inCall{run: around, call: call}, memory: p.deps.Memory.Lease(), spools: p.deps.Memory.Lease(),
	}
	defer r.join(around)()
	out := &holder{buffer: buffer{lease: p.deps.Memory.Lease()}, r: r}
	stages := func() []StageReport { return nil }
	over := func() {}
	_, err = p.perform(inner, r, nil, out, RunOptions{Begun: func(now func() []StageReport) {
		stages = now
		if call.Nests != nil {
			over = call.Nests(now)
		}
	}})
	over()
	if err = p.ofCall(ctx, inner, err, call, stages()); err == nil {
		result, err = r.result(out)
	}
	if err != nil {
		out.lease.Close()
	}
	return result, err
}

// result is what the last stage has written, as the result of a tool.
func (r *Run) result(out *holder) (Result, error) {
	a := r.out.get()
	result := Result{Data: out.buf.Bytes(), Kind: a.Kind, Spans: a.Blocks, Several: !a.Single, Blocks: r.shown.Blocks, Memory: out.lease}
	for _, block := range result.Blocks {
		if err := out.lease.Grow(int64(len(block))); err != nil {
			return Result{}, noMemory(err)
		}
	}
	return result, nil
}

// ofCall makes the end of the pipeline that of a call. ctx is that of the call, inner has the time of the pipeline.
func (p *Pipeline) ofCall(ctx, inner context.Context, err error, call Call, done []StageReport) error {
	e, known := errors.AsType[*Error](err)
	switch {
	case err != nil && !known && ctx.Err() != nil, known && e.Code == Cancelled && ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil && !known && context.Cause(inner) == errTimeout:
		e = Errorf(Timeout, "", "the pipeline %s did not end within %s", call.Name, shortTime(cmp.Or(call.Timeout, p.deps.Limits.Run)))
	case err == nil, !known && echo(err) && !errors.Is(err, errBroken):
		return nil
	default:
		e = AsError(err)
	}
	if !tookEffect(done) {
		return e.Within(call)
	}
	return e.Within(call, effectsIn(done)...)
}

// tookEffect reports whether a call of some stage may have changed something: one that its tool has not refused.
func tookEffect(list []StageReport) bool {
	return slices.ContainsFunc(list, func(s StageReport) bool {
		return s.Changes && len(s.Stages) == 0 && s.Calls > s.Refused || tookEffect(s.Stages)
	})
}

// Within is the failure of a stage as that of the call that runs it. Its own end says where it was, behind words that may be
// foreign, and which tools may have changed something.
func (e *Error) Within(call Call, changed ...string) *Error {
	own := *e
	at := ""
	if e.Place != "" {
		at = fmt.Sprintf("stage %s, %s, of ", e.Place, e.Label)
	}
	if e.Item > 0 {
		at = fmt.Sprintf("item %d of %s", e.Item, at)
	}
	own.adds(fmt.Sprintf(" (%s%s/%s)", at, call.Server, call.Name))
	if len(changed) > 0 {
		own.adds("; calls that may have changed something: " + strings.Join(changed[:min(len(changed), shownMessages)], ", "))
		own.Hint = "find out what was changed (with a tool that reads) before another call"
	}
	own.Place, own.Label, own.Field, own.each, own.Fix, own.Sample = "", "", "", nil, nil, nil
	own.Item, own.Items, own.Started, own.Done, own.Failed = 0, 0, 0, 0, 0
	own.Answered = own.Answered && len(changed) == 0
	own.call, own.repeats = false, false
	return &own
}

// inCall is the call whose work a run is.
type inCall struct {
	run  *Run
	call Call

	mu   sync.Mutex
	sent int // calls that may change something; guarded by mu
}

// send counts a call that may change something, and with the first one sends the call around. A nil inCall permits everything.
func (w *inCall) send() bool {
	if w == nil || w.call.MaySend == nil {
		return true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sent == 0 && !w.call.MaySend() {
		return false
	}
	w.sent++
	return true
}

// unsend takes back a call that was not sent.
func (w *inCall) unsend() {
	if w == nil || w.call.MaySend == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sent--; w.sent == 0 && w.call.Unsent != nil {
		w.call.Unsent()
	}
}

// item names the item that the call around is for.
func (w *inCall) item() string {
	if w == nil {
		return ""
	}
	return w.call.Item
}

// A tally counts what a run uses. Where the run is the work of a call, it counts for the run around it as well: that sum is what
// limits bound.
type tally struct {
	own    atomic.Int64
	around *tally
}

// Add counts n and returns the sum.
func (t *tally) Add(n int64) int64 {
	sum := t.own.Add(n)
	if t.around != nil {
		return t.around.Add(n)
	}
	return sum
}

// Load returns the sum.
func (t *tally) Load() int64 {
	if t.around != nil {
		return t.around.Load()
	}
	return t.own.Load()
}

// join makes a run count for the one around it. leave gives back what it has at its end.
func (r *Run) join(around *Run) (leave func()) {
	r.calls.around, r.items.around, r.saved.around, r.sets.around = &around.calls, &around.items, &around.saved, &around.sets
	r.held.around, r.shared.around, r.spooled.around = &around.held, &around.shared, &around.spooled
	return func() {
		for _, t := range []*tally{&r.held, &r.shared, &r.spooled} {
			t.Add(-t.own.Load())
		}
		r.memory.Close()
		r.spools.Close()
		r.shown.Memory.Close()
	}
}

// silent returns what takes the progress of a run within r: how much is done, without the places of its stages.
func (r *Run) silent() func(Progress) {
	if r.progress == nil {
		return nil
	}
	return func(p Progress) { r.progress(Progress{Items: p.Items, Calls: p.Calls}) }
}

// Changes reports whether the pipeline may change something.
func (p *Pipeline) Changes() bool { return changing(p.steps) }

// Chains is how many commands and rows of neighbouring commands may run at the same time, at most.
func (p *Pipeline) Chains() int { return chainsOf(p.steps) }
