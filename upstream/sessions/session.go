package sessions

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/memory"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream/questions"
	"github.com/mcsh-dev/mcsh/upstream/remote"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

const (
	closeGrace   = time.Second            // for a session to end gracefully
	closeLimit   = 10 * time.Second       // after that, to end at all
	flushLimit   = 500 * time.Millisecond // for cancelled calls to return, and the server to be notified
	pollInterval = 20 * time.Millisecond
)

// ErrTimeout is the cause of a call that took longer than one call may.
var ErrTimeout = errors.New("the call took too long")

// A Transport is a transport that also makes requests of our own beside the SDK's session.
type Transport interface {
	mcp.Transport

	// Prepare sets a function that is called with the news of the server, and the share that messages count in, each of
	// at most max bytes. It is called before Connect.
	Prepare(noted func(rpc.News), share *memory.Share, max int)

	// Play sets what we do for the server. It is called before Connect.
	Play(role rpc.Role)

	// Request makes a request on the connection that Connect has made, and returns its undecoded result.
	Request(ctx context.Context, r *rpc.Request) (json.RawMessage, *rpc.Failure)

	// Hold makes questions about a task come to its Ask, until release is called.
	Hold(task *rpc.Request) (release func())

	Traits() rpc.Traits

	// Abort ends the connection by force, if there is one.
	Abort()

	// FlushCancelled waits, for a moment at most, until the server has been notified of all cancelled requests.
	FlushCancelled()
}

// A Session is one session with a server.
type Session struct {
	SDK          *mcp.ClientSession
	Transport    Transport
	Version      string          // of the protocol
	Meta         []byte          // members of _meta that every request needs
	Capabilities string          // of this client, for callers that cannot be asked; empty: _meta has none
	Roots        json.RawMessage // the result of roots/list, nil if there are none
	hops         string          // the member of _meta for the hops of a call, where the server is a gateway like this one; else ""
	Answers      bool            // it has declared that questions are answered
	Started      time.Time
	Tokens       atomic.Int64  // of progress: the last one
	Calls        atomic.Int32  // in flight
	used         atomic.Int64  // when the last call ended, in nanoseconds since the epoch
	Rested       atomic.Bool   // ended because it was unused
	Checking     atomic.Bool   // a ping is under way
	Feed         *Feed         // of updates of resources
	ended        chan struct{} // closed when the session is over
	Err          error         // why it ended, once ended is closed
}

// Options say what a session is made of.
type Options struct {
	SDK       *mcp.ClientSession
	Transport Transport
	Client    *mcp.Implementation
	Roots     json.RawMessage // the result of roots/list, nil if there are none
	Answers   bool            // it has declared that questions are answered
	Hops      string          // the member of _meta in which the server counts hops; "": it does not
}

// New makes a session of one that the SDK has begun.
func New(o Options) *Session {
	s := &Session{
		SDK: o.SDK, Transport: o.Transport, Roots: o.Roots, Answers: o.Answers, hops: o.Hops,
		Version: o.SDK.InitializeResult().ProtocolVersion, Started: time.Now(), ended: make(chan struct{}),
	}
	s.used.Store(s.Started.UnixNano())
	s.Feed = newFeed(s)
	if s.Stateless() {
		s.Meta, s.Capabilities = RequestMeta(s.Version, o.Client), questions.Declared{}.Meta(o.Roots != nil)
	}
	return s
}

// NewVersion is the first version of the protocol without a handshake.
const NewVersion = "2026-07-28"

// Stateless reports whether the session is of the newer era, which has no sessions on the server.
func (s *Session) Stateless() bool { return s.Version >= NewVersion }

// Routed reports whether calls repeat arguments in HTTP headers, for proxies.
func (s *Session) Routed() bool {
	_, ok := s.Transport.(*remote.Transport)
	return ok && s.Stateless()
}

