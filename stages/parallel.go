package stages

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"sync"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

// ParallelStage runs named branches at the same time on the same input (docs/pipeline.md, parallel).
type ParallelStage struct {
	Branches Branches `json:"branches" jsonschema_description:"Stages by branch name. The output is one JSON object with a key per branch."`
}

// Compile compiles the stages of every branch.
func (p *ParallelStage) Compile(ctx context.Context, s Scope) (*Step, error) {
	step := &Step{Traits: Traits{Blocking: true}, Does: "runs its branches at the same time on the same input", Expects: "what the branches expect"}
	var errs []error
	for _, b := range p.Branches {
		if b.Name == "" {
			errs = append(errs, fielded("branches", Errorf(InvalidPipeline, "give every branch a name", "a branch has an empty name")))
			continue
		}
		steps, err := s.List(ctx, b.Stages, InBranch, b.Name, s.Fed)
		errs = append(errs, err)
		step.Nested = append(step.Nested, Nested{Branch: b.Name, Steps: steps})
		step.Changes = step.Changes || changing(steps)
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

// A written is what a branch has written in one call.
type written struct {
	*spool
	header header
}

// runBranches copies in to every branch, keeps what each writes, and writes one object when all have succeeded.
func runBranches(ctx context.Context, r *Run, branches []branch, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	around := headersOf(ctx)
	around.out.describe(about{Kind: Values})
	results := make([]written, len(branches))
	feeds := make([]*io.PipeWriter, len(branches))
	errs := make([]error, len(branches))
	var wg sync.WaitGroup
	for i, b := range branches {
		results[i].spool = r.newSpool()
		defer results[i].Close()
		pr, pw := io.Pipe()
		feeds[i] = pw
		defer context.AfterFunc(ctx, func() { pw.CloseWithError(errBroken) })()
		wg.Go(func() {
			defer recovered(&errs[i])
			own := headers{in: around.in, out: &results[i].header, item: around.item}
			errs[i] = b.filter(withHeaders(ctx, own), pr, results[i].spool)
			pr.CloseWithError(errStopped)
			if errs[i] != nil && !echo(errs[i]) {
				cancel(errBroken)
			}
		})
	}
	defer context.AfterFunc(ctx, func() { stopReading(in) })()
	err := fanOut(in, feeds)
	wg.Wait()
	if cause := firstFailure(ctx, err, errs); cause != nil {
		return cause
	}
	return writeBranches(r.deps.Limits, branches, results, out)
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
func writeBranches(limits Limits, branches []branch, results []written, out io.Writer) error {
	w := bufio.NewWriter(out) // keeps its first error
	w.WriteByte('{')
	for i, b := range branches {
		if i > 0 {
			w.WriteString(",\n")
		}
		w.Write(append(appendString(nil, []byte(b.name)), ':'))
		err := results[i].writeValue(limits.Item, w)
		if e, ok := errors.AsType[*Error](err); ok && e.Code == LimitExceeded {
			return tooLongBranch(b.name, limits.Item)
		} else if err != nil {
			return err
		}
	}
	w.WriteString("}\n")
	return w.Flush()
}

func tooLongBranch(name string, max int64) error {
	return OverLimit("item", "reduce the output of the branch, or let it write several smaller values",
		"branch %s gives a JSON value that is longer than %s", texts.Quote(name), texts.Bytes(max))
}

// writeValue writes what a branch has written as one JSON value, an item at a time.
func (b *written) writeValue(max int64, w *bufio.Writer) error {
	a := b.header.get()
	switch {
	case len(a.Blocks) > 1:
		return b.writeBlocks(a, max, w)
	case a.Kind == ExactText:
		return b.writeString(false, w)
	case a.Kind == CommandText && b.size == 0:
		a.Kind = Values // nothing was written
	}
	count, err := copyValues(b.Reader(), max, "", io.Discard)
	_, text := errors.AsType[*notJSON](err)
	switch {
	case text || err == nil && a.Kind != Values && (count != 1 || !beginsContainer(b.Reader())):
		return b.writeString(a.Kind != ToolText, w)
	case err != nil:
		return err
	case count == 0:
		_, err = w.Write(null)
		return err
	case count == 1:
		_, err = copyValues(b.Reader(), max, "", w)
		return err
	}
	w.WriteByte('[')
	if _, err = copyValues(b.Reader(), max, ",\n", w); err == nil {
		err = w.WriteByte(']')
	}
	return err
}

// beginsContainer reports whether the first byte of JSON opens an object or an array.
func beginsContainer(r io.Reader) bool {
	c, err := newItems(r, 0, nil).skipBlank()
	return err == nil && (c == '{' || c == '[')
}

// writeBlocks writes content blocks as one array.
func (b *written) writeBlocks(a about, max int64, w *bufio.Writer) error {
	if b.size > max {
		return tooLongBranch("", max)
	}
	data, err := io.ReadAll(b.Reader())
	if err == nil {
		_, err = w.Write(a.array(data))
	}
	return err
}

// copyValues writes the JSON values of r with sep between them and counts them.
func copyValues(r io.Reader, max int64, sep string, out io.Writer) (int, error) {
	s := newItems(r, max, nil)
	s.mode = (*items).topValue
	for n := 0; ; n++ {
		it, err := s.next()
		if err == io.EOF {
			return n, nil
		}
		if err == nil && n > 0 {
			_, err = io.WriteString(out, sep)
		}
		if err == nil {
			_, err = out.Write(it.data)
		}
		if err != nil {
			return n, err
		}
	}
}

// topValue reads one of the JSON values that follow each other, and nothing else.
func (s *items) topValue() (element, error) {
	if _, err := s.skipBlank(); err != nil {
		return element{}, err
	}
	return s.readValue()
}

// writeString writes all of it as one JSON string, a piece at a time; without the newline at its end if chomp is set.
func (b *written) writeString(chomp bool, w *bufio.Writer) error {
	w.WriteByte('"')
	buf := make([]byte, 32<<10)
	for r, left := b.Reader(), b.size; left > 0; {
		n, err := io.ReadFull(r, buf[:min(int64(len(buf)), left)])
		if err != nil {
			return err
		}
		piece := buf[:n]
		if left -= int64(n); left == 0 && chomp {
			piece = bytes.TrimSuffix(piece, []byte("\n"))
		}
		escaped := appendString(nil, piece)
		w.Write(escaped[1 : len(escaped)-1])
	}
	return w.WriteByte('"')
}
