package sandbox

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcsh-dev/mcsh/sandbox/programs"
	"github.com/mcsh-dev/mcsh/sandbox/wire"
	"github.com/mcsh-dev/mcsh/stages"
)

// Options set up a [Pool]. Only Driver is required.
type Options struct {
	Driver Driver

	Warm     int      // workers that wait for the next run: 1 if zero, none if negative, or if workers belong to callers
	Max      int      // workers that runs hold at a time, then runs wait: what the driver says or 16 if zero
	Lasting  bool     // a worker serves several runs of one caller; otherwise each run has a new one
	Commands []string // the commands that are allowed; all if nil
	Budget   Budget   // of one run
}

const (
	defaultWarm  = 1
	defaultMax   = 16
	probeTimeout = 3 * time.Minute  // of a probe: a worker, and all programs on a busy machine
	openTimeout  = 30 * time.Second // of a worker that is started in the background
	pingTimeout  = 2 * time.Second  // of a worker that has waited
	greetTimeout = 10 * time.Second // of a worker that a run is to have: for its hello, and for an answer after it
	greetTries   = 4                // more than the containers that usually wait, which may all stand still
)

// A Pool gives every run a worker to itself. It implements [stages.Commands].
type Pool struct {
	driver  Driver
	warm    int
	report  Report
	budget  Budget
	lasting bool
	ability map[string]Availability // of the commands that are allowed
	inUse   chan struct{}           // holds one value for each session of a run
	trying  chan struct{}           // holds one value for each session of a plan
	tried   tried
	buffers buffers
	queued  atomic.Int64 // runs that wait for a worker

	ctx     context.Context // ends with Close; for the starts in the background
	cancel  context.CancelFunc
	started sync.WaitGroup // and the ends there

	mu       sync.Mutex
	idle     []*tenant // workers that wait for anybody
	tenants  []*tenant // workers that wait for their callers, the one that has waited longest first
	starting int       // workers that are being started for idle
	sessions map[*session]bool
	closed   bool
}

var errProbe = fmt.Errorf("the worker of the audit has not answered for %s", probeTimeout)

// New probes the driver, which the Pool closes from then on, also when there is an error, and returns a Pool. A driver
// whose worker cannot lock programs in is an error.
func New(ctx context.Context, o Options) (*Pool, error) {
	probe, cancel := context.WithTimeoutCause(ctx, probeTimeout, errProbe)
	defer cancel()
	report, err := o.Driver.Probe(probe)
	if err != nil {
		_ = o.Driver.Close() // the probe's error is the one to tell
		return nil, err
	}
	p := &Pool{driver: o.Driver, warm: defaultWarm, report: report, sessions: map[*session]bool{}}
	if o.Warm != 0 {
		p.warm = max(o.Warm, 0)
	}
	p.lasting = o.Lasting
	if report.PerCaller {
		p.warm = 0
	}
	runs := cmp.Or(max(o.Max, 0), report.Runs, defaultMax)
	p.inUse, p.trying = make(chan struct{}, runs), make(chan struct{}, tryoutsAtOnce)
	p.budget = o.Budget.withDefaults(report.RunsMemory, runs)
	if p.ability, err = allowed(report, o.Commands); err != nil {
		_ = o.Driver.Close()
		return nil, err
	}
	p.ctx, p.cancel = context.WithCancel(context.WithoutCancel(ctx))
	p.refill()
	return p, nil
}

// allowed picks the programs that may be used, and refuses a list that names one that does not exist.
func allowed(r Report, names []string) (map[string]Availability, error) {
	m := map[string]Availability{}
	for _, a := range r.Programs {
		if names == nil || slices.Contains(names, a.Name) {
			m[a.Name] = a
		}
	}
	for _, name := range names {
		if _, ok := m[name]; !ok {
			return nil, fmt.Errorf("allowed command %q: there is no such program", name)
		}
	}
	return m, nil
}

// Report says what the backend is able to do. Programs that are not allowed are left out.
func (p *Pool) Report() Report {
	r := p.report
	r.Programs = slices.DeleteFunc(slices.Clone(r.Programs), func(a Availability) bool {
		_, ok := p.ability[a.Name]
		return !ok
	})
	return r
}

// CheckCommand implements [stages.Commands].
func (p *Pool) CheckCommand(c stages.Command) (stages.Habits, error) {
	inv, err := p.parse(c)
	return inv.Habits, err
}

