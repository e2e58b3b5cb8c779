package stages

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcsh-dev/mcsh/internal/memory"
	"github.com/mcsh-dev/mcsh/internal/pausing"
	"github.com/mcsh-dev/mcsh/internal/texts"
)

// A watch is called when a link begins, and the function that it returns when the link ends.
type watch = func(ctx context.Context, place Place, kind string, commands []string) (context.Context, func(error))

// Pipeline is a checked pipeline. It may be run any number of times, also concurrently.
type Pipeline struct {
	steps    []*Step
	list     List // as they were written
	deps     Deps
	commands CommandPlan // nil where there are none
	resumed  *resumption // the run that it continues; nil: none
}

// RunOptions are the choices for one run. The zero value is a run with the operator's limits.
type RunOptions struct {
	// Timeout bounds the run, at most [Limits.Run]. 0 means Limits.Run.
	Timeout time.Duration

	// Outlast is the context with which calls end that may change something and were sent; nil: that of Run.
	Outlast context.Context

	// Spent is how much of Timeout has passed before, when the pipeline was checked.
	Spent time.Duration

	// Progress is called after every finished item and whenever a tool says how far it is, possibly by several goroutines
	// at once. It must not block. With nil, tools are not asked.
	Progress func(Progress)

	// Begun is called when the run begins, with a function that reports on its stages at any time. It may
	// be nil.
	Begun func(stages func() []StageReport)

	// Kept is called with the id of the run when it begins, where runs outlive the process: by it the caller goes on elsewhere
	// when the process ends. It may be nil.
	Kept func(run string)

	// Trace is passed on with every tool call.
	Trace Trace

	// Asker asks the caller of the run on behalf of servers. The timeouts of the run and of its stages are paused while it
	// is asked. Nil: nobody can be asked.
	Asker *Asker

	// Stage is called when a link of the run begins, a stage or neighbouring commands, and returns the context in which the
	// link runs, and a function for its end and error. Links that run once per item are left out. It may be nil.
	Stage watch

	// Forgets reports whether what is kept of the run is gone before anybody can go on from it: its error then names
	// nothing to continue from. Nil: it is not.
	Forgets func() bool

	// KeepClaim has the run stay the one that continues another run, even if it changes nothing, so that a caller
	// with the id of the run before finds it.
	KeepClaim bool

	// Cautious has the run note each item before it runs, one at a time, for so long: where processes have ended while they ran it, the
	// next one finds the item that does it, and goes on with the others.
	Cautious time.Duration

	// DryRun runs what only reads, up to the first stage that may change something, and reports what that would be
	// called with ([Report.DryRun]). Where there is such a stage, there is no output.
	DryRun bool
}

// Len returns the number of stages, without nested ones.
func (p *Pipeline) Len() int { return len(p.steps) }

// From returns the id of the earlier run whose outputs the pipeline begins with, or that it continues; empty: none.
func (p *Pipeline) From() string {
	switch {
	case p.resumed != nil:
		return p.resumed.id
	case len(p.steps) > 0 && p.steps[0].origin != nil:
		return p.steps[0].origin.id
	}
	return ""
}

