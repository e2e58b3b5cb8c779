package stages

import (
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"sync"
)

// errStopped is what a stage sees when the reader of its output wants no more. It is no failure.
var errStopped = errors.New("the next stage has stopped reading")

// errBroken is what a stage sees when the stages around it end because of a failure elsewhere.
var errBroken = errors.New("another stage has failed")

// echo reports whether err only repeats that the data ends elsewhere. An *Error is a failure of its own, even if it wraps an echo.
func echo(err error) bool {
	if _, failed := errors.AsType[*Error](err); failed {
		return false
	}
	return errors.Is(err, errStopped) || errors.Is(err, errBroken) || errors.Is(err, io.ErrClosedPipe)
}

// stopReading ends a read of in that waits, if in is a pipe: nothing more is wanted from it.
func stopReading(in io.Reader) { closeReader(in, errStopped) }

func closeReader(in io.Reader, why error) {
	if pipe, ok := in.(interface{ CloseWithError(error) error }); ok {
		pipe.CloseWithError(why)
	}
}

// link is a filter of a chain with the steps that it runs: one, or several neighbouring commands.
type link struct {
	filter Filter
	steps  []*Step
	meters []*Meter
	keep   bool // remember the beginning of the input for messages

	record *record // keeps what the link writes, as output; nil: it is not kept
	output string

	watch  watch // observes it; nil: nothing does
	undone bool  // it stands in a dry run for what may change something, so it has no output

	onward []*Step   // its own steps, and those behind it
	inputs []*inputs // of all commands in it, at any depth
	needs  []*inputs // of its own commands: the filter is called when they are there
}

func (l *link) changes() bool { return changing(l.steps) }

// call runs the filter once, beside the inputs of its commands.
func (l *link) call(ctx context.Context, in io.Reader, out io.Writer) (err error) {
	if l.watch != nil {
		began, end := l.begin(ctx)
		ctx = began
		defer func() { end(err) }()
	}
	if l.record != nil {
		t, link, h := l.newTape(out), ctx, headersOf(ctx)
		h.tape = t
		out, ctx = t, withHeaders(ctx, h)
		defer func() { t.close(link, err) }()
	}
	if len(l.inputs) > 0 {
		var end func(error) error
		ctx, end = openInputs(ctx, l.inputs)
		defer func() { err = end(err) }()
	}
	return l.perform(ctx, in, out)
}

// perform runs the filter once, metered, and says where it failed.
func (l *link) perform(ctx context.Context, in io.Reader, out io.Writer) (err error) {
	defer func() {
		for _, m := range l.meters {
			m.broke.Store(m.broke.Load() || err != nil)
		}
	}()
	defer recovered(&err)
	for _, n := range l.needs {
		if err := n.wait(ctx); err != nil {
			return err
		}
	}
	m := l.meters[0]
	if l.steps[0].Command != nil {
		describeLines(l.steps, headersOf(ctx))
	} else {
		defer m.time()()
		in, out = &meteredReader{in, m, l.keep}, &meteredWriter{out, m}
		if l.undone {
			out = io.Discard
		}
	}
	return l.explain(ctx, l.filter(ctx, in, out))
}

// explain returns what an error of the filter means, with its place.
func (l *link) explain(ctx context.Context, err error) error {
	if err == nil || echo(err) {
		return err
	}
	_, isError := errors.AsType[*Error](err)
	if ctx.Err() != nil && (!isError || cancelled(err) || !l.changes()) {
		return context.Cause(ctx) // a cancelled filter may return any error
	}
	c := *AsError(err) // its maker may keep the error and share it
	return l.locate(&c)
}

