package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcsh-dev/mcsh/internal/pausing"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream/pace"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
	"github.com/mcsh-dev/mcsh/upstream/sessions"
)

const (
	updateEvery   = 100 * time.Millisecond // the shortest time between two reports of one resource
	renewals      = 16                     // subscriptions of one server that are renewed at once
	firstRenewal  = 500 * time.Millisecond // between two renewals; doubled each time
	lastRenewal   = time.Minute
	renewalsCalm  = 2 * time.Minute // after so long the waits begin anew
	updateParents = 16              // URIs above an updated one, with and without a slash at the end, that are looked for
)

// subscriptions are those of all callers, by server and original. All who subscribe to one resource share one subscription with
// its server. It outlasts the session: a new session gets it again, and so does a server that takes the place of another, or
// returns.
type subscriptions struct {
	pool *Pool

	mu sync.Mutex
	of map[string]*watchedServer // guarded by mu, as is everything in it
}

// A watchedServer is a server with subscriptions.
type watchedServer struct {
	uris     map[string]*subscription
	renewing bool
	wait     time.Duration // before the next renewal
	renewed  time.Time     // the last time
}

// A subscription is one resource about whose updates somebody wants to know.
type subscription struct {
	server, uri string
	subscribers map[*subscriber]bool
	conn        *serverConn       // that has or will have the subscription; nil: none
	on          *sessions.Session // of conn, brings the updates; nil: none does
	refused     bool              // the server does not want it, so it is not renewed until something changes
	missed      bool              // an update may have been missed
	again       bool              // something has changed since work has begun
	work        *flight[*sessions.Session]
	closing     bool      // work ends the subscription with the server
	due         bool      // a report is under way
	reported    time.Time // the last time
}

// A subscriber is called when the resource may have changed.
type subscriber struct{ updated func(server string) }

func newSubscriptions(p *Pool) *subscriptions {
	return &subscriptions{pool: p, of: map[string]*watchedServer{}}
}

// Subscribe makes the pool call updated with the server when a resource may have changed, in a goroutine that it must not block,
// until cancel is called. The URI has either form; where the view of ctx can show one server only, it is of that one. The first
// subscription starts the server, and the server goes on while there is any. The caller of Subscribe asks in updated whether its
// view still shows the server.
func (p *Pool) Subscribe(ctx context.Context, uri string, updated func(server string)) (server string, cancel func(), err error) {
	server = ViewOf(ctx).Only()
	original := originalOf(server, uri)
	if server == "" {
		if server, original, err = p.Owner(ctx, uri); err != nil {
			return "", nil, err
		}
	}
	sc, err := p.conn(ctx, server)
	if err == nil {
		err = sc.mayAsk(Resources, query{Call: stages.Call{Name: original}, noun: kinds[Resources].noun})
	}
	if err != nil {
		return server, nil, err
	}
	if server == ResourcesServer {
		return server, nil, stages.Errorf(stages.UnknownServer, "name the server that has the resource", "there is no server %q", server)
	}
	one := &subscriber{updated}
	sub, err := p.subscriptions.add(ctx, server, original, one)
	if err != nil {
		return server, nil, sc.hideError(err)
	}
	return server, sync.OnceFunc(func() { p.subscriptions.remove(sub, one) }), nil
}

// add adds a subscriber, and waits until the server reports updates to us.
func (b *subscriptions) add(ctx context.Context, server, uri string, one *subscriber) (*subscription, error) {
	b.mu.Lock()
	w := b.of[server]
	if w == nil {
		w = &watchedServer{uris: map[string]*subscription{}}
		b.of[server] = w
	}
	sub := w.uris[uri]
	if sub == nil {
		sub = &subscription{server: server, uri: uri, subscribers: map[*subscriber]bool{}}
		w.uris[uri] = sub
	}
	sub.subscribers[one] = true
	b.mu.Unlock()
	if err := b.open(ctx, sub); err != nil {
		b.remove(sub, one)
		return nil, err
	}
	return sub, nil
}

// open opens a subscription, unless it is open, and waits for that.
func (b *subscriptions) open(ctx context.Context, sub *subscription) error {
	for {
		if b.pool.life.Err() != nil {
			return errPoolClosed()
		}
		b.mu.Lock()
		work, closing := sub.work, sub.closing
		if work == nil && sub.on != nil {
			b.mu.Unlock()
			return nil
		}
		if work == nil {
			work, closing = b.begin(sub), false
		}
		b.mu.Unlock()
		if !work.over(ctx) {
			return fmt.Errorf("subscribing to %q of server %q: %w", sub.uri, sub.server, ctx.Err())
		}
		if !closing {
			return work.err
		}
	}
}

