package upstream

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/mcsh-dev/mcsh/internal/memory"
	"github.com/mcsh-dev/mcsh/internal/pausing"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream/pace"
	"github.com/mcsh-dev/mcsh/upstream/questions"
	"github.com/mcsh-dev/mcsh/upstream/results"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
	"github.com/mcsh-dev/mcsh/upstream/sessions"
)

// maxBadCalls is how many calls in a row may fail before the session is dropped. The server then rests for the backoff,
// and the next use starts one new session for all callers.
const maxBadCalls = 5

// A query is a request for which a caller waits: a call of a tool, or the same for a resource or a prompt.
type query struct {
	stages.Call        // Name is that of the tool or prompt, or the URI of the resource
	noun        string // tool, resource, template or prompt
	send        func(ctx context.Context, s *sessions.Session, c stages.Call, a *asking) (json.RawMessage, *rpc.Failure)
	exclusive   *exclusive     // set where the query has a slot
	clock       *pausing.Clock // of a longer piece of work; nil: it has one of its own
	aboutTask   bool           // it is about a task: no rate bounds it, and its result asks nothing
}

// label names the subject of a query in messages.
func (q *query) label(server string) string {
	return fmt.Sprintf("%s %q of server %q", q.noun, texts.Cut(q.Name, maxNamed), server)
}

// toolLabel names a tool in messages. Names may hold spaces and parentheses.
func toolLabel(server, tool string) string { return fmt.Sprintf("tool %q of server %q", tool, server) }

// maxNamed is how much of a name a message has, in bytes.
const maxNamed = 200

// call makes a query and returns its raw result, within one of the server's slots. Its time begins when it is sent: it does not
// count the wait for a slot, for a start or for its [pace.Pace].
func (sc *serverConn) call(ctx context.Context, c query) (json.RawMessage, error) {
	leave, err := sc.enter(ctx, &c)
	if err != nil {
		return nil, err
	}
	defer leave()
	return sc.ask(ctx, c)
}

// enter waits until a query may be the only one, where calls are made one by one, and for one of the server's slots. leave gives
// them back.
func (sc *serverConn) enter(ctx context.Context, c *query) (leave func(), err error) {
	c.exclusive = &exclusive{conn: sc}
	if err := c.exclusive.await(ctx); err != nil {
		return nil, fmt.Errorf("waiting to call %s: %w", c.label(sc.server.Name), err)
	}
	if err := sc.takeSlot(ctx, *c); err != nil {
		c.exclusive.leave()
		return nil, err
	}
	leave = func() { <-sc.slots; c.exclusive.leave() }
	if sc.isReplaced() {
		leave()
		return nil, pace.ErrReplaced
	}
	return leave, nil
}

// ask makes a query. One that the server has certainly not seen is made again, once, on a new session. Its time begins when
// it is sent: it does not count the wait for a start.
func (sc *serverConn) ask(ctx context.Context, c query) (json.RawMessage, error) {
	c.Timeout = cmp.Or(c.Timeout, sc.server.Timeout, sc.pool.options.CallTimeout)
	for again := false; ; again = true {
		s, err := sc.session(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return nil, fmt.Errorf("calling %s: %w", c.label(sc.server.Name), ctx.Err())
			}
			return nil, asError(err)
		}
		if err := sc.refuseGateway(s.SDK); err != nil {
			return nil, asError(err)
		}
		raw, failure, err := sc.paced(ctx, s, c)
		if err != nil {
			return nil, err
		}
		if failure == nil {
			return raw, nil
		}
		if failure.Lost && ctx.Err() == nil {
			sc.discard(s)
			if !failure.Sent && !again {
				continue
			}
		}
		return nil, sc.callFailure(ctx, s, c, failure)
	}
}

