package stages

import (
	"context"
	"errors"
	"io"
	"sync"
)

// ParallelStage runs named branches at the same time on the same input (pipeline.md §2).
type ParallelStage struct {
	Branches Branches `json:"branches" jsonschema_description:"Stages by branch name. The output is one JSON object with a key per branch."`
}

// Compile compiles the stages of every branch.
func (p *ParallelStage) Compile(ctx context.Context, s Scope) (*Step, error) {
	step := &Step{Label: "parallel", Does: "runs its branches at the same time on the same input", Expects: "whatever the branches expect"}
	var errs []error
	for _, b := range p.Branches {
		if b.Name == "" {
			errs = append(errs, fielded("branches", Errorf(InvalidPipeline, "give every branch a name", "a branch has an empty name")))
			continue
		}
		steps, err := s.List(ctx, b.Stages, InBranch, b.Name, s.Fed)
		errs = append(errs, err)
		step.Nested = append(step.Nested, Nested{Branch: b.Name, Steps: steps})
		step.Effect = max(step.Effect, effectOf(steps))
		step.chains += chainsOf(steps)
	}
	step.Bind = func(ctx context.Context, r *Run, m *Meter) (Filter, error) {
		return bindBranches(ctx, r, m, step.Nested)
	}
	return step, errors.Join(errs...)
}

func bindBranches(ctx context.Context, r *Run, m *Meter, nested []Nested) (Filter, error) {
	branches := make([]branch, len(nested))
	for i, n := range nested {
		filter, meters, err := r.bind(ctx, n.Steps, true)
		if err != nil {
			return nil, err
		}
		m.nested = append(m.nested, meters...)
		branches[i] = branch{name: n.Branch, filter: filter}
	}
	return func(ctx context.Context, in io.Reader, out io.Writer) error {
		return runBranches(ctx, r, branches, in, out)
	}, nil
}

type branch struct {
	name   string
	filter Filter
}

// runBranches copies in to every branch, keeps what each writes, and writes one object when all have succeeded.
func runBranches(ctx context.Context, r *Run, branches []branch, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	spools := make([]*spool, len(branches))
	feeds := make([]*io.PipeWriter, len(branches))
	errs := make([]error, len(branches))
	var wg sync.WaitGroup
	for i, b := range branches {
		spools[i] = r.newSpool()
		defer spools[i].Close()
		pr, pw := io.Pipe()
		feeds[i] = pw
		stop := context.AfterFunc(ctx, func() { pw.CloseWithError(errBroken) })
		defer stop()
		wg.Go(func() {
			defer recovered(&errs[i])
			errs[i] = b.filter(ctx, pr, spools[i])
			pr.CloseWithError(errStopped)
			if errs[i] != nil && !echo(errs[i]) {
				cancel(errBroken)
			}
		})
	}
	stop := context.AfterFunc(ctx, func() { stopReading(in) })
	defer stop()
	err := fanOut(in, feeds)
	wg.Wait()
	if cause := firstFailure(ctx, err, errs); cause != nil {
		return cause
	}
	return writeBranches(r.deps.Limits, branches, spools, out)
}

// fanOut copies in to all feeds and closes them. A feed whose branch has stopped reading is left out from then on;
// when none is left, reading stops too.
func fanOut(in io.Reader, feeds []*io.PipeWriter) error {
	open := append([]*io.PipeWriter(nil), feeds...)
	buf := make([]byte, 32<<10)
	for len(open) > 0 {
		n, err := in.Read(buf)
		kept := open[:0]
		for _, f := range open {
			if n > 0 { // a write of nothing would wait for a reader too
				if _, werr := f.Write(buf[:n]); werr != nil {
					continue
				}
			}
			kept = append(kept, f)
		}
		open = kept
		if err != nil {
			if err == io.EOF {
				err = nil
			}
			for _, f := range open {
				f.CloseWithError(err)
			}
			return err
		}
	}
	return nil
}

// firstFailure returns what ended the branches, if they did not all succeed.
func firstFailure(ctx context.Context, fed error, errs []error) error {
	for _, err := range errs {
		if err != nil && !echo(err) {
			return err
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return fed
}

// writeBranches writes one JSON object: for each branch the value that it wrote, an array of several, null for none,
// a string for text.
func writeBranches(limits Limits, branches []branch, spools []*spool, out io.Writer) error {
	w := &textWriter{w: out}
	w.text("{")
	for i, b := range branches {
		if i > 0 {
			w.text(",\n")
		}
		w.text(string(appendString(nil, []byte(b.name))) + ":")
		if w.err == nil {
			w.err = ofBranch(b.name, limits, writeValue(spools[i], limits.Item, w))
		}
	}
	w.text("}\n")
	return w.err
}

// ofBranch says of a value that is too long where it comes from.
func ofBranch(name string, limits Limits, err error) error {
	var e *Error
	if errors.As(err, &e) && e.Code == LimitExceeded {
		return OverLimit("item", "reduce the output of the branch, or let it write several smaller values",
			"branch %s gives a JSON value that is longer than %s", quoted(name), size(limits.Item))
	}
	return err
}

// writeValue writes what a spool holds as one JSON value, an item at a time.
func writeValue(s *spool, max int64, out io.Writer) error {
	count, text, err := surveyValues(s.Reader(), max)
	switch {
	case err != nil:
		return err
	case text:
		return writeString(s, out)
	}
	w := &textWriter{w: out}
	switch count {
	case 0:
		w.text("null")
		return w.err
	case 1:
		_, err := copyValues(s.Reader(), max, "", w)
		return err
	}
	w.text("[")
	if _, err := copyValues(s.Reader(), max, ",\n", w); err != nil {
		return err
	}
	w.text("]")
	return w.err
}

// textWriter writes until the first error and keeps it.
type textWriter struct {
	w   io.Writer
	err error
}

func (t *textWriter) Write(p []byte) (int, error) {
	if t.err != nil {
		return 0, t.err
	}
	n, err := t.w.Write(p)
	t.err = err
	return n, err
}

func (t *textWriter) text(s string) { io.WriteString(t, s) }