func errPoolClosed() error { return stages.Errorf(stages.Cancelled, "", "the gateway is closing") }

// begin opens a subscription in the background. b.mu is held.
func (b *subscriptions) begin(sub *subscription) *flight[*sessions.Session] {
	var conn *serverConn
	work := launch(&b.pool.goroutines, errPoolClosed(), func() (s *sessions.Session, err error) {
		s, conn, err = b.ask(sub)
		return s, err
	}, &b.mu, func(s *sessions.Session, err error) { b.opened(sub, s, conn, err) })
	if b.pool.life.Err() == nil {
		sub.work, sub.again = work, false
	}
	return work
}

// ask subscribes with the server, on its session.
func (b *subscriptions) ask(sub *subscription) (*sessions.Session, *serverConn, error) {
	for {
		sc, err := b.pool.conn(b.pool.life, sub.server)
		if err != nil {
			return nil, nil, err
		}
		var on *sessions.Session
		q := query{Call: stages.Call{Server: sub.server, Name: sub.uri, Reading: true}, noun: kinds[Resources].noun}
		if err := sc.mayAsk(Resources, q); err != nil {
			return nil, nil, err
		}
		b.mu.Lock()
		sub.conn = sc // the first update may come before the answer
		b.mu.Unlock()
		q.send = func(ctx context.Context, s *sessions.Session, c stages.Call, _ *asking) (json.RawMessage, *rpc.Failure) {
			on = s
			return nil, s.Feed.Subscribe(ctx, c)
		}
		if _, err = sc.call(b.pool.life, q); err == nil {
			return on, sc, nil
		}
		if !errors.Is(err, pace.ErrReplaced) {
			return nil, nil, err
		}
	}
}

// opened records how ask has ended. b.mu is held.
func (b *subscriptions) opened(sub *subscription, s *sessions.Session, conn *serverConn, err error) {
	sub.work = nil
	if err != nil {
		sub.conn, sub.refused = nil, isPermanent(err) && !sub.again
		if b.forget(sub); sub.missed && !sub.refused && len(sub.subscribers) > 0 {
			b.renew(sub)
		}
		return
	}
	sub.on, sub.conn, sub.refused = s, conn, false
	switch {
	case len(sub.subscribers) == 0:
		b.close(sub)
	case !s.Feed.Brings(sub.uri), sub.conn.isReplaced():
		b.renew(sub)
	case sub.missed:
		sub.missed = false
		b.report(sub)
	}
}

// isPermanent reports whether the same subscription would fail again.
func isPermanent(err error) bool {
	e := asError(err)
	return rpc.IsAnswer(err) || e.Code == stages.InvalidArguments || e.Code == stages.Denied || e.Code == stages.UnknownServer || e.Code == stages.ToolError
}

// remove removes a subscriber. The last one ends the subscription with the server.
func (b *subscriptions) remove(sub *subscription, one *subscriber) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(sub.subscribers, one)
	if len(sub.subscribers) > 0 || sub.work != nil {
		return
	}
	if sub.on != nil {
		b.close(sub)
	} else {
		b.forget(sub)
	}
}

// close ends a subscription with the server, in the background. b.mu is held.
func (b *subscriptions) close(sub *subscription) {
	s := sub.on
	sub.on, sub.missed, sub.closing = nil, false, true
	sub.work = launch(&b.pool.goroutines, nil, func() (*sessions.Session, error) {
		s.Feed.Unsubscribe(sub.uri)
		return nil, nil
	}, &b.mu, func(*sessions.Session, error) {
		sub.work, sub.closing = nil, false
		b.forget(sub)
	})
}

// forget removes a subscription that nobody wants. b.mu is held.
func (b *subscriptions) forget(sub *subscription) {
	w := b.of[sub.server]
	if len(sub.subscribers) > 0 || w == nil || w.uris[sub.uri] != sub {
		return
	}
	delete(w.uris, sub.uri)
	if len(w.uris) == 0 && !w.renewing {
		delete(b.of, sub.server)
	}
}

