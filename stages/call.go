package stages

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

// A toolCall is what a tool stage compiles to.
type toolCall struct {
	info     *Tool
	args     []member
	fallback []member // arguments for what neither data nor args give
	pages    int      // calls of one that fetches all pages; 0: it is called once
	as       as
	show     bool  // the result's blocks are the reply's
	each     bool  // it runs once per item
	joins    bool  // its items come out beside its results
	distinct *bool // whether equal calls are to be made once; nil: where nothing can be out of date
	repeats  bool  // a call that has left does not keep its item from being tried again
	stale    bool  // a for_each around it changes something: what the tool has returned for one item may be out of date for the next
	picked   bool  // a command behind it picks lines of its result, which keep its kind
}

// bind returns the caller for one run.
func (t *toolCall) bind(r *Run, m *Meter) *caller {
	c := &caller{toolCall: t, r: r, m: m}
	if once := t.distinct; t.each && (once == nil && t.info.ReadOnly && !t.stale || once != nil && *once) {
		c.shared = &shared{c: c, forever: !t.info.ReadOnly, answers: map[callKey]*answer{}}
	}
	return c
}

// caller is a tool stage bound to a run.
type caller struct {
	*toolCall
	r      *Run
	m      *Meter
	shared *shared
}

func (c *caller) filter(ctx context.Context, in io.Reader, out io.Writer) error {
	room := c.r.deps.Memory.Lease()
	defer room.Close()
	args, err := c.arguments(ctx, in, room)
	if err != nil {
		return err
	}
	result, err := c.once(ctx, args)
	if err != nil {
		return err
	}
	if c.show {
		c.r.shown = result
	} else {
		defer result.Memory.Close()
	}
	if err := c.r.count(int64(len(result.Data))); err != nil {
		return err
	}
	defer c.r.held.Add(-int64(len(result.Data)))
	headersOf(ctx).out.describe(result.about())
	headersOf(ctx).tape.lastWrite()
	_, err = out.Write(result.Data)
	return err
}

// once makes the call, or takes the result of an equal one. What has left counts for the attempt that it belongs to;
// so does a failure that is shared: its call may have taken effect, and must not be made again.
func (c *caller) once(ctx context.Context, args json.RawMessage) (Result, error) {
	it := itemOf(ctx)
	var o outcome
	own := c.shared == nil
	if own {
		o = c.call(ctx, args)
	} else {
		o, own = c.shared.call(ctx, it.attempt(), args)
	}
	if o.left && (own || o.err != nil) {
		it.left(c.repeats)
	}
	if o.err == nil {
		o.err = c.as.apply(&o.result, c.picked)
	}
	if o.err != nil {
		o.result.Memory.Close()
	}
	return o.result, o.err
}

// call makes the call, whose time begins when it is sent. A call with effects that was sent is let finish, whatever ends
// around it; one that still waits for its turn ends with its stage.
func (c *caller) call(ctx context.Context, args json.RawMessage) (o outcome) {
	if ctx.Err() != nil {
		return outcome{err: context.Cause(ctx)}
	}
	key, result, known, err := c.earlier(args)
	if !known && err == nil {
		err = c.r.called()
	}
	if known || err != nil {
		return outcome{result: result, err: err}
	}
	defer c.m.call()()
	s := &sending{caller: c, stage: ctx, ctx: ctx, key: key, outcome: outcome{err: errNoReturn}}
	if !c.info.ReadOnly {
		var release func()
		s.hold, release = holdEffects(ctx, c.r.outer, itemOf(ctx).held(), true)
		defer release()
		s.ctx = s.hold.ctx
	}
	defer func() { o = s.end() }() // also where the call panics: it may have taken effect
	s.result, s.err = c.r.deps.Tools.CallTool(s.ctx, Call{
		Server: c.info.Server, Name: c.info.Name, Args: args, Timeout: c.m.step.clock.given,
		Reading: s.hold == nil, Trace: c.r.trace, Progress: c.r.follow(c.m, c.each),
		Sent: s.send, Unsent: s.unsend,
	})
	return o
}

// errNoReturn stands for what a call came to where it panics instead of returning.
var errNoReturn = errors.New("the call did not return")

// A sending is a call on its way.
type sending struct {
	*caller
	stage context.Context
	ctx   context.Context // of the call
	hold  *effectHold     // nil: it only reads
	key   string          // of an effect, where runs are kept
	outcome
}

// send permits the call to leave, and notes that it has left.
func (s *sending) send() bool {
	if s.hold == nil && s.stage.Err() != nil || !s.hold.send() {
		return false
	}
	s.left = true
	s.m.count(func(r *StageReport) { r.Calls++ })
	return true
}

// unsend notes that the call has not left after all.
func (s *sending) unsend() {
	s.left = false
	s.m.count(func(r *StageReport) { r.Calls-- })
	s.hold.unsend()
}

