package stages

import (
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
)

// record keeps what the stages of a pipeline produce in one run (pipeline.md §7). A nil record keeps nothing.
type record struct {
	storedRun
	resumed *resumption // nil: the run begins anew
	end     func()
}

func outputName(stage int) string { return strconv.Itoa(stage) }

// aboutName is where the description of an output is kept.
func aboutName(output string) string { return output + " about" }

// describe keeps the description of an output.
func (rec *record) describe(output string, a about) {
	out, end := rec.runs.Create(rec.id, aboutName(output), false)
	_, _ = out.Write(a.encode()) // it does not fail
	end("")
}

// describe describes the output of a stage. Without its description data is not used: it could become other values.
func (p storedRun) describe(stage int, h *header) error {
	data, _, release := p.runs.Open(p.id, aboutName(outputName(stage)))
	defer release()
	if data == nil {
		return p.gone()
	}
	text, err := io.ReadAll(data)
	if err != nil {
		return unreadable(err)
	}
	a, _, err := decodeAbout(text)
	h.describe(a)
	return err
}

// newRecord opens a run.
func newRecord(p *Pipeline, fed, dry bool) *record {
	if p.deps.Runs == nil {
		return nil
	}
	rec := &record{storedRun: storedRun{runs: p.deps.Runs, plan: plan{Fed: fed, DryRun: dry, Stages: p.list}}, resumed: p.resumed}
	if p.resumed != nil {
		rec.Continues, rec.Fed = p.resumed.id, p.resumed.Fed
	}
	rec.id, rec.end = rec.runs.Begin()
	rec.write(planName, rec.plan)
	return rec
}

// closeRecord ends the record and the logs of the items of its run.
func (r *Run) closeRecord() {
	for _, l := range r.logs {
		l.close()
	}
	r.logs = nil
	if r.record != nil {
		r.record.end()
	}
}

// attach has links keep what they write. The output of a chain is that of its last command; a window keeps nothing,
// since what passes it is kept before. What stands in a dry run for a stage that changes something produces nothing.
func (rec *record) attach(links []*link, dry bool) {
	if rec == nil {
		return
	}
	for _, l := range links {
		last := l.steps[len(l.steps)-1]
		name := outputName(last.place.top())
		switch {
		case last.window || dry && l.effect() == Changes:
		case last.origin != nil && len(last.origin.replay) == 0 && rec.share(last.origin.storedRun, last.origin.stage, name):
		default:
			l.tape = func(out io.Writer) *tape {
				t := &tape{out: out}
				t.kept, t.end = rec.runs.Create(rec.id, name, false)
				t.describe = func(a about) { rec.describe(name, a) }
				return t
			}
		}
	}
	if rec.resumed == nil {
		return
	}
	for stage := 1; stage < rec.resumed.from; stage++ {
		rec.share(rec.resumed.storedRun, stage, outputName(stage))
	}
}

// share gives the run the output of a stage of an earlier run and its description, and reports whether they are there.
func (rec *record) share(from storedRun, stage int, as string) bool {
	return rec.runs.Share(from.id, aboutName(outputName(stage)), rec.id, aboutName(as)) &&
		rec.runs.Share(from.id, outputName(stage), rec.id, as)
}

// tape keeps what is written through it.
type tape struct {
	out   io.Writer
	kept  io.Writer
	end   func(incomplete string)
	whole bool  // what was or is now being written is all
	cut   error // why out takes no more

	describe func(about) // keeps the description of what is kept
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

// keepRest keeps what is left of all that out was to get, which takes no more.
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
		t.describe(headersOf(ctx).out.get())
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

// recoverable returns the last stage up to the given one whose output is there, or can be made again without calling
// anything: 0 where only the beginning can, -1 where not even that.
func (p *Pipeline) recoverable(rec storedRun, stage int) (last int) {
	there := !rec.Fed
	if !there {
		last = -1
	}
	for at := 1; at <= stage; at++ {
		i := slices.IndexFunc(p.steps, func(s *Step) bool { return s.place.top() == at })
		whole, _ := rec.whole(at)
		if there = whole || there && i >= 0 && p.steps[i].Replayable; there {
			last = at
		}
	}
	return last
}