// lost handles the end of a session, or of what brings these resources. uris nil: all.
func (b *subscriptions) lost(sc *serverConn, s *sessions.Session, uris []string) {
	b.renewThose(sc.server.Name, func(sub *subscription) bool { return sub.on == s && (uris == nil || slices.Contains(uris, sub.uri)) })
}

// replaced handles the end of a server: another may have taken its place.
func (b *subscriptions) replaced(old *serverConn) {
	b.renewThose(old.server.Name, func(sub *subscription) bool { return sub.conn == old || sub.on == nil })
}

// retry renews the subscriptions that the server did not want, or is refusing now: something has changed.
func (b *subscriptions) retry(server string) {
	b.renewThose(server, func(sub *subscription) bool { return sub.on == nil && sub.missed })
}

// renewThose opens subscriptions of a server again, soon. It may be called with the pool locked.
func (b *subscriptions) renewThose(server string, which func(*subscription) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if w := b.of[server]; w != nil {
		for _, sub := range w.uris {
			if which(sub) {
				b.renew(sub)
			}
		}
	}
}

// renew opens a subscription again, soon. b.mu is held.
func (b *subscriptions) renew(sub *subscription) {
	sub.on, sub.conn, sub.refused, sub.missed, sub.again = nil, nil, false, true, true
	w := b.of[sub.server]
	if w == nil || w.renewing {
		return
	}
	if time.Since(w.renewed) > renewalsCalm {
		w.wait = 0
	}
	w.renewing = b.pool.goroutines.start(func() { b.renewAll(sub.server, w) })
}

// renewAll opens the subscriptions of a server again. It waits between tries, longer each time.
func (b *subscriptions) renewAll(server string, w *watchedServer) {
	for {
		b.mu.Lock()
		wait := w.wait
		w.wait, w.renewed = max(firstRenewal, min(2*w.wait, lastRenewal)), time.Now()
		b.mu.Unlock()
		if pausing.For(b.pool.life, wait/2+rand.N(wait/2+time.Millisecond)) != nil {
			return
		}
		due := b.toRenew(server, w)
		if len(due) == 0 {
			return
		}
		places := make(chan struct{}, renewals)
		var all sync.WaitGroup
		for _, sub := range due {
			places <- struct{}{}
			all.Go(func() {
				defer func() { <-places }()
				_ = b.open(b.pool.life, sub) // the next round sees how it has ended
			})
		}
		all.Wait()
		if len(b.toRenew(server, w)) == 0 {
			return
		}
	}
}

// toRenew returns the subscriptions that are not open. If there are none, the renewal is over.
func (b *subscriptions) toRenew(server string, w *watchedServer) (due []*subscription) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, sub := range w.uris {
		if sub.on == nil && !sub.refused && !sub.closing && len(sub.subscribers) > 0 {
			due = append(due, sub)
		}
	}
	if len(due) == 0 {
		w.renewing = false
		if len(w.uris) == 0 && b.of[server] == w {
			delete(b.of, server)
		}
	}
	return due
}

// missed reports resources of which an update may have been missed.
func (b *subscriptions) missed(sc *serverConn, uris []string) {
	for _, uri := range uris {
		b.updated(sc, uri)
	}
}

// updated reports that a resource has changed to those who have subscribed to it, or to one that contains it.
func (b *subscriptions) updated(sc *serverConn, uri string) {
	if len(uri) > maxKey {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	w := b.of[sc.server.Name]
	if w == nil {
		return
	}
	for range updateParents {
		if sub := w.uris[uri]; sub != nil && sub.conn == sc {
			b.report(sub)
		}
		if above, ends := strings.CutSuffix(uri, "/"); ends {
			uri = above
		} else if uri = uri[:strings.LastIndexByte(uri, '/')+1]; uri == "" {
			return
		}
	}
}

// report calls the subscribers, at most once within [updateEvery]. b.mu is held.
func (b *subscriptions) report(sub *subscription) {
	if sub.due {
		return
	}
	sub.due = true
	time.AfterFunc(max(0, updateEvery-time.Since(sub.reported)), func() {
		b.mu.Lock()
		sub.due, sub.reported = false, time.Now()
		all := slices.Collect(maps.Keys(sub.subscribers))
		b.mu.Unlock()
		for _, one := range all {
			if b.pool.life.Err() == nil {
				one.updated(sub.server)
			}
		}
	})
}
