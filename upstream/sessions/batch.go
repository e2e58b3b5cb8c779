package sessions

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

// Bounds of one request subscriptions/listen over HTTP.
const (
	batchURIs  = 128
	batchBytes = 32 << 10 // of the URIs; servers bound a message
)

// A batch is the resources of one request subscriptions/listen. If the set changes, another request takes the place of that one,
// which goes on until the server has acknowledged the new one: no update is missed.
type batch struct {
	f       *Feed
	wake    chan struct{}                // the set has changed; holds at most one
	uris    map[string]bool              // acknowledged; guarded by f.mu, as is everything below
	joining map[string]chan *rpc.Failure // to be acknowledged; each gets its failure, or nil
	size    int                          // bytes of both
}

// room reports whether the batch has room for a URI. With a program a request costs nothing, and some servers mix up the URIs of
// two, so each has one URI. f.mu is held.
func (b *batch) room(uri string) bool {
	n := len(b.uris) + len(b.joining)
	if b.f.s.Transport.Traits().NoListener {
		return n < batchURIs && b.size+len(uri) <= batchBytes
	}
	return n == 0
}

// join adds a URI to a batch, and waits until the server has acknowledged it.
func (f *Feed) join(ctx context.Context, uri string) *rpc.Failure {
	done := make(chan *rpc.Failure, 1)
	f.mu.Lock()
	i := slices.IndexFunc(f.batches, func(b *batch) bool { return b.room(uri) })
	if i < 0 {
		b := &batch{f: f, wake: make(chan struct{}, 1), uris: map[string]bool{}, joining: map[string]chan *rpc.Failure{}}
		if !f.start(b.run) {
			f.mu.Unlock()
			return errEnded()
		}
		i = len(f.batches)
		f.batches = append(f.batches, b)
	}
	b := f.batches[i]
	b.joining[uri] = done
	b.size += len(uri)
	b.changed()
	f.mu.Unlock()
	select {
	case failure := <-done:
		return failure
	case <-ctx.Done():
		f.leave(uri)
		return &rpc.Failure{Err: ctx.Err()}
	}
}

// changed wakes run. f.mu is held.
func (b *batch) changed() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// leave takes a URI out of its batch.
func (f *Feed) leave(uri string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, b := range f.batches {
		if b.uris[uri] || b.joining[uri] != nil {
			delete(b.uris, uri)
			delete(b.joining, uri)
			delete(f.uris, uri)
			b.size -= len(uri)
			b.changed()
		}
	}
}

// run makes requests until the batch is empty, or a request ends by itself.
func (b *batch) run() {
	var now *listen
	defer func() { now.stop() }()
	for most := batchURIs; ; { // new URIs in one request: if it fails, half of them are tried
		uris, joining := b.next(most)
		if len(uris) == 0 {
			return
		}
		if len(joining) > 0 || len(uris) < len(now.of()) {
			l := b.listen(uris)
			accepted, failure := l.acknowledged(b.f.Limit)
			if failure != nil {
				l.stop()
				if rpc.IsAnswer(failure) && len(joining) > 1 {
					most = len(joining) / 2
					continue
				}
			} else {
				missed := now.ended()
				now.stop()
				if now = l; missed {
					b.f.Missed(uris)
				}
			}
			if b.settle(joining, accepted, failure); len(joining) > 0 {
				most = min(2*most, batchURIs)
				continue
			}
		}
		select {
		case <-b.wake:
		case <-now.end():
			if uris := b.close(now.failure); len(uris) > 0 {
				b.f.lost(uris...)
			}
			return
		}
	}
}

// next returns the URIs for the next request, and those of them that are new, of which there are at most so many. If there are
// none, the batch is over.
func (b *batch) next(most int) (uris, joining []string) {
	b.f.mu.Lock()
	defer b.f.mu.Unlock()
	joining = slices.Sorted(maps.Keys(b.joining))
	joining = joining[:min(most, len(joining))]
	if uris = append(slices.Sorted(maps.Keys(b.uris)), joining...); len(uris) == 0 {
		b.drop()
	}
	return uris, joining
}

