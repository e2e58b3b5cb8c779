package upstream

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

// maxTrouble is how many calls in a row may not come through before the session is given up, and the server is left
// alone for a moment. The next use after that starts one new session, which all callers wait for.
const maxTrouble = 5

// errCallTimeout is the cause of a call that took longer than one call may.
var errCallTimeout = errors.New("the call took too long")

// call calls a tool and returns its raw result. A call that the tool has certainly not seen is made again, once, on a
// new session. The time of a call begins when it is sent: waiting for a seat or for a start is not the tool's.
func (u *unit) call(ctx context.Context, c stages.Call, t *tool) (json.RawMessage, error) {
	c.Timeout = cmp.Or(c.Timeout, u.server.Timeout, u.limits.CallTimeout)
	select {
	case u.seats <- struct{}{}:
		defer func() { <-u.seats }()
	case <-u.retired:
		return nil, errRetired
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting to call %s: %w", describe(u.server.Name, c.Name), ctx.Err())
	}
	if u.isRetired() {
		return nil, errRetired
	}
	for again := false; ; again = true {
		l, err := u.session(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return nil, fmt.Errorf("calling %s: %w", describe(u.server.Name, c.Name), ctx.Err())
			}
			return nil, asError(err)
		}
		raw, failure := u.callOnce(ctx, l, c, t)
		if failure == nil {
			return raw, nil
		}
		if failure.Lost && ctx.Err() == nil {
			u.drop(l)
			if !failure.Sent && !again {
				continue
			}
		}
		return nil, u.callFailure(ctx, l, c, failure)
	}
}

// callOnce calls a tool on a session, within the call's time and the pool's life.
func (u *unit) callOnce(ctx context.Context, l *link, c stages.Call, t *tool) (json.RawMessage, *rpc.Failure) {
	left, allowed := false, c.Sent
	c.Sent = func() bool {
		left = allowed == nil || allowed()
		return left
	}
	inner, cancel := context.WithTimeoutCause(ctx, c.Timeout, errCallTimeout)
	defer cancel()
	stop := context.AfterFunc(u.life, cancel)
	defer stop()
	raw, failure := l.call(inner, c, t)
	if failure != nil {
		if left && !failure.Sent && c.Unsent != nil {
			c.Unsent()
		}
		if errors.Is(context.Cause(inner), errCallTimeout) {
			failure.Err = errCallTimeout
		}
	}
	if ctx.Err() == nil {
		u.judge(l, failure)
	}
	return raw, failure
}

// judge draws the conclusions from a call's end.
func (u *unit) judge(l *link, failure *rpc.Failure) {
	if failure != nil && failure.Err == errCallTimeout {
		u.examine(l)
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if failure == nil || !failure.Trouble {
		if failure == nil || isAnswer(failure) {
			u.trouble = 0
		}
		return
	}
	if u.trouble++; u.trouble >= maxTrouble && u.link == l {
		u.link = nil
		u.failure = unavailable(u.server.Name, l.peer, failure.Err)
		u.failed()
		u.tasks.start(l.close)
	}
}

// examine asks a server that left a call unanswered whether it is there. One that does not say so gets a new session;
// the old one ends when the calls that still wait there have ended.
func (u *unit) examine(l *link) {
	if !l.examined.CompareAndSwap(false, true) {
		return
	}
	u.tasks.start(func() {
		defer l.examined.Store(false)
		if l.healthy(u.life) || u.life.Err() != nil || !u.release(l) {
			return
		}
		tick := time.NewTicker(settleStep)
		defer tick.Stop()
		for l.calls.Load() > 0 && !l.dead() && u.life.Err() == nil {
			<-tick.C
		}
		l.close()
	})
}

// isAnswer reports whether a failure is the server's own answer.
func isAnswer(failure *rpc.Failure) bool {
	var wire *jsonrpc.Error
	return errors.As(failure, &wire) && wire.Code != codeRejected
}

// callFailure puts a failed call into the one shape of errors.
func (u *unit) callFailure(ctx context.Context, l *link, c stages.Call, failure *rpc.Failure) error {
	what := describe(u.server.Name, c.Name)
	text := scrubbed(l.peer, rpc.WithoutRequest(failure.Error()))
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("calling %s: %w", what, ctx.Err())
	case errors.Is(failure, errCallTimeout):
		return stages.Errorf(stages.Timeout, "ask the tool for less", "the tool did not answer within %s", c.Timeout)
	case errors.Is(failure, rpc.ErrTooLarge):
		return stages.Errorf(stages.LimitExceeded, "ask the tool for less: a page, a filter, fewer fields", "%s: %w", what, cause{text, failure.Err})
	case errors.Is(failure, rpc.ErrBroken):
		return stages.Errorf(stages.ToolError, choose(c.Reading, "", "the call may have taken effect; ")+"report it to the makers of the server", "%s: %w", what, cause{text, failure.Err})
	case u.life.Err() != nil:
		return u.closing()
	}
	if e := u.rpcError(l, failure); e != nil {
		return e
	}
	e := unavailable(u.server.Name, l.peer, failure.Err)
	e.RetryAfter = max(e.RetryAfter, failure.RetryAfter)
	if failure.Sent {
		e.Msg = fmt.Sprintf("calling %s%s: %s", what, choose(c.Reading, "", ", which may have taken effect"), e.Msg)
	}
	return e
}

func choose(first bool, a, b string) string {
	if first {
		return a
	}
	return b
}
