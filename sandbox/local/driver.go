//go:build linux

package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/mcsh-dev/mcsh/sandbox"
)

// A Driver starts workers as child processes.
type Driver struct {
	options Options
	starter *starter

	mu      sync.Mutex
	workers map[*process]bool
	closed  bool
}

// New returns a driver.
func New(o Options) *Driver {
	return &Driver{options: o, starter: newStarter(), workers: map[*process]bool{}}
}

var _ sandbox.Driver = (*Driver)(nil)

// Probe implements [sandbox.Driver].
func (d *Driver) Probe(ctx context.Context) (sandbox.Report, error) {
	rwc, err := d.Open(ctx)
	if err != nil {
		return sandbox.Report{}, err
	}
	return sandbox.Audit(ctx, "local", rwc)
}

var errClosed = errors.New("starting a worker: the driver is closed")

// Open implements [sandbox.Driver].
func (d *Driver) Open(ctx context.Context) (io.ReadWriteCloser, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(d.options.Worker) == 0 || !filepath.IsAbs(d.options.Worker[0]) {
		return nil, fmt.Errorf("starting a worker: %q: want the absolute path of its binary", d.options.Worker)
	}
	scratch, err := os.MkdirTemp(d.options.Scratch, "mcsh-worker-")
	if err != nil {
		return nil, fmt.Errorf("making the worker's scratch directory: %w", err)
	}
	p := &process{scratch: scratch, exited: make(chan struct{}), gone: d.forget}
	if err := p.start(d.starter, d.options.Worker); err != nil {
		_ = os.RemoveAll(scratch) // it is empty
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

func (d *Driver) forget(p *process) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.workers, p)
}

// Close implements [sandbox.Driver].
func (d *Driver) Close() error {
	d.mu.Lock()
	d.closed = true
	workers := make([]*process, 0, len(d.workers))
	for p := range d.workers {
		workers = append(workers, p)
	}
	d.mu.Unlock()
	var ending sync.WaitGroup
	for _, p := range workers {
		ending.Go(func() { _ = p.Close() })
	}
	ending.Wait()
	d.starter.close()
	return nil
}
