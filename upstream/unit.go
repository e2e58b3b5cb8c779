package upstream

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream/state"
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
	life   context.Context // ends with the pool, or with the server when the configuration has another one
	end    context.CancelFunc
	tasks  *tasks        // of the pool
	seats  chan struct{} // one per call in flight
	tools  *catalog
	shapes *shapes

	learner *learner // of the pool

	origin  *Server           // what the source has said
	secrets *strings.Replacer // hides what no message may show; nil hides nothing
	retired chan struct{}     // closed when the configuration has another server in its place, or none

	mu       sync.Mutex // guards what follows; not held while waiting
	link     *link      // nil before the first start
	start    *start     // the one under way, if one is
	era      era
	failures int
	retryAt  time.Time
	failure  error // of the last start, or why the last session was given up; nil after a good start
	trouble  int   // calls in a row that did not come through
	resting  bool  // the last session was ended because nobody needed it
}

// A start is an attempt at a session that callers wait for together.
type start struct {
	begun time.Time
	trial mcp.Transport // what is tried now, nil before that; guarded by the unit's mu
	done  chan struct{}
	link  *link // once done is closed
	err   error // once done is closed
}

func newUnit(s Server, o Options, life context.Context, tasks *tasks, learner *learner) *unit {
	if s.Concurrency <= 0 {
		s.Concurrency = o.Concurrency
	}
	u := &unit{
		server: s, policy: newPolicy(s, o.ReadOnly), limits: o, tasks: tasks, learner: learner,
		seats: make(chan struct{}, s.Concurrency), secrets: hiding(s.Secrets), retired: make(chan struct{}),
	}
	u.life, u.end = context.WithCancel(life)
	u.tools = newCatalog(u)
	u.shapes = newShapes(u, o.State)
	u.dialer = dialer{dial: s.Dial, impl: o.implementation(), probe: o.ProbeTimeout, changed: u.tools.invalidate, trying: u.noteTrial}
	return u
}

// key names the server over restarts.
func (u *unit) key() state.Key { return state.Key{Server: u.server.Name, Identity: u.server.Identity} }

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
		return nil, nil, waiting(u.failure, time.Until(u.retryAt))
	}
	return u.begin(max(0, time.Until(u.retryAt))), nil, nil
}

// waiting is the error of a server that is left alone for a moment, with the time until it is tried again.
func waiting(failure error, wait time.Duration) error {
	err := asError(failure)
	var e *stages.Error
	if errors.As(err, &e) {
		e.RetryAfter = max(e.RetryAfter, wait)
	}
	return err
}

// closing is the error of everything that comes too late.
func (u *unit) closing() error {
	return stages.Errorf(stages.Cancelled, "", "server %q: the gateway is closing", u.server.Name)
}

// begin starts the server after a wait. u.mu is held.
func (u *unit) begin(wait time.Duration) *start {
	s := &start{begun: time.Now(), done: make(chan struct{})}
	u.start, u.resting = s, false
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
		u.link, u.trouble = l, 0
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
	l.watch(u.restAfter(l))
	stop()
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case l.rested.Load():
		u.resting = u.link == l
		u.failures = 0
	case time.Since(l.started) > steady && u.trouble < maxTrouble:
		u.failures = 0
	case u.failures > 0 || l.err != nil:
		u.failed()
	}
}

// restAfter is the time after which a session that nobody uses is ended: only programs of this machine cost something
// while they wait.
func (u *unit) restAfter(l *link) time.Duration {
	if r, ok := l.peer.(interface{ CanRest() bool }); ok && r.CanRest() && u.limits.IdleStop > 0 {
		return u.limits.IdleStop
	}
	return 0
}

// rests reports whether the session was ended because nobody needed it for a while.
func (u *unit) rests() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.resting
}

// degraded reports whether the session is there, but not all calls come through.
func (u *unit) degraded() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.trouble > 0
}

// drop ends a session that is of no use any more.
func (u *unit) drop(l *link) {
	u.release(l)
	u.tasks.start(l.close)
}

// release makes the next use start a new session, and reports whether this one was still in use.
func (u *unit) release(l *link) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.link != l {
		return false
	}
	u.link = nil
	return true
}
