package gateway

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sync/errgroup"

	"github.com/mcsh-dev/mcsh/internal/pausing"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

const (
	quotedListen   = `"` + rpc.Listen + `"`
	listenRequests = 8 // of one subscriptions/listen that servers get at once
)

// Lasts reports whether the call has no answer before its end: it is a request subscriptions/listen.
func (c *Call) Lasts() bool { return c.method == rpc.Listen }

// readListen reads the parameters of subscriptions/listen, and reports whether the request is ordinary.
func (c *Call) readListen(params json.RawMessage) bool {
	var meta, wanted json.RawMessage
	c.method = rpc.Listen
	if !members(params, map[string]*json.RawMessage{"_meta": &meta, "notifications": &wanted}) || meta == nil || !c.readMeta(meta) || !c.stateless {
		return false
	}
	c.wants = new(mcp.NotificationSubscriptions)
	ids, _ := pick(wanted, "taskIds")
	capabilities, _ := c.params.Meta[mcp.MetaKeyClientCapabilities].(map[string]any)
	c.tasks = ids[0] != nil && !declaresTasks(capabilities)
	return object(wanted, c.wants)
}

// detach keeps only what a request needs that lasts, and not the message.
func (c *Call) detach() {
	c.id = slices.Clone(c.id)
	c.params.Meta = nil
}

// listen answers subscriptions/listen: it sends what the client wants to know until the client, the session or the gateway ends.
func (g *Gateway) listen(ctx context.Context, c *Call, send func([]byte) error) (mcp.Result, error) {
	if c.tasks && g.o.Durable.Engine != nil {
		return nil, errNoTasks
	}
	ctx, end, open := g.listening.begin(ctx, callerOf(c.extra))
	if !open {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the gateway is shutting down: call again when it is back"}
	}
	defer end()
	from := originOfCall(c.extra)
	if c.extra != nil && c.extra.Header != nil { // it takes a connection, as a session does
		p, refused := g.sessions.open(from, 0)
		if refused != nil {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: refused.text}
		}
		defer g.sessions.close(p)
	}
	news := make(chan struct{}, 1)
	u, err := g.subscriptions.listener(from, g.seesAt(c.extra), c.lists(g.o.capabilities()), func() {
		select {
		case news <- struct{}{}:
		default:
		}
	})
	if err != nil {
		return nil, question{g: g}.fault(err)
	}
	defer g.subscriptions.gone(u)
	group := g.notices.listener(ctx, c.extra)
	accepted, err := g.subscribeAll(ctx, c, u)
	if err != nil {
		return nil, err
	}
	if err := send(c.notification(acknowledged, map[string]any{"notifications": accepted})); err != nil {
		return nil, err // the client has gone
	}
	for wantsAny(accepted) && pause(ctx, news) {
		for _, n := range u.take() {
			if !g.notices.wants(ctx, group, n.method) {
				continue
			}
			if err := send(c.notification(n.method, n.params())); err != nil {
				return nil, err
			}
		}
	}
	return &mcp.SubscriptionsListenResult{Meta: c.subscription()}, nil
}

// guardedListen is listen behind [Gateway.guarded].
func (g *Gateway) guardedListen(c *Call, send func([]byte) error) mcp.MethodHandler {
	return g.guarded(func(ctx context.Context, _ string, _ mcp.Request) (mcp.Result, error) { return g.listen(ctx, c, send) })
}

// wantsAny reports whether there is anything to wait for.
func wantsAny(n mcp.NotificationSubscriptions) bool {
	return n.ToolsListChanged || n.ResourcesListChanged || n.PromptsListChanged || len(n.ResourceSubscriptions) > 0
}

// pause waits for news, and a moment more for others. It reports false at the end of ctx.
func pause(ctx context.Context, news <-chan struct{}) bool {
	select {
	case <-news:
		return pausing.For(ctx, updatePause) == nil
	case <-ctx.Done():
		return false
	}
}

