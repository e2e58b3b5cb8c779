package upstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/globs"
	"github.com/mcsh-dev/mcsh/internal/pausing"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream/pace"
	"github.com/mcsh-dev/mcsh/upstream/pins"
	"github.com/mcsh-dev/mcsh/upstream/questions"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
	"github.com/mcsh-dev/mcsh/upstream/sessions"
	"github.com/mcsh-dev/mcsh/upstream/state"
	"github.com/mcsh-dev/mcsh/upstream/toollist"
)

// Waits between the starts of a server that fails: they double, with jitter, so that servers that failed together do not
// start together.
const (
	firstBackoff = 200 * time.Millisecond
	maxBackoff   = 30 * time.Second
	steadyAfter  = 5 * time.Second // a session that lived this long was no failure
)

// A serverConn is one server with its current session, which starts when it is first needed.
type serverConn struct {
	pool    *Pool
	server  Server
	filters filters // of its resources and prompts
	dialer  dialer
	life    context.Context // ends with the pool, or when the server is replaced
	end     context.CancelFunc
	slots   chan struct{} // one per call in flight
	pace    *pace.Pace
	tools   *toolCache
	pins    *pins.Pins // nil: its tools are always trusted
	shapes  *shapes
	offers  *offers

	exposed globs.List // of tools that clients call by names of their own

	needed atomic.Bool // a plan waits for it to start

	shared    *shared
	exclusive chan struct{} // full while a call is the only one in flight
	streams   atomic.Bool   // the last session has a stream for each call
	inResults atomic.Bool   // the server of the last session asks in results

	logs     rpc.Limiter
	lostLogs atomic.Int64 // lines that were left out since the last one

	origin   *Server       // from the source
	disabled bool          // nobody uses it
	secrets  *rpc.Hider    // hides what no message may show
	replaced chan struct{} // closed when another server or login is in its place, or none
	login    func() string // what requests are made with, when it was first asked for; "": none

	mu       sync.Mutex         // guards the fields below; not held while waiting
	current  *sessions.Session  // nil before the first start
	start    *start             // under way, or nil
	declared questions.Declared // by its sessions, for good from the first one on
	era      era
	failures int
	retryAt  time.Time
	tried    mcp.Transport // of the last start, or nil
	failure  error         // of the last start, or why the last session was dropped; nil after a good start
	badCalls int           // calls in a row that failed
	resting  bool          // the last session was ended because it was unused
}

// A start is an attempt to make a session.
type start struct {
	*flight[*sessions.Session]
	begun     time.Time
	transport mcp.Transport // being tried, or nil; guarded by the serverConn's mu
}

func newServerConn(origin *Server, p *Pool) *serverConn {
	sc := newConn(origin, p, p.life)
	sc.shared = &shared{first: sc, others: map[questions.Declared]*serverConn{}}
	return sc
}

// newConn makes a connection without what it shares with others. It ends with life.
func newConn(origin *Server, p *Pool, life context.Context) *serverConn {
	s, o := *origin, p.options
	if s.Concurrency <= 0 {
		s.Concurrency = o.Concurrency
	}
	s.StartTimeout = cmp.Or(s.StartTimeout, o.StartTimeout)
	sc := &serverConn{
		pool: p, server: s, origin: origin, filters: newFilters(s), exposed: o.exposedBy(&s),
		slots: make(chan struct{}, s.Concurrency), secrets: rpc.NewHider(s.Secrets), replaced: make(chan struct{}),
		exclusive: make(chan struct{}, 1), logs: logLimiter(),
	}
	sc.login = sync.OnceValue(func() string { login, _ := sc.server.loginOf(); return login })
	sc.life, sc.end = context.WithCancel(life)
	sc.pace = pace.New(s.Name, s.Rate, s.Concurrency, sc.life.Done())
	sc.tools, sc.pins = newToolCache(sc), sc.newPins()
	context.AfterFunc(sc.life, sc.tools.lease.Close)
	sc.offers = newOffers(sc)
	context.AfterFunc(sc.life, sc.offers.lease.Close)
	sc.shapes = newShapes(sc, o.State)
	sc.dialer = dialer{
		dial: s.Dial, impl: &mcp.Implementation{Name: "mcsh", Version: o.ClientVersion}, allowed: s.Protocol, limit: s.StartTimeout, probe: o.ProbeTimeout,
		queue: &p.queue, needed: sc.needed.Load, noted: sc.note, memory: o.Results,
		message: messageMax(o.ResultMax), onTransport: sc.noteTransport, unnamed: sc.noteUnnamed,
		role: rpc.Role{Roots: questions.Roots(s.Roots), Log: sc.noteLog, Seen: sc.seen},
	}
	return sc
}

