package upstream

import (
	"context"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/mcsh-dev/mcsh/upstream/questions"
	"github.com/mcsh-dev/mcsh/upstream/remote"
	"github.com/mcsh-dev/mcsh/upstream/sessions"
)

// Asking says whether a server asks its callers something in the middle of calls.
type Asking int

const (
	MayAsk    Asking = iota // it is known once it has asked
	Asks                    // it does: one call at a time where its questions name no call
	NeverAsks               // nothing is declared to it, so all callers share one session
)

// A shared is what the connections to one server share. Those beside the first one are for callers who declare something else:
// in the older era a session declares it once.
type shared struct {
	first   *serverConn                        // the first connection
	others  map[questions.Declared]*serverConn // guarded by the mu of first
	claimed bool                               // first declares something for good; guarded by its mu
	unnamed atomic.Bool                        // the server has asked something that named no call
}

// claim notes that a connection begins to declare something. sc.mu is held.
func (k *shared) claim(sc *serverConn) {
	if k.first == sc {
		k.claimed = true
	}
}

// variant is the connection for the caller of ctx. It starts nothing.
func (sc *serverConn) variant(ctx context.Context) *serverConn {
	d, known := ctx.Value(callerKey{}).(questions.Declared)
	if !known || sc.server.InProcess || sc.server.Asks == NeverAsks {
		return sc
	}
	sc.mu.Lock()
	defer sc.mu.Unlock()
	if !sc.shared.claimed {
		sc.shared.claimed, sc.declared = true, d
	}
	if sc.declared == d || sc.era == eraNew {
		return sc
	}
	v := sc.shared.others[d]
	if v == nil {
		v = sc.another(d)
		sc.shared.others[d] = v
	}
	return v
}

// another makes a connection that declares something else. It has a session and a list of tools of its own, and shares the rest.
// Until it knows its tools, it lists those of the first one. sc.mu is held.
func (sc *serverConn) another(d questions.Declared) *serverConn {
	v := newConn(sc.origin, sc.pool, sc.life)
	v.shared, v.declared, v.era = sc.shared, d, sc.era
	v.slots, v.pace, v.pins, v.replaced, v.offers, v.shapes = sc.slots, sc.pace, sc.pins, sc.replaced, sc.offers, sc.shapes
	v.tools.saved = sc.tools.latest
	return v
}

// variants are the connections beside the first one, which sc is.
func (sc *serverConn) variants() []*serverConn {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	return slices.Collect(maps.Values(sc.shared.others))
}

// running is a session of the first connection, which sc is, or else of another one; nil: none runs.
func (sc *serverConn) running() *sessions.Session {
	for _, c := range append([]*serverConn{sc}, sc.variants()...) {
		if now := c.state(); now.alive() && !now.resting {
			return now.session
		}
	}
	return nil
}

// declares is what the sessions of a connection declare, or nothing as long as that is open.
func (sc *serverConn) declares() questions.Declared {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	return sc.declared
}

// isFirst reports whether a connection is the one that keeps what is known of the server.
func (sc *serverConn) isFirst() bool { return sc.shared.first == sc }

// oneByOne reports whether calls are made one by one, because the server asks and its questions would name none of several.
func (sc *serverConn) oneByOne() bool {
	if sc.inResults.Load() || sc.declares() == (questions.Declared{}) {
		return false
	}
	return sc.shared.unnamed.Load() || sc.server.Asks == Asks && !sc.streams.Load()
}

// noteHow notes how the server of a session asks: in its results, on the stream of each call, or anywhere.
func (sc *serverConn) noteHow(s *sessions.Session) {
	_, streams := s.Transport.(*remote.Transport)
	sc.streams.Store(streams)
	sc.inResults.Store(s.Stateless())
}

// noteUnnamed is called when the server has asked and it is not certain in the middle of which call. The next call gets another
// session the first time, because calls are not made one by one on this one, and whenever a request without an answer makes
// everything on it uncertain.
func (sc *serverConn) noteUnnamed(on sessions.Transport, unanswered bool) {
	first := !sc.shared.unnamed.Swap(true)
	if s := sc.state().session; (first || unanswered) && s != nil && s.Transport == on && !s.Stateless() {
		sc.discard(s)
	}
}
