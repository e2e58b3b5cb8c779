package upstream

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/mcsh-dev/mcsh/internal/memory"
	"github.com/mcsh-dev/mcsh/internal/pausing"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream/results"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
	"github.com/mcsh-dev/mcsh/upstream/sessions"
)

const (
	longestWait  = 24 * time.Hour   // for a task whose call nothing else bounds
	requestLimit = time.Minute      // for the answer to a request about a task, if the server has no shorter timeout
	inputLimit   = 10 * time.Minute // for that to a request during which the server asks; it is made again
	maxBadPolls  = 10               // requests in a row that may fail
	cancelLimit  = 2 * time.Second  // for the request that cancels a task
)

// A waiting is the wait for a task. It holds the slot of its call.
type waiting struct {
	sc    *serverConn
	call  stages.Call
	lease *memory.Lease  // of the result
	clock *pausing.Clock // of the call and of all requests about the task
	task  *results.Task
	on    *sessions.Session // used last; it is held until the end of the wait
	polls int

	polled *memory.Lease   // of what the server has said of the task last
	asked  map[string]bool // names of questions

	exclusive *exclusive      // of the call
	life      context.Context // of the wait
	held      *rpc.Request    // stands for a task of the older form where the server may ask about it, or nil
	letGo     func()          // of held
}

// limit is the longest time from the call to the result.
func (w *waiting) limit() time.Duration {
	if w.call.Limited && w.call.Timeout > 0 {
		return w.call.Timeout
	}
	return cmp.Or(w.sc.server.Timeout, longestWait)
}

// wait waits for the task within the time of limited, and returns the result of the call. A task that goes on after the wait is
// cancelled, unless somebody may wait for it again.
func (w *waiting) wait(ctx, limited context.Context) (json.RawMessage, error) {
	defer func() { w.polled.Close() }()
	w.life = limited
	w.hold()
	raw, err := w.outcome(limited)
	lasting := w.call.Task.Lasts != nil
	switch {
	case err == nil:
		return raw, nil
	case ctx.Err() != nil:
		err = fmt.Errorf("waiting for %s: %w", w.label(), ctx.Err())
	case errors.Is(context.Cause(limited), sessions.ErrTimeout):
		err = stages.Errorf(stages.Timeout, "", "%s did not end within %s", w.label(), w.limit())
	case limited.Err() != nil:
		err, lasting = w.sc.closedError(), false
	default:
		lasting = lasting && asError(err).Code != stages.ToolError // the server does not keep to the protocol
	}
	ended := w.task.Over() || errors.Is(err, stages.ErrNoTask)
	if !ended && (!lasting || !w.call.Task.Lasts()) {
		w.cancel()
	}
	return nil, err
}

// label names the task in messages. Its id is not for them: it may be all that one needs to read the result.
func (w *waiting) label() string { return "the task of " + toolLabel(w.sc.server.Name, w.call.Name) }

// use makes s the session that is held: it is not ended as an unused one, and its end waits until the task is cancelled.
func (w *waiting) use(s *sessions.Session) {
	if w.on == s {
		return
	}
	if s != nil {
		s.Calls.Add(1)
	}
	if w.on != nil {
		w.on.Release()
	}
	w.on = s
	w.hold()
}

// taskSteps are what each status of a task makes us do before it is asked for again. A step with a result or an error is the
// last one.
func taskSteps() map[string]func(*waiting, context.Context) (json.RawMessage, error) {
	return map[string]func(*waiting, context.Context) (json.RawMessage, error){
		"":                (*waiting).look,
		rpc.TaskWorking:   (*waiting).sleep,
		rpc.TaskAsks:      (*waiting).answer,
		rpc.TaskCompleted: (*waiting).completed,
		rpc.TaskFailed:    (*waiting).failed,
		rpc.TaskCancelled: (*waiting).cancelled,
	}
}

func (w *waiting) outcome(ctx context.Context) (json.RawMessage, error) {
	w.progress("")
	steps := taskSteps()
	for {
		step := steps[w.task.Status]
		if step == nil {
			return nil, results.Fault("%s has a status that is not known: %s", w.label(), texts.Quote(texts.Cut(w.task.Status, 40)))
		}
		if raw, err := step(w, ctx); raw != nil || err != nil {
			return raw, err
		}
		if err := w.poll(ctx); err != nil {
			return nil, err
		}
	}
}

