package stages

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/memory"
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
	limited  bool  // somebody has chosen the time of a call
	joins    bool  // its items come out beside its results
	distinct *bool // whether equal calls are to be made once; nil: where nothing can be out of date
	repeats  bool  // a call that was sent does not keep its item from being tried again
	stale    bool  // a for_each around it changes something: a result for one item may be out of date for the next
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

// once makes the call, or takes the result of an equal one. A call that was sent counts for the attempt that it
// belongs to; so does a shared failure: its call may have taken effect, and must not be made again.
func (c *caller) once(ctx context.Context, args json.RawMessage) (Result, error) {
	it := itemOf(ctx)
	var o outcome
	own := c.shared == nil
	if own {
		o = c.call(ctx, args)
	} else {
		o, own = c.shared.call(ctx, it.attempt(), args)
	}
	if o.sent && (own || o.err != nil) {
		it.callSent(c.repeats)
	}
	if o.err == nil {
		o.err = c.as.apply(&o.result, c.picked)
	}
	if o.err != nil {
		o.result.Memory.Close()
	}
	return o.result, o.err
}

// call makes the call, whose time begins when it is sent. A call with effects that was sent finishes, even if everything
// around it ends; one that still waits for its turn ends with its stage.
func (c *caller) call(ctx context.Context, args json.RawMessage) (o outcome) {
	if ctx.Err() != nil {
		return outcome{err: context.Cause(ctx)}
	}
	if t := c.r.effects.unfinished(ctx, c, args); t != nil {
		key := t.Key
		if c.info.ReadOnly {
			key = "" // it is no effect
		}
		o = c.send(ctx, args, key, t)
		if !c.info.ReadOnly || !errors.Is(o.err, ErrNoTask) {
			return o
		}
	}
	key, result, known, err := c.earlier(args)
	if !known && err == nil {
		err = c.r.called()
	}
	if known || err != nil {
		return outcome{result: result, err: err}
	}
	return c.send(ctx, args, key, nil)
}

// send makes a call, or waits for the task of an earlier one.
func (c *caller) send(ctx context.Context, args json.RawMessage, key string, t *keptTask) (o outcome) {
	defer c.m.call()()
	s := &sending{caller: c, stage: ctx, ctx: ctx, args: args, key: key, task: t, again: t != nil, outcome: outcome{err: errNoReturn}}
	if !c.info.ReadOnly {
		var release func()
		s.hold, release = holdEffects(ctx, c.r.outer, c.r.clock, itemOf(ctx).held(), !c.info.IsPipeline)
		defer release()
		s.ctx = s.hold.ctx
	}
	defer func() { o = s.end() }() // also where the call panics: it may have taken effect
	if s.again && !s.goOn() {
		s.err = context.Cause(ctx)
		return o
	}
	if s.hold != nil && !s.again {
		if s.intent, s.err = c.r.effects.begin(ctx, pastEffect{Key: key, Place: c.m.step.place}); s.err != nil {
			return o
		}
		s.err = errNoReturn
	}
	asker, over := c.r.asker.InCall(c.r.clock)
	defer over()
	s.result, s.err = c.r.deps.Tools.CallTool(s.ctx, Call{
		Server: c.info.Server, Name: c.info.Name, Args: args, Timeout: c.m.step.clock.given, Limited: c.limited,
		Reading: s.hold == nil, Trace: c.r.trace, Progress: c.r.follow(c.m, c.each),
		MaySend: s.send, Unsent: s.unsend, Waits: c.m.waits, Task: s.keeping(),
		Asker: asker, Item: cmp.Or(itemOf(ctx).name(), c.r.within.item()), Run: c.r, Nests: c.m.nests,
	})
	return o
}

// errNoReturn stands for what a call came to where it panics instead of returning.
var errNoReturn = errors.New("the call did not return")

// A sending is a call on its way.
type sending struct {
	*caller
	stage  context.Context
	ctx    context.Context // of the call
	hold   *effectHold     // nil: it only reads
	args   json.RawMessage
	key    string    // of an effect, where runs are kept
	task   *keptTask // that the tool has answered with; nil: none
	again  bool      // the task is that of an earlier call, and there is no other call
	intent int       // of the call in the list of effects; 0: none
	outcome
}

// send says whether the call may be sent, and notes that it is.
func (s *sending) send() bool {
	if s.hold == nil && s.stage.Err() != nil || s.hold != nil && !s.r.within.send() {
		return false
	}
	if !s.hold.send() {
		s.r.within.unsend()
		return false
	}
	s.sent = true
	s.m.count(func(r *StageReport) { r.Calls++ })
	return true
}

// unsend notes that the call was not sent after all.
func (s *sending) unsend() {
	s.sent = false
	s.m.count(func(r *StageReport) { r.Calls-- })
	if s.hold != nil {
		s.hold.unsend()
		s.r.within.unsend()
	}
}

