package stages

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// Pipeline is a checked pipeline. It may be run any number of times, also concurrently.
type Pipeline struct {
	steps []*Step
	list  List // as they were written
	deps  Deps
}

// RunOptions are the choices for one run. The zero value is a run with the operator's limits.
type RunOptions struct {
	// Timeout bounds the run, at most [Limits.Run]. 0 means Limits.Run.
	Timeout time.Duration

	// Outlast is the context with which calls end that may change something and were sent; nil: that of Run.
	Outlast context.Context

	// Spent is how much of Timeout has passed before, when the pipeline was checked.
	Spent time.Duration

	// Progress is called after every finished item, possibly by several goroutines at once. It must not block.
	Progress func(Progress)

	// Trace is passed on with every tool call.
	Trace Trace

	// Stage is told of every link of the run that begins, a stage or neighbouring commands, and of its end: nil or what
	// failed. What runs once per item is left out. The link runs in the context that it returns. Nil: nobody is told.
	Stage func(ctx context.Context, place Place, label string) (context.Context, func(error))

	// Forgets reports whether what is kept of the run is gone before anybody can go on from it: its error then names
	// nothing to continue from. Nil: it is not.
	Forgets func() bool

	// DryRun runs what only reads, up to the first stage that may change something, and reports what that would be
	// called with ([Report.DryRun]). Where there is such a stage, there is no output.
	DryRun bool
}

// Run reads in, which may be nil, and writes the output of the last stage to out. The error is an *Error: the first
// real failure, never what it made elsewhere. The report is filled in either case.
func (p *Pipeline) Run(ctx context.Context, in io.Reader, out io.Writer, o RunOptions) (Report, error) {
	timeout := o.Timeout
	timeout = cmp.Or(timeout, p.deps.Limits.Run)
	if timeout < 0 || timeout > p.deps.Limits.Run {
		return Report{}, OverLimit("run", "leave timeout out, or ask for less",
			"timeout %s is not within what the operator allows: %s", timeout, p.deps.Limits.Run)
	}
	start := time.Now()
	if o.Stage != nil {
		ctx = context.WithValue(ctx, stageKey{}, o.Stage)
	}
	outer := ctx
	if o.Outlast != nil {
		outer = o.Outlast
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout-o.Spent, errTimeout)
	defer cancel()
	r := &Run{deps: p.deps, outer: outer, progress: o.Progress, trace: o.Trace, watched: o.Stage != nil}
	if o.DryRun {
		r.dry = &rehearsal{r: r}
		defer r.dry.close()
		if effectOf(p.steps) == Changes {
			out = io.Discard
		}
	}
	r.record = newRecord(p.deps.Runs, plan{in != nil, p.list}, p.steps)
	defer r.closeRecord()
	meters, err := p.perform(ctx, r, in, out)
	report := Report{Elapsed: time.Since(start), Windows: r.ordered(p.steps), Blocks: r.blocks}
	if o.DryRun && err == nil {
		report.DryRun, err = r.dry.result(ctx, p.steps)
	}
	for _, m := range meters {
		report.Stages = append(report.Stages, m.report())
	}
	if err = p.explain(ctx, err, timeout, meters); err != nil {
		err.(*Error).Changed = changed(report.Stages)
	}
	p.tell(r, &report, meters, err, o.Forgets != nil && o.Forgets())
	return report, err
}

// tell says in the report and in the error of a run where it is kept, what one can continue from, and which items of a
// for_each are then not run again as they are.
func (p *Pipeline) tell(r *Run, report *Report, meters []*Meter, err error, gone bool) {
	rec := r.record
	if rec == nil {
		return
	}
	report.Run = rec.id
	r.closeLogs()
	taken := p.takenStages(rec.past, meters)
	rec.keepTaken(taken)
	if d := report.DryRun; d != nil && d.Place != "" {
		d.Kept, _ = p.continueFrom(rec.past, d.Place, nil, nil)
	}
	if err == nil {
		return
	}
	e := err.(*Error)
	which := r.doubted()
	if gone {
		e.forgotten(which)
		return
	}
	e.Run = rec.id
	e.Continue, e.Standing = p.continueFrom(rec.past, e.Place, taken, busy(e, meters))
	if which != "" {
		e.hintFirst(which + " may have taken effect: find out (with a tool that reads), and continue with the items that are left; " +
			"the for_each as it is will not be resumed")
	}
}