func (p *Pool) parse(c stages.Command) (programs.Invocation, error) {
	files := p.report.Workspace
	inv, err := programs.ParseGiven(c.Name, c.Args, programs.Given{Inputs: c.Inputs, Files: files})
	if err != nil {
		if p, known := programs.Find(c.Name); !known || p.FilesOnly && !files {
			return inv, err
		}
	}
	// That a command is missing matters more than its arguments.
	a, ok := p.ability[c.Name]
	switch {
	case !ok:
		return inv, stages.Errorf(stages.DisallowedCommand, "use one of: "+p.usable(),
			"%s is not among the commands that are allowed here", c.Name)
	case a.Refusal != "":
		hint := "use one of: " + p.usable()
		if a.Package != "" {
			hint = fmt.Sprintf("whoever runs this server can install the Debian package %s; meanwhile %s", a.Package, hint)
		}
		return inv, stages.Errorf(stages.DisallowedCommand, hint, "%s is not available here: %s", c.Name, a.Refusal)
	}
	if err != nil {
		return inv, err
	}
	if message := command(c, inv); !message.Fits() {
		return inv, stages.Errorf(stages.DisallowedArgument, "give data to the command as its input, not as arguments",
			"%s: the arguments take %d bytes with their escapes, but at most %d are allowed", c.Name, message.Size(), wire.MaxCommand)
	}
	return inv, nil
}

// command is what the worker is told of a command.
func command(c stages.Command, inv programs.Invocation) wire.Command {
	if c.Timeout <= 0 {
		c.Timeout = defaultTimeout
	}
	return wire.Command{
		Name: c.Name, Argv: inv.Argv, Timer: inv.Timer, Part: (*wire.Part)(inv.Part), Timeout: c.Timeout,
		Inputs: inv.Inputs, Set: uint32(c.Set), Files: inv.Files, Each: c.Each,
	}
}

// usable names the commands that can be used.
func (p *Pool) usable() string {
	var names []string
	for name, a := range p.ability {
		if a.Refusal == "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// Open implements [stages.Commands]. It waits while Max runs hold a worker.
func (p *Pool) Open(ctx context.Context, caller string) (stages.Session, error) {
	s, err := p.open(ctx, caller, p.inUse)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// open opens a session when there is room in places.
func (p *Pool) open(ctx context.Context, caller string, places chan struct{}) (*session, error) {
	if err := p.queue(ctx, places); err != nil {
		return nil, err
	}
	s, err := p.session(ctx, caller, places)
	if err != nil {
		<-places
		return nil, err
	}
	return s, nil
}

// queue waits until a run may hold a worker.
func (p *Pool) queue(ctx context.Context, places chan struct{}) error {
	if places == p.inUse {
		p.queued.Add(1)
		defer p.queued.Add(-1)
	}
	select {
	case places <- struct{}{}:
		return nil
	case <-p.ctx.Done():
		return errClosed()
	case <-ctx.Done():
		return stages.Errorf(stages.LimitExceeded, "try again later",
			"all %d sandbox workers are in use: %w", cap(places), context.Cause(ctx))
	}
}

func errClosed() error {
	return stages.Errorf(stages.Internal, "", "the sandbox is shutting down")
}

func (p *Pool) session(ctx context.Context, caller string, places chan struct{}) (*session, error) {
	t := p.resume(ctx, caller)
	if t == nil {
		var err error
		if t, err = p.take(ctx, caller); err != nil {
			return nil, stages.Errorf(stages.Internal, "run the pipeline again; if that does not help, ask whoever runs "+
				"this server to run mcsh commands", "starting a sandbox worker: %w", err)
		}
		t.begin(caller)
	}
	s := newSession(p, t)
	s.places = places
	p.mu.Lock()
	closed := p.closed
	if !closed {
		p.sessions[s] = true
	}
	p.mu.Unlock()
	if closed {
		_ = t.client.Close()
		return nil, errClosed()
	}
	p.refill()
	return s, nil
}

// release takes a session off the books. It returns false when that was done before.
func (p *Pool) release(s *session) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.sessions[s] {
		return false
	}
	delete(p.sessions, s)
	<-s.places
	return true
}

// Close ends every worker, what runs in them, and the driver. It may be called more than once.
func (p *Pool) Close() error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil
	}
	p.closed = true
	idle := p.idle
	for _, t := range p.tenants {
		close(t.called)
		idle = append(idle, t)
	}
	p.idle, p.tenants = nil, nil
	sessions := make([]*session, 0, len(p.sessions))
	for s := range p.sessions {
		sessions = append(sessions, s)
	}
	p.mu.Unlock()

	p.cancel()
	p.started.Wait()
	for _, s := range sessions {
		_ = s.Close()
	}
	var ending sync.WaitGroup // side by side: one that stands still takes seconds
	for _, t := range idle {
		ending.Go(func() { _ = t.client.Close() })
	}
	ending.Wait()
	return p.driver.Close()
}
