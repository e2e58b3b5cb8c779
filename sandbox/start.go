package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/mcsh-dev/mcsh/sandbox/wire"
)

// take returns a worker that waits and is alive, or starts one.
func (p *Pool) take(ctx context.Context, caller string) (*tenant, error) {
	for {
		t := p.pop()
		if t == nil {
			return p.dial(ctx, caller)
		}
		if p.alive(ctx, t.client) {
			return t, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
}

// alive returns whether a worker that has waited answers. One that does not is closed: another one serves.
func (p *Pool) alive(ctx context.Context, client *wire.Client) bool {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	if err := client.Ping(ctx); err != nil {
		_ = client.Close()
		return false
	}
	return true
}

func (p *Pool) pop() *tenant {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) == 0 {
		return nil
	}
	last := len(p.idle) - 1
	t := p.idle[last]
	p.idle = p.idle[:last]
	return t
}

// dial starts a worker and sees to it that it answers. What it lives in may stand still although it has said hello: an
// engine can freeze containers. Such a one is given up, and another one serves.
func (p *Pool) dial(ctx context.Context, caller string) (*tenant, error) {
	for tries := greetTries; ; tries-- {
		rwc, err := p.driver.Open(ctx, caller)
		if err != nil {
			return nil, err
		}
		client, err := greet(ctx, rwc)
		if err == nil {
			return newTenant(client, rwc), nil
		}
		if tries == 1 || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			return nil, err
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

// refill starts workers in the background until enough wait. One that does not start is not missed: Open will try
// again and tell why.
func (p *Pool) refill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.closed && len(p.idle)+p.starting < p.warm {
		p.starting++
		p.started.Go(func() {
			ctx, cancel := context.WithTimeout(p.ctx, openTimeout)
			defer cancel()
			t, err := p.dial(ctx, "") // the driver shares workers among callers
			if !p.keep(t, err) {
				_ = t.client.Close()
			}
		})
	}
}

// keep adds a worker to those that wait. It returns false when the pool has closed and does not want it.
func (p *Pool) keep(t *tenant, err error) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.starting--
	if err != nil {
		return true
	}
	if p.closed {
		return false
	}
	p.idle = append(p.idle, t)
	return true
}