// lists reduces what the client wants to what the gateway reports, and returns which lists are wanted, by the methods of their
// changes.
func (c *Call) lists(has *mcp.ServerCapabilities) map[string]bool {
	w := c.wants
	w.ToolsListChanged = w.ToolsListChanged && has.Tools != nil && has.Tools.ListChanged
	w.ResourcesListChanged = w.ResourcesListChanged && has.Resources != nil && has.Resources.ListChanged
	w.PromptsListChanged = w.PromptsListChanged && has.Prompts != nil && has.Prompts.ListChanged
	if has.Resources == nil || !has.Resources.Subscribe {
		w.ResourceSubscriptions = nil
	}
	return map[string]bool{rpc.ToolsChanged: w.ToolsListChanged, rpc.ResourcesChanged: w.ResourcesListChanged, rpc.PromptsChanged: w.PromptsListChanged}
}

// listener adds a request of the newer protocol.
func (s *subscriptions) listener(from origin, sees func(server string) bool, lists map[string]bool, wake func()) (*subscriber, error) {
	u := s.newSubscriber(from, sees)
	u.wake = wake
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.take(from); err != nil {
		return nil, err
	}
	s.listens[u] = lists
	return u, nil
}

// gone removes a request of the newer protocol, with its subscriptions.
func (s *subscriptions) gone(u *subscriber) {
	s.mu.Lock()
	delete(s.listens, u)
	s.release(u.from)
	s.mu.Unlock()
	u.close()
}

// changed reports changes of lists, by their methods, to clients of the newer protocol: the SDK does so for the older one.
func (s *subscriptions) changed(methods ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for u, wants := range s.listens {
		for _, method := range methods {
			if wants[method] {
				u.put(notice{method: method})
			}
		}
	}
}

// subscribeAll subscribes to the resources that the client wants. It is an error only if nothing else is wanted and none can be
// had: the client learns from the acknowledgement what it gets.
func (g *Gateway) subscribeAll(ctx context.Context, c *Call, u *subscriber) (accepted mcp.NotificationSubscriptions, err error) {
	accepted = *c.wants
	accepted.ResourceSubscriptions = nil
	var mu sync.Mutex
	var first error
	var all errgroup.Group
	all.SetLimit(listenRequests)
	for _, uri := range slices.Compact(slices.Sorted(slices.Values(c.wants.ResourceSubscriptions))) {
		all.Go(func() error {
			r := &mcp.SubscribeRequest{Session: c.server, Params: &mcp.SubscribeParams{URI: uri}, Extra: c.extra}
			_, err := g.subscribeTo(ctx, u, r)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				accepted.ResourceSubscriptions = append(accepted.ResourceSubscriptions, uri)
			} else if first == nil {
				first = err
			}
			return nil
		})
	}
	_ = all.Wait() // none returns an error
	if !wantsAny(accepted) {
		return accepted, first
	}
	slices.Sort(accepted.ResourceSubscriptions)
	return accepted, nil
}

// acknowledged is the method of the first notification of a request.
const acknowledged = "notifications/subscriptions/acknowledged"

// subscription is the metadata that says to which request a notification belongs.
func (c *Call) subscription() mcp.Meta { return mcp.Meta{mcp.MetaKeySubscriptionID: c.id} }

// notification is a notification for the request.
func (c *Call) notification(method string, params map[string]any) []byte {
	params["_meta"] = c.subscription()
	message, err := encoded(notification{"2.0", method, params})
	if err != nil {
		panic("gateway: internal error: " + err.Error()) // text can always be encoded
	}
	return message
}

// listenBySDK answers a request subscriptions/listen that only the SDK can read. It reports changes of lists.
func (g *Gateway) listenBySDK(ctx context.Context, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
	r := req.(*mcp.SubscriptionsListenRequest)
	if r.Params != nil && r.Params.Notifications != nil && len(r.Params.Notifications.ResourceSubscriptions) > 0 {
		return nil, &jsonrpc.Error{
			Code: jsonrpc.CodeInvalidRequest,
			Message: "this request cannot subscribe to resources: send server/discover before it, only the members _meta and notifications, " +
				"and over HTTP the headers of the protocol",
		}
	}
	return next(ctx, rpc.Listen, req)
}
