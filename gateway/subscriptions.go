package gateway

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/memory"
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
	if isModern(req) || r.Session == nil {
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
	if isModern(req) || r.Session == nil {
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
