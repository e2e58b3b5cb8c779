package gateway

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/memory"
)

const (
	// sessionTimeout ends idle HTTP sessions.
	sessionTimeout = 10 * time.Minute
	// SessionCost is the memory of an idle session: 10 KiB as measured, and up to 4 KiB of its last message.
	SessionCost = 16 << 10
	// mostKept bounds the characters of a kept name.
	mostKept = 200
)

// sessions tracks the SDK's sessions and their calls.
type sessions struct {
	most, mostOfOne int           // HTTP sessions of all, and of one origin
	room            *memory.Share // for their messages

	mu     sync.Mutex
	all    map[*mcp.ServerSession]*session // guarded by mu, as is everything below
	byID   map[string]*session             // HTTP sessions
	slots  int                             // taken
	owners map[string]*owner               // of the slots, by their keys
	uses   uint64                          // ended requests, which order sessions by their last use
}

// A session holds the calls that the gateway answers without the SDK. An HTTP session also has its own idle timer, since the
// SDK does not see those calls.
type session struct {
	server *mcp.ServerSession
	user   string          // its identity; empty without authentication
	group  string          // in the path that opened it; may be empty
	life   context.Context // of the session; its end cancels the calls
	end    context.CancelCauseFunc
	idle   *time.Timer // runs without a POST; nil without HTTP

	calls    map[string]context.CancelCauseFunc // in flight, by id as written; guarded by sessions.mu, as is everything below
	slot     *sessionSlot                       // nil: none, or not yet
	requests int                                // HTTP requests in flight
	posts    int                                // of them; a GET waits for the server
	lasts    bool                               // it has had subscriptions: a GET counts as its use
	used     uint64                             // sessions.uses after its last request
	closed   bool
	quiet    context.CancelFunc // of finished
	finished context.Context    // done when it is closed and no call is in flight
}

// sessionSlot counts one HTTP session. A request takes it before it opens the session.
type sessionSlot struct {
	owner *owner
	room  *memory.Lease
	kept  int64 // bytes of its longest message after initialize, beyond SessionCost
}

// owner is the origin of sessions.
type owner struct {
	key      string
	slots    int
	sessions map[*session]bool // those that have taken their slots
}

// unused returns the least recently used session without a request, or nil. It looks at up to
// [sessions.mostOfOne] sessions.
func (o *owner) unused() (oldest *session) {
	for n := range o.sessions {
		if n.requests == 0 && (oldest == nil || n.used < oldest.used) {
			oldest = n
		}
	}
	return oldest
}

// track is middleware. It registers a session before its client learns its id, handles cancellations, and ends the calls of an
// HTTP session with the session.
func (s *sessions) track(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		ss, _ := req.GetSession().(*mcp.ServerSession)
		if ss == nil {
			return next(ctx, method, req)
		}
		if n := s.find(ss.ID()); n != nil && method == toolsCall {
			inner, cancel := within(ctx, n.life)
			defer cancel()
			ctx = inner
		}
		params := req.GetParams()
		if initialize, ok := params.(*mcp.InitializeParams); ok {
			trim(initialize)
		}
		res, err := next(ctx, method, req)
		if method == "initialize" && err == nil && ss.ID() != "" {
			s.register(ss, req.GetExtra())
		}
		if cancelled, ok := params.(*mcp.CancelledParams); ok && method == "notifications/cancelled" {
			s.cancel(ss, cancelled.RequestID)
		}
		return res, err
	}
}

// trim reduces the parameters of initialize to the used ones, a few KiB: the SDK keeps them as long as the session.
func trim(p *mcp.InitializeParams) {
	if p == nil {
		return
	}
	p.Meta = nil
	capabilities := mcp.ClientCapabilities{}
	if p.Capabilities != nil {
		capabilities = *p.Capabilities
	}
	capabilities.Experimental, capabilities.Extensions = nil, nil
	p.Capabilities = &capabilities
	p.ProtocolVersion = shownUpTo(p.ProtocolVersion, mostKept)
	if p.ClientInfo != nil {
		p.ClientInfo = &mcp.Implementation{Name: shownUpTo(p.ClientInfo.Name, mostKept), Version: shownUpTo(p.ClientInfo.Version, mostKept)}
	}
}

// register returns the session of ss. A new one belongs to the caller and the path of its first request, which has extra over
// HTTP.
func (s *sessions) register(ss *mcp.ServerSession, extra *mcp.RequestExtra) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.all[ss]; known != nil {
		return known
	}
	n := &session{server: ss, user: extraUser(extra), group: requestGroup(extra), calls: map[string]context.CancelCauseFunc{}}
	n.life, n.end = context.WithCancelCause(context.Background())
	n.finished, n.quiet = context.WithCancel(context.Background())
	s.all[ss] = n
	if id := ss.ID(); id != "" {
		s.byID[id] = n
		n.idle = time.AfterFunc(sessionTimeout, func() { s.expire(n) })
	}
	go func() { ss.Wait(); s.remove(n) }() // ends with the session
	return n
}

// lasting makes a session go on as long as its client waits for updates.
func (s *sessions) lasting(n *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n.lasts = true
}

// expire ends a session without a POST, unless its client waits for updates.
func (s *sessions) expire(n *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n.lasts && n.requests > 0 && !n.closed {
		n.idle.Reset(sessionTimeout)
		return
	}
	go n.server.Close() // it waits for the session's calls
}

// find returns the HTTP session with an id, or nil.
func (s *sessions) find(id string) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byID[id]
}

