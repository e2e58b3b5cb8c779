package stages

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"

	"github.com/mcsh-dev/mcsh/internal/lazy"
	"github.com/mcsh-dev/mcsh/internal/texts"
)

// maxInputs is how many named inputs one command takes: it has a descriptor for each.
const maxInputs = 32

// InputName is the regular expression for names of inputs: each is the name of a variable and of a file.
const InputName = `^[A-Za-z_][A-Za-z0-9_]{0,63}$`

var inputName = lazy.Regexp(InputName)

// Inputs are the named inputs of a command: lists of stages, in the order in which they were written.
type Inputs Branches

// UnmarshalJSON decodes an object of lists, keeping the order of its keys.
func (n *Inputs) UnmarshalJSON(data []byte) error { return (*Branches)(n).UnmarshalJSON(data) }

// compile compiles the stages of every input. Those with mistakes are returned too, so that the command's arguments
// are not blamed for them.
func (n Inputs) compile(ctx context.Context, s Scope) ([]Nested, error) {
	var nested []Nested
	var errs []error
	wrong := func(hint, format string, args ...any) {
		errs = append(errs, fielded("inputs", Errorf(InvalidPipeline, hint, format, args...)))
	}
	if len(n) > maxInputs {
		wrong("join in several stages", "a command takes at most %d inputs, got %d", maxInputs, len(n))
	}
	for _, b := range n {
		if !inputName().MatchString(b.Name) {
			wrong("write letters, digits and _, not a digit first, at most 64: users", "%s cannot be the name of an input", texts.Quote(b.Name))
			continue
		}
		if len(b.Stages) == 0 {
			wrong("give the stages whose output is @"+b.Name, "the input %s has no stages", texts.Quote(b.Name))
		}
		steps, err := s.List(ctx, b.Stages, InInput, b.Name, false)
		errs = append(errs, err)
		nested = append(nested, Nested{Branch: b.Name, Input: true, Steps: steps})
	}
	return nested, errors.Join(errs...)
}

// inputs are the named inputs of one command in one run. Each runs once, however often the command does. Those that
// only read run beside the pipeline from when the link around them begins; those with effects wait for the command,
// which is called when everything before it has succeeded.
type inputs struct {
	filters []Filter // each runs one input to its end, into the sandbox
	changes bool

	ctx  context.Context         // of the link that has opened them; nil: none has
	fail context.CancelCauseFunc // ends that link

	begin sync.Once
	done  chan struct{} // closed when all have ended
	err   error         // of them; to be read after done
	broke bool          // whether err is a failure of theirs: they were not just stopped
}

// bindInputs makes the inputs of a command, which it tells where they will be found, and the meters of their stages.
func (r *Run) bindInputs(ctx context.Context, session Session, s *Step, c *Command) (*inputs, []*Meter, error) {
	c.Set = int(r.sets.Add(1))
	in := &inputs{changes: s.Changes, done: make(chan struct{})}
	var meters []*Meter
	for _, n := range s.Nested {
		links, m, err := r.links(ctx, n.Steps, true)
		if err != nil {
			return nil, nil, err
		}
		// The error of an input that could not be kept names the command's stage.
		keep := &Step{Label: s.Label, place: s.place}
		links = append(links, &link{
			steps: []*Step{keep}, meters: []*Meter{newMeter(keep)},
			filter: func(ctx context.Context, data io.Reader, _ io.Writer) error {
				return session.Keep(ctx, c.Set, n.Branch, data)
			},
		})
		in.filters = append(in.filters, chain(r, links))
		meters = append(meters, m...)
	}
	r.inputs = append(r.inputs, in)
	return in, meters, nil
}

// start runs the inputs at the same time, once.
func (in *inputs) start() {
	in.begin.Do(func() { go in.run() })
}

func (in *inputs) run() {
	defer close(in.done)
	ctx, cancel := context.WithCancelCause(in.ctx)
	defer cancel(nil)
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, f := range in.filters {
		all.Go(func() {
			err := f(ctx, bytes.NewReader(nil), io.Discard)
			mu.Lock()
			defer mu.Unlock()
			if err != nil && (in.err == nil || echo(in.err)) {
				in.err = err
				cancel(errBroken)
			}
		})
	}
	all.Wait()
	if in.err != nil && !echo(in.err) && in.err != context.Cause(in.ctx) {
		in.broke = true
		in.fail(in.err)
	}
}

// wait returns when all inputs are there.
func (in *inputs) wait(ctx context.Context) error {
	in.start()
	select {
	case <-in.done:
		return in.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// openInputs begins the inputs of list that no link around the calling one has opened: those that only read start at
// once. The context that it returns ends when one of them fails, for that is the failure of the run. end ends those
// that nobody waits for any more, and makes of the link's end the failure of an input, if there is one.
func openInputs(ctx context.Context, list []*inputs) (_ context.Context, end func(error) error) {
	ctx, cancel := context.WithCancelCause(ctx)
	var own []*inputs
	for _, in := range list {
		if in.ctx != nil {
			continue
		}
		in.ctx, in.fail = ctx, cancel
		own = append(own, in)
		if !in.changes {
			in.start()
		}
	}
	return ctx, func(err error) error {
		cancel(errStopped)
		for _, in := range own {
			in.begin.Do(func() { close(in.done) })
			<-in.done
			if in.broke && (err == nil || echo(err)) {
				err = in.err
			}
		}
		return err
	}
}