// look asks for a task at once: an earlier call has waited for it.
func (w *waiting) look(context.Context) (json.RawMessage, error) {
	if w.polls > 0 {
		return nil, results.Fault("%s has no status", w.label())
	}
	return nil, nil
}

// sleep waits for the time of the next request. Meanwhile nothing of the last answer is held: it may be large.
func (w *waiting) sleep(ctx context.Context) (json.RawMessage, error) {
	w.polled.Close()
	w.task.Result, w.task.Failure, w.task.Requests = nil, nil, nil
	empty(w.lease)
	return nil, pausing.For(ctx, w.task.Pause(w.polls))
}

// completed returns the result.
func (w *waiting) completed(ctx context.Context) (json.RawMessage, error) {
	if !w.task.Inline {
		return w.fetch(ctx, requestLimit)
	}
	if rpc.IsNull(w.task.Result) {
		return nil, results.Fault("%s has completed without a result", w.label())
	}
	w.lease.Adopt(w.polled)
	return w.task.Result, nil
}

// failed returns the result of a task that has failed, or an error that says why. That the tool has not run, as some errors
// say of a call, is not believed here: it has begun.
func (w *waiting) failed(ctx context.Context) (json.RawMessage, error) {
	words := w.task.Words
	if w.task.Inline {
		var wire jsonrpc.Error
		if json.Unmarshal(w.task.Failure, &wire) == nil {
			words = cmp.Or(wire.Message, words)
		}
		return nil, results.ToolError(w.hide(words))
	}
	raw, err := w.fetch(ctx, requestLimit)
	if wire := wireError(err); wire != nil {
		return nil, results.ToolError(w.hide(cmp.Or(words, wire.Message)))
	}
	return raw, err
}

func (w *waiting) cancelled(context.Context) (json.RawMessage, error) {
	if w.task.Words == "" {
		return nil, w.gone("%s was cancelled", w.label())
	}
	return nil, w.gone("%s was cancelled: %s", w.label(), texts.Quote(w.hide(w.task.Words)))
}

// fetch asks for the result of a task of the older form. The answer comes when the task has ended.
func (w *waiting) fetch(ctx context.Context, limit time.Duration) (json.RawMessage, error) {
	raw, err := w.request(ctx, "tasks/result", limit, w.lease)
	if err == nil && rpc.IsNull(raw) {
		return nil, results.Fault("%s has completed without a result", w.label())
	}
	return raw, err
}

// poll asks how the task is.
func (w *waiting) poll(ctx context.Context) error {
	w.polled.Close()
	w.polled = w.sc.pool.options.Results.Lease()
	w.polls++
	raw, err := w.request(ctx, rpc.TaskGet, requestLimit, w.polled)
	if err != nil {
		return w.pollError(err)
	}
	t, err := results.ReadTask(raw)
	switch {
	case err != nil:
		return results.Fault("the server says something about %s that is not valid: %w", w.label(), err)
	case t.ID != "" && t.ID != w.task.ID:
		return results.Fault("the server was asked for %s, and has answered with another one", w.label())
	}
	before := w.task.Words
	t.ID, t.Inline, w.task = w.task.ID, w.task.Inline, t
	w.progress(before)
	return nil
}

// pollError says what it means that a server does not serve a request for a task.
func (w *waiting) pollError(err error) error {
	wire := wireError(err)
	if wire == nil {
		return err
	}
	words := texts.Quote(texts.Cut(w.hide(wire.Message), maxNamed))
	switch wire.Code {
	case jsonrpc.CodeInvalidParams:
		return w.gone("the server does not know %s any more: %s", w.label(), words)
	case jsonrpc.CodeMethodNotFound:
		return results.Fault("%s cannot be awaited: the server does not serve requests about it: %s", w.label(), words)
	}
	return err
}

// progress reports what the server says of the task, if that is new.
func (w *waiting) progress(before string) {
	if w.call.Progress != nil && w.task.Words != before && w.task.Words != "" {
		w.call.Progress(stages.ToolProgress{Message: w.hide(w.task.Words)})
	}
}

