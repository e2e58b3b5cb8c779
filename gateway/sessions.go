package gateway

import (
	"context"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// sessionTimeout ends HTTP sessions that nobody uses.
const sessionTimeout = 10 * time.Minute

// sessions are the sessions of the SDK, with what happens in them beside it.
type sessions struct {
	mu   sync.Mutex
	all  map[*mcp.ServerSession]*session // guarded by mu
	byID map[string]*session             // those that have an id: of HTTP; guarded by mu
}

// attend takes in sessions before their clients hear of them, cancels calls, and ends those of HTTP with their session.
func (s *sessions) attend(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		ss, ok := req.GetSession().(*mcp.ServerSession)
		if n := s.called(ss, method); n != nil {
			within, cancel := context.WithCancel(ctx)
			defer cancel()
			defer context.AfterFunc(n.life, cancel)()
			ctx = within
		}
		res, err := next(ctx, method, req)
		switch {
		case !ok || ss == nil:
		case method == "initialize" && err == nil && ss.ID() != "":
			s.of(ss, extraUser(req.GetExtra()))
		case method == "notifications/cancelled":
			if params, ok := req.GetParams().(*mcp.CancelledParams); ok {
				s.cancel(ss, params.RequestID)
			}
		}
		return res, err
	}
}

// of returns what is known of ss. What is new belongs to a user, or to nobody in particular.
func (s *sessions) of(ss *mcp.ServerSession, user string) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.all[ss]; known != nil {
		return known
	}
	n := &session{server: ss, user: user, calls: map[string]context.CancelCauseFunc{}}
	n.life, n.end = context.WithCancel(context.Background())
	s.all[ss] = n
	if id := ss.ID(); id != "" {
		s.byID[id] = n
		n.idle = time.AfterFunc(sessionTimeout, func() { ss.Close() })
	}
	go func() { ss.Wait(); s.remove(n) }() // it ends with the session
	return n
}

// ofUser returns the sessions of a user.
func (s *sessions) ofUser(user string) []*session {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []*session
	for _, n := range s.byID {
		if n.user == user {
			list = append(list, n)
		}
	}
	return list
}

// called returns the HTTP session in which a tool is called, or nil.
func (s *sessions) called(ss *mcp.ServerSession, method string) *session {
	if ss == nil || method != "tools/call" {
		return nil
	}
	return s.find(ss.ID())
}

// find returns the HTTP session with an id, or nil.
func (s *sessions) find(id string) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byID[id]
}

// remove forgets a session that has ended.
func (s *sessions) remove(n *session) {
	n.close()
	n.end()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, n.server)
	if s.byID[n.server.ID()] == n {
		delete(s.byID, n.server.ID())
	}
}

// cancel cancels a call of ss if it has one with that id. One whose id the SDK would round goes on to its end: the id can
// be that of another call.
func (s *sessions) cancel(ss *mcp.ServerSession, id any) {
	s.mu.Lock()
	n := s.all[ss]
	s.mu.Unlock()
	written, known := wroteID(id)
	if n == nil || !known {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if cancel := n.calls[written]; cancel != nil {
		cancel(nil)
	}
}

// A session has the calls that are answered beside the SDK. That of HTTP also has the time it may go unused, which the
// SDK would count by its own requests.
type session struct {
	server *mcp.ServerSession
	user   string          // the identity that it is bound to; empty: nobody is asked
	life   context.Context // ends with it, and ends its calls
	end    context.CancelFunc

	mu       sync.Mutex
	calls    map[string]context.CancelCauseFunc // those in flight, by their ids as they are written; guarded by mu
	requests int                                // HTTP requests under way, guarded by mu
	idle     *time.Timer                        // runs while there are none; nil once closed, and without HTTP; guarded by mu
	closed   bool                               // guarded by mu
	last     chan struct{}                      // closed with the last call once the session is; guarded by mu
}

// enter enters a call, and reports whether there is none with its id.
func (n *session) enter(id string, cancel context.CancelCauseFunc) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.calls[id] != nil {
		return false
	}
	n.calls[id] = cancel
	return true
}

func (n *session) leave(id string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.calls, id)
	if n.last != nil && len(n.calls) == 0 {
		close(n.last)
		n.last = nil
	}
}

// startRequest keeps the session from its timeout until endRequest is called. It reports whether the session is open.
func (n *session) startRequest() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.requests++; n.idle != nil {
		n.idle.Stop()
	}
	return !n.closed
}

func (n *session) endRequest() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.requests--; n.requests == 0 && n.idle != nil {
		n.idle.Reset(sessionTimeout)
	}
}

// close ends the session for what comes, and returns a channel that is closed when no call is in flight.
func (n *session) close() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	if n.idle != nil {
		n.idle.Stop()
		n.idle = nil
	}
	if n.last == nil {
		n.last = make(chan struct{})
	}
	last := n.last
	if len(n.calls) == 0 {
		close(last)
		n.last = nil
	}
	return last
}
