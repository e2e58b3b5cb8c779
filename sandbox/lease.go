package sandbox

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/mcsh-dev/mcsh/sandbox/wire"
	"github.com/mcsh-dev/mcsh/stages"
)

// A pooledWorker is a worker and who may have it. Its states are in the package's "Life of a worker".
type pooledWorker struct {
	ready  chan struct{} // closed when it was started: client is set, or err
	client *wire.Client
	worker Worker
	err    error

	caller string        // of the lease; empty: none yet
	plan   *plan         // that it waits for; nil: for any run of its caller
	runs   int           // of the lease, with the present one
	ends   time.Time     // of the lease
	taken  chan struct{} // closed when it waits no more
}

// Bounds of a lease.
const (
	leaseLife = 10 * time.Minute
	leaseRuns = 50
	leaseIdle = time.Minute // between two runs
)

// begin begins a lease, or another run of it.
func (t *pooledWorker) begin(caller string) {
	if t.runs == 0 {
		t.caller, t.ends = caller, time.Now().Add(leaseLife)
	}
	if t.plan == nil {
		t.runs++
	}
	t.plan = nil
}

// end ends a worker, if it was started.
func (t *pooledWorker) end() {
	if <-t.ready; t.err == nil {
		_ = t.client.Close()
	}
}

// release has a worker wait for the next run of its caller, cleared. Where that cannot be, because something has happened to
// it or its caller may be anybody, a new one in the same container does. It returns false when the worker is to end.
func (p *Pool) release(t *pooledWorker, whole bool) bool {
	rest := min(time.Until(t.ends), leaseIdle)
	if !p.lasting || t.caller == "" || t.runs >= leaseRuns || rest <= 0 {
		return false
	}
	if whole && t.caller != stages.Anonymous {
		return t.client.Renew() == nil && p.wait(t, rest, nil)
	}
	next := &pooledWorker{caller: t.caller, runs: t.runs, ends: t.ends}
	if next.worker = t.worker.Replace(); next.worker == nil {
		return false
	}
	kept := p.wait(next, rest, func(ctx context.Context) (err error) {
		next.client, err = greet(ctx, next.worker)
		return err
	})
	if !kept {
		_ = next.worker.Close() // the files of the old one go with it
	}
	return kept
}

// releaseTo keeps a worker that has checked commands of a plan, with all that it has compiled, for more of them and for the run.
func (p *Pool) releaseTo(t *pooledWorker, plan *plan) bool {
	t.plan = plan
	return p.wait(t, leaseIdle, nil)
}

// wait adds a worker to those that wait, which start makes first unless it is nil. It returns false when the pool has closed
// and does not want it.
func (p *Pool) wait(t *pooledWorker, rest time.Duration, start func(context.Context) error) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.add(t, rest, start)
		p.evict(p.keeps)
	}
	return !p.closed
}

// add is [Pool.wait] for a caller that holds the lock.
func (p *Pool) add(t *pooledWorker, rest time.Duration, start func(context.Context) error) {
	taken := make(chan struct{})
	if t.taken = taken; start != nil {
		t.ready = make(chan struct{})
	}
	p.waiting = append(p.waiting, t)
	p.started.Go(func() {
		if start != nil {
			ctx, cancel := context.WithTimeout(p.ctx, openTimeout)
			defer cancel()
			t.err = start(ctx)
			close(t.ready)
		}
		p.watch(t, taken, rest)
	})
}

// watch ends a worker that could not be started, has waited long enough, or has ended by itself.
func (p *Pool) watch(t *pooledWorker, taken chan struct{}, rest time.Duration) {
	if t.err == nil {
		timer := time.NewTimer(rest)
		defer timer.Stop()
		select {
		case <-taken:
			return
		case <-timer.C:
		case <-t.client.Done():
		}
	}
	p.mu.Lock()
	i := slices.IndexFunc(p.waiting, func(w *pooledWorker) bool { return w == t && w.taken == taken }) // it may wait again by now
	if i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
	}
	p.mu.Unlock()
	if i >= 0 {
		t.end()
	}
}