// Watch waits for the end of the session, and ends it after it was unused for the time of idle, if that is more than 0.
func (s *Session) Watch(idle time.Duration) {
	over := make(chan struct{})
	go func() {
		s.Err = s.SDK.Wait()
		close(over)
	}()
	for {
		var expired <-chan time.Time // none: nobody waits for it
		if idle > 0 {
			expired = time.After(max(idle-s.idle(), time.Millisecond))
		}
		select {
		case <-over:
			s.Transport.Abort()
			close(s.ended)
			s.Feed.end()
			return
		case <-expired:
			if s.idle() >= idle {
				idle = 0
				s.Rested.Store(true)
				go s.endSession()
			}
		}
	}
}

// touch notes that the session has been used.
func (s *Session) touch() { s.used.Store(time.Now().UnixNano()) }

// idle is how long the session has been unused. A subscription is a use.
func (s *Session) idle() time.Duration {
	if s.Calls.Load() > 0 || s.Feed.used() {
		return 0
	}
	return time.Since(time.Unix(0, s.used.Load()))
}

// Dead reports whether the session has ended.
func (s *Session) Dead() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// Close ends the session, gracefully first. The caller has cancelled the calls in flight.
func (s *Session) Close() {
	s.flushCancelled()
	s.endSession()
	select {
	case <-s.ended:
	case <-time.After(closeLimit): // a transport that is not ours, or a built-in tool that ignores its context
	}
}

// endSession closes the session, by force if that takes too long.
func (s *Session) endSession() {
	done := make(chan struct{})
	go func() {
		_ = s.SDK.Close()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(closeGrace):
		s.Transport.Abort()
	}
}

// flushCancelled waits a moment for cancelled calls to return and for the server to be notified: some servers do not
// stop a tool just because its session ends.
func (s *Session) flushCancelled() {
	ctx, cancel := context.WithTimeout(context.Background(), flushLimit)
	defer cancel()
	s.Feed.end()
	if !s.Unused(ctx) || !s.await(ctx, &s.Feed.requests) {
		return
	}
	settled := make(chan struct{})
	go func() {
		s.Transport.FlushCancelled()
		close(settled)
	}()
	select {
	case <-settled:
	case <-ctx.Done():
	case <-s.ended:
	}
}

// Unused waits until no call is in flight. It reports false if the session or ctx ends first.
func (s *Session) Unused(ctx context.Context) bool { return s.await(ctx, &s.Calls) }

// await waits until none of these is in flight. It reports false if the session or ctx ends first.
func (s *Session) await(ctx context.Context, inFlight *atomic.Int32) bool {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for inFlight.Load() > 0 {
		select {
		case <-tick.C:
		case <-s.ended:
			return false
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// Request makes a request with the members that all have in common.
func (s *Session) Request(ctx context.Context, r *rpc.Request) (json.RawMessage, *rpc.Failure) {
	s.Calls.Add(1)
	defer s.Release()
	r.Version = s.Version
	return s.Transport.Request(ctx, r)
}

// Release ends a use of the session.
func (s *Session) Release() {
	s.touch()
	s.Calls.Add(-1)
}

// List fetches one page of a list.
func (s *Session) List(ctx context.Context, method, cursor string) (json.RawMessage, error) {
	var members [][]byte
	if cursor != "" {
		members = [][]byte{[]byte(`"cursor":` + texts.JSON(cursor))}
	}
	raw, failure := s.Request(ctx, &rpc.Request{Method: method, Params: s.Params(stages.Trace{}, 0, members...)})
	if failure != nil {
		return nil, failure
	}
	return raw, nil
}

// healthLimit is how long a server may take to answer a ping.
const healthLimit = 5 * time.Second

// Alive pings the server. Any answer counts, an error too.
func (s *Session) Alive(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, healthLimit)
	defer cancel()
	r := &rpc.Request{Method: "ping", Params: s.Params(stages.Trace{}, 0)}
	if s.Stateless() {
		r.Method = "server/discover"
	}
	_, failure := s.Request(ctx, r)
	return failure == nil || rpc.IsAnswer(failure)
}
