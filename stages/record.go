package stages

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
)

// record keeps what the stages of a pipeline produce in one run (pipeline.md §7). A nil record keeps nothing.
type record struct {
	past
	steps []*Step // those of the pipeline
	end   func()
}

// Names of the outputs of a run.
const planName = "plan" // the stages, as the agent wrote them

func outputName(stage int) string { return strconv.Itoa(stage) }

// newRecord opens a run.
func newRecord(runs Runs, p plan, steps []*Step) *record {
	if runs == nil {
		return nil
	}
	rec := &record{past: past{runs: runs, plan: p}, steps: steps}
	rec.id, rec.end = runs.Begin()
	out, end := runs.Create(rec.id, planName, false)
	text, err := json.Marshal(p)
	if err == nil {
		_, err = out.Write(text)
	}
	if err != nil {
		end("the pipeline cannot be written down")
		return rec
	}
	end("")
	return rec
}

// number returns the number of a stage of the pipeline, 0 for a stage within another or where nothing is kept.
func (rec *record) number(s *Step) int {
	if rec == nil {
		return 0
	}
	return slices.Index(rec.steps, s) + 1
}

// closeLogs ends the logs of the run's for_each stages.
func (r *Run) closeLogs() {
	for _, l := range r.logs {
		l.close()
	}
}

// closeRecord ends the record and the logs of its run.
func (r *Run) closeRecord() {
	r.closeLogs()
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
	stage := 0
	for _, l := range links {
		stage += len(l.steps)
		name, last := outputName(stage), l.steps[len(l.steps)-1]
		switch {
		case last.window || dry && l.effect() == Changes:
		case last.from != nil && rec.runs.Share(last.from.id, outputName(last.from.stage), rec.id, name):
		default:
			l.tape = func(out io.Writer) *tape {
				t := &tape{out: out}
				t.kept, t.end = rec.runs.Create(rec.id, name, false)
				return t
			}
		}
	}
}

// tape keeps what is written through it.
type tape struct {
	out   io.Writer
	kept  io.Writer
	end   func(incomplete string)
	whole bool  // what was or is now being written is all
	cut   error // why out takes no more
}

func (t *tape) Write(p []byte) (int, error) {
	_, _ = t.kept.Write(p) // it does not fail
	n, err := t.out.Write(p)
	if err != nil {
		t.cut = err
	}
	return n, err
}

// lastWrite says that the next write to out is the last one: it is whole, even if nobody wants all of it.
func lastWrite(out io.Writer) {
	if w, ok := out.(interface{ lastWrite() }); ok {
		w.lastWrite()
	}
}

func (t *tape) lastWrite() { t.whole = true }

// close ends the tape of a filter that has returned err.
func (t *tape) close(ctx context.Context, err error) {
	if err == nil {
		err = t.cut
	}
	if err == nil || t.whole {
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

// continueFrom returns the last stage before the one that failed whose output is there, or can be made again without
// calling anything; a for_each that only reads may be resumed after the stages before it have read again. 0: none, or
// none behind which nothing would be repeated that may have taken effect: then standing says so. Where the run was
// ended from outside, busy are the steps that had not ended: made again, they would take as long.
func (p *Pipeline) continueFrom(rec past, failed Place, list []taken, busy []*Step) (stage int, standing string) {
	first, _, _ := strings.Cut(string(failed), ".")
	stage, err := strconv.Atoi(first)
	if err != nil || stage > len(p.steps) {
		stage = len(p.steps) + 1
	}
	for ; stage > 0; stage-- {
		if i := slices.IndexFunc(list, func(t taken) bool { return t.Stage == stage }); i >= 0 {
			return 0, rec.standing(list[i])
		}
		if stage > 1 && p.recoverable(rec, stage-1, busy) {
			return stage - 1, ""
		}
	}
	return 0, ""
}

func (p *Pipeline) recoverable(rec past, stage int, busy []*Step) bool {
	resumes := stage < len(p.steps) && isEach(p.list[stage]) && p.steps[stage].Effect == ReadOnly
	for at := stage; at > 0; at-- {
		if whole, _ := rec.whole(at); whole {
			return true
		}
		s := p.steps[at-1]
		if again := s.replays && !slices.Contains(busy, s); !again && !(resumes && s.Effect == ReadOnly) {
			return false
		}
	}
	return !rec.Fed
}
