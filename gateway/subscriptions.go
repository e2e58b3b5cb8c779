package gateway

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/memory"
	"github.com/mcsh-dev/mcsh/internal/pausing"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

// Bounds of subscriptions to resources. A request subscriptions/listen counts as one more.
const (
	sessionSubscriptions = 256    // of one session, or of one request subscriptions/listen
	callerSubscriptions  = 1024   // of one caller, or of one address without authentication; no bound for this machine
	allSubscriptions     = 16_384 // of all callers
	subscriptionCost     = 1 << 10
	shownURI             = 200 // bytes of a URI in an error
)

// subscriptions bound what all clients have subscribed to.
type subscriptions struct {
	pool *upstream.Pool
	room *memory.Share

	mu      sync.Mutex
	all     int                                // guarded by mu, as is everything below
	by      map[string]int                     // by origin
	older   map[*mcp.ServerSession]*subscriber // by session of the older protocol
	listens map[*subscriber]map[string]bool    // the requests of the newer one, with the methods of the lists that they want
}

func newSubscriptions(pool *upstream.Pool, room *memory.Share) *subscriptions {
	return &subscriptions{
		pool: pool, room: room, by: map[string]int{},
		older: map[*mcp.ServerSession]*subscriber{}, listens: map[*subscriber]map[string]bool{},
	}
}

// A subscriber is a session of the older protocol, or a request of the newer one, with the resources to which it has subscribed.
type subscriber struct {
	mailbox
	in   *subscriptions
	from origin
	room *memory.Lease
	sees func(server string) bool // whether the client may still know of a server

	uris   map[string]func() // what ends each, by the URI as the client has written it; nil while it begins; guarded by in.mu
	closed bool              // guarded by in.mu
}

func (s *subscriptions) newSubscriber(from origin, sees func(server string) bool) *subscriber {
	return &subscriber{in: s, from: from, room: s.room.Lease(), sees: sees, uris: map[string]func(){}}
}

// seesAt returns a function that reports whether the sender of a request may still know of a server: groups change.
func (g *Gateway) seesAt(extra *mcp.RequestExtra) func(server string) bool {
	return func(server string) bool {
		return upstream.ViewOf(g.inView(context.Background(), extra)).Sees(server)
	}
}

// take counts one more subscription of an origin. s.mu is held.
func (s *subscriptions) take(from origin) error {
	const hint = "end one that is not needed"
	switch {
	case s.all >= allSubscriptions:
		return stages.Errorf(stages.LimitExceeded, "try again later", "the gateway has %d subscriptions, which is the most", s.all)
	case !from.local && s.by[from.key] >= callerSubscriptions:
		return stages.Errorf(stages.LimitExceeded, hint, "you have %d subscriptions, which is the most for one caller or address", s.by[from.key])
	}
	s.all++
	s.by[from.key]++
	return nil
}

// release undoes take. s.mu is held.
func (s *subscriptions) release(from origin) {
	s.all--
	if s.by[from.key]--; s.by[from.key] == 0 {
		delete(s.by, from.key)
	}
}

// begin counts a new subscription, and reports whether the subscriber has it already.
func (u *subscriber) begin(uri string) (has bool, err error) {
	u.in.mu.Lock()
	defer u.in.mu.Unlock()
	end, has := u.uris[uri]
	switch {
	case u.closed:
		return false, stages.Errorf(stages.Cancelled, "", "the session has ended")
	case has && end == nil:
		return false, stages.Errorf(stages.InvalidArguments, "wait for its answer", "another request is about to subscribe to %q", texts.Cut(uri, shownURI))
	case has:
		return true, nil
	case len(u.uris) >= sessionSubscriptions:
		return false, stages.Errorf(stages.LimitExceeded, "end one that is not needed, or use another session",
			"the session has %d subscriptions, which is the most", len(u.uris))
	}
	if err := u.in.take(u.from); err != nil {
		return false, err
	}
	if err := u.room.Grow(cost(uri)); err != nil {
		u.in.release(u.from)
		return false, stages.OverLimit("memory", "try again later", "%w", err)
	}
	u.uris[uri] = nil
	return false, nil
}