// drop removes the batch from the feed. f.mu is held.
func (b *batch) drop() {
	b.f.batches = slices.DeleteFunc(b.f.batches, func(other *batch) bool { return other == b })
}

// close ends the batch and all who wait. It returns the resources whose updates came.
func (b *batch) close(failure *rpc.Failure) []string {
	b.f.mu.Lock()
	defer b.f.mu.Unlock()
	b.drop()
	for uri, done := range b.joining {
		delete(b.joining, uri)
		done <- failure
	}
	for uri := range b.uris {
		delete(b.f.uris, uri)
	}
	return slices.Sorted(maps.Keys(b.uris))
}

// settle ends the wait of those that have joined.
func (b *batch) settle(joining, accepted []string, failure *rpc.Failure) {
	b.f.mu.Lock()
	defer b.f.mu.Unlock()
	for _, uri := range joining {
		done := b.joining[uri]
		if done == nil {
			continue // it has left
		}
		delete(b.joining, uri)
		why := failure
		if why == nil && !slices.Contains(accepted, uri) {
			why = answered(jsonrpc.CodeInvalidParams, "the server does not report changes of this resource")
		}
		if why == nil {
			b.uris[uri], b.f.uris[uri] = true, true
		} else {
			b.size -= len(uri)
		}
		done <- why
	}
}

// A listen is one request subscriptions/listen.
type listen struct {
	uris    []string
	cancel  context.CancelFunc
	acked   chan []string // what the server has accepted, once
	over    chan struct{} // closed at the end
	failure *rpc.Failure  // once over is closed
}

// of returns the URIs of the request; none of a request that is not there.
func (l *listen) of() []string {
	if l == nil {
		return nil
	}
	return l.uris
}

// end is closed when the request has ended; nil for one that is not there.
func (l *listen) end() <-chan struct{} {
	if l == nil {
		return nil
	}
	return l.over
}

// ended reports whether the request has ended by itself.
func (l *listen) ended() bool {
	select {
	case <-l.end():
		return true
	default:
		return false
	}
}

// stop cancels the request and waits for its end.
func (l *listen) stop() {
	if l != nil {
		l.cancel()
		<-l.over
	}
}

// acknowledged waits until the server has acknowledged the request, and returns what it has accepted.
func (l *listen) acknowledged(limit time.Duration) ([]string, *rpc.Failure) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case accepted := <-l.acked:
		return accepted, nil
	case <-l.over:
		return nil, l.failure
	case <-timer.C:
		return nil, &rpc.Failure{Err: ErrTimeout, Sent: true}
	}
}

// listen makes a request, which ends with the session. It does not count as a call.
func (b *batch) listen(uris []string) *listen {
	f := b.f
	l := &listen{uris: uris, acked: make(chan []string, 1), over: make(chan struct{})}
	ctx, cancel := context.WithCancel(f.life)
	l.cancel = cancel
	wanted := []byte(texts.JSON(map[string]any{"resourceSubscriptions": uris}))
	lease := f.Memory.Lease()
	r := &rpc.Request{
		Method: rpc.Listen, Version: f.s.Version, Lease: lease, Params: f.s.Params(stages.Trace{}, 0, []byte(`"notifications":`), wanted),
		Acknowledged: func(accepted []string) {
			select {
			case l.acked <- accepted:
			default:
			}
		},
	}
	run := func() {
		defer close(l.over)
		defer lease.Close()
		l.failure = errEnded()
		f.during(func() {
			if _, l.failure = f.s.Transport.Request(ctx, r); l.failure == nil { // the server has ended it
				l.failure = &rpc.Failure{Err: rpc.ErrClosed}
			}
		})
	}
	if !f.start(run) {
		l.failure = errEnded()
		close(l.over)
	}
	return l
}