// cancelled reports whether err only says that a context ended; the context's cause says why. An *Error says so by its
// code: a failure may wrap the end of a context that is not the stage's.
func cancelled(err error) bool {
	if e, failed := errors.AsType[*Error](err); failed {
		return e.Code == Cancelled
	}
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// locate places e at the step that failed. A chain of commands counts its commands from 1.
func (l *link) locate(e *Error) *Error {
	at := 0
	if l.steps[0].Command != nil {
		if n, err := strconv.Atoi(string(e.Place)); err == nil && n >= 1 && n <= len(l.steps) {
			at, e.Place = n-1, ""
		}
	}
	if e.Place != "" {
		return e
	}
	if l.steps[at].Command != nil && e.Code == Timeout {
		e.Limit = l.steps[at].clock.reached()
		e.Hint = "filter earlier so that it has less to do, or " + l.steps[at].clock.more()
	}
	e.Place, e.Label = l.steps[at].place, l.steps[at].Label.String()
	e.Fix = completed(l.steps[at].raw, e.Fix)
	if e.Sample == nil && l.steps[0].Command == nil {
		e.Sample, e.Cut = l.meters[at].head()
	}
	return e
}

// bind makes one filter of steps for this run, and the meters of the steps. With keep, errors show what the failed
// step was given; a list that runs once per item leaves that to the for_each, which knows the item.
func (r *Run) bind(ctx context.Context, steps []*Step, keep bool) (Filter, []*Meter, error) {
	links, meters, err := r.links(ctx, steps, keep)
	if err != nil {
		return nil, nil, err
	}
	return chain(r, links), meters, nil
}

// links makes the links of steps. A command whose inputs have effects begins a chain of its own: what is before it
// must have succeeded.
func (r *Run) links(ctx context.Context, steps []*Step, keep bool) ([]*link, []*Meter, error) {
	var links []*link
	var meters []*Meter
	all := steps
	steps = r.rehearsed(all)
	for i := 0; i < len(steps); {
		n := 1
		for steps[i].Command != nil && i+n < len(steps) && steps[i+n].Command != nil && !steps[i+n].Changes &&
			!r.ends(steps[i+n-1]) {
			n++
		}
		l := &link{steps: steps[i : i+n], keep: keep, onward: steps[i:], watch: r.watch}
		for _, s := range l.steps {
			l.meters = append(l.meters, newMeter(s))
		}
		var err error
		before := len(r.inputs)
		r.onward = l.onward[1:]
		if l.filter, err = r.bindLink(ctx, l); err != nil {
			return nil, nil, located(err, steps[i].place, steps[i].Label)
		}
		l.inputs = r.inputs[before:len(r.inputs):len(r.inputs)]
		links, meters = append(links, l), append(meters, l.meters...)
		i += n
	}
	for _, s := range all[len(steps):] { // they have a line in the report
		meters = append(meters, newMeter(s))
	}
	return links, meters, nil
}

func (r *Run) bindLink(ctx context.Context, l *link) (Filter, error) {
	dry := r.dry.replaces(l.changes())
	l.undone = dry
	if l.steps[0].Command == nil {
		if dry {
			return r.dry.bind(ctx, l.steps[0], l.meters[0])
		}
		return l.steps[0].Bind(ctx, r, l.meters[0])
	}
	session, err := r.commands(ctx)
	if err != nil {
		return nil, err
	}
	var commands []Command
	for i, s := range l.steps {
		c := *s.Command
		c.Each, c.LineBuffered = !l.keep, stopEarly(l.onward[i+1:])
		if len(s.Nested) > 0 {
			in, meters, err := r.bindInputs(ctx, session, s, &c)
			if err != nil {
				return nil, err
			}
			l.needs, l.meters[i].nested = append(l.needs, in), meters
		}
		commands = append(commands, c)
	}
	if dry {
		return r.dry.bind(ctx, l.steps[0], l.meters[0])
	}
	return session.Prepare(commands, func(i int, u Usage) { l.meters[i].add(u) })
}

// chain returns the filter that runs links at the same time, joined by pipes. It may be called concurrently.
func chain(r *Run, links []*link) Filter {
	switch len(links) {
	case 0:
		return func(ctx context.Context, in io.Reader, out io.Writer) error {
			h := headersOf(ctx)
			h.out.copyOf(h.in)
			_, err := io.Copy(out, in)
			return err
		}
	case 1:
		return links[0].call
	}
	return func(ctx context.Context, in io.Reader, out io.Writer) error {
		return newFlow(ctx, r, links, in, out).run(ctx)
	}
}

// flow is one running chain: a goroutine per link and a pipe between neighbours.
type flow struct {
	r     *Run
	links []*runningLink

	mu    sync.Mutex
	cause error // the first failure; guarded by mu
	last  error // what the last link returned; guarded by mu
}

// runningLink is a link of a flow.
type runningLink struct {
	*link
	ctx    context.Context
	cancel context.CancelCauseFunc
	in     io.Reader
	out    io.Writer
	pipe   *io.PipeWriter // that is out; nil: it is the last one
	done   chan struct{}
}

func newFlow(ctx context.Context, r *Run, links []*link, in io.Reader, out io.Writer) *flow {
	f := &flow{r: r}
	h := headersOf(ctx)
	h.tape = nil // each link has its own
	last := h.out
	for i, l := range links {
		own := &runningLink{link: l, in: in, out: out, done: make(chan struct{})}
		h.out = last
		if i < len(links)-1 {
			h.out = new(header)
			in, own.pipe = io.Pipe()
			own.out = own.pipe
		}
		own.ctx, own.cancel = context.WithCancelCause(withHeaders(ctx, h))
		h.in = h.out
		f.links = append(f.links, own)
	}
	return f
}

// run runs the links and returns the first failure, or what ended the last link's output early.
func (f *flow) run(ctx context.Context) error {
	// A pipe has no context: when the chain is cancelled, the links that wait at one must wake up.
	defer context.AfterFunc(ctx, func() { f.breakPipes() })()
	var wg sync.WaitGroup
	for i, l := range f.links {
		wg.Go(func() {
			defer close(l.done)
			f.settle(i, f.perform(i))
		})
	}
	wg.Wait()
	for _, l := range f.links {
		l.cancel(nil)
	}
	switch {
	case f.cause != nil:
		return f.cause
	case ctx.Err() != nil && f.last != nil:
		return context.Cause(ctx)
	}
	return f.last
}

// perform calls link i. A link with effects gets its input only when every link before it has succeeded.
func (f *flow) perform(i int) error {
	l, in := f.links[i], f.links[i].in
	if i == 0 || !l.changes() {
		return l.call(l.ctx, in, l.out)
	}
	spool := f.r.newSpool()
	defer spool.Close()
	step := l.steps[0]
	// A link before it that may change something is not stopped half way, and its output is not lost. A dry run says how much
	// there is to save.
	bounded := step.most > 0 && !(l.undone && step.tool == nil) && !slices.ContainsFunc(f.links[:i], (*runningLink).changes)
	if bounded {
		in = io.LimitReader(in, step.most+1)
	}
	n, err := io.Copy(spool, in)
	switch {
	case echo(err):
		return err
	case err != nil:
		return located(err, step.place, step.Label)
	case bounded && step.tooMuch(n):
		// The step says what is too much, and does nothing. Those before it wait for a reader: nobody may wait for them.
		return l.call(l.ctx, spool.Reader(), l.out)
	}
	for _, before := range f.links[:i] {
		<-before.done
	}
	if f.failure() != nil {
		return errBroken
	}
	return l.call(l.ctx, spool.Reader(), l.out)
}

// settle tells the neighbours of link i how it ended: the link before it stops, the link behind it sees the end or a break.
func (f *flow) settle(i int, err error) {
	if f.record(i, err) {
		for _, l := range f.links { // before the pipes, so that a link with a broken one knows why
			l.cancel(errBroken)
		}
		f.breakPipes()
	}
	for _, before := range f.links[:i] {
		before.cancel(errStopped)
		stopReading(before.in)
	}
	if i > 0 {
		stopReading(f.links[i].in)
	}
	if pipe := f.links[i].pipe; pipe != nil {
		if err != nil {
			err = errBroken
		}
		pipe.CloseWithError(err)
	}
}

// record keeps the error of link i if it is the first failure, and reports whether it is. After a link has been
// stopped, only a failure of one with effects counts: something may have been changed.
func (f *flow) record(i int, err error) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if i == len(f.links)-1 {
		f.last = err
	}
	if err == nil || echo(err) || f.cause != nil {
		return false
	}
	if context.Cause(f.links[i].ctx) == errStopped && !f.links[i].changes() {
		return false
	}
	f.cause = err
	return true
}

