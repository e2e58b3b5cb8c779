package upstream

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/mcsh-dev/mcsh/stages"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Waits between starts of a server that fails: they double, and are spread so that servers that failed together do
// not come back together.
const (
	firstBackoff = 200 * time.Millisecond
	maxBackoff   = 30 * time.Second
	steady       = 5 * time.Second // a session that lived this long was no failure
)

// A unit is one server with its one kept session, started when it is first needed.
type unit struct {
	server Server
	policy policy
	limits Options // with defaults
	dialer dialer
	life   context.Context // of the pool
	tasks  *tasks          // of the pool
	seats  chan struct{}   // one per call in flight
	tools  *catalog

	mu       sync.Mutex // guards what follows; not held while waiting
	link     *link      // nil before the first start
	start    *start     // the one under way, if one is
	era      era
	failures int
	retryAt  time.Time
	failure  error // of the last start, nil after a good one
}

// A start is an attempt at a session that callers wait for together.
type start struct {
	begun time.Time
	trial mcp.Transport // what is tried now, nil before that; guarded by the unit's mu
	done  chan struct{}
	link  *link // once done is closed
	err   error // once done is closed
}

func newUnit(s Server, o Options, life context.Context, tasks *tasks) *unit {
	if s.Concurrency <= 0 {
		s.Concurrency = o.Concurrency
	}
	u := &unit{
		server: s, policy: newPolicy(s, o.ReadOnly), limits: o, life: life, tasks: tasks,
		seats: make(chan struct{}, s.Concurrency),
	}
	u.tools = &catalog{unit: u}
	u.dialer = dialer{dial: s.Dial, impl: o.implementation(), probe: o.ProbeTimeout, changed: u.tools.invalidate, trying: u.noteTrial}
	return u
}

// session returns the kept session, and starts it if there is none. Callers wait for a start together, each until its
// own context ends. The start itself belongs to the pool: no caller's impatience ends it.
func (u *unit) session(ctx context.Context) (*link, error) {
	s, l, err := u.joinStart()
	if s == nil {
		return l, err
	}
	select {
	case <-s.done:
		return s.link, s.err
	case <-ctx.Done():
		u.mu.Lock()
		trial := s.trial
		u.mu.Unlock()
		e := stages.Errorf(stages.ServerUnavailable, "try again soon; a program fetched by npx or uvx takes long the first time",
			"server %q is still starting (%v so far)%s", u.server.Name, time.Since(s.begun).Round(time.Second), soFar(trial))
		e.Err = ctx.Err()
		return nil, e
	}
}

// noteTrial notes the transport that the start under way tries.
func (u *unit) noteTrial(t mcp.Transport) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.start != nil {
		u.start.trial = t
	}
}

// joinStart returns the session, or the start to wait for, or why there is neither.
func (u *unit) joinStart() (*start, *link, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case u.life.Err() != nil:
		return nil, nil, u.closing()
	case u.link != nil && !u.link.dead():
		return nil, u.link, nil
	case u.start != nil:
		return u.start, nil, nil
	case time.Until(u.retryAt) > 0 && u.failure != nil:
		return nil, nil, u.failure
	}
	return u.begin(max(0, time.Until(u.retryAt))), nil, nil
}

// closing is the error of everything that comes too late.
func (u *unit) closing() error {
	return stages.Errorf(stages.Cancelled, "", "server %q: the gateway is closing", u.server.Name)
}