// end counts what the call came to, marks its failure, and keeps that it has changed something, or may have. A success is a
// call made. The answer is kept as well where nothing else keeps it: of a stage within another one, and of a call that is
// made once for many items.
func (s *sending) end() outcome {
	if s.err != nil {
		s.err = s.ofCall(s.ctx, s.err, s.sent)
	}
	failed, _ := errors.AsType[*Error](s.err)
	s.endTask(failed)
	refused := failed != nil && failed.Answered
	s.m.count(func(r *StageReport) {
		switch {
		case s.err == nil:
			if !s.sent {
				r.Calls++
			}
			s.sent = true
			r.Returned += int64(len(s.result.Data))
		case !s.sent || s.info.ReadOnly || s.again:
		case refused:
			r.Refused++
		default:
			r.Unknown++
		}
	})
	if !s.sent || s.key == "" || refused {
		s.r.effects.unmade(s.intent)
	} else {
		e := pastEffect{Key: s.key, Place: s.m.step.place, Unknown: s.err != nil, Of: s.task.handle(), Intent: s.intent}
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
// to get more time. Its maker may keep the error and share it. ctx is the call's: only its end is no failure.
func (c *caller) ofCall(ctx context.Context, err error, sent bool) error {
	if _, failed := errors.AsType[*Error](err); !failed && ctx.Err() != nil {
		return err
	}
	own := *AsError(err)
	own.call = true
	if own.Code == Timeout && !own.Answered {
		own.Msg += fmt.Sprintf(" (%s)", c.m.step.clock.words())
		own.Limit = c.m.step.clock.reached()
		own.Hint = "ask the tool for less, or " + c.m.step.clock.more()
		if sent && !c.info.ReadOnly {
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
		if err != nil || c.shared != nil && !c.shared.first(args) || c.r.effects.unfinished(ctx, c, args) != nil {
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

// as says how a stage reads the result of a tool.
type as string

const (
	asFound as = ""     // what it is
	asText  as = "text" // one text, even if it is an object or array
	asJSON  as = "json" // one JSON value, else the stage fails
)

// apply makes the result what the stage takes it for. Whether a text is one whole JSON object or array is looked at here
// only where lines of it are picked: the lines alone do not show it.
func (a as) apply(r *Result, picked bool) error {
	switch {
	case a == asText:
		r.Kind, r.Spans = ExactText, nil
	case picked && r.Kind == ToolText && r.Spans == nil && wholeJSON(bytes.TrimSpace(r.Data)):
		r.Kind = Values
	}
	if a != asJSON || r.Kind == Values && !r.Several || r.None {
		return nil
	}
	if !json.Valid(r.Data) {
		return Errorf(ToolError, `leave "as" out, and make JSON of the text with a command: jq -s . for JSON lines, jq -R -s . for other text`,
			`the result is not JSON, which "as": "json" demands: %s`, texts.Quote(texts.Cut(string(r.Data[:min(len(r.Data), 400)]), 200)))
	}
	r.Kind, r.Spans, r.Several = Values, nil, false
	return nil
}

// does adds to what a stage says that it does.
func (a as) does() string {
	if a == asFound {
		return ""
	}
	return ", result as " + string(a)
}

// arguments makes the call's arguments of the input. The arguments, the input and the message count in room.
func (c *caller) arguments(ctx context.Context, in io.Reader, room *memory.Lease) (json.RawMessage, error) {
	limit := c.r.deps.Limits.Input
	input, more, err := readAll(in, limit, room)
	if err != nil {
		return nil, err
	}
	if more {
		return nil, OverLimit("input", `set "for_each": true to call the tool once per item, or shrink the data with a command before`,
			"the tool would get more than %s in one call", texts.Bytes(limit))
	}
	if err := room.Grow(2 * int64(len(input))); err != nil {
		return nil, noMemory(err)
	}
	data := headersOf(ctx).in
	args, leftOut, none, err := arguments(ctx, c.info, c.args, c.fallback, input, data.get())
	if err == nil {
		err = c.check(ctx, args, leftOut...)
	}
	if err != nil {
		return nil, c.perItem(ctx, err, input, data)
	}
	c.m.leave(leftOut, none && !c.joins)
	return args, nil
}

// perItem adds to the refusal of an array that the tool can be called for each of its elements.
func (c *caller) perItem(ctx context.Context, err error, input []byte, data *header) error {
	e, ok := errors.AsType[*Error](err)
	if rest := trimBlank(input); !ok || c.each || len(rest) == 0 || rest[0] != '[' {
		return err
	}
	first, none := newItems(bytes.NewReader(input), c.r.deps.Limits.Item, data).next()
	if none != nil {
		return err
	}
	args, _, _, refused := arguments(ctx, c.info, c.args, c.fallback, first.data, first.about())
	if refused != nil || c.check(ctx, args) != nil {
		return err
	}
	item := *e
	item.Hint = `the input is an array: "for_each": true calls the tool once per element; ` + e.Hint
	item.Fix = json.RawMessage(`{"for_each": true}`)
	return &item
}

// quotedNames lists the first names. They are quoted, so that failures that differ only in them are counted together.
func quotedNames(names []string) string {
	const most = 10
	var quoted []string
	for _, name := range names[:min(most, len(names))] {
		quoted = append(quoted, texts.Quote(name))
	}
	if len(names) > most {
		quoted = append(quoted, "…")
	}
	return strings.Join(quoted, ", ")
}

// check validates the arguments of a call, from which fields of the data were left out.
func (c *caller) check(ctx context.Context, args json.RawMessage, leftOut ...string) error {
	err, note := c.info.Refuse(ctx, args)
	if note != "" && ctx.Err() == nil { // else the end of the run has cut it short
		c.m.used("args", false, note)
	}
	if err == nil {
		return nil
	}
	if len(leftOut) > 0 {
		err.Msg += " (left out: " + quotedNames(leftOut) + ")"
	}
	return err
}

// Refuse returns the error of arguments that do not fit the schema of the tool, or nil. The note says why they are not checked
// here.
func (t *Tool) Refuse(ctx context.Context, args json.RawMessage) (refused *Error, note string) {
	if t.Input.Check == nil {
		return nil, ""
	}
	problems, note := t.Input.Check(ctx, args, false)
	if len(problems) == 0 {
		return nil, note
	}
	return Errorf(InvalidArguments, "signature: "+t.Signature, "%s; the arguments were %s",
		strings.Join(problems, "; "), texts.Cut(string(args), 200)), note
}