// lifeOf returns the life of a session, or nil if it is not known.
func (s *sessions) lifeOf(ss *mcp.ServerSession) context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.all[ss]; n != nil {
		return n.life
	}
	return nil
}

// open takes a slot for a session with n bytes beyond SessionCost. If the origin has no more slots, open evicts the origin's
// least recently used idle session, and never that of another.
func (s *sessions) open(from origin, n int64) (*sessionSlot, *refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.owners[from.key]
	if o == nil {
		o = &owner{key: from.key, sessions: map[*session]bool{}}
	}
	var evicted *session
	if !from.local && o.slots >= s.mostOfOne {
		if evicted = o.unused(); evicted == nil {
			return nil, full(fmt.Errorf("all %d sessions of your address or identity are in use (limit caller-sessions): "+
				"end one; the operator can raise this with --limit caller-sessions=%d", o.slots, 2*o.slots))
		}
	} else if s.slots >= s.most {
		return nil, full(fmt.Errorf("the gateway has %d sessions, which is the most (limit sessions): "+
			"try again later; the operator can raise this with --limit sessions=%d", s.slots, 2*s.slots))
	}
	p := &sessionSlot{owner: o, room: s.room.Lease()}
	if err := p.room.Grow(SessionCost + n); err != nil {
		return nil, full(err)
	}
	if evicted != nil { // only now: a refused request evicts no session
		s.drop(evicted)
	}
	s.slots++
	o.slots++
	s.owners[o.key] = o // the eviction may have removed it
	return p, nil
}

// assign gives a slot to the new session, or frees it if the SDK has opened none.
func (s *sessions) assign(p *sessionSlot, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.byID[id]
	if n == nil || n.slot != nil {
		s.free(p)
		return
	}
	n.slot = p
	s.uses++
	n.used, p.owner.sessions[n] = s.uses, true
}

// close gives back the slot of a request that takes one.
func (s *sessions) close(p *sessionSlot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free(p)
}

// free frees a slot. s.mu is held.
func (s *sessions) free(p *sessionSlot) {
	p.room.Close()
	s.slots--
	if p.owner.slots--; p.owner.slots == 0 {
		delete(s.owners, p.owner.key)
	}
}

// use protects an HTTP session from eviction, and with a POST from its timeout, until leave. It reports whether the session is
// open.
func (s *sessions) use(n *session, post bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	n.requests++
	if post {
		n.posts++
		n.idle.Stop()
	}
	return !n.closed
}

func (s *sessions) leave(n *session, post bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n.requests--
	s.uses++
	n.used = s.uses
	if post {
		n.posts--
	}
	if post && n.posts == 0 && !n.closed {
		n.idle.Reset(sessionTimeout)
	}
}

// kept returns the bytes beyond [SessionCost] that the SDK keeps of a request, for the session or until the next request. A
// batch becomes many small parts.
func kept(r *http.Request, m *message) int64 {
	n := int64(len(m.data))
	if n > 0 && m.data[0] != '{' {
		n *= 8
	}
	return max(0, n+sizeOf(r.Header)-longInitialize)
}

// sizeOf returns the bytes of headers.
func sizeOf(h http.Header) (n int64) {
	for name, values := range h {
		for _, v := range values {
			n += int64(len(name) + len(v))
		}
	}
	return n
}

// keeps charges the session for its longest message so far, beside its initialize: the SDK connects the session with the context
// of that.
func (s *sessions) keeps(n *session, r *http.Request, m *message) *refusal {
	more := kept(r, m)
	s.mu.Lock()
	defer s.mu.Unlock()
	if n.slot == nil || more <= n.slot.kept {
		return nil
	}
	if err := n.slot.room.Grow(more - n.slot.kept); err != nil {
		return full(err)
	}
	n.slot.kept = more
	return nil
}

// endUser closes the sessions of a user.
func (s *sessions) endUser(user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.byID {
		if n.user == user {
			s.drop(n)
		}
	}
}

// end closes a session.
func (s *sessions) end(n *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(n)
}

// drop closes a session. s.mu is held.
func (s *sessions) drop(n *session) {
	s.forget(n)
	go n.server.Close() // it waits for the session's calls
}

// remove removes an ended session.
func (s *sessions) remove(n *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(n)
}

// forget ends a session: it refuses new requests, cancels its calls and frees its slot. s.mu is held.
func (s *sessions) forget(n *session) {
	delete(s.all, n.server)
	if s.byID[n.server.ID()] == n {
		delete(s.byID, n.server.ID())
	}
	if n.slot != nil {
		delete(n.slot.owner.sessions, n)
		s.free(n.slot)
		n.slot = nil
	}
	if n.idle != nil {
		n.idle.Stop()
	}
	n.closed = true
	n.end(nil)
	if len(n.calls) == 0 {
		n.quiet()
	}
}

// enter adds a call in flight, and reports false if its id is in flight already.
func (s *sessions) enter(n *session, id string, cancel context.CancelCauseFunc) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n.calls[id] != nil {
		return false
	}
	n.calls[id] = cancel
	return true
}

// exit removes an answered call.
func (s *sessions) exit(n *session, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if delete(n.calls, id); n.closed && len(n.calls) == 0 {
		n.quiet()
	}
}

// cancel cancels the call of ss with that id. It ignores an id that the SDK may have rounded, since that can be the id of
// another call.
func (s *sessions) cancel(ss *mcp.ServerSession, id any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	written, known := wroteID(id)
	if n := s.all[ss]; n != nil && known && n.calls[written] != nil {
		n.calls[written](errUnwanted)
	}
}