// end counts what the call came to, marks its failure, and keeps that it has changed something, or may have. A success is a
// call made. The answer is kept as well where nothing else keeps it: of a stage within another one, and of a call that is
// made once for many items.
func (s *sending) end() outcome {
	if s.err != nil {
		s.err = s.ofCall(s.ctx, s.err, s.left)
	}
	failed, _ := errors.AsType[*Error](s.err)
	refused := failed != nil && failed.Answered
	s.m.count(func(r *StageReport) {
		switch {
		case s.err == nil:
			if !s.left {
				r.Calls++
			}
			s.left = true
			r.Returned += int64(len(s.result.Data))
		case !s.left || s.info.ReadOnly:
		case refused:
			r.Refused++
		default:
			r.Unknown++
		}
	})
	if s.left && s.key != "" && !refused {
		e := pastEffect{Key: s.key, Place: s.m.step.place, Unknown: s.err != nil}
		if s.err == nil && (s.shared != nil || !s.each && e.Place.nested()) {
			e.Kept, e.Result = true, append(s.result.about().encode(), s.result.Data...)
		}
		s.r.effects.add(s.stage, e)
	}
	return s.outcome
}

// earlier returns what a call came to in the run that is continued, or refuses to make it again. key is that of a call
// that may change something, where runs are kept; else it is empty.
func (c *caller) earlier(args json.RawMessage) (key string, result Result, known bool, err error) {
	if c.r.effects == nil || c.info.ReadOnly {
		return "", Result{}, false, nil
	}
	decoded := 32 * int64(min(len(args), maxNormal))
	if err := c.r.memory.Grow(decoded); err != nil {
		return "", Result{}, false, noMemory(err)
	}
	key = callEffect(c.info.Server, c.info.Name, args)
	_ = c.r.memory.Grow(-decoded) // does not fail
	kept, known, err := c.r.effects.answer(key, c.info.Server+"/"+c.info.Name, c.m.step.place, c.each)
	if !known || err != nil {
		return key, Result{}, false, err
	}
	if c.shared != nil {
		c.m.count(func(r *StageReport) { r.Shared++ })
	}
	a, data, err := decodeAbout(kept)
	return key, a.result(data), err == nil, err
}

// ofCall marks the failure of a call, and says of one that took too long which limit that was, what became of it and how
// to get more time. Whoever made the error may keep it and give it to others. ctx is the call's: only its end is no failure.
func (c *caller) ofCall(ctx context.Context, err error, left bool) error {
	var failed *Error
	if !errors.As(err, &failed) {
		if ctx.Err() != nil {
			return err
		}
		failed = Errorf(Internal, "", "%w", err)
	}
	own := *failed
	own.call = true
	if own.Code == Timeout && !own.Answered {
		own.Msg += fmt.Sprintf(" (%s)", c.m.step.clock.words())
		own.Limit = c.m.step.clock.reached()
		own.Hint = "ask the tool for less, or " + c.m.step.clock.more()
		if left && !c.info.ReadOnly {
			own.Msg += "; it was sent and may have taken effect"
			own.Hint = "find out what was changed (with a tool that reads) before another call, or " + c.m.step.clock.more()
		}
	}
	return &own
}

// rehearse is a call that is noted and not made. Calls that would share one result are noted once.
func (c *caller) rehearse(note noteCall) Filter {
	return func(ctx context.Context, in io.Reader, _ io.Writer) error {
		room := c.r.deps.Memory.Lease()
		defer room.Close()
		args, err := c.arguments(ctx, in, room)
		if err != nil || c.shared != nil && !c.shared.first(args) {
			return err
		}
		key, _, known, err := c.earlier(args)
		switch {
		case known:
			return nil
		case err != nil && key == "":
			return err
		case err != nil:
			return note(args, err.Error())
		}
		return note(args, "")
	}
}

// as says what a stage takes a tool's result for.
type as string

const (
	asFound as = ""     // what it is
	asText  as = "text" // one text, even if it is an object or array
	asJSON  as = "json" // one JSON value, else the stage fails
)

// apply makes the result what the stage takes it for. Whether a text is one whole JSON object or array is looked at here
// only where lines of it are picked: later it could not be told any more.
func (a as) apply(r *Result, picked bool) error {
	switch {
	case a == asText:
		r.Kind, r.Spans = ExactText, nil
	case picked && r.Kind == ToolText && r.Spans == nil && wholeJSON(bytes.TrimSpace(r.Data)):
		r.Kind = Values
	}
	if a != asJSON || r.Kind == Values || r.None {
		return nil
	}
	if !json.Valid(r.Data) {
		return Errorf(ToolError, `leave "as" out, and make JSON of the text with a command: jq -s . for JSON lines, jq -R -s . for other text`,
			`the result is not JSON, which "as": "json" demands: %s`, texts.Quote(texts.Cut(string(r.Data[:min(len(r.Data), 400)]), 200)))
	}
	r.Kind, r.Spans = Values, nil
	return nil
}

// does adds to what a stage says that it does.
func (a as) does() string {
	if a == asFound {
		return ""
	}
	return ", result as " + string(a)
}

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

// follow returns what a call of a tool tells of its progress; nil where nobody wants to know.
func (r *Run) follow(m *Meter, each bool) func(ToolProgress) {
	if r.progress == nil {
		return nil
	}
	var last ToolProgress // of this call; guarded by m.mu
	return func(p ToolProgress) {
		m.mu.Lock()
		m.counts.Tool.Done += max(0, p.Done-last.Done)
		m.counts.Tool.Total += max(0, p.Total-last.Total)
		last.Done, last.Total = max(last.Done, p.Done), max(last.Total, p.Total)
		if !each && p.Message != "" {
			m.counts.Tool.Message = p.Message
		}
		sum := m.counts.Tool
		m.mu.Unlock()
		r.progress(Progress{Items: r.items.Load(), Calls: r.calls.Load(), Place: m.step.place, Tool: sum, Each: each})
	}
}
