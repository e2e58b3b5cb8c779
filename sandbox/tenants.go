package sandbox

import (
	"context"
	"slices"
	"time"

	"github.com/mcsh-dev/mcsh/sandbox/wire"
	"github.com/mcsh-dev/mcsh/stages"
)

// A tenant is a worker and the caller who has it, for one run or, one after another, for several. To start a worker takes
// several times what a small command does.
type tenant struct {
	client *wire.Client
	caller string
	runs   int         // that it has served, with the present one
	ends   time.Time   // when it has served long enough
	idle   *time.Timer // ends it; while it waits
}

// How long a worker serves one caller, and how many wait for theirs at most, of all callers.
const (
	tenantLife  = 10 * time.Minute
	tenantRuns  = 50
	tenantIdle  = time.Minute // between two runs
	mostTenants = 8
)

func newTenant(client *wire.Client, caller string) *tenant {
	return &tenant{client: client, caller: caller, runs: 1, ends: time.Now().Add(tenantLife)}
}

// lodge renews the worker of a run that has ended well and has it wait for its caller. It returns false when the worker is
// to end instead. Who cannot be told apart from others gets a new worker for every run.
func (p *Pool) lodge(t *tenant) bool {
	rest := min(time.Until(t.ends), tenantIdle)
	if !p.lasting || t.caller == "" || t.caller == stages.Anybody || t.runs >= tenantRuns || rest <= 0 || t.client.Renew() != nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	if len(p.tenants) == mostTenants {
		oldest := p.tenants[0]
		p.tenants = slices.Delete(p.tenants, 0, 1)
		p.evict(oldest)
	}
	t.idle = time.AfterFunc(rest, func() { p.expire(t) })
	p.tenants = append(p.tenants, t)
	return true
}

// evict ends a worker that waits no more, in the background. The lock is held, and the pool is open: Close waits for it.
func (p *Pool) evict(t *tenant) {
	t.idle.Stop()
	p.started.Go(func() { _ = t.client.Close() })
}

func (p *Pool) expire(t *tenant) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.tenants, t); i >= 0 && !p.closed {
		p.tenants = slices.Delete(p.tenants, i, i+1)
		p.evict(t)
	}
}

// resume returns the worker that waits for a caller and has cleared itself, nil if there is none.
func (p *Pool) resume(ctx context.Context, caller string) *tenant {
	for {
		t := p.next(caller)
		if t == nil {
			return nil
		}
		if p.alive(ctx, t.client) {
			t.runs++
			return t
		}
	}
}

// next takes the worker of a caller that has waited least.
func (p *Pool) next(caller string) *tenant {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, t := range slices.Backward(p.tenants) {
		if t.caller == caller {
			t.idle.Stop()
			p.tenants = slices.Delete(p.tenants, i, i+1)
			return t
		}
	}
	return nil
}
