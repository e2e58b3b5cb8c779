package sessions

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/mcsh-dev/mcsh/internal/memory"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream/remote"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

// A Feed is what brings the updates of resources on one session. The older protocol has a request for each resource, and over
// HTTP a standing stream; the newer one has requests that last, for one resource each with a program, and for many over HTTP,
// where each takes a connection. All of it is open only while somebody is subscribed, but for a standing stream on which the
// server may ask.
type Feed struct {
	s     *Session
	life  context.Context // of the session
	end   context.CancelFunc
	Owner // set before the session is used

	requests atomic.Int32 // in flight, that do not count as calls

	mu       sync.Mutex      // guards the fields below
	uris     map[string]bool // of the resources whose updates come
	opening  int             // requests to subscribe
	standing *standing       // nil: there is none
	kept     bool            // the standing stream lasts as long as the session
	batches  []*batch
}

// An Owner is what a feed needs of those who have its session.
type Owner struct {
	Start  func(run func()) bool           // runs something in a goroutine; false: it does not any more
	Lost   func(s *Session, uris []string) // the session brings no updates any more: of these resources, or of all if there are none
	Missed func(uris []string)             // updates of resources may have been missed
	Limit  time.Duration                   // of a request
	Memory *memory.Share                   // for messages
}

func newFeed(s *Session) *Feed {
	f := &Feed{s: s, uris: map[string]bool{}}
	f.life, f.end = context.WithCancel(context.Background())
	return f
}

// Own sets who has the session, before it is used.
func (s *Session) Own(o Owner) { s.Feed.Owner = o }

// used reports whether somebody is subscribed to anything.
func (f *Feed) used() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.opening+len(f.uris) > 0
}

// Brings reports whether updates of a resource come.
func (f *Feed) Brings(uri string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.uris[uri] && !f.s.Dead()
}

// lost reports that the session brings no updates any more: of these resources, or of all if there are none.
func (f *Feed) lost(uris ...string) {
	if f.life.Err() == nil {
		f.Lost(f.s, uris)
	}
}

// start runs f in a goroutine of the pool. It reports false after the end.
func (f *Feed) start(run func()) bool {
	return f.life.Err() == nil && f.Start(run)
}

// during makes a request, unless the session has ended. The end of the session waits for it.
func (f *Feed) during(request func()) {
	f.requests.Add(1)
	defer f.requests.Add(-1)
	if f.life.Err() == nil {
		request()
	}
}

// errEnded is the failure of a subscription on a session that has ended.
func errEnded() *rpc.Failure { return &rpc.Failure{Err: rpc.ErrClosed, Lost: true} }

// answered is a failure with an error of the protocol, as if the server had sent it.
func answered(code int64, text string) *rpc.Failure {
	return &rpc.Failure{Err: &jsonrpc.Error{Code: code, Message: text}}
}

// Subscribe subscribes to a resource.
func (f *Feed) Subscribe(ctx context.Context, c stages.Call) *rpc.Failure {
	if said := f.s.SDK.InitializeResult().Capabilities; said == nil || said.Resources == nil || !said.Resources.Subscribe {
		return answered(jsonrpc.CodeMethodNotFound, "the server does not report changes of its resources: read the resource again now and then")
	}
	f.count(1)
	failure := f.ask(ctx, c)
	f.count(-1)
	if failure != nil {
		f.endUnneeded()
	}
	return failure
}

func (f *Feed) ask(ctx context.Context, c stages.Call) *rpc.Failure {
	if f.s.Stateless() {
		return f.join(ctx, c.Name)
	}
	var st *standing
	if t, ok := f.s.Transport.(*remote.Transport); ok {
		var failure *rpc.Failure
		if st, failure = f.stand(ctx, t); failure != nil {
			return failure
		}
	}
	if _, failure := f.s.Request(ctx, f.request("resources/subscribe", c)); failure != nil {
		return failure
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.standing != st {
		return &rpc.Failure{Err: rpc.ErrClosed, Unavailable: true}
	}
	f.uris[c.Name] = true
	return nil
}

func (f *Feed) request(method string, c stages.Call) *rpc.Request {
	return &rpc.Request{Method: method, BeforeSend: c.MaySend, Params: f.s.Params(c.Trace, 0, []byte(`"uri":`), []byte(texts.JSON(c.Name)))}
}

// Unsubscribe ends a subscription. From then on its updates do not count, even if the server refuses.
func (f *Feed) Unsubscribe(uri string) {
	if f.s.Stateless() {
		f.leave(uri)
	} else {
		f.during(func() {
			ctx, cancel := context.WithTimeout(f.life, closeLimit)
			defer cancel()
			_, _ = f.s.Request(ctx, f.request("resources/unsubscribe", stages.Call{Name: uri}))
		})
	}
	f.mu.Lock()
	delete(f.uris, uri)
	f.mu.Unlock()
	f.endUnneeded()
}

// count counts requests to subscribe.
func (f *Feed) count(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.opening += n
}

// A standing is a standing stream.
type standing struct {
	end     context.CancelFunc
	opened  chan struct{} // closed when the server has begun it
	over    chan struct{} // closed when it has ended
	failure *rpc.Failure  // once over is closed
}

// stand waits until the standing stream is open.
func (f *Feed) stand(ctx context.Context, t *remote.Transport) (*standing, *rpc.Failure) {
	f.mu.Lock()
	st := f.standing
	if st == nil {
		st = &standing{opened: make(chan struct{}), over: make(chan struct{})}
		f.standing = st
		life, end := context.WithCancel(f.life)
		st.end = end
		if !f.start(func() { f.stream(life, t, st) }) {
			f.standing = nil
			end()
			f.mu.Unlock()
			return nil, errEnded()
		}
	}
	f.mu.Unlock()
	select {
	case <-st.opened:
		return st, nil
	case <-st.over:
		return nil, st.failure
	case <-ctx.Done():
		return nil, &rpc.Failure{Err: ctx.Err()}
	}
}

// stream reads the standing stream to its end.
func (f *Feed) stream(life context.Context, t *remote.Transport, st *standing) {
	defer st.end()
	st.failure = t.Listen(life, f.s.Version, sync.OnceFunc(func() { close(st.opened) }))
	f.mu.Lock()
	ours := f.standing == st // else nobody needs it
	if ours {
		f.standing = nil
		clear(f.uris)
	}
	f.mu.Unlock()
	close(st.over)
	if ours {
		f.lost()
	}
}

// keepStanding makes the standing stream last as long as the session, once it is open: the server may ask on it.
func (f *Feed) keepStanding() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.kept = true
}

// endUnneeded ends the standing stream if nobody needs it.
func (f *Feed) endUnneeded() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.s.touch()
	if f.opening+len(f.uris) == 0 && f.standing != nil && !f.kept {
		f.standing.end()
		f.standing = nil
	}
}
