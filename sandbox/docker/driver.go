package docker

import (
	"context"
	"crypto/rand"
	"errors"
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

	connecting chan struct{} // holds a value while somebody connects, for whom the next three are
	engine     *Engine       // nil until it was needed
	profile    string        // the filter of system calls; empty where the engine takes none
	cpus       int           // of the engine's machine

	starting chan struct{}   // holds a value for each container that is being started
	ctx      context.Context // ends with Close, and with it what is being started
	cancel   context.CancelFunc
	work     sync.WaitGroup // starts and ends of containers

	mu      sync.Mutex
	audited *worker // in the container of the audit, until somebody takes it; guarded by mu
	closed  bool    // guarded by mu
}

// startsAtOnce is how many containers an engine is asked to start side by side: more only wait for each other.
const startsAtOnce = 4

var errClosed = errors.New("starting a worker: the driver is closed")

var _ sandbox.Driver = (*Driver)(nil)

// New returns a driver. It connects to the engine when it is first used.
func New(o Options) *Driver {
	d := &Driver{
		options: o.withDefaults(), instance: rand.Text(),
		connecting: make(chan struct{}, 1), starting: make(chan struct{}, startsAtOnce),
	}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	return d
}

// ready connects to the engine, once, and removes what others have left there.
func (d *Driver) ready(ctx context.Context) (*Engine, error) {
	select {
	case d.connecting <- struct{}{}:
	case <-ctx.Done(): // the caller that connects may have more time
		return nil, context.Cause(ctx)
	}
	defer func() { <-d.connecting }()
	if d.engine != nil {
		return d.engine, nil
	}
	e, err := Connect(ctx, d.options)
	if err != nil {
		return nil, err
	}
	if err := d.learn(ctx, e); err != nil {
		_ = e.Close() // its error is the one to tell
		return nil, err
	}
	d.engine = e
	return e, nil
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
	d.cpus, d.profile = status.cpus, ""
	if !strings.Contains(status.Name, "Podman") { // it takes a path on its own machine only
		if d.profile, err = seccompProfile(); err != nil {
			return err
		}
	}
	sweep(ctx, e, status.Containers, func(c Container) bool { return c.abandoned(time.Now()) })
	return nil
}

// gapProfile is said where an engine's own filter of system calls has to do.
const gapProfile = "the engine takes no filter of system calls of ours for the container: its own holds, which permits sockets of virtual machines; the jail of each command does not"

// The options that this backend recommends to a pool.
const (
	warm    = 2  // containers that wait for anybody: a start takes as long as hundreds of runs
	maxRuns = 64 // that may have a container at a time
)

// Probe implements [sandbox.Driver].
func (d *Driver) Probe(ctx context.Context) (r sandbox.Report, err error) {
	w, err := d.start(ctx)
	if err != nil {
		return r, err
	}
	w, err = w.examine(ctx, func(rwc io.ReadWriteCloser) (err error) {
		r, err = sandbox.Audit(ctx, backendName, rwc)
		return err
	})
	if err != nil {
		return r, err
	}
	if d.profile == "" {
		r.Gaps = append(r.Gaps, gapProfile)
	}
	r.Warm, r.Runs = warm, maxRuns
	d.mu.Lock()
	defer d.mu.Unlock()
	d.audited = w
	return r, nil
}

// Open implements [sandbox.Driver].
func (d *Driver) Open(ctx context.Context) (sandbox.Worker, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	d.mu.Lock()
	w := d.audited
	d.audited = nil
	d.mu.Unlock()
	if w == nil {
		var err error
		if w, err = d.start(ctx); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// start launches a container when it is its turn, and ends with the driver, which waits for it.
func (d *Driver) start(ctx context.Context) (*worker, error) {
	d.mu.Lock()
	closed := d.closed
	if !closed {
		d.work.Add(1)
	}
	d.mu.Unlock()
	if closed {
		return nil, errClosed
	}
	defer d.work.Done()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(d.ctx, func() { cancel(errClosed) })()
	select {
	case d.starting <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-d.starting }()
	return d.launch(ctx)
}

// background does work that Close waits for. Close itself does the work that is left then.
func (d *Driver) background(work func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closed {
		d.work.Go(work)
	}
}

// Close implements [sandbox.Driver].
func (d *Driver) Close() error {
	d.mu.Lock()
	again := d.closed
	d.closed = true
	d.mu.Unlock()
	d.cancel()
	d.work.Wait() // and so nobody connects any more
	e := d.engine
	if e == nil || again {
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
	return (c.Role == roleWorker || c.Role == roleCommand) && c.State != "running" && c.State != "paused" && now.Sub(c.Created) > unstarted
}

// sweep removes containers.
func sweep(ctx context.Context, e *Engine, all []Container, which func(Container) bool) {
	for _, c := range all {
		if which(c) {
			e.remove(ctx, c.ID)
		}
	}
}

// refuse returns an error if a container is not as its spec says.
func (o Options) refuse(r sandbox.Report) error {
	missing := o.gaps(r)
	if len(missing) == 0 {
		return nil
	}
	return &Fault{
		Kind: ErrNotHeld, Doing: "auditing a container", Detail: errors.New(strings.Join(missing, "; ")),
		Hint: "use an engine that enforces limits; rootless engines need control groups of version 2 for limits",
	}
}
