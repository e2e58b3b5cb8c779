package gateway

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/mcsh-dev/mcsh/stages"
)

// stuckWait is how long Close waits for cancelled calls. They end within a second unless something ignores its context.
const stuckWait = 5 * time.Second

// calls are the calls in flight of a server.
type calls struct {
	life context.Context    // ends when close cancels the calls
	end  context.CancelFunc // of life
	shut context.Context    // ends when close begins: nobody is asked any more
	stop context.CancelFunc // of shut
	idle sync.WaitGroup     // the calls

	mu   sync.Mutex         // held when close begins
	open map[*func()]string // the callers, by what cancels their calls; guarded by mu
}

func newCalls() *calls {
	c := &calls{open: map[*func()]string{}}
	c.life, c.end = context.WithCancel(context.Background())
	c.shut, c.stop = context.WithCancel(context.Background())
	return c
}

// begin registers a call and returns its context, which ends with ctx or with the server. It reports false after close.
func (c *calls) begin(ctx context.Context, caller string) (context.Context, func(), bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing() {
		return nil, nil, false
	}
	ctx, cancel := within(ctx, c.life)
	c.idle.Add(1)
	c.open[&cancel] = caller
	return ctx, func() {
		cancel()
		c.mu.Lock()
		delete(c.open, &cancel)
		c.mu.Unlock()
		c.idle.Done()
	}, true
}

// cancel cancels the calls of a caller.
func (c *calls) cancel(caller string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for cancel, of := range c.open {
		if of == caller {
			(*cancel)()
		}
	}
}

// close refuses new calls, waits for calls in flight until ctx is done, and cancels the others. The error counts calls that
// do not end after their cancellation.
func (c *calls) close(ctx context.Context) error {
	c.mu.Lock()
	c.stop()
	c.mu.Unlock()
	idle := make(chan struct{})
	go func() { c.idle.Wait(); close(idle) }()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		c.end()
	}
	select {
	case <-idle:
		return nil
	case <-time.After(stuckWait):
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return fmt.Errorf("%d calls have not ended %v after they were cancelled", len(c.open), stuckWait)
}

// closing reports whether close was called: then kept runs end with the gateway.
func (c *calls) closing() bool { return c.shut.Err() != nil }

// EndUser cancels the calls of an identity that has lost access, and closes its sessions. Its kept runs stay as long as
// those of others: the same identity may return.
func (f *front) EndUser(user string) {
	f.calls.cancel(callerUser + user)
	f.listening.cancel(callerUser + user)
	f.sessions.endUser(user)
}

// Close refuses new calls, waits for calls in flight until ctx is done, cancels the others and closes all sessions. It may be
// called more than once. The error counts calls that do not end after their cancellation.
func (f *front) Close(ctx context.Context) error {
	now, cancel := context.WithCancel(ctx)
	cancel()
	listening := f.listening.close(now) // they have no end of their own
	if err := f.calls.close(ctx); err != nil {
		return err
	}
	var wg sync.WaitGroup
	for s := range f.server.Sessions() {
		wg.Go(func() { s.Close() })
	}
	wg.Wait()
	return listening
}

// Defaults of the bounds on runs at once (docs/pipeline.md, Limits).
const (
	DefaultRuns       = 64 // of the process
	DefaultCallerRuns = 8  // of one caller
)

// slots bounds the calls at once of all callers, of one, and of one address. It reserves the slots beyond the bound of an
// address for addresses without a call.
type slots struct {
	of                   string // the kind of calls, in errors
	all, caller, address int    // bounds

	mu    sync.Mutex
	taken int            // guarded by mu
	by    map[string]int // taken, by origin; guarded by mu
}

func newSlots(of string, all, caller, address int) *slots {
	return &slots{of: of, all: all, caller: min(caller, all), address: min(address, all), by: map[string]int{}}
}

// take takes a slot without waiting, and returns its release.
func (s *slots) take(o origin) (release func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	const hint = "try again when one of them has ended"
	own := s.by[o.key]
	switch {
	case s.taken >= s.all:
		return nil, stages.OverLimit("runs", hint, "%d %s are running already", s.taken, s.of)
	case o.named && own >= s.caller:
		return nil, stages.OverLimit("caller-runs", hint, "you already have %d %s running", own, s.of)
	case o.named || o.local || own == 0:
	case own >= s.address:
		return nil, stages.OverLimit("address-runs", hint, "your address already has %d %s running", own, s.of)
	case s.taken >= s.address:
		return nil, stages.OverLimit("address-runs", hint,
			"%d %s are running already, %d of them from your address; the rest is for other addresses", s.taken, s.of, own)
	}
	s.taken++
	s.by[o.key]++
	return func() { s.release(o) }, nil
}

func (s *slots) release(o origin) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken--
	if s.by[o.key]--; s.by[o.key] == 0 {
		delete(s.by, o.key)
	}
}
