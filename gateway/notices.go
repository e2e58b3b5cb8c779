package gateway

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/upstream"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

// listKinds are the notifications that a list has changed, with what servers offer that is listed. Tools are listed by [exposed].
var listKinds = map[string][]upstream.Kind{
	rpc.ResourcesChanged: {upstream.Resources, upstream.Templates},
	rpc.PromptsChanged:   {upstream.Prompts},
	rpc.ToolsChanged:     {},
}

// A listener is a session, or a stream of the stateless protocol, that sees some servers only.
type listener struct {
	extra *mcp.RequestExtra // of the request that began it

	mu   sync.Mutex
	seen map[string][sha256.Size]byte // the lists at the last notification; guarded by mu
}

// notices keeps notifications from sessions whose own lists have not changed: others are not their business.
type notices struct {
	g *Gateway

	mu        sync.Mutex
	listeners map[*mcp.ServerSession][]*listener // the last one counts; guarded by mu
}

// receive is middleware. It registers the listeners that see some servers only.
func (n *notices) receive(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		stream := strings.HasPrefix(method, "subscriptions/")
		if method != "initialize" && !stream {
			return next(ctx, method, req)
		}
		ss, _ := req.GetSession().(*mcp.ServerSession)
		l := n.listener(ctx, req.GetExtra())
		if l == nil || ss == nil {
			return next(ctx, method, req)
		}
		n.register(ss, l)
		res, err := next(ctx, method, req)
		if stream || err != nil {
			n.forget(ss, l)
		} else {
			go func() { ss.Wait(); n.forget(ss, l) }() // ends with the session
		}
		return res, err
	}
}

// listener returns a listener that has seen the lists as they are now; nil: its sender sees all servers.
func (n *notices) listener(ctx context.Context, extra *mcp.RequestExtra) *listener {
	if n == nil {
		return nil
	}
	if _, limited := n.g.groupsOf(extra); !limited {
		return nil
	}
	l := &listener{extra: extra, seen: map[string][sha256.Size]byte{}}
	for notification := range listKinds {
		l.seen[notification] = n.digest(ctx, l, notification)
	}
	return l
}

// wants reports whether a notification is the business of a listener.
func (n *notices) wants(ctx context.Context, l *listener, notification string) bool {
	return l == nil || listKinds[notification] == nil || l.changed(notification, n.digest(ctx, l, notification))
}

func (n *notices) register(ss *mcp.ServerSession, l *listener) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.listeners[ss] = append(n.listeners[ss], l)
}

// forget removes a listener. One of a stream may leave that of its session, or another stream's.
func (n *notices) forget(ss *mcp.ServerSession, l *listener) {
	n.mu.Lock()
	defer n.mu.Unlock()
	left := slices.DeleteFunc(n.listeners[ss], func(other *listener) bool { return other == l })
	if n.listeners[ss] = left; len(left) == 0 {
		delete(n.listeners, ss)
	}
}

// last returns the listener that counts; nil: there is none.
func (n *notices) last(ss *mcp.ServerSession) *listener {
	n.mu.Lock()
	defer n.mu.Unlock()
	if of := n.listeners[ss]; len(of) > 0 {
		return of[len(of)-1]
	}
	return nil
}

// send is middleware. It drops the news of lists that have not changed for their receiver.
func (n *notices) send(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		ss, _ := req.GetSession().(*mcp.ServerSession)
		if listKinds[method] == nil || ss == nil {
			return next(ctx, method, req)
		}
		if !n.wants(ctx, n.last(ss), method) {
			return nil, nil
		}
		return next(ctx, method, req)
	}
}

// changed reports whether the lists are others than at the last notification.
func (l *listener) changed(notification string, now [sha256.Size]byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	was := l.seen[notification]
	l.seen[notification] = now
	return was != now
}

// digest returns a hash of the lists of a listener.
func (n *notices) digest(ctx context.Context, l *listener, notification string) (sum [sha256.Size]byte) {
	ctx = n.g.inView(ctx, l.extra)
	hash := sha256.New()
	if notification == rpc.ToolsChanged {
		for _, t := range n.g.exposed.shown(upstream.ViewOf(ctx)) {
			if !t.Held() {
				d := t.Details(ctx)
				fmt.Fprintf(hash, "%s\x00%s\x00%s\x00%s\x00%v\x00", t.Server, t.as, t.Raw(), d.Description, d.ReadOnly)
			}
		}
		for _, form := range n.g.savedForms(ctx, l.extra) {
			hash.Write(form)
		}
	}
	for _, kind := range listKinds[notification] {
		for _, offer := range n.g.o.Upstream.Offers(ctx, kind) {
			hash.Write([]byte(offer.Server))
			hash.Write([]byte{0})
			hash.Write(offer.Raw)
			hash.Write([]byte{0})
		}
		hash.Write([]byte{1})
	}
	hash.Sum(sum[:0])
	return sum
}