// forgotten says that one cannot continue from the run, and which of its items may have taken effect.
func (e *Error) forgotten(doubted string) {
	hint := "the gateway is stopping and forgets this run: run the pipeline again when it is back"
	if len(e.Changed) > 0 {
		hint += ", after finding out what was changed (with a tool that reads), and only for what is left"
	}
	e.hintFirst(hint)
	if doubted != "" {
		e.hintFirst(doubted + " may have taken effect")
	}
}

func (e *Error) hintFirst(hint string) {
	if e.Hint != "" {
		hint += "; " + e.Hint
	}
	e.Hint = hint
}

// changed lists the tools with effects that were called, with their calls.
func changed(list []StageReport) []string {
	var names []string
	for _, s := range list {
		if s.Changes && s.Calls > 0 {
			names = append(names, fmt.Sprintf("%s: %d", strings.TrimPrefix(s.Label, "tool "), s.Calls))
		}
		names = append(names, changed(s.Stages)...)
	}
	return names
}

func (p *Pipeline) perform(ctx context.Context, r *Run, in io.Reader, out io.Writer) (meters []*Meter, err error) {
	release, err := r.claimActs(p.steps)
	defer func() { release(meters) }()
	if err != nil {
		return nil, err
	}
	links, meters, err := r.links(ctx, p.steps, true)
	if err == nil {
		r.record.attach(links, r.dry != nil)
		err = fed(ctx, chain(r, links), in, out)
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
	stop := context.AfterFunc(ctx, func() { pr.CloseWithError(errBroken) })
	defer stop()
	go func() {
		_, err := io.Copy(pw, in)
		pw.CloseWithError(err)
	}()
	return filter(ctx, pr, out)
}

// errTimeout is the cause of a run's context that ends because the time is up.
var errTimeout = errors.New("the time of the run is up")

// explain turns what ended a run into an *Error. An output that nobody reads to its end is a success.
func (p *Pipeline) explain(ctx context.Context, err error, timeout time.Duration, meters []*Meter) error {
	var e *Error
	switch {
	case err == nil || echo(err):
		return nil
	case errors.Is(err, errTimeout) || ctx.Err() != nil && context.Cause(ctx) == errTimeout && cancelled(err):
		return Late(timeout, p.deps.Limits, whereabouts(meters), "narrow the data before the slow stage")
	case ctx.Err() != nil && (cancelled(err) || errors.Is(err, context.Cause(ctx))):
		return Errorf(Cancelled, "", "the run was cancelled; %s", whereabouts(meters))
	case errors.As(err, &e):
		return e
	}
	return Errorf(Internal, "", "%w", err)
}

// Late is the error of a run whose time was up: done says what it had come to, try what may help beside more time.
func Late(timeout time.Duration, l Limits, done, try string) *Error {
	c := clock{timeout, l.WithDefaults().Run, "run", `the argument "timeout"`}
	return c.late(try+", or "+c.more(),
		"the run took longer than %s (%s); %s", shortTime(timeout), c.words(), done)
}

// busy returns the steps of a run that had not ended when it was ended from outside.
func busy(e *Error, meters []*Meter) (steps []*Step) {
	for _, m := range meters {
		if e.Place == "" && m.broke.Load() {
			steps = append(steps, m.step)
		}
	}
	return steps
}

// whereabouts says what the stages were doing when a run was ended.
func whereabouts(meters []*Meter) string {
	var busy []string
	calls := int64(0)
	for _, m := range meters {
		r := m.report()
		calls += r.allCalls()
		if m.broke.Load() {
			busy = append(busy, fmt.Sprintf("stage %s (%s)", m.step.place, m.step.Label))
		}
	}
	text := fmt.Sprintf("tool calls made: %d", calls)
	if len(busy) > 0 {
		text = strings.Join(busy, ", ") + " had not ended; " + text
	}
	return text
}

// AllCalls counts the tool calls of the run.
func (r Report) AllCalls() int64 {
	n := int64(0)
	for _, s := range r.Stages {
		n += s.allCalls()
	}
	return n
}

func (s StageReport) allCalls() int64 {
	n := s.Calls
	for _, inner := range s.Stages {
		n += inner.allCalls()
	}
	return n
}
