package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/mcsh-dev/mcsh/internal/memory"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream/pace"
	"github.com/mcsh-dev/mcsh/upstream/results"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
	"github.com/mcsh-dev/mcsh/upstream/sessions"
	"github.com/mcsh-dev/mcsh/upstream/toollist"
)

// nounTool is the noun of the queries of tools.
const nounTool = "tool"

// askForTask asks for a task, in the older protocol; in the newer one the server decides. The result is to be kept for as long as
// anybody may wait for it, [longestWait], in milliseconds.
const askForTask = `,"task":{"ttl":86400000}`

// CallTool implements [stages.Tools]. A timeout of zero is that of the server, or else that of the pool's options. If the server
// wants a sign-in, and the caller's person signs in meanwhile, CallTool makes the call again, or waits for its task again.
func (p *Pool) CallTool(ctx context.Context, call stages.Call) (stages.Result, error) {
	var task stages.Task
	if call.Task != nil {
		task = *call.Task
	}
	call.Task = &task // a task of the first try is in it
	result, err := p.callTool(ctx, call)
	if err != nil && p.SignIn(ctx, call.Asker, err) {
		return p.callTool(ctx, call)
	}
	return result, err
}

func (p *Pool) callTool(ctx context.Context, call stages.Call) (stages.Result, error) {
	server, name := call.Server, call.Name
	if len(call.Args) == 0 {
		call.Args = json.RawMessage("{}")
	}
	if !json.Valid(call.Args) {
		return stages.Result{}, stages.Errorf(stages.InvalidArguments, "give a JSON object", "the arguments of %s are not valid JSON", toolLabel(server, name))
	}
	ctx = forCall(ctx, call)
	for {
		sc, t, err := p.find(ctx, server, name)
		if err != nil {
			if ctx.Err() != nil {
				return stages.Result{}, fmt.Errorf("calling %s: %w", toolLabel(server, name), ctx.Err())
			}
			return stages.Result{}, err
		}
		res, err := sc.callTool(ctx, t, call)
		if !errors.Is(err, pace.ErrReplaced) {
			return res, sc.hideError(err)
		}
	}
}

func (sc *serverConn) callTool(ctx context.Context, t *toollist.Tool, call stages.Call) (stages.Result, error) {
	if call.Reading && !t.ReadOnly {
		return stages.Result{}, stages.Errorf(stages.Denied, "check the pipeline again: the plan is out of date",
			"%s was planned as a tool that only reads, and now the server says that it may change something", toolLabel(sc.server.Name, t.Name))
	}
	operators, err := t.FixedArguments(ctx)
	if err != nil {
		return stages.Result{}, fmt.Errorf("calling %s: %w", toolLabel(sc.server.Name, t.Name), err)
	}
	args, wrong := operators.Into(call.Args)
	if wrong != nil {
		return stages.Result{}, wrong
	}
	call.Args = args
	if sc.server.answer != nil {
		res, err := sc.server.answer(ctx, call)
		return res, withSignature(ctx, err, t)
	}
	lease := sc.pool.options.Results.Lease()
	res, err := sc.resultOfCall(ctx, t, call, lease)
	if err != nil && res.Memory == nil {
		lease.Close()
		res = stages.Result{}
	}
	if err != nil || call.Whole {
		return res, withSignature(ctx, err, t)
	}
	sc.shapes.sample(t, res)
	return res, nil
}

// tooLarge is the error of a result of so many bytes, or nil.
func (sc *serverConn) tooLarge(t *toollist.Tool, size int64) error {
	if most := sc.pool.options.ResultMax; size > most {
		return stages.OverLimit("result", results.MoreResult, "%s returned %d bytes, more than the limit of %d", toolLabel(sc.server.Name, t.Name), size, most)
	}
	return nil
}

// result makes pipeline data of the result of a call.
func (sc *serverConn) result(ctx context.Context, raw json.RawMessage, t *toollist.Tool, lease *memory.Lease) (stages.Result, error) {
	res, err := results.Of(raw, t.Wrapped)
	if err != nil {
		return res, err
	}
	size := int64(len(res.Data))
	if err := sc.tooLarge(t, size); err != nil {
		return res, err
	}
	if more := size - lease.Used(); more > 0 { // it is not part of the message
		if err := lease.Grow(more); err != nil {
			return res, results.NoMemory(toolLabel(sc.server.Name, t.Name), err)
		}
	}
	if err := outwardBlocks(ctx, res.Blocks, sc.server.Name, lease); err != nil {
		return res, results.NoMemory(toolLabel(sc.server.Name, t.Name), err)
	}
	res.Memory = lease
	return res, nil
}

