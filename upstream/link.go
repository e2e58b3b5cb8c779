package upstream

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream/remote"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

const (
	closeGrace  = time.Second            // for a session to end politely
	closeLimit  = 10 * time.Second       // after that, to end at all
	settleLimit = 500 * time.Millisecond // for cancelled calls to return, and the server to be told of it
	settleStep  = 20 * time.Millisecond
)

// A peer is a transport with requests of our own beside the SDK's session.
type peer interface {
	mcp.Transport

	// Notify has changed called when the server says that its tool list has changed. It is called before Connect.
	Notify(changed func())

	// Request makes a request on the connection that Connect has made, and returns its undecoded result.
	Request(ctx context.Context, r *rpc.Request) (json.RawMessage, *rpc.Failure)

	// HangUp ends the connection by force, if there is one.
	HangUp()

	// Settle waits, at most for a moment, until the server has been told of all requests that were given up.
	Settle()
}

// A link is one session with a server.
type link struct {
	session  *mcp.ClientSession
	peer     peer
	version  string // of the protocol
	meta     []byte // members of _meta that every request needs
	gateway  bool   // the server is one such as ours
	started  time.Time
	calls    atomic.Int32  // in flight
	used     atomic.Int64  // when the last call ended, in nanoseconds since the epoch
	rested   atomic.Bool   // ended because nobody needed it
	examined atomic.Bool   // being asked whether it is there
	ended    chan struct{} // closed when the session is over
	err      error         // why it ended, once ended is closed
}

func newLink(session *mcp.ClientSession, p peer, impl *mcp.Implementation) *link {
	l := &link{
		session: session, peer: p, version: session.InitializeResult().ProtocolVersion,
		started: time.Now(), ended: make(chan struct{}), gateway: gatewayBehind(session) != "",
	}
	l.used.Store(l.started.UnixNano())
	if l.stateless() {
		l.meta = requestMeta(l.version, impl)
	}
	return l
}

// stateless reports whether the session is of the newer era, which has no sessions.
func (l *link) stateless() bool { return l.version >= newVersion }

// routed reports whether calls carry arguments in headers of HTTP, for what stands before the server.
func (l *link) routed() bool {
	_, ok := l.peer.(*remote.Transport)
	return ok && l.stateless()
}

// watch waits for the end of the session, and ends it when nothing was asked of it for the time of idle, if that is
// more than 0.
func (l *link) watch(idle time.Duration) {
	over := make(chan struct{})
	go func() {
		l.err = l.session.Wait()
		close(over)
	}()
	for {
		var expired <-chan time.Time // none: nobody waits for it
		if idle > 0 {
			expired = time.After(max(idle-l.idle(), time.Millisecond))
		}
		select {
		case <-over:
			l.peer.HangUp()
			close(l.ended)
			return
		case <-expired:
			if l.idle() >= idle {
				idle = 0
				l.rested.Store(true)
				go l.endSession()
			}
		}
	}
}

// idle is for how long nothing was asked of the session.
func (l *link) idle() time.Duration {
	if l.calls.Load() > 0 {
		return 0
	}
	return time.Since(time.Unix(0, l.used.Load()))
}

func (l *link) dead() bool {
	select {
	case <-l.ended:
		return true
	default:
		return false
	}
}

// close ends the session, politely first. The caller has cancelled the calls in flight.
func (l *link) close() {
	l.settle()
	l.endSession()
	timer := time.NewTimer(closeLimit)
	defer timer.Stop()
	select {
	case <-l.ended:
	case <-timer.C: // a transport that is not ours, or a built-in tool that ignores its context
	}
}

// endSession closes the session, by force if that takes too long.
func (l *link) endSession() {
	done := make(chan struct{})
	go func() {
		_ = l.session.Close()
		close(done)
	}()
	timer := time.NewTimer(closeGrace)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		l.peer.HangUp()
	}
}

// settle waits a moment for cancelled calls to return and for the server to be told of that: some servers do not stop a
// tool just because its session ends.
func (l *link) settle() {
	settled := make(chan struct{})
	limit := time.NewTimer(settleLimit)
	defer limit.Stop()
	tick := time.NewTicker(settleStep)
	defer tick.Stop()
	for l.calls.Load() > 0 {
		select {
		case <-tick.C:
		case <-limit.C:
			return
		case <-l.ended:
			return
		}
	}
	go func() {
		l.peer.Settle()
		close(settled)
	}()
	select {
	case <-settled:
	case <-limit.C:
	case <-l.ended:
	}
}

// request makes a request of ours, with what every request has in common.
func (l *link) request(ctx context.Context, r *rpc.Request) (json.RawMessage, *rpc.Failure) {
	l.calls.Add(1)
	defer func() {
		l.used.Store(time.Now().UnixNano())
		l.calls.Add(-1)
	}()
	r.Version = l.version
	return l.peer.Request(ctx, r)
}

// call calls a tool.
func (l *link) call(ctx context.Context, c stages.Call, t *tool) (json.RawMessage, *rpc.Failure) {
	r := &rpc.Request{Method: "tools/call", Name: c.Name, Sent: c.Sent}
	name, err := json.Marshal(c.Name)
	if err != nil {
		return nil, &rpc.Failure{Err: err}
	}
	b := append(make([]byte, 0, len(name)+len(c.Args)+len(l.meta)+64), `{"name":`...)
	b = append(append(b, name...), `,"arguments":`...)
	b = l.appendMeta(append(b, c.Args...), c.Trace)
	r.Params = append(b, '}')
	if l.stateless() {
		r.Headers = t.headers(c.Args)
	}
	r.Headers = withTrace(r.Headers, c.Trace)
	return l.request(ctx, r)
}

// list fetches one page of the tool list.
func (l *link) list(ctx context.Context, cursor string) (json.RawMessage, error) {
	b := []byte(`{`)
	if cursor != "" {
		text, err := json.Marshal(cursor)
		if err != nil {
			return nil, fmt.Errorf(listing+"%w", err)
		}
		b = append(append(b, `"cursor":`...), text...)
	}
	b = append(l.appendMeta(b, stages.Trace{}), '}')
	raw, failure := l.request(ctx, &rpc.Request{Method: "tools/list", Params: b})
	if failure != nil {
		return nil, fmt.Errorf(listing+"%w", failure)
	}
	return raw, nil
}

// healthLimit is how long a server may take to say that it is there.
const healthLimit = 5 * time.Second

// healthy asks the server whether it is there. Any answer will do.
func (l *link) healthy(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, healthLimit)
	defer cancel()
	r := &rpc.Request{Method: "ping"}
	if l.stateless() {
		r.Method = "server/discover"
	}
	r.Params = append(l.appendMeta([]byte(`{`), stages.Trace{}), '}')
	_, failure := l.request(ctx, r)
	return failure == nil || isAnswer(failure)
}