// paced makes a query on a session when its pace allows that. The error says why it does not.
func (sc *serverConn) paced(ctx context.Context, s *sessions.Session, c query) (raw json.RawMessage, failure *rpc.Failure, err error) {
	if c.aboutTask {
		raw, failure = sc.callOnce(ctx, s, c)
		sc.pace.End(pace.NoEpoch, failure) // a wait that the server asks for counts for the others
		return raw, failure, nil
	}
	epoch, err := sc.pace.Begin(ctx, sc.replaced, c.Waits)
	if err != nil {
		return nil, nil, err
	}
	raw, failure = sc.callOnce(ctx, s, c)
	sc.pace.End(epoch, failure)
	return raw, failure, nil
}

// takeSlot waits for a place among the queries in flight.
func (sc *serverConn) takeSlot(ctx context.Context, c query) error {
	select {
	case sc.slots <- struct{}{}:
		return nil
	default:
	}
	if err := sc.pace.Hopeless(ctx); err != nil {
		return err
	}
	over := func() {}
	if c.Waits != nil {
		over = c.Waits(sc.slotWait())
	}
	select {
	case sc.slots <- struct{}{}:
		over()
		return nil
	case <-sc.replaced:
		over()
		return pace.ErrReplaced
	case <-ctx.Done():
		return fmt.Errorf("calling %s: %s: %w", c.label(sc.server.Name), sc.slotWait(), ctx.Err())
	}
}

// slotWait says what queries without a place wait for: those that have one may wait themselves.
func (sc *serverConn) slotWait() string {
	if _, free := sc.pace.Free(); !free {
		return sc.pace.Why()
	}
	return fmt.Sprintf("waiting for another call of server %q to end (concurrency %d)", sc.server.Name, cap(sc.slots))
}

// callOnce makes a query on a session, within the call's time and the pool's life.
func (sc *serverConn) callOnce(ctx context.Context, s *sessions.Session, c query) (json.RawMessage, *rpc.Failure) {
	sent, allowed := false, c.MaySend
	c.MaySend = func() bool {
		sent = allowed == nil || allowed()
		return sent
	}
	clock := c.clock
	if clock == nil {
		clock = clockOf(c.Call)
	}
	inner, cancel := clock.WithTimeout(ctx, c.Timeout, sessions.ErrTimeout)
	defer cancel()
	defer context.AfterFunc(sc.life, cancel)()
	a := &asking{conn: sc, call: c.Call, exclusive: c.exclusive, ctx: inner, session: s, clock: clock}
	raw, failure := a.rounds(inner, s, c)
	if failure != nil {
		if failure.Sent && inner.Err() != nil && !c.aboutTask && sc.oneByOne() {
			sc.discard(s) // the server may still ask about this call, in the middle of the next
		}
		if sent && !failure.Sent && c.Unsent != nil {
			c.Unsent()
		}
		if errors.Is(context.Cause(inner), sessions.ErrTimeout) {
			failure.Err = sessions.ErrTimeout
		}
	}
	if ctx.Err() == nil {
		sc.noteOutcome(s, failure)
	}
	return raw, failure
}

// clockOf is the clock of a call, which is paused while the caller is asked; nil where nobody can be.
func clockOf(c stages.Call) *pausing.Clock {
	if c.Asker == nil {
		return nil
	}
	return pausing.New()
}

// noteOutcome updates the state of the connection after a call.
func (sc *serverConn) noteOutcome(s *sessions.Session, failure *rpc.Failure) {
	if failure != nil && failure.Err == sessions.ErrTimeout {
		sc.checkAlive(s)
		return
	}
	sc.mu.Lock()
	defer sc.mu.Unlock()
	if failure == nil || !failure.Unavailable {
		if failure == nil || rpc.IsAnswer(failure) {
			sc.badCalls = 0
		}
		return
	}
	if sc.badCalls++; sc.badCalls >= maxBadCalls && sc.current == s {
		sc.current = nil
		sc.failure = unavailable(sc.server.Name, s.Transport, failure.Err)
		sc.backOff()
		sc.pool.goroutines.start(s.Close)
	}
}

