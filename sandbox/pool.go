package sandbox

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"runtime"
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

	Warm     int      // workers that wait for anybody: what the driver says or 1 if zero, none if negative; at most [MaxWarm]
	Max      int      // workers that runs hold at a time, then runs wait: what the driver says or 16 if zero
	Lasting  bool     // a worker serves several runs of one caller; otherwise each run has a new one
	Commands []string // the commands that are allowed; all if nil
	Budget   Budget   // of one run

	// Added are the programs that the operator has added. The driver's workers know them by their Text.
	Added programs.Added

	// The limits of one check of the arguments of a command: [DefaultCheck] and [DefaultCheckMemory] if zero.
	Check       time.Duration // of processor time
	CheckMemory int64         // bytes
}

// MaxWarm is how many workers may wait for anybody.
const MaxWarm = 64

const (
	defaultWarm  = 1
	defaultMax   = 16
	probeTimeout = 3 * time.Minute  // of a probe: a worker, and all programs on a busy machine
	openTimeout  = 30 * time.Second // of a worker that is started in the background
	pingTimeout  = 2 * time.Second  // of a worker that has waited
	greetTimeout = 10 * time.Second // of a worker that a run is to have: for its hello, and for an answer after it
	greetTries   = 4                // workers that may hang after their hello before a run fails
)

// A Pool gives every run a worker to itself. It implements [stages.Commands].
type Pool struct {
	driver  Driver
	warm    int // workers that wait for anybody
	keeps   int // workers that may wait for their callers, at most
	report  Report
	budget  Budget
	check   wire.Check // the limits of each
	lasting bool
	ability map[string]Availability // of the commands that are allowed
	inUse   *turns                  // of sessions of runs
	turns   *turns                  // of checks, of which there are as many at once as processors
	pages   *turns                  // of conversions of pages, of which there are as many
	checks  checks
	buffers wire.Buffers
	queued  atomic.Int64 // runs that wait for a worker

	ctx     context.Context // ends with Close; for the starts in the background
	cancel  context.CancelFunc
	started sync.WaitGroup // and the ends there

	mu       sync.Mutex
	waiting  []*pooledWorker // the one that has waited longest first; some are being started
	sessions map[*session]bool
	closed   bool
}

var errProbe = fmt.Errorf("the worker of the audit has not answered for %s", probeTimeout)