// reader makes a reader of a list of the server's tools.
func (sc *serverConn) reader() *toollist.Reader {
	s, o := &sc.server, &sc.pool.options
	return &toollist.Reader{
		Server: s.Name, Cache: o.Schemas, Allowance: o.Schemas.Limits().Allowance(), Tools: o.Tools, Bytes: o.ToolList, Trust: sc.pins,
		Policy: toollist.Policy{
			ReadOnly: globs.Compile(s.ReadOnly...), Allow: globs.Compile(s.Allow...), Deny: globs.Compile(s.Deny...),
			OnlyReading: o.ReadOnly, Sticky: s.Sticky, Fixed: s.With, Overrides: s.Overrides,
		},
	}
}

// key names the server over restarts and sign-ins.
func (s *Server) key() state.Key { return state.Key{Server: s.Name, Identity: s.Identity} }

// key names the server, as its account sees it, over restarts.
func (sc *serverConn) key() state.Key {
	k := sc.server.key()
	if login := sc.login(); login != "" {
		k.Identity += "\x00" + login
	}
	return k
}

// session returns the current session, and starts one if there is none. Callers wait for a start together, each until
// its own context ends. The start belongs to the pool: no caller's timeout ends it.
func (sc *serverConn) session(ctx context.Context) (*sessions.Session, error) {
	st, s, err := sc.joinStart()
	if st == nil {
		return s, err
	}
	if st.over(ctx) {
		return st.value, st.err
	}
	sc.mu.Lock()
	transport := st.transport
	sc.mu.Unlock()
	e := stages.Errorf(stages.ServerUnavailable, sc.startHint(), "server %q is still starting (%v so far)%s", sc.server.Name, time.Since(st.begun).Round(time.Second), startOutput(transport))
	e.Err = ctx.Err()
	return nil, e
}

// startHint is the hint for a server that is still starting.
func (sc *serverConn) startHint() string {
	return fmt.Sprintf("a pipeline waits for the server by itself, up to %gs (startTimeout) within its own timeout; a program fetched by npx or uvx takes long the first time", sc.server.StartTimeout.Seconds())
}

// notStarted is the error of a start that has failed.
func (sc *serverConn) notStarted(t mcp.Transport, err error) error {
	e := unavailable(sc.server.Name, t, err)
	if _, ok := errors.AsType[slowStart](err); ok {
		e.Hint += fmt.Sprintf("; if it only needs longer, set startTimeout for it (%gs now)", sc.server.StartTimeout.Seconds())
	}
	return e
}

// noteTransport notes the transport that the current start tries.
func (sc *serverConn) noteTransport(t mcp.Transport) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	if sc.tried = t; sc.start != nil {
		sc.start.transport = t
	}
}

// joinStart returns the session, or the start to wait for, or an error if there is neither.
func (sc *serverConn) joinStart() (*start, *sessions.Session, error) {
	changed := sc.signInChanged()
	sc.mu.Lock()
	defer sc.mu.Unlock()
	switch {
	case sc.life.Err() != nil:
		return nil, nil, sc.closedError()
	case sc.current != nil && !sc.current.Dead():
		return nil, sc.current, nil
	case sc.start != nil:
		return sc.start, nil, nil
	case sc.pausing() && !changed:
		e := asError(sc.failure)
		e.Backoff = time.Until(sc.retryAt)
		return nil, nil, e
	}
	wait := max(0, time.Until(sc.retryAt))
	if sc.failure != nil {
		wait = 0 // the sign-in has changed, or there is no more to wait
	}
	return sc.begin(wait), nil, nil
}

// pausing reports whether the server waits after a failure. sc.mu is held.
func (sc *serverConn) pausing() bool { return time.Until(sc.retryAt) > 0 && sc.failure != nil }

// signInChanged reports whether a server that waits after a refusal may work now, because somebody has signed in. To know that
// takes time: sc.mu is not held.
func (sc *serverConn) signInChanged() bool {
	sc.mu.Lock()
	pausing, tried := sc.pausing(), sc.tried
	sc.mu.Unlock()
	s, ok := tried.(interface{ SignInChanged() bool })
	return ok && pausing && s.SignInChanged()
}

// closedError is the error of every use after Close.
func (sc *serverConn) closedError() error {
	return stages.Errorf(stages.Cancelled, "", "server %q: the gateway is closing", sc.server.Name)
}

