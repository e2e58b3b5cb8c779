package sandbox

import (
	"context"
	"io"
	"slices"
	"time"

	"github.com/mcsh-dev/mcsh/sandbox/wire"
	"github.com/mcsh-dev/mcsh/stages"
)

// A Resident is a worker, of those that [Driver.Open] returns, in something that its driver keeps for the caller. The driver
// is told when it waits for another run, so that what it lives in is free for others meanwhile.
type Resident interface {
	// Rest says that the worker waits for its caller's next run. It returns false when the worker is to end instead. From
	// then on the driver may end it, when its time is up or its place is needed.
	Rest() bool

	// Resume says that a run begins. It returns false when the worker is to end.
	Resume() bool
}

// A tenant is a worker and the caller who has it, for one run or, one after another, for several. To start a worker takes
// several times what a small command does.
type tenant struct {
	client   *wire.Client
	resident Resident // nil where the driver keeps nothing but the worker
	caller   string
	runs     int           // that it has served, with the present one
	ends     time.Time     // when it has served long enough
	called   chan struct{} // closed when it waits no more
}

// How long a worker serves one caller, and how many wait for theirs at most, of all callers. What a driver keeps for callers
// bounds those that live there.
const (
	tenantLife  = 10 * time.Minute
	tenantRuns  = 50
	tenantIdle  = time.Minute // between two runs
	mostTenants = 8
)

func newTenant(client *wire.Client, rwc io.ReadWriteCloser) *tenant {
	resident, _ := rwc.(Resident)
	return &tenant{client: client, resident: resident}
}

// begin gives a worker to a caller.
func (t *tenant) begin(caller string) {
	t.caller, t.runs, t.ends = caller, 1, time.Now().Add(tenantLife)
}

// lodge renews the worker of a run that has ended well and has it wait for its caller. It returns false when the worker is
// to end instead. Who cannot be told apart from others gets a new worker for every run.
func (p *Pool) lodge(t *tenant) bool {
	rest := min(time.Until(t.ends), tenantIdle)
	if !p.lasting || t.caller == "" || t.caller == stages.Anybody || t.runs >= tenantRuns || rest <= 0 || t.client.Renew() != nil {
		return false
	}
	if t.resident != nil && !t.resident.Rest() {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	if !p.report.PerCaller && len(p.tenants) == mostTenants {
		close(p.tenants[0].called)
		p.end(p.tenants[0])
		p.tenants = slices.Delete(p.tenants, 0, 1)
	}
	called := make(chan struct{})
	t.called = called
	p.tenants = append(p.tenants, t)
	p.started.Go(func() { p.watch(t, called, rest) })
	return true
}

// end ends a worker that waits no more, in the background. The lock is held, and the pool is open: Close waits for it.
func (p *Pool) end(t *tenant) {
	p.started.Go(func() { _ = t.client.Close() })
}

func (p *Pool) giveUp(t *tenant) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed { // else the driver ends it
		p.end(t)
	}
}

// watch ends a worker that has waited long enough, or that has ended by itself or with what it lives in.
func (p *Pool) watch(t *tenant, called chan struct{}, rest time.Duration) {
	timer := time.NewTimer(rest)
	defer timer.Stop()
	select {
	case <-called:
		return
	case <-timer.C:
	case <-t.client.Done():
	}
	p.mu.Lock()
	i := slices.IndexFunc(p.tenants, func(w *tenant) bool { return w == t && w.called == called }) // it may wait again by now
	if i >= 0 {
		p.tenants = slices.Delete(p.tenants, i, i+1)
	}
	p.mu.Unlock()
	if i >= 0 {
		_ = t.client.Close()
	}
}

// resume returns the worker that waits for a caller and has cleared itself, nil if there is none. When ctx ends, a ping has
// said nothing of a worker: no more of them are asked, for each would be ended.
func (p *Pool) resume(ctx context.Context, caller string) *tenant {
	for ctx.Err() == nil {
		t := p.next(caller)
		if t == nil {
			return nil
		}
		if t.resident != nil && !t.resident.Resume() {
			p.giveUp(t)
			continue
		}
		if p.alive(ctx, t.client) {
			t.runs++
			return t
		}
	}
	return nil
}

// next takes the worker of a caller that has waited least.
func (p *Pool) next(caller string) *tenant {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, t := range slices.Backward(p.tenants) {
		if t.caller == caller {
			close(t.called)
			p.tenants = slices.Delete(p.tenants, i, i+1)
			return t
		}
	}
	return nil
}