// cost is the memory of a subscription: the URI is kept here and, without our prefix, for the server.
func cost(uri string) int64 { return subscriptionCost + 4*int64(len(uri)) }

// subscribe subscribes to a resource of a server.
func (u *subscriber) subscribe(ctx context.Context, uri string) (server string, err error) {
	if has, err := u.begin(uri); has || err != nil {
		return "", err
	}
	server, end, err := u.in.pool.Subscribe(ctx, uri, func(server string) {
		if u.sees(server) {
			u.put(notice{rpc.ResourceUpdated, uri})
		} else {
			u.unsubscribe(uri)
		}
	})
	u.in.mu.Lock()
	_, wanted := u.uris[uri]
	if wanted && err == nil {
		u.uris[uri] = end
	} else if wanted {
		u.forget(uri)
	}
	u.in.mu.Unlock()
	if err == nil && !wanted { // the session has ended meanwhile
		end()
	}
	return server, err
}

// forget uncounts a subscription. in.mu is held.
func (u *subscriber) forget(uri string) {
	delete(u.uris, uri)
	u.in.release(u.from)
	_ = u.room.Grow(-cost(uri))
}

// unsubscribe ends a subscription, if there is one.
func (u *subscriber) unsubscribe(uri string) {
	u.in.mu.Lock()
	end := u.uris[uri]
	if end != nil {
		u.forget(uri)
	}
	u.in.mu.Unlock()
	if end != nil {
		end()
		u.drop(notice{rpc.ResourceUpdated, uri})
	}
}

// close ends all subscriptions.
func (u *subscriber) close() {
	u.in.mu.Lock()
	ends := u.uris
	for range ends {
		u.in.release(u.from)
	}
	u.uris, u.closed = map[string]func(){}, true
	u.in.mu.Unlock()
	for _, end := range ends {
		if end != nil {
			end()
		}
	}
	u.room.Close()
}

// subscribe is resources/subscribe, of the older protocol.
func (g *Gateway) subscribe(ctx context.Context, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
	r := req.(*mcp.SubscribeRequest)
	if statelessSession(req) || r.Session == nil {
		return next(ctx, "resources/subscribe", req) // it refuses
	}
	return g.subscribeTo(ctx, g.subscriberOf(r.Session, r.Extra), r)
}

// subscribeTo passes a request to subscribe on, within the limits of calls.
func (g *Gateway) subscribeTo(ctx context.Context, u *subscriber, r *mcp.SubscribeRequest) (mcp.Result, error) {
	uri := r.Params.URI
	if strings.HasPrefix(uri, runsURI) {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("outputs of runs do not change, so nobody can subscribe to %q: read it", shown(uri))}
	}
	return question{g, "resources/subscribe", r, uri}.ask(ctx, func(ctx context.Context, call stages.Call) (upstream.Contents, error) {
		server, err := u.subscribe(ctx, call.Name)
		return upstream.Contents{Server: server, Result: []byte("{}")}, err
	})
}

// unsubscribe is resources/unsubscribe, of the older protocol.
func (g *Gateway) unsubscribe(ctx context.Context, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
	r := req.(*mcp.UnsubscribeRequest)
	if statelessSession(req) || r.Session == nil {
		return next(ctx, "resources/unsubscribe", req)
	}
	g.subscriberOf(r.Session, r.Extra).unsubscribe(r.Params.URI)
	return &relayed{}, nil
}

// subscriberOf returns the subscriber of a session of the older protocol.
func (g *Gateway) subscriberOf(ss *mcp.ServerSession, extra *mcp.RequestExtra) *subscriber {
	n := g.sessions.register(ss, extra)
	s := g.subscriptions
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.older[ss]
	if u == nil {
		u = s.newSubscriber(originOfCall(extra), g.seesAt(extra))
		u.wake = (&courier{u: u, session: ss, life: n.life}).start
		s.older[ss] = u
		g.sessions.lasting(n)
		context.AfterFunc(n.life, func() {
			s.mu.Lock()
			delete(s.older, ss)
			s.mu.Unlock()
			u.close()
		})
	}
	return u
}