// resultOfCall calls a tool, and waits for the task that it answers with. A task that an earlier call has kept is waited for
// without a call.
func (sc *serverConn) resultOfCall(ctx context.Context, t *toollist.Tool, call stages.Call, lease *memory.Lease) (res stages.Result, err error) {
	if call.Task == nil { // a call of the pool's own
		call.Task = new(stages.Task)
	}
	w := &waiting{sc: sc, call: call, lease: lease, clock: clockOf(call)}
	q := w.query(t)
	leave, err := sc.enter(ctx, &q)
	if err != nil {
		return res, err
	}
	defer leave()
	defer w.use(nil)
	w.exclusive = q.exclusive
	begun := time.Now()
	if call.Task.Handle != "" {
		if w.task, err = results.TaskOf(call.Task.Handle, sc.server.Identity); err != nil {
			return res, w.gone("%w", err)
		}
	} else if res, err = w.first(ctx, q, t); w.task == nil {
		return res, err
	}
	limited, cancel := w.clock.WithTimeout(ctx, w.limit()-time.Since(begun)+w.clock.Paused(), sessions.ErrTimeout)
	defer cancel()
	defer context.AfterFunc(sc.life, cancel)()
	raw, err := w.wait(ctx, limited)
	if err != nil {
		return stages.Result{}, err
	}
	res, err = w.result(ctx, raw, t)
	if _, ok := err.(results.Started); ok {
		return stages.Result{}, results.Fault("the result of the task is a task again")
	}
	return res, err
}

// first calls the tool. If that answers with a task, the task is kept before anything else.
func (w *waiting) first(ctx context.Context, q query, t *toollist.Tool) (stages.Result, error) {
	raw, err := w.sc.ask(ctx, q)
	if err != nil {
		return stages.Result{}, err
	}
	res, err := w.result(ctx, raw, t)
	if started, ok := err.(results.Started); ok {
		w.task = started.Task
		w.call.Task.Handle = w.task.Handle(w.sc.server.Identity, w.sc.declares())
		if w.call.Task.Keep != nil {
			w.call.Task.Keep(w.call.Task.Handle)
		}
	}
	return res, err
}

// result returns the result as the caller wants it.
func (w *waiting) result(ctx context.Context, raw json.RawMessage, t *toollist.Tool) (stages.Result, error) {
	if w.call.Whole {
		if err := w.sc.tooLarge(t, int64(len(raw))); err != nil {
			return stages.Result{}, err
		}
		return results.Whole(raw, toolLabel(w.sc.server.Name, t.Name), w.lease, w.sc.hide)
	}
	return w.sc.result(ctx, raw, t, w.lease)
}

// query calls the tool.
func (w *waiting) query(t *toollist.Tool) query {
	return query{Call: w.call, noun: nounTool, clock: w.clock, send: func(ctx context.Context, s *sessions.Session, c stages.Call, a *asking) (json.RawMessage, *rpc.Failure) {
		w.use(s)
		return sendCall(ctx, s, c, a, t, w.lease)
	}}
}

// empty gives back what a lease has.
func empty(lease *memory.Lease) { _ = lease.Grow(-lease.Used()) } // it does not fail

// sendCall calls a tool on a session.
func sendCall(ctx context.Context, s *sessions.Session, c stages.Call, a *asking, t *toollist.Tool, lease *memory.Lease) (json.RawMessage, *rpc.Failure) {
	empty(lease) // of the answer before, which asked something
	r := &rpc.Request{Method: "tools/call", Name: t.Original, BeforeSend: c.MaySend, Lease: lease}
	if s.Answers {
		r.Ask = a.answerQuestion
	}
	if c.Progress != nil {
		r.Token = s.Tokens.Add(1)
		r.Progress = func(p rpc.Progress) {
			c.Progress(stages.ToolProgress{Done: p.Done, Total: p.Total, Message: hideIn(s.Transport, p.Message)})
		}
	}
	members := [][]byte{[]byte(`"name":` + texts.JSON(t.Original) + `,"arguments":`), c.Args}
	if t.AsTask && !s.Stateless() {
		members = append(members, []byte(askForTask))
	}
	r.Params = a.params(s, r.Token, members...)
	if s.Stateless() {
		r.Headers = t.HeadersOf(c.Args)
	}
	r.Headers = sessions.WithTrace(r.Headers, c.Trace)
	return s.Request(ctx, r)
}