// Run reads in, which may be nil, and writes the output of the last stage to out. The error is an *Error: the first
// real failure, never what it made elsewhere. The report is filled in either case.
func (p *Pipeline) Run(ctx context.Context, in io.Reader, out io.Writer, o RunOptions) (Report, error) {
	timeout := o.Timeout
	timeout = cmp.Or(timeout, p.deps.Limits.Run)
	if timeout < 0 || timeout > p.deps.Limits.Run {
		return Report{}, OverLimit(p.deps.Limits.name("run"), "leave timeout out, or ask for less",
			"timeout %s is not within what the operator allows: %s", timeout, p.deps.Limits.Run)
	}
	start := time.Now()
	caller, outer := ctx, ctx
	if o.Outlast != nil {
		outer = o.Outlast
	}
	clock := o.Asker.Clock()
	ctx, cancel := clock.WithTimeout(ctx, timeout-o.Spent, errTimeout)
	defer cancel()
	r := &Run{
		asker: o.Asker, clock: clock,
		deps: p.deps, plan: p.commands, resumed: p.resumed, caller: caller, outer: outer, timed: ctx, progress: o.Progress, trace: o.Trace, watch: o.Stage,
		memory: p.deps.Memory.Lease(), spools: p.deps.Memory.Lease(),
	}
	if o.Cautious > 0 {
		r.cautiousUntil = start.Add(o.Cautious)
	}
	defer func() { r.memory.Close(); r.spools.Close(); r.shown.Memory.Close() }()
	if o.DryRun {
		r.dry = &rehearsal{r: r}
		defer r.dry.close()
		if changing(p.steps) {
			out = io.Discard
		}
	}
	rec, endRecord := newRecord(p, in != nil, o.DryRun)
	defer endRecord()
	r.record = rec
	if rec != nil && o.Kept != nil && rec.runs.Outlive() {
		o.Kept(rec.id)
	}
	meters, err := p.perform(ctx, r, in, out, o)
	report := Report{Elapsed: time.Since(start), Stages: reports(meters), Blocks: r.shown.Blocks}
	if p.resumed != nil && p.resumed.shard != nil {
		report.Stages = append(report.Stages, *p.resumed.shard)
	}
	report.Windows = windows(report.Stages)
	if o.DryRun && err == nil {
		report.DryRun, err = r.dry.result(ctx, p.steps)
	}
	if err = p.explain(ctx, err, timeout, meters); err != nil {
		err.(*Error).Changed = effectsIn(report.Stages)
	}
	p.recordEnd(r, &report, meters, err, o.Forgets != nil && o.Forgets())
	return report, err
}

// effectsIn lists the tools with effects that were called, with their calls.
func effectsIn(list []StageReport) []string {
	var names []string
	for _, s := range list {
		if s.Changes && s.Calls > 0 {
			names = append(names, fmt.Sprintf("%s: %d", s.Label.Called(), s.Calls))
		}
		names = append(names, effectsIn(s.Stages)...)
	}
	return names
}

func (p *Pipeline) perform(ctx context.Context, r *Run, in io.Reader, out io.Writer, o RunOptions) (meters []*Meter, err error) {
	links, meters, release, err := r.prepare(ctx, p, o.KeepClaim)
	defer release()
	if err == nil {
		if o.Begun != nil {
			o.Begun(func() []StageReport { return reports(meters) })
		}
		given := new(header)
		r.out = new(header)
		if in != nil {
			given.describe(about{Kind: CommandText})
		}
		err = fed(withHeaders(ctx, headers{in: given, out: r.out}), chain(r, links), in, out)
	}
	if cerr := r.close(); err == nil && cerr != nil {
		err = fmt.Errorf("closing the sandbox session: %w", cerr)
	}
	return meters, err
}

// fed runs filter on in, which may be a terminal or a socket: a read that waits there does not keep the run from
// ending. The goroutine that reads ends with that read.
func fed(ctx context.Context, filter Filter, in io.Reader, out io.Writer) error {
	if in == nil {
		return filter(ctx, bytes.NewReader(nil), out)
	}
	pr, pw := io.Pipe()
	defer pr.CloseWithError(errStopped)
	defer context.AfterFunc(ctx, func() { pr.CloseWithError(errBroken) })()
	go func() {
		_, err := io.Copy(pw, in)
		if _, known := errors.AsType[*Error](err); err != nil && !known {
			err = Errorf(Internal, "", "reading the input: %w", err) // else it could look like the end of another stage
		}
		pw.CloseWithError(err)
	}()
	return filter(ctx, pr, out)
}

// errTimeout is the cause of a run's context that ends because the time is up.
var errTimeout = errors.New("the time of the run is up")

// explain turns what ended a run into an *Error. A run whose reader wants no more of the output is a success; one that was
// ended from outside is none, also where its stages only saw their data end.
func (p *Pipeline) explain(ctx context.Context, err error, timeout time.Duration, meters []*Meter) error {
	ended := ctx.Err() != nil && (cancelled(err) || echo(err) || errors.Is(err, context.Cause(ctx)))
	switch {
	case err == nil || echo(err) && !ended && !errors.Is(err, errBroken):
		return nil
	case errors.Is(err, errTimeout) || ended && context.Cause(ctx) == errTimeout:
		return Late(timeout, p.deps.Limits, whereabouts(meters), "narrow the data before the slow stage")
	case ended:
		return Errorf(Cancelled, "", "the run was cancelled; %s", whereabouts(meters))
	}
	return AsError(err)
}

