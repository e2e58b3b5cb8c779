//go:build linux

package local

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"sync"

	"github.com/mcsh-dev/mcsh/internal/memory"
	"github.com/mcsh-dev/mcsh/sandbox"
	"github.com/mcsh-dev/mcsh/sandbox/worker"
)

// A Driver starts workers as child processes.
type Driver struct {
	options Options

	looking  chan struct{}    // has room while nobody looks for programs on this machine
	launcher *worker.Launcher // nil until the first worker; for the holder of looking

	mu      sync.Mutex
	workers map[*process]bool
	closed  bool
}

// New returns a driver.
func New(o Options) *Driver {
	return &Driver{options: o, looking: make(chan struct{}, 1), workers: map[*process]bool{}}
}

var _ sandbox.Driver = (*Driver)(nil)

// Where memory is short fewer runs have a worker at a time, so that each has enough, but not fewer than these.
const fewestRuns, mostRuns = 4, 16

// mostWaiting is how many workers may wait for their callers: each takes memory of the machine's.
const mostWaiting = 8

// Probe implements [sandbox.Driver]. It also removes what gateways have left that were killed.
func (d *Driver) Probe(ctx context.Context) (sandbox.Report, error) {
	sweep(d.options.Scratch)
	rwc, err := d.Open(ctx)
	if err != nil {
		return sandbox.Report{}, err
	}
	r, err := sandbox.Audit(ctx, "local", rwc)
	if err != nil {
		return sandbox.Report{}, err
	}
	r.Waiting = mostWaiting
	if m := memory.Machine("/"); m < memory.NoLimit {
		r.RunsMemory = m / 2 // the other half is the gateway's and its servers'
	}
	r.Runs = int(min(max(r.RunsMemory/sandbox.Memory, fewestRuns), mostRuns))
	return r, nil
}

var errClosed = errors.New("starting a worker: the driver is closed")

// Open implements [sandbox.Driver]. Every worker is new and private.
func (d *Driver) Open(ctx context.Context) (sandbox.Worker, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(d.options.Worker) == 0 || !filepath.IsAbs(d.options.Worker[0]) {
		return nil, fmt.Errorf("starting a worker: %q: want the absolute path of its binary", d.options.Worker)
	}
	workers, err := d.launch(ctx)
	if err != nil {
		return nil, fmt.Errorf("starting a worker: %w", err)
	}
	scratch, err := makeScratch(d.options.Scratch)
	if err != nil {
		return nil, err
	}
	p := &process{scratch: scratch, exited: make(chan struct{}), gone: d.forget}
	if err := p.start(workers); err != nil {
		scratch.release()
		return nil, fmt.Errorf("starting a worker: %w", err)
	}
	d.mu.Lock()
	closed := d.closed
	if !closed {
		d.workers[p] = true
	}
	d.mu.Unlock()
	if closed {
		_ = p.Close()
		return nil, errClosed
	}
	return p, nil
}

// launch returns the launcher of workers. Its findings on this machine count until the driver is closed.
func (d *Driver) launch(ctx context.Context) (*worker.Launcher, error) {
	select {
	case d.looking <- struct{}{}:
	case <-ctx.Done(): // the caller that looks may have more time
		return nil, context.Cause(ctx)
	}
	defer func() { <-d.looking }()
	var err error
	if d.launcher == nil {
		d.launcher, err = worker.NewLauncher(ctx, d.options.Worker, d.options.Workspace, d.options.Added)
	}
	return d.launcher, err
}

func (d *Driver) forget(p *process) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.workers, p)
}

// Close implements [sandbox.Driver].
func (d *Driver) Close() error {
	d.mu.Lock()
	d.closed = true
	workers := maps.Clone(d.workers)
	d.mu.Unlock()
	var ending sync.WaitGroup
	for p := range workers {
		ending.Go(func() { _ = p.Close() })
	}
	ending.Wait()
	return nil
}