const (
	updatePause = 100 * time.Millisecond // between two deliveries to one client
	firstTry    = time.Second            // after a delivery that has failed: the client may open its stream soon
	lastTry     = 30 * time.Second
)

// A courier brings the notices of a session of the older protocol to its client. It has a goroutine only while there are any.
type courier struct {
	u       *subscriber
	session *mcp.ServerSession
	life    context.Context // of the session

	again time.Duration // before the next try; only the delivery uses it

	mu   sync.Mutex
	away bool // guarded by mu, as is everything below: delivering, or waiting to try again
	more bool // something was put meanwhile
}

// start delivers what there is, in the background.
func (c *courier) start() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.more = true; !c.away && c.life.Err() == nil {
		c.away = true
		go c.deliver()
	}
}

// deliver delivers until there is nothing more. A client without a stream is tried again later.
func (c *courier) deliver() {
	for c.next() {
		for at, all := 0, c.u.take(); at < len(all); at++ {
			if c.send(all[at]) != nil {
				c.later(all[at:])
				return
			}
			c.again = 0
		}
		if pausing.For(c.life, updatePause) != nil {
			return
		}
	}
}

// next reports whether something was put since the last time. If not, the delivery is over.
func (c *courier) next() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.away, c.more = c.more, false
	return c.away
}

// later puts notices back, and tries again after a wait.
func (c *courier) later(left []notice) {
	c.again = max(firstTry, min(2*c.again, lastTry))
	c.u.put(left...)
	time.AfterFunc(c.again, func() {
		if c.life.Err() == nil {
			c.deliver()
		}
	})
}

// send sends one notice.
func (c *courier) send(n notice) error {
	ctx, cancel := context.WithTimeout(context.WithValue(c.life, noticeKey{}, n), writeWait)
	defer cancel()
	return c.session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{})
}

// noticeKey is the context key of the notice that is sent.
type noticeKey struct{}

// sendNotices is middleware. The SDK cannot send to one session that a resource has changed: it sends progress, which becomes
// that here.
func sendNotices(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		n, ours := ctx.Value(noticeKey{}).(notice)
		session, ok := req.GetSession().(*mcp.ServerSession)
		if !ours || !ok {
			return next(ctx, method, req)
		}
		return next(ctx, rpc.ResourceUpdated, &mcp.ServerRequest[*mcp.ResourceUpdatedNotificationParams]{
			Session: session, Params: &mcp.ResourceUpdatedNotificationParams{URI: n.uri},
		})
	}
}

// A notice is a notification without other contents: that a list has changed, or the resource with uri.
type notice struct{ method, uri string }

// params are the parameters of the notification.
func (n notice) params() map[string]any {
	if n.uri == "" {
		return map[string]any{}
	}
	return map[string]any{"uri": n.uri}
}

// A mailbox keeps the notices that a client has not got yet, each once: however often something changes, the client learns it
// once.
type mailbox struct {
	wake func() // called after each put; it must not block

	mu      sync.Mutex
	waiting []notice        // guarded by mu
	known   map[notice]bool // those of waiting; guarded by mu
}

func (m *mailbox) put(notices ...notice) {
	m.mu.Lock()
	for _, n := range notices {
		if m.known == nil {
			m.known = map[notice]bool{}
		}
		if !m.known[n] {
			m.known[n] = true
			m.waiting = append(m.waiting, n)
		}
	}
	m.mu.Unlock()
	m.wake()
}

// drop removes the notice of a resource that the client does not want any more.
func (m *mailbox) drop(n notice) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.known, n)
}

// take empties the mailbox.
func (m *mailbox) take() (all []notice) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, n := range m.waiting {
		if m.known[n] {
			all = append(all, n)
			delete(m.known, n)
		}
	}
	m.waiting = nil
	return all
}
