package sandbox

import (
	"context"
	"fmt"
	"io"
	"math"

	"github.com/mcsh-dev/mcsh/sandbox/wire"
)

// take returns a worker for a run of a caller that is alive: the one that waits for its plan, for the caller, or for anybody;
// or else it starts one. It asks no more workers when ctx has ended, because each would be ended for not answering.
func (p *Pool) take(ctx context.Context, caller string, plan *plan) (*leasedWorker, error) {
	for ctx.Err() == nil {
		t := p.fitting(caller, plan)
		if t == nil {
			t = &leasedWorker{ready: make(chan struct{})}
			close(t.ready)
			if err := p.dial(ctx, t); err != nil {
				return nil, err
			}
		} else if t.answer(ctx) != nil {
			p.giveUp(t)
			continue
		}
		t.begin(caller)
		return t, nil
	}
	return nil, context.Cause(ctx)
}

// fitting removes and returns the waiting worker that a run of a caller is to have; nil: none waits.
func (p *Pool) fitting(caller string, plan *plan) *leasedWorker {
	if t := p.heldBy(plan); t != nil {
		return t
	}
	if t := p.next(func(t *leasedWorker) bool { return t.plan == nil && t.runs > 0 && t.caller == caller }); t != nil {
		return t
	}
	return p.next(func(t *leasedWorker) bool { return t.runs == 0 })
}

// answer asks a worker that has waited for a sign of life: its container can be frozen from outside at any time.
func (t *leasedWorker) answer(ctx context.Context) error {
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

// dial starts a worker and checks that it answers. Its container may stand still after the worker's hello. dial gives up
// such a worker and starts another.
func (p *Pool) dial(ctx context.Context, t *leasedWorker) error {
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
		if t := new(leasedWorker); !p.closed {
			p.add(t, math.MaxInt64, func(ctx context.Context) error { return p.dial(ctx, t) })
		}
	}
}