// evict ends workers that wait for their callers, those first that have waited longest, until no more are left than may be.
// The lock is held, and the pool is open.
func (p *Pool) evict(most int) {
	for leased := len(p.waiting) - p.unleased(); leased > max(most, 0); leased-- {
		i := slices.IndexFunc(p.waiting, func(t *pooledWorker) bool { return t.runs > 0 })
		p.started.Go(p.remove(i).end)
	}
}

// unleased counts the workers that wait for anybody. The lock is held.
func (p *Pool) unleased() (n int) {
	for _, t := range p.waiting {
		if t.runs == 0 {
			n++
		}
	}
	return n
}

// remove removes a worker from those that wait. The lock is held.
func (p *Pool) remove(i int) *pooledWorker {
	t := p.waiting[i]
	p.waiting = slices.Delete(p.waiting, i, i+1)
	close(t.taken)
	return t
}

// next removes and returns the worker that has waited least of those that are wanted; nil: none is.
func (p *Pool) next(wanted func(t *pooledWorker) bool) *pooledWorker {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, t := range slices.Backward(p.waiting) {
		if wanted(t) {
			return p.remove(i)
		}
	}
	return nil
}

// heldBy removes and returns the worker that waits for a plan.
func (p *Pool) heldBy(plan *plan) *pooledWorker {
	return p.next(func(t *pooledWorker) bool { return t.plan != nil && t.plan == plan })
}

// giveUp ends a worker in the background.
func (p *Pool) giveUp(t *pooledWorker) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed { // else the driver ends it
		p.started.Go(t.end)
	}
}

// take returns a worker for a run of a caller that is alive: the one that waits for its plan, for the caller, or for anybody;
// or else it starts one. It asks no more workers when ctx has ended, because each would be ended for not answering.
func (p *Pool) take(ctx context.Context, caller string, plan *plan) (*pooledWorker, error) {
	for ctx.Err() == nil {
		t := p.fitting(caller, plan)
		if t == nil {
			t = &pooledWorker{ready: make(chan struct{})}
			close(t.ready)
			if err := p.dial(ctx, t); err != nil {
				return nil, err
			}
		} else if t.ping(ctx) != nil {
			p.giveUp(t)
			continue
		}
		t.begin(caller)
		return t, nil
	}
	return nil, context.Cause(ctx)
}

// fitting removes and returns the waiting worker that a run of a caller is to have; nil: none waits.
func (p *Pool) fitting(caller string, plan *plan) *pooledWorker {
	if t := p.heldBy(plan); t != nil {
		return t
	}
	if t := p.next(func(t *pooledWorker) bool { return t.plan == nil && t.runs > 0 && t.caller == caller }); t != nil {
		return t
	}
	return p.next(func(t *pooledWorker) bool { return t.runs == 0 })
}

// ping asks a worker that has waited whether it lives: its container can be frozen from outside at any time.
func (t *pooledWorker) ping(ctx context.Context) error {
	select {
	case <-t.ready:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if t.err != nil {
		return t.err
	}
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	return t.client.Ping(ctx)
}

// dial starts a worker and checks that it answers. Its container may hang after the worker's hello. dial gives up
// such a worker and starts another.
func (p *Pool) dial(ctx context.Context, t *pooledWorker) error {
	for tries := greetTries; ; tries-- {
		var err error
		if t.worker, err = p.driver.Open(ctx); err != nil {
			return err
		}
		if t.client, err = greet(ctx, t.worker); err == nil {
			return nil
		}
		if tries == 1 || ctx.Err() != nil {
			return err
		}
	}
}

func greet(ctx context.Context, rwc io.ReadWriteCloser) (*wire.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, greetTimeout)
	defer cancel()
	client, err := wire.Dial(ctx, rwc)
	if err != nil {
		return nil, err
	}
	if err := client.Ping(ctx); err != nil {
		_ = client.Close() // the error of its ping is the one to tell
		return nil, fmt.Errorf("the worker does not answer: %w", err)
	}
	return client, nil
}

// refill starts workers in the background until enough wait for anybody. One that does not start is not missed: a run
// tries again and its error tells why.
func (p *Pool) refill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for range p.warm - p.unleased() {
		if t := new(pooledWorker); !p.closed {
			p.add(t, math.MaxInt64, func(ctx context.Context) error { return p.dial(ctx, t) })
		}
	}
}