// New probes the driver, which the Pool closes from then on, even when there is an error, and returns a Pool. A driver
// whose worker cannot lock programs in is an error.
func New(ctx context.Context, o Options) (*Pool, error) {
	probe, cancel := context.WithTimeoutCause(ctx, probeTimeout, errProbe)
	defer cancel()
	report, err := o.Driver.Probe(probe)
	if err != nil {
		_ = o.Driver.Close() // the probe's error is the one to tell
		return nil, err
	}
	report.Added = o.Added
	p := &Pool{driver: o.Driver, report: report, lasting: o.Lasting, sessions: map[*session]bool{}}
	p.warm = min(max(cmp.Or(o.Warm, report.Warm, defaultWarm), 0), MaxWarm)
	runs := cmp.Or(max(o.Max, 0), report.Runs, defaultMax)
	p.keeps = cmp.Or(report.Waiting, runs)
	p.inUse, p.turns, p.pages = newTurns(runs), newTurns(runtime.GOMAXPROCS(0)), newTurns(runtime.GOMAXPROCS(0))
	p.budget = o.Budget.withDefaults(report.RunsMemory, runs)
	if p.check, err = p.budget.check(o); err != nil {
		_ = o.Driver.Close()
		return nil, err
	}
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

// parse reads the arguments of a command as far as its grammar knows them. It reads no script.
func (p *Pool) parse(c stages.Command) (programs.Invocation, error) {
	files := p.report.Workspace
	inv, err := programs.Parse(c.Name, c.Args, programs.Given{Inputs: c.Inputs, Files: files, Dir: c.Dir, Searches: c.Searches, Added: p.report.Added, Values: c.Values})
	if err != nil {
		if row, known := p.report.Added.Find(c.Name); !known || row.FilesOnly && !files {
			return inv, err
		}
	}
	// A missing command matters more than its arguments.
	a, ok := p.ability[c.Name]
	switch {
	case !ok:
		return inv, stages.Errorf(stages.DisallowedCommand, "use one of: "+p.usable(),
			"%s is not among the commands that are allowed here", c.Name)
	case a.Refusal != "":
		hint := "use one of: " + p.usable()
		if a.Package != "" {
			hint = fmt.Sprintf("the operator of this server can install the Debian package %s; meanwhile %s", a.Package, hint)
		}
		return inv, stages.Errorf(stages.DisallowedCommand, hint, "%s is not available here: %s", c.Name, a.Refusal)
	}
	if err != nil {
		return inv, err
	}
	if size := command(c, inv).Size(); size > wire.MaxCommand {
		return inv, stages.Errorf(stages.DisallowedArgument, "give data to the command as its input, not as arguments",
			"%s: the arguments take %d bytes with their escapes, but at most %d are allowed", c.Name, size, wire.MaxCommand)
	}
	return inv, nil
}

// command returns a command in the form of the wire.
func command(c stages.Command, inv programs.Invocation) wire.Command {
	if c.Timeout <= 0 {
		c.Timeout = defaultTimeout
	}
	if inv.Files == nil {
		c.Dir = ""
	}
	return wire.Command{
		Name: c.Name, Argv: inv.Argv, Timer: inv.Timer, Part: (*wire.Part)(inv.Part), EndLine: inv.EndLine, Timeout: c.Timeout,
		Inputs: inv.Inputs, Set: uint32(c.Set), Files: inv.Files, Dir: c.Dir, Each: c.Each,
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

// Open is [stages.CommandPlan.Open] for a plan of which nothing was checked.
func (p *Pool) Open(ctx context.Context, caller string) (stages.Session, error) {
	return p.Plan(caller, "", "").Open(ctx)
}

// open opens a session for a caller that has entered, and calls leave when the session is gone or cannot be had.
func (p *Pool) open(ctx context.Context, caller string, plan *plan, leave func()) (*session, error) {
	s, err := p.session(ctx, caller, plan, leave)
	if err != nil {
		leave()
		return nil, err
	}
	return s, nil
}

// queue waits until a run of an owner, "" for this machine, may hold a worker. leave gives it back.
func (p *Pool) queue(ctx context.Context, owner string) (leave func(), err error) {
	p.queued.Add(1)
	defer p.queued.Add(-1)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(p.ctx, func() { cancel(errClosed()) })()
	leave, err = p.inUse.take(ctx, owner)
	if err != nil && p.ctx.Err() == nil {
		err = stages.Errorf(stages.LimitExceeded, "try again when a run has ended",
			"%d of %d sandbox workers are in use, and what is left is for other callers: %w", p.inUse.inUse(), p.inUse.places, err)
	}
	return leave, err
}

func errClosed() error {
	return stages.Errorf(stages.Internal, "", "the sandbox is shutting down")
}

func (p *Pool) session(ctx context.Context, caller string, plan *plan, leave func()) (*session, error) {
	t, err := p.take(ctx, caller, plan)
	if err != nil {
		return nil, stages.Errorf(stages.Internal, "run the pipeline again; if that does not help, ask the operator of "+
			"this server to run mcsh commands", "starting a sandbox worker: %w", err)
	}
	s := newSession(p, t)
	s.gone = leave
	p.mu.Lock()
	closed := p.closed
	if !closed {
		p.sessions[s] = true
		p.evict(p.inUse.places - len(p.sessions)) // with those of runs there are no more than there may be runs
	}
	p.mu.Unlock()
	if closed {
		_ = t.client.Close()
		return nil, errClosed()
	}
	p.refill()
	return s, nil
}

// forget removes a session. It returns false when that was done before.
func (p *Pool) forget(s *session) bool {
	p.mu.Lock()
	held := p.sessions[s]
	delete(p.sessions, s)
	p.mu.Unlock()
	if held {
		s.gone()
	}
	return held
}

// Close ends every worker, what runs in them, and the driver. It may be called more than once.
func (p *Pool) Close() error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil
	}
	p.closed = true
	waiting := p.waiting
	for _, t := range waiting {
		close(t.taken)
	}
	p.waiting = nil
	sessions := maps.Clone(p.sessions)
	p.mu.Unlock()

	p.cancel()
	p.started.Wait()
	for s := range sessions {
		_ = s.Close()
	}
	var ending sync.WaitGroup // side by side: one that hangs takes seconds
	for _, t := range waiting {
		ending.Go(t.end)
	}
	ending.Wait()
	return p.driver.Close()
}

// A Load is how busy a [Pool] is.
type Load struct {
	InUse  int // workers that runs hold
	Warm   int // workers that wait for a run, of anybody or of the caller who had one before
	Queued int // runs that wait for a worker
	Max    int // the most that runs may hold at a time
}

// Load says how busy the pool is. It never waits for a worker.
func (p *Pool) Load() Load {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := Load{InUse: p.inUse.inUse(), Queued: int(p.queued.Load()), Max: p.inUse.places}
	for _, t := range p.waiting {
		select {
		case <-t.ready:
			l.Warm++
		default: // it is being started
		}
	}
	return l
}

// The most that one command may take. Memory is private memory; Disk is what sort and tac keep on disk.
const (
	Memory = 512 << 20
	Disk   = 1 << 30
)

// A Budget is what all commands of one run may take together, so that a run that takes much fails by itself and not
// the others.
type Budget struct {
	Memory    int64 // bytes: a share of what the driver's machine has, or twice [Memory], if zero
	Disk      int64 // bytes: [Disk] if zero
	Files     int   // on disk: 4096 if zero
	Processes int   // at a time: 512 if zero
}

const (
	leastMemory      = 64 << 20 // of a run: nothing works with less
	defaultFiles     = 4096
	defaultProcesses = 512
)

// withDefaults fills in what is not set. memory is what all runs may take, 0 if that is not known.
func (b Budget) withDefaults(memory int64, runs int) Budget {
	if b.Memory <= 0 {
		b.Memory = 2 * Memory
		if memory > 0 {
			b.Memory = max(memory/int64(runs), leastMemory)
		}
	}
	b.Disk, b.Files, b.Processes = cmp.Or(max(b.Disk, 0), Disk), cmp.Or(max(b.Files, 0), defaultFiles), cmp.Or(max(b.Processes, 0), defaultProcesses)
	return b
}

// check returns the limits of a check. Memory that somebody has asked for must be in the budget; the default is lowered.
func (b Budget) check(o Options) (wire.Check, error) {
	if o.CheckMemory > b.Memory {
		return wire.Check{}, fmt.Errorf("limit check-memory: %d bytes are more than the %d that the commands of one run may take together: lower it with --limit check-memory=SIZE", o.CheckMemory, b.Memory)
	}
	return wire.Check{CPU: cmp.Or(o.Check, DefaultCheck), Memory: min(cmp.Or(o.CheckMemory, DefaultCheckMemory), b.Memory)}, nil
}

// chain returns an empty chain with its limits.
func (b Budget) chain() wire.Chain {
	return wire.Chain{
		Memory: min(Memory, b.Memory), Disk: min(Disk, b.Disk),
		Worker: wire.Budget{Memory: b.Memory, Disk: b.Disk, Files: b.Files, Processes: b.Processes},
	}
}
