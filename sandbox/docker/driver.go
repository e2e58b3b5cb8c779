package docker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/mcsh-dev/mcsh/sandbox"
)

const backendName = "docker"

// A Driver has workers in containers.
type Driver struct {
	options  Options
	instance string // the label by which this driver's containers are known
	fleet    *fleet

	// Learned of the engine before it is set:
	profile string // the filter of system calls; empty where the engine takes none
	cpus    int

	connecting chan struct{} // holds a value while somebody connects

	mu     sync.Mutex
	engine *Engine // nil until it was needed; guarded by mu
	closed bool    // guarded by mu
}

var _ sandbox.Driver = (*Driver)(nil)

// New returns a driver. It connects to the engine when it is first used.
func New(o Options) *Driver {
	d := &Driver{options: o.withDefaults(), instance: rand.Text(), connecting: make(chan struct{}, 1)}
	d.fleet = newFleet(d.options, d.launch)
	return d
}

// ready connects to the engine, once, and removes what others have left there.
func (d *Driver) ready(ctx context.Context) (*Engine, error) {
	select {
	case d.connecting <- struct{}{}:
	case <-ctx.Done(): // whoever connects may have more time
		return nil, context.Cause(ctx)
	}
	defer func() { <-d.connecting }()
	if e, err := d.connected(); e != nil || err != nil {
		return e, err
	}
	e, err := Connect(ctx, d.options)
	if err != nil {
		return nil, err
	}
	if err := d.learn(ctx, e); err != nil {
		_ = e.Close() // its error is the one to tell
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, errors.Join(errClosed, e.Close())
	}
	d.engine = e
	return e, nil
}

// connected returns the engine if it was needed before.
func (d *Driver) connected() (*Engine, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, errClosed
	}
	return d.engine, nil
}

// learn asks the engine what containers can be given.
func (d *Driver) learn(ctx context.Context, e *Engine) error {
	status, err := e.Status(ctx, d.options.Image)
	if err != nil {
		return err
	}
	if status.ImageID == "" {
		return &Fault{Kind: ErrNoImage, Doing: "looking for the image " + d.options.Image, Hint: d.options.makeHint()}
	}
	info, err := e.api.Info(ctx)
	if err != nil {
		return fault("asking for the engine's settings", err)
	}
	d.cpus, d.profile = info.NCPU, ""
	if !strings.Contains(status.Name, "Podman") { // it takes a path on its own machine only
		if d.profile, err = seccompProfile(); err != nil {
			return err
		}
	}
	sweep(ctx, e, status.Containers, func(c Container) bool { return c.abandoned(time.Now()) })
	return nil
}

// gapProfile is said where an engine's own filter of system calls has to do.
const gapProfile = "the engine takes no filter of system calls of ours for the container: its own holds, which lets sockets of virtual machines pass; the jail of each command does not"

// Probe implements [sandbox.Driver].
func (d *Driver) Probe(ctx context.Context) (sandbox.Report, error) {
	if _, err := d.ready(ctx); err != nil {
		return sandbox.Report{}, err
	}
	b, err := d.fleet.start(ctx)
	if err != nil {
		return sandbox.Report{}, err
	}
	defer d.fleet.refill()
	defer d.fleet.keep(b)
	stream, err := b.session.OpenStream()
	if err != nil {
		return sandbox.Report{}, b.lost()
	}
	r, err := sandbox.Audit(ctx, backendName, &worker{Stream: stream, box: b})
	if err != nil {
		return r, err
	}
	if err := d.options.refuse(r); err != nil {
		return r, err
	}
	if d.profile == "" {
		r.Gaps = append(r.Gaps, gapProfile)
	}
	r.PerCaller, r.Runs = true, d.options.Max
	d.fleet.prepare(b)
	return r, nil
}

// Open implements [sandbox.Driver].
func (d *Driver) Open(ctx context.Context, caller string) (io.ReadWriteCloser, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	b, err := d.fleet.take(ctx, caller)
	if err != nil {
		return nil, err
	}
	stream, err := d.fleet.open(b)
	if err != nil {
		d.fleet.retire(b)
		d.fleet.done(b)
		return nil, b.lost()
	}
	return &worker{Stream: stream, box: b, fleet: d.fleet}, nil
}

// Close implements [sandbox.Driver].
func (d *Driver) Close() error {
	d.fleet.close()
	d.mu.Lock()
	e := d.engine
	d.engine, d.closed = nil, true
	d.mu.Unlock()
	if e == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), removeTimeout)
	defer cancel()
	if left, err := e.ours(ctx); err == nil {
		sweep(ctx, e, left, func(c Container) bool { return c.Instance == d.instance })
	}
	return e.Close()
}

// unstarted is how long a gateway may take from making a container to starting it, and from its end to its removal.
const unstarted = 5 * time.Minute

// abandoned reports whether a container of a gateway that may be another one is nobody's. One that runs is not: it
// ends by itself when its gateway does.
func (c Container) abandoned(now time.Time) bool {
	return c.Role == roleWorker && c.State != "running" && c.State != "paused" && now.Sub(c.Created) > unstarted
}

// sweep removes containers.
func sweep(ctx context.Context, e *Engine, all []Container, which func(Container) bool) {
	for _, c := range all {
		if which(c) {
			e.remove(ctx, c.ID)
		}
	}
}

// refuse is an error if a container is not what it was told to be.
func (o Options) refuse(r sandbox.Report) error {
	missing, onlyLimits := o.gaps(r)
	if len(missing) == 0 || onlyLimits && o.AllowUnlimited {
		return nil
	}
	f := &Fault{
		Kind: ErrNotHeld, Doing: "auditing a container", Detail: fmt.Errorf("%s", strings.Join(missing, "; ")),
		Hint: "use an engine that enforces what it is told",
	}
	if onlyLimits {
		f.Hint = "rootless engines need control groups of version 2 for limits; use another engine, or allow containers without limits"
	}
	return f
}
