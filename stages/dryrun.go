package stages

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"slices"
	"sync"

	"github.com/mcsh-dev/mcsh/preview"
)

// DryRun says what a run with [RunOptions.DryRun] has left undone.
type DryRun struct {
	// Place is the first stage of the pipeline that may change something: what stands before it was run, what follows
	// was not. Empty: no stage may change anything, and all were run.
	Place Place  `json:"stage,omitempty"`
	Label string `json:"label,omitempty"`

	Before int       `json:"before"`           // stages that were run
	Resume bool      `json:"resume,omitempty"` // their outputs are kept, so that to continue the run makes the calls
	After  int       `json:"after"`            // stages that were not even looked at
	Calls  []DryCall `json:"calls,omitempty"`  // what was not called, in the order of the stages
}

// DryCall is a stage that may change something, and what it would be called with.
type DryCall struct {
	Place Place             `json:"stage"`
	Label string            `json:"label"`
	Count int64             `json:"count"`           // calls
	First []json.RawMessage `json:"first,omitempty"` // arguments of the first calls
	Shape string            `json:"shape,omitempty"` // of the arguments of all calls, where First has not all of them
	Fails string            `json:"fails,omitempty"` // why the first call would fail that would, as far as that is known
}

// dryCalls is how many argument objects a dry run shows as they are.
const dryCalls = 3

// noteCall is [rehearsal.note] for one stage.
type noteCall func(args json.RawMessage, fails string) error

// rehearsal stands in a dry run in the place of everything that may change something.
type rehearsal struct {
	r *Run

	mu    sync.Mutex
	parts []*dryPart // guarded by mu, as is what is in them
}

// dryPart collects what one stage would be called with.
type dryPart struct {
	call DryCall
	all  *spool // arguments, one object a line
}

// rehearsed returns the steps that a run binds: in a dry run those up to the first that may change something.
func (r *Run) rehearsed(steps []*Step) []*Step {
	if r.dry == nil {
		return steps
	}
	if i := slices.IndexFunc(steps, func(s *Step) bool { return s.Changes }); i >= 0 {
		return steps[:i+1]
	}
	return steps
}

// replaces reports whether a step that may change something is not made but noted.
func (h *rehearsal) replaces(changes bool) bool { return h != nil && changes }

// alone reports whether a dry run maps steps one item at a time, so that the first calls are those of the first items.
// Where they call nothing, this costs nothing.
func (h *rehearsal) alone(steps []*Step) bool {
	if h == nil || len(steps) == 0 || !steps[0].Changes {
		return false
	}
	if steps[0].each != nil {
		return h.alone(steps[0].Nested[0].Steps)
	}
	return len(steps[0].Nested) == 0
}

// bind binds a step that may change something. Stages within it are bound as ever, each in its turn; a command whose
// inputs may change something is not started; a stage that changes something by itself is noted and does nothing.
func (h *rehearsal) bind(ctx context.Context, s *Step, m *Meter) (Filter, error) {
	switch {
	case s.Command != nil:
		return discard, nil
	case len(s.Nested) > 0:
		return s.Bind(ctx, h.r, m)
	}
	part := &dryPart{call: DryCall{Place: s.place, Label: s.Label.String()}, all: h.r.newSpool()}
	h.mu.Lock()
	h.parts = append(h.parts, part)
	h.mu.Unlock()
	note := func(args json.RawMessage, fails string) error { return h.note(part, args, fails) }
	if s.rehearse == nil {
		return func(ctx context.Context, in io.Reader, out io.Writer) error {
			if err := note(nil, ""); err != nil {
				return err
			}
			return discard(ctx, in, out)
		}, nil
	}
	return s.rehearse(h.r, m, note), nil
}

func discard(_ context.Context, in io.Reader, _ io.Writer) error {
	_, err := io.Copy(io.Discard, in)
	return err
}

// note counts a call that is not made, and keeps its arguments: nil where there are none. fails says why it would fail, as
// far as that is known.
func (h *rehearsal) note(p *dryPart, args json.RawMessage, fails string) error {
	if err := h.r.called(); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	p.call.Count++
	p.call.Fails = cmp.Or(p.call.Fails, fails)
	if args == nil {
		return nil
	}
	line := oneLine(args)
	if len(p.call.First) < dryCalls {
		p.call.First = append(p.call.First, bytes.Clone(line))
	}
	_, err := p.all.Write(append(line, '\n'))
	return err
}

// result says what the dry run of steps has left undone.
func (h *rehearsal) result(ctx context.Context, steps []*Step) (*DryRun, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	ran := len(h.r.rehearsed(steps))
	d := &DryRun{Before: ran, After: len(steps) - ran}
	if ran > 0 && steps[ran-1].Changes {
		d.Place, d.Label = steps[ran-1].place, steps[ran-1].Label.String()
		d.Before = d.Place.top() - 1
	}
	for _, p := range h.parts {
		if p.call.Count > int64(len(p.call.First)) && len(p.call.First) > 0 {
			shape, err := preview.Preview(ctx, p.all.Reader(), preview.Options{Window: true})
			if err != nil {
				return nil, err
			}
			p.call.Shape = shape.Text
		}
		d.Calls = append(d.Calls, p.call)
	}
	return d, nil
}

// close gives back what was kept.
func (h *rehearsal) close() {
	for _, p := range h.parts {
		p.all.Close()
	}
}