// Late is the error of a run whose time was up: done says what it had come to, try what may help beside more time.
func Late(timeout time.Duration, l Limits, done, try string) *Error {
	c := clock{timeout, l.WithDefaults().Run, l.name("run"), `the argument "timeout"`}
	return c.late(try+", or "+c.more(),
		"the run took longer than %s (%s); %s", shortTime(timeout), c.words(), done)
}

// busy returns the steps of a run that had not ended when something ended it.
func busy(meters []*Meter) (steps []*Step) {
	for _, m := range meters {
		if m.broke.Load() {
			steps = append(steps, m.step)
		}
	}
	return steps
}

// whereabouts says what the stages were doing when a run was ended.
func whereabouts(meters []*Meter) string {
	var names []string
	for _, m := range meters {
		if !m.broke.Load() {
			continue
		}
		name := fmt.Sprintf("stage %s (%s)", m.step.place, m.step.Label)
		if why := m.waitsFor(); why != "" {
			name += ", " + why + ","
		}
		names = append(names, name)
	}
	text := fmt.Sprintf("tool calls made: %d", Report{Stages: reports(meters)}.AllCalls())
	if len(names) > 0 {
		text = strings.Join(names, ", ") + " had not ended; " + text
	}
	return text
}

// AllCalls counts the tool calls of the run.
func (r Report) AllCalls() (n int64) {
	for _, s := range r.Stages {
		n += s.Calls + Report{Stages: s.Stages}.AllCalls()
	}
	return n
}

// Progress says how far a run is.
type Progress struct {
	Items int64 // items of for_each stages that are finished
	Calls int64 // tool calls that were started

	// Place is the stage whose tool has just said how far it is, and Tool the sum over its calls; empty: no tool has.
	Place Place
	Tool  ToolProgress
	Each  bool // the stage runs once per item
}

// ToolProgress is what a tool says of how far a call is.
type ToolProgress struct {
	Done, Total float64 // Total is 0 where the tool does not know it
	Message     string  // one clean line; empty in the sum over the calls of a for_each
}

// prepare binds the stages, with what earlier runs have left for them, and claims the run that this one continues, if there is one.
// Only then can this run be continued itself: it has the plan, which a run that goes on from it needs, and before that all effects and
// results of earlier runs. release ends the logs of this run, and gives up the claim unless the run has changed something, or keeps it.
func (r *Run) prepare(ctx context.Context, p *Pipeline, keep bool) (links []*link, meters []*Meter, release func(), err error) {
	giveUp := func() {}
	release = func() {
		for _, l := range r.logs {
			l.close()
		}
		if !r.effects.close() && !keep {
			giveUp()
		}
	}
	if r.effects, err = newEffectLog(ctx, r, p.steps, p.resumed); err != nil {
		return nil, nil, release, err
	}
	if links, meters, err = r.links(ctx, p.steps, true); err != nil {
		return nil, meters, release, err
	}
	r.record.attach(links, r.dry != nil)
	r.record.writePlan()
	if p.resumed != nil && r.dry == nil {
		giveUp, err = r.claim(ctx, p.resumed.storedRun)
	}
	if r.record != nil {
		r.record.prepared = err == nil
	}
	return links, meters, release, err
}

// claim makes this run the only one that continues a run, and those that the run has continued, unless it has claimed them.
func (r *Run) claim(ctx context.Context, p storedRun) (release func(), err error) {
	var chain []string
	var held []func()
	release = func() {
		for _, giveUp := range held {
			giveUp()
		}
	}
	for {
		holder, giveUp, err := p.runs.Claim(ctx, p.id, r.record.id)
		held = append(held, giveUp)
		switch chain = append(chain, p.id); {
		case err != nil:
			return release, storeError(err)
		case holder == "":
			return release, p.gone()
		case holder != r.record.id && !slices.Contains(chain, holder):
			return release, p.taken(holder)
		case p.Continues == "":
			return release, nil
		}
		if p, err = findRun(ctx, p.runs, p.Continues); err == nil {
			continue
		}
		if AsError(err).Code == UnknownRun {
			err = nil // it is gone, and nobody else continues it
		}
		return release, err
	}
}