func (f *flow) failure() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.cause
}

func (f *flow) breakPipes() {
	for i, l := range f.links[1:] {
		closeReader(l.in, errBroken)
		f.links[i].pipe.CloseWithError(errBroken)
	}
}

// begin tells the watch that a link begins, and returns the context in which it runs, and a function for its end.
func (l *link) begin(ctx context.Context) (context.Context, func(error)) {
	var commands []string
	for _, s := range l.steps {
		if c := s.own().Command; c != nil {
			commands = append(commands, c.Name)
		}
	}
	ctx, end := l.watch(ctx, l.steps[0].place, l.steps[0].Label.Kind, commands)
	return ctx, func(err error) {
		if echo(err) {
			err = nil
		}
		end(err)
	}
}

// tape keeps what is written through it.
type tape struct {
	link  *link
	out   io.Writer
	kept  io.Writer
	end   func(incomplete string)
	whole bool  // the last write completes the output
	cut   error // why out takes no more
}

func (l *link) newTape(out io.Writer) *tape {
	t := &tape{link: l, out: out}
	t.kept, t.end = l.record.runs.Create(l.record.id, l.output, false)
	return t
}

func (t *tape) Write(p []byte) (int, error) {
	_, _ = t.kept.Write(p) // it does not fail
	n, err := t.out.Write(p)
	if err != nil {
		t.cut = err
	}
	return n, err
}

// lastWrite says that the next write is the last one: it is whole, even if nobody wants all of it.
func (t *tape) lastWrite() {
	if t != nil {
		t.whole = true
	}
}

// keepRest keeps the rest of the output after its reader has stopped.
func (t *tape) keepRest(rest io.Reader) {
	if t != nil {
		_, err := io.Copy(t.kept, rest)
		t.whole = err == nil
	}
}

// close ends the tape of a filter that has returned err.
func (t *tape) close(ctx context.Context, err error) {
	if err == nil {
		err = t.cut
	}
	if err == nil || t.whole {
		t.link.record.write(aboutName(t.link.output), headersOf(ctx).out.get())
		t.end("")
		return
	}
	t.end(cutShort(ctx, err))
}

// cutShort says why the output of a stage is not whole.
func cutShort(ctx context.Context, err error) string {
	if (echo(err) || cancelled(err)) && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	var e *Error
	switch {
	case errors.Is(err, errTimeout):
		return "the time of the run was up before the stage had ended"
	case errors.Is(err, errBroken):
		return "another stage failed before it had ended"
	case echo(err):
		return "a stage behind it had read enough and stopped it"
	case cancelled(err):
		return "the run was cancelled before the stage had ended"
	case errors.As(err, &e):
		return "the stage failed (" + string(e.Code) + ")"
	}
	return "the stage failed"
}