// begin starts the server after a wait. u.mu is held.
func (u *unit) begin(wait time.Duration) *start {
	s := &start{begun: time.Now(), done: make(chan struct{})}
	u.start = s
	known := u.era
	started := u.tasks.start(func() {
		sleep(u.life, wait)
		ctx, cancel := context.WithTimeout(u.life, u.limits.StartTimeout)
		defer cancel()
		l, found, t, err := u.dialer.connect(ctx, known)
		if err != nil {
			s.err = unavailable(u.server.Name, t, err)
		}
		u.finish(s, l, found)
		if l != nil {
			u.watch(l)
		}
	})
	if !started {
		s.err = u.closing()
		u.start = nil
		close(s.done)
	}
	return s
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// finish records the outcome of a start and wakes who waits for it.
func (u *unit) finish(s *start, l *link, found era) {
	u.mu.Lock()
	defer u.mu.Unlock()
	s.link = l
	u.start, u.era, u.failure = nil, found, s.err
	if s.err != nil {
		u.failed()
	} else {
		u.link = l
	}
	close(s.done)
}

// failed sets the time before which the server is not started again. u.mu is held.
func (u *unit) failed() {
	wait := min(maxBackoff, firstBackoff<<min(u.failures, 10))
	u.failures++
	u.retryAt = time.Now().Add(wait/2 + rand.N(wait/2))
}

// watch stays with a session until it ends, by itself or with the pool.
func (u *unit) watch(l *link) {
	stop := context.AfterFunc(u.life, l.close)
	l.watch()
	stop()
	u.mu.Lock()
	defer u.mu.Unlock()
	if time.Since(l.started) > steady {
		u.failures = 0
	} else if u.failures > 0 || l.err != nil {
		u.failed()
	}
}

// drop ends a session that is of no use any more.
func (u *unit) drop(l *link) {
	u.mu.Lock()
	if u.link == l {
		u.link = nil
	}
	u.mu.Unlock()
	u.tasks.start(l.close)
}

// call calls a tool and returns its raw result. A call that the tool has certainly not seen is made again, once, on a
// new session.
// The time of a call begins when it is sent: waiting for a seat or for a start is not the tool's.
func (u *unit) call(ctx context.Context, name string, args json.RawMessage, timeout time.Duration) (json.RawMessage, error) {
	timeout = cmp.Or(timeout, u.server.Timeout, u.limits.CallTimeout)
	select {
	case u.seats <- struct{}{}:
		defer func() { <-u.seats }()
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting to call %s: %w", describe(u.server.Name, name), ctx.Err())
	}
	for again := false; ; again = true {
		l, err := u.session(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return nil, fmt.Errorf("calling %s: %w", describe(u.server.Name, name), ctx.Err())
			}
			return nil, asError(err)
		}
		raw, failure := u.callOnce(ctx, l, name, args, timeout)
		if failure == nil {
			return raw, nil
		}
		if failure.lost && ctx.Err() == nil {
			u.drop(l)
			if !failure.sent && !again {
				continue
			}
		}
		return nil, u.callFailure(ctx, l, name, failure, timeout)
	}
}

// callOnce calls a tool on a session, within the call's time and the pool's life.
func (u *unit) callOnce(ctx context.Context, l *link, name string, args json.RawMessage, timeout time.Duration) (json.RawMessage, *callError) {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errCallTimeout)
	defer cancel()
	stop := context.AfterFunc(u.life, cancel)
	defer stop()
	raw, err := l.call(ctx, name, args)
	if err != nil && errors.Is(context.Cause(ctx), errCallTimeout) {
		err.err = errCallTimeout
	}
	return raw, err
}

// errCallTimeout is the cause of a call that took longer than one call may.
var errCallTimeout = errors.New("the call took too long")

// callFailure puts a failed call into the one shape of errors.
func (u *unit) callFailure(ctx context.Context, l *link, name string, failure *callError, timeout time.Duration) error {
	what := describe(u.server.Name, name)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("calling %s: %w", what, ctx.Err())
	case errors.Is(failure, errCallTimeout):
		return stages.Errorf(stages.Timeout, "ask the tool for less, or raise the stage's timeout if the operator allows more",
			"the tool did not answer within %s (limit call)", timeout)
	case failure.large:
		return stages.Errorf(stages.LimitExceeded, "ask the tool for less: a page, a filter, fewer fields",
			"%s: %w", what, cause{scrubbed(l.transport, withoutRequest(failure.Error())), failure.err})
	case u.life.Err() != nil:
		return u.closing()
	}
	if e := u.rpcError(l, failure); e != nil {
		return e
	}
	e := unavailable(u.server.Name, l.transport, failure.err)
	if failure.sent {
		e.Msg = fmt.Sprintf("calling %s, which may have taken effect: %s", what, e.Msg)
	}
	return e
}
