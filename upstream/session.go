package upstream

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/memory"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream/questions"
	"github.com/mcsh-dev/mcsh/upstream/remote"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
	"github.com/mcsh-dev/mcsh/upstream/toollist"
)

const (
	closeGrace   = time.Second            // for a session to end gracefully
	closeLimit   = 10 * time.Second       // after that, to end at all
	flushLimit   = 500 * time.Millisecond // for cancelled calls to return, and the server to be notified
	pollInterval = 20 * time.Millisecond
)

// A rawTransport is a transport that also makes requests of our own beside the SDK's session.
type rawTransport interface {
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

// A session is one session with a server.
type session struct {
	sdk       *mcp.ClientSession
	transport rawTransport
	version   string          // of the protocol
	meta      map[string]any  // members of _meta that every request needs
	roots     json.RawMessage // the result of roots/list, nil if there are none
	gateway   bool            // the server is a gateway like this one
	answers   bool            // it has declared that questions are answered
	started   time.Time
	tokens    atomic.Int64  // of progress: the last one
	calls     atomic.Int32  // in flight
	used      atomic.Int64  // when the last call ended, in nanoseconds since the epoch
	rested    atomic.Bool   // ended because it was unused
	checking  atomic.Bool   // a ping is under way
	feed      *feed         // of updates of resources
	ended     chan struct{} // closed when the session is over
	err       error         // why it ended, once ended is closed
}

func newSession(sdk *mcp.ClientSession, p rawTransport, impl *mcp.Implementation, roots json.RawMessage) *session {
	s := &session{
		sdk: sdk, transport: p, roots: roots, version: sdk.InitializeResult().ProtocolVersion,
		started: time.Now(), ended: make(chan struct{}), gateway: gatewayBehind(sdk) != "",
	}
	s.used.Store(s.started.UnixNano())
	s.feed = newFeed(s)
	if s.stateless() {
		s.meta = requestMeta(s.version, impl)
		if roots != nil {
			s.meta[mcp.MetaKeyClientCapabilities] = questions.Declared{}.Meta(true)
		}
	}
	return s
}

// stateless reports whether the session is of the newer era, which has no sessions on the server.
func (s *session) stateless() bool { return s.version >= newVersion }

// routed reports whether calls repeat arguments in HTTP headers, for proxies.
func (s *session) routed() bool {
	_, ok := s.transport.(*remote.Transport)
	return ok && s.stateless()
}

// watch waits for the end of the session, and ends it after it was unused for the time of idle, if that is more than 0.
func (s *session) watch(idle time.Duration) {
	over := make(chan struct{})
	go func() {
		s.err = s.sdk.Wait()
		close(over)
	}()
	for {
		var expired <-chan time.Time // none: nobody waits for it
		if idle > 0 {
			expired = time.After(max(idle-s.idle(), time.Millisecond))
		}
		select {
		case <-over:
			s.transport.Abort()
			close(s.ended)
			s.feed.end()
			return
		case <-expired:
			if s.idle() >= idle {
				idle = 0
				s.rested.Store(true)
				go s.endSession()
			}
		}
	}
}

// touch notes that the session has been used.
func (s *session) touch() { s.used.Store(time.Now().UnixNano()) }

// idle is how long the session has been unused. A subscription is a use.
func (s *session) idle() time.Duration {
	if s.calls.Load() > 0 || s.feed.used() {
		return 0
	}
	return time.Since(time.Unix(0, s.used.Load()))
}

func (s *session) dead() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// close ends the session, gracefully first. The caller has cancelled the calls in flight.
func (s *session) close() {
	s.flushCancelled()
	s.endSession()
	select {
	case <-s.ended:
	case <-time.After(closeLimit): // a transport that is not ours, or a built-in tool that ignores its context
	}
}

// endSession closes the session, by force if that takes too long.
func (s *session) endSession() {
	done := make(chan struct{})
	go func() {
		_ = s.sdk.Close()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(closeGrace):
		s.transport.Abort()
	}
}

// flushCancelled waits a moment for cancelled calls to return and for the server to be notified: some servers do not
// stop a tool just because its session ends.
func (s *session) flushCancelled() {
	ctx, cancel := context.WithTimeout(context.Background(), flushLimit)
	defer cancel()
	s.feed.end()
	if !s.unused(ctx) || !s.await(ctx, &s.feed.requests) {
		return
	}
	settled := make(chan struct{})
	go func() {
		s.transport.FlushCancelled()
		close(settled)
	}()
	select {
	case <-settled:
	case <-ctx.Done():
	case <-s.ended:
	}
}

// unused waits until no call is in flight. It reports false if the session or ctx ends first.
func (s *session) unused(ctx context.Context) bool { return s.await(ctx, &s.calls) }

// await waits until none of these is in flight. It reports false if the session or ctx ends first.
func (s *session) await(ctx context.Context, inFlight *atomic.Int32) bool {
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

// request makes a request with the members that all have in common.
func (s *session) request(ctx context.Context, r *rpc.Request) (json.RawMessage, *rpc.Failure) {
	s.calls.Add(1)
	defer s.release()
	r.Version = s.version
	return s.transport.Request(ctx, r)
}

// release ends a use of the session.
func (s *session) release() {
	s.touch()
	s.calls.Add(-1)
}

// nounTool is the noun of the queries of tools.
const nounTool = "tool"

// askForTask asks for a task, in the older protocol; in the newer one the server decides. The result is to be kept for as long as
// anybody may wait for it, [longestWait], in milliseconds.
const askForTask = `,"task":{"ttl":86400000}`

// empty gives back what a lease has.
func empty(lease *memory.Lease) { _ = lease.Grow(-lease.Used()) } // it does not fail

func (s *session) call(ctx context.Context, c stages.Call, a *asking, t *toollist.Tool, lease *memory.Lease) (json.RawMessage, *rpc.Failure) {
	empty(lease) // of the answer before, which asked something
	r := &rpc.Request{Method: "tools/call", Name: t.Original, BeforeSend: c.Sent, Lease: lease}
	if s.answers {
		r.Ask = a.ask
	}
	if c.Progress != nil {
		r.Token = s.tokens.Add(1)
		r.Progress = func(p rpc.Progress) {
			c.Progress(stages.ToolProgress{Done: p.Done, Total: p.Total, Message: hideIn(s.transport, p.Message)})
		}
	}
	members := [][]byte{[]byte(`"name":` + texts.JSON(t.Original) + `,"arguments":`), c.Args}
	if t.AsTask && !s.stateless() {
		members = append(members, []byte(askForTask))
	}
	r.Params = a.params(s, r.Token, members...)
	if s.stateless() {
		r.Headers = t.HeadersOf(c.Args)
	}
	r.Headers = withTrace(r.Headers, c.Trace)
	return s.request(ctx, r)
}

// list fetches one page of a list.
func (s *session) list(ctx context.Context, method, cursor string) (json.RawMessage, error) {
	var members [][]byte
	if cursor != "" {
		members = [][]byte{[]byte(`"cursor":` + texts.JSON(cursor))}
	}
	raw, failure := s.request(ctx, &rpc.Request{Method: method, Params: s.params(stages.Trace{}, 0, members...)})
	if failure != nil {
		return nil, failure
	}
	return raw, nil
}

// healthLimit is how long a server may take to answer a ping.
const healthLimit = 5 * time.Second

// alive pings the server. Any answer counts, an error too.
func (s *session) alive(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, healthLimit)
	defer cancel()
	r := &rpc.Request{Method: "ping", Params: s.params(stages.Trace{}, 0)}
	if s.stateless() {
		r.Method = "server/discover"
	}
	_, failure := s.request(ctx, r)
	return failure == nil || isAnswer(failure)
}