// Run is one execution of a pipeline: what its stages share.
type Run struct {
	deps          Deps
	plan          CommandPlan     // of the pipeline's commands; nil where there are none
	caller        context.Context // ends when its caller gives it up
	outer         context.Context // the caller's, without the run's timeout: a tool call with effects ends with it or by its own timeout
	timed         context.Context // the caller's, with the run's timeout
	cautiousUntil time.Time
	progress      func(Progress)
	trace         Trace
	asker         *Asker         // of its caller; nil: nobody can be asked
	clock         *pausing.Clock // of its timeouts
	dry           *rehearsal     // of a dry run
	record        *record        // what is kept of the run
	resumed       *resumption    // the run that this one continues
	effects       *effectLog
	logs          []*itemLog // of its for_each stages, added while the steps are bound

	memory  *memory.Lease // of the process, for what is held
	spools  *memory.Lease // for what spools have in memory, which leaves room for what cannot wait on the disk
	within  *inCall       // the call whose work this run is; nil: it is a run of its own
	calls   tally
	held    tally
	shared  tally // of held: results kept for equal calls
	spooled tally
	saved   tally // written to the workspace
	items   tally
	sets    tally // commands with inputs

	// While the steps are bound:
	watch  watch     // observes their links; nil: nothing does
	onward []*Step   // those behind the one that is bound
	inputs []*inputs // of all commands so far

	opening sync.Mutex
	session Session // opened for the first command, also of a run within this one; guarded by opening

	out   *header // of the output
	shown Result  // of the last stage, which sets it; its memory is taken until the run ends
}

// commands returns the run's sandbox session, and opens it at first. A run within another one has that of the other: if it waited
// for a worker of its own, runs that have one could wait for each other without end.
func (r *Run) commands(ctx context.Context) (Session, error) {
	if r.within != nil {
		return r.within.run.commands(ctx)
	}
	r.opening.Lock()
	defer r.opening.Unlock()
	if r.session == nil {
		s, err := r.plan.Open(ctx)
		if err != nil {
			return nil, err
		}
		r.session = s
	}
	return r.session, nil
}

// close gives the sandbox session back, or what the checks have kept for one that was not needed.
func (r *Run) close() error {
	switch {
	case r.session != nil:
		return r.session.Close()
	case r.plan != nil:
		_ = r.plan.Close() // a worker that is lost has ended too
	}
	return nil
}

// called counts a tool call before it is made.
func (r *Run) called() error {
	if n := r.calls.Add(1); n > int64(r.deps.Limits.Calls) {
		return ofRun(OverLimit(r.deps.Limits.name("calls"), "filter the items before the call, or split the work into several pipelines",
			"the run makes more than %d tool calls", r.deps.Limits.Calls))
	}
	return nil
}

// finished counts a finished item.
func (r *Run) finished() {
	items := r.items.Add(1)
	if r.progress != nil {
		r.progress(Progress{Items: items, Calls: r.calls.Load()})
	}
}

// hold takes n bytes of the memory that one run may hold, and of that of the process.
func (r *Run) hold(n int64) error {
	if err := r.count(n); err != nil {
		return err
	}
	if err := r.memory.Grow(n); err != nil {
		r.held.Add(-n)
		return noMemory(err)
	}
	return nil
}

// release gives back n bytes that were held.
func (r *Run) release(n int64) {
	r.held.Add(-n)
	_ = r.memory.Grow(-n) // does not fail
}

// count takes n bytes of what one run may hold, whose memory has been taken already.
func (r *Run) count(n int64) error {
	if r.held.Add(n) > r.deps.Limits.Held {
		r.held.Add(-n)
		return ofRun(OverLimit("held", "lower concurrency, or make each item's result smaller",
			"the run holds more than %s in memory", texts.Bytes(r.deps.Limits.Held)))
	}
	return nil
}

// noMemory is the error of what finds no room in the memory of the process, see [memory.Full].
func noMemory(err error) *Error {
	return ofRun(OverLimit("memory", "try again when less is running, or filter and page so that less is held at once", "%w", err))
}

// ofRun marks the failure of a limit that all of a run shares.
func ofRun(e *Error) *Error {
	e.OfRun = true
	return e
}

// crowded reports whether the run holds so much that what runs should end before more begins.
func (r *Run) crowded() bool { return r.held.Load() > r.deps.Limits.Held/4 }