// checkAlive pings a server that left a call unanswered. If the ping fails too, the next call gets a new session; the
// old one ends when the calls that still wait on it have ended.
func (sc *serverConn) checkAlive(s *sessions.Session) {
	if !s.Checking.CompareAndSwap(false, true) {
		return
	}
	sc.pool.goroutines.start(func() {
		defer s.Checking.Store(false)
		if s.Alive(sc.life) || sc.life.Err() != nil || !sc.detach(s) {
			return
		}
		sc.closeUnused(s)
	})
}

// callFailure turns a failed call into an error for the caller.
func (sc *serverConn) callFailure(ctx context.Context, s *sessions.Session, c query, failure *rpc.Failure) error {
	what := c.label(sc.server.Name)
	_, full := errors.AsType[*memory.Full](failure)
	text := hideIn(s.Transport, rpc.WithoutRequest(failure.Error()))
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("calling %s: %w", what, ctx.Err())
	case errors.Is(failure, sessions.ErrTimeout):
		return stages.Errorf(stages.Timeout, "ask the "+c.noun+" for less", "the %s did not answer within %s", c.noun, c.Timeout)
	case full:
		return results.NoMemory(what, failure.Err)
	case errors.Is(failure, rpc.ErrTooLarge):
		return stages.OverLimit("result", results.MoreResult, "%s: %w for results of up to %d bytes", what, cleanError{text, failure.Err}, sc.pool.options.ResultMax)
	case errors.Is(failure, rpc.ErrBroken):
		return stages.Errorf(stages.ToolError, choose(c.Reading, "", "the call may have taken effect; ")+"report it to the makers of the server", "%s: %w", what, cleanError{text, failure.Err})
	case sc.life.Err() != nil:
		return sc.closedError()
	}
	if e := sc.rpcError(s, c.noun, failure); e != nil {
		return e
	}
	if e, ok := failure.Err.(*stages.Error); ok { // of the questions in the middle
		return e
	}
	e := unavailable(sc.server.Name, s.Transport, failure.Err)
	e.RetryAfter = max(e.RetryAfter, failure.RetryAfter)
	if !failure.Sent {
		return e
	}
	e.Msg = fmt.Sprintf("calling %s%s: %s", what, choose(c.Reading, "", ", which may have taken effect"), e.Msg)
	return begun(e)
}

func choose[T any](first bool, a, b T) T {
	if first {
		return a
	}
	return b
}

// rpcHints are the hints for protocol errors that mean the same with every server.
var rpcHints = map[int64]string{
	jsonrpc.CodeInvalidParams:  "compare the arguments with the tool's schema: get_tool_details shows it",
	jsonrpc.CodeMethodNotFound: "the server may have changed: list_all_tools shows what it offers now",
}

// notRun are the protocol errors by which a server says that the tool did not run.
var notRun = map[int64]bool{
	jsonrpc.CodeParseError: true, jsonrpc.CodeInvalidRequest: true, jsonrpc.CodeMethodNotFound: true, jsonrpc.CodeInvalidParams: true,
	questions.CodeOpenFirst: true,
}

// rpcError returns a protocol error as the failure of the tool: servers use such errors for tools that failed, not only
// for wrong requests. It is nil for any other failure.
func (sc *serverConn) rpcError(s *sessions.Session, noun string, failure *rpc.Failure) error {
	wire := rpc.AnswerIn(failure)
	if wire == nil {
		return nil
	}
	if noun == nounTool && (wire.Code == jsonrpc.CodeInvalidParams || wire.Code == jsonrpc.CodeMethodNotFound) {
		sc.tools.invalidate() // the tool may be gone
	}
	words := strings.TrimSpace(wire.Message)
	if more := rpc.ErrorText(wire.Data); more != "" && !strings.Contains(words, more) {
		words += ": " + more
	}
	e := results.ToolError(hideIn(s.Transport, words))
	if noun == nounTool {
		e.Hint = rpcHints[wire.Code]
	} else {
		e.Err = wire
	}
	if wire.Code == questions.CodeOpenFirst {
		e.Hint, e.Err = questions.OpenFirstHint(wire.Data), wire
	}
	e.Answered, e.RetryAfter = notRun[wire.Code], failure.RetryAfter
	return e
}