func (w *waiting) hide(words string) string {
	if w.on == nil {
		return words
	}
	return hideIn(w.on.Transport, words)
}

// request makes a request about the task. One that fails for a reason that may pass is made again: the task lives on while we
// cannot reach the server.
func (w *waiting) request(ctx context.Context, method string, limit time.Duration, lease *memory.Lease, members ...[]byte) (json.RawMessage, error) {
	q := w.about(method, limit, lease, members...)
	for bad := 1; ; bad++ {
		raw, err := w.sc.ask(ctx, q)
		if err == nil || ctx.Err() != nil {
			return raw, err
		}
		e := asError(err)
		e.Answered = false // that a request about a task was not served says nothing of the call
		wire := wireError(e)
		troubled := method == rpc.TaskGet && wire != nil && wire.Code == jsonrpc.CodeInternalError // not the task but the server
		if bad == maxBadPolls || !passes(e) && !troubled || len(signedOut(e)) > 0 {
			return nil, e
		}
		if err := pausing.For(ctx, w.task.Again(bad, max(e.Backoff, e.RetryAfter))); err != nil {
			return nil, err
		}
	}
}

// about is a request about the task.
func (w *waiting) about(method string, limit time.Duration, lease *memory.Lease, members ...[]byte) query {
	c := stages.Call{Name: w.call.Name, Asker: w.call.Asker, Item: w.call.Item, Trace: w.call.Trace, Reading: true, Timeout: limit}
	if given := w.sc.server.Timeout; given > 0 && limit == requestLimit {
		c.Timeout = min(given, limit)
	}
	return query{Call: c, noun: "task of tool", aboutTask: true, exclusive: w.exclusive, clock: w.clock, send: func(ctx context.Context, s *sessions.Session, c stages.Call, _ *asking) (json.RawMessage, *rpc.Failure) {
		w.use(s)
		return askTask(ctx, s, w.held, w.task.ID, method, c.Trace, lease, members...)
	}}
}

// askTask makes a request about a task, for which held stands, if it is not nil. members are added to its parameters.
func askTask(ctx context.Context, s *sessions.Session, held *rpc.Request, id, method string, trace stages.Trace, lease *memory.Lease, members ...[]byte) (json.RawMessage, *rpc.Failure) {
	empty(lease) // of an answer that came in part
	r := &rpc.Request{
		Method: method, Name: id, Lease: lease, Headers: sessions.WithTrace(nil, trace), About: held,
		Params: s.Params(trace, 0, append([][]byte{[]byte(`"taskId":` + texts.JSON(id))}, members...)...),
	}
	return s.Request(ctx, r)
}

// cancel notifies the server, in the background, that nobody waits for the task any more. The session is held until it
// has answered.
func (w *waiting) cancel() {
	s, id, trace := w.on, w.task.ID, w.call.Trace
	if s == nil || s.Dead() {
		return
	}
	s.Calls.Add(1)
	w.sc.pool.goroutines.run(func() {
		defer s.Release()
		ctx, stop := context.WithTimeout(context.Background(), cancelLimit)
		defer stop()
		_, failure := askTask(ctx, s, nil, id, rpc.TaskCancel, trace, nil)
		answered := failure == nil || rpc.IsAnswer(failure) // it may have ended by now
		if !answered && w.sc.oneByOne() {
			w.sc.discard(s) // the server may still ask about the task, in the middle of a call
		}
	})
}

// passes reports whether a failure may be over soon.
func passes(err error) bool {
	e, ok := errors.AsType[*stages.Error](err)
	return ok && (e.Code == stages.ServerUnavailable || e.Code == stages.Timeout)
}

// wireError is the error with which a server has answered a request about a task, or nil.
func wireError(err error) *jsonrpc.Error {
	wire, _ := errors.AsType[*jsonrpc.Error](err)
	return wire
}

// gone is the error of a task that has ended without a result.
func (w *waiting) gone(format string, args ...any) *stages.Error {
	hint := choose(w.call.Reading, "call the tool again", "find out (with a tool that reads) what it has done")
	e := stages.Errorf(stages.ToolError, hint, format, args...)
	e.Err = stages.ErrNoTask
	return e
}