// begin starts the server after a wait. sc.mu is held.
func (sc *serverConn) begin(wait time.Duration) *start {
	era, dial := sc.era, sc.dialer
	sc.shared.claim(sc)
	dial.declared, dial.role.Asked = sc.declared, sc.declared != questions.Declared{}
	sc.start, sc.resting = &start{begun: time.Now()}, false
	sc.start.flight = launch(&sc.pool.goroutines, sc.closedError(), func() (*sessions.Session, error) {
		_ = pausing.For(sc.life, wait) // after its end, connect fails
		s, found, t, err := dial.connect(sc.life, era)
		era = found
		if err != nil {
			return nil, sc.notStarted(t, err)
		}
		s.Own(sessions.Owner{
			Start: sc.pool.goroutines.start, Limit: sc.pool.options.CallTimeout, Memory: sc.pool.options.Results,
			Lost:   func(s *sessions.Session, uris []string) { sc.pool.subscriptions.lost(sc, s, uris) },
			Missed: func(uris []string) { sc.pool.subscriptions.missed(sc, uris) },
		})
		sc.pool.goroutines.run(func() { sc.watch(s) })
		s.KeepStanding()
		sc.offers.started(s, sc.isFirst())
		return s, nil
	}, &sc.mu, func(s *sessions.Session, err error) { sc.finish(s, era, err) })
	return sc.start
}

// finish records the result of a start. sc.mu is held.
func (sc *serverConn) finish(s *sessions.Session, found era, err error) {
	sc.start, sc.era, sc.failure = nil, found, err
	sc.needed.Store(false)
	if err != nil {
		sc.backOff()
	} else {
		sc.current, sc.badCalls = s, 0
		sc.noteHow(s)
	}
}

// backOff sets the earliest time of the next start. sc.mu is held.
func (sc *serverConn) backOff() {
	wait := min(maxBackoff, firstBackoff<<min(sc.failures, 10))
	sc.failures++
	sc.retryAt = time.Now().Add(wait/2 + rand.N(wait/2))
}

// watch waits until a session ends, by itself or with the pool.
func (sc *serverConn) watch(s *sessions.Session) {
	stop := context.AfterFunc(sc.life, s.Close)
	s.Watch(sc.idleLimit(s))
	stop()
	sc.pool.subscriptions.lost(sc, s, nil)
	sc.mu.Lock()
	defer sc.mu.Unlock()
	switch {
	case s.Rested.Load():
		sc.resting = sc.current == s
		sc.failures = 0
	case time.Since(s.Started) > steadyAfter && sc.badCalls < maxBadCalls:
		sc.failures = 0
	case sc.failures > 0 || s.Err != nil:
		sc.backOff()
	}
}

// idleLimit is the time after which an unused session is ended; 0: never. Only programs of this machine cost something
// while they wait.
func (sc *serverConn) idleLimit(s *sessions.Session) time.Duration {
	if s.Transport.Traits().Program {
		return max(0, sc.pool.options.IdleStop)
	}
	return 0
}

// A connState is the state of a connection at one moment. session and start may be nil.
type connState struct {
	session           *sessions.Session
	start             *start
	failure           error
	resting, degraded bool // degraded: the last calls on the session have failed
}

func (sc *serverConn) state() connState {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	return connState{sc.current, sc.start, sc.failure, sc.resting, sc.badCalls > 0}
}

// alive reports whether there is a session that has not ended.
func (s *connState) alive() bool { return s.session != nil && !s.session.Dead() }

// discard makes the next use start a new session, and ends this one when its calls in flight have ended.
func (sc *serverConn) discard(s *sessions.Session) {
	if sc.detach(s) {
		sc.pool.goroutines.start(func() { sc.closeUnused(s) })
	}
}

// closeUnused ends a session when its calls in flight have ended.
func (sc *serverConn) closeUnused(s *sessions.Session) {
	s.Unused(sc.life)
	s.Close()
}

// detach makes the next use start a new session, and reports whether this one was the current one.
func (sc *serverConn) detach(s *sessions.Session) bool {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	if sc.current != s {
		return false
	}
	sc.current = nil
	return true
}

// is reports whether s describes the server of this connection.
func (sc *serverConn) is(s *Server) bool {
	return sc.origin == s || s.Version != "" && s.Version == sc.server.Version
}

// drain refuses new calls, waits for those in flight, and ends the session.
func (sc *serverConn) drain() {
	close(sc.replaced)
	sc.pool.goroutines.start(func() {
		defer sc.end()
		for range cap(sc.slots) {
			select {
			case sc.slots <- struct{}{}:
			case <-sc.life.Done():
				return
			}
		}
	})
}

func (sc *serverConn) isReplaced() bool {
	select {
	case <-sc.replaced:
		return true
	default:
		return false
	}
}
