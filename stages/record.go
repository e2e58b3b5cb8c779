package stages

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

// record keeps what the stages of a pipeline produce in one run (docs/pipeline.md, from). A nil record keeps nothing.
type record struct {
	storedRun
	resumed  *resumption // nil: the run begins anew
	prepared bool        // what the run inherits is in the record, and its claim is made: others may go on from it
}

func outputName(stage int) string { return strconv.Itoa(stage) }

// aboutName is where the description of an output is kept.
func aboutName(output string) string { return output + " about" }

// describe describes the output of a stage. Without its description data is not used: it could become other values.
func (p storedRun) describe(stage int, h *header) error {
	text, _, err := p.text(aboutName(outputName(stage)))
	switch {
	case err != nil:
		return unreadable(err)
	case text == nil:
		return p.gone()
	}
	a, rest, err := decodeAbout(text)
	switch {
	case err != nil:
		return err
	case len(rest) > 0:
		return errAbout
	}
	h.describe(a)
	return nil
}

// newRecord opens a run. Nothing is added to it after end.
func newRecord(p *Pipeline, fed, dry bool) (rec *record, end func()) {
	if p.deps.Runs == nil {
		return nil, func() {}
	}
	rec = &record{storedRun: storedRun{runs: p.deps.Runs, plan: plan{Fed: fed, DryRun: dry, Stages: p.list}}, resumed: p.resumed}
	if p.resumed != nil {
		rec.Continues, rec.Fed, rec.Shard = p.resumed.id, p.resumed.Fed, p.resumed.Shard
	}
	rec.id, end = rec.runs.Begin()
	return rec, end
}

// writePlan makes the run one that others can begin from.
func (rec *record) writePlan() {
	if rec != nil {
		rec.write(planName, rec.plan)
	}
}

// attach has links keep what they write. The output of a chain is that of its last command; a window keeps nothing,
// since its input is kept before it. A stage that changes something produces nothing in a dry run.
func (rec *record) attach(links []*link, dry bool) {
	if rec == nil {
		return
	}
	for _, l := range links {
		last := l.steps[len(l.steps)-1]
		name := outputName(last.place.top())
		switch {
		case last.isWindow() || dry && l.changes():
		case last.origin != nil && len(last.origin.replay) == 0 && rec.share(last.origin.storedRun, last.origin.stage, name):
		default:
			l.record, l.output = rec, name
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

// recordEnd keeps how a run ended, and writes into its report and its error where it is kept and how to go on from it.
func (p *Pipeline) recordEnd(r *Run, report *Report, meters []*Meter, err error, gone bool) {
	rec := r.record
	if rec == nil {
		return
	}
	if rec.prepared {
		report.Run = rec.id
	}
	var e *Error
	if err != nil {
		e = err.(*Error)
	}
	how := p.end(e, report.DryRun, meters)
	if rec.Shard != nil && e == nil {
		how.Shard = encodeReport(report.Stages[len(report.Stages)-1])
	}
	rec.write(endName, how)
	if d := report.DryRun; d != nil && d.Place != "" {
		before := d.Place.top() - 1
		d.Resume = p.recoverable(rec.storedRun, before) == before
	}
	switch {
	case e == nil || !rec.prepared:
	case gone && !rec.runs.Outlive():
		e.forgotten()
	default:
		e.Run = rec.id
		at, _ := rec.nearest(len(p.list))
		e.Resume = (passing[e.Code] || e.repeats && e.Item > 0) && !rec.DryRun && at >= 0 // items that are refused can be skipped
		if !e.Resume {
			last := len(p.list)
			if e.Place != "" {
				last = e.Place.top() - 1
			}
			e.Continue = max(0, p.recoverable(rec.storedRun, last))
		}
	}
}

// passing are the codes of failures whose cause may pass, so that the same plan can be continued.
var passing = map[Code]bool{Timeout: true, ServerUnavailable: true, Cancelled: true, LimitExceeded: true, ToolError: true}

// end says how a run ended, for the run that continues it.
func (p *Pipeline) end(e *Error, d *DryRun, meters []*Meter) end {
	how := end{Failed: e != nil}
	at := Place("")
	switch {
	case e != nil:
		at = e.Place
	case d != nil:
		at = d.Place
	}
	if at != "" {
		how.At = at.top()
		how.Stopped = []int{how.At}
	} else if e != nil {
		for _, s := range busy(meters) {
			how.Stopped = append(how.Stopped, s.place.top())
		}
	}
	return how
}

// forgotten says that one cannot go on from the run.
func (e *Error) forgotten() {
	hint := "the gateway is stopping and forgets this run: run the pipeline again when it is back"
	if len(e.Changed) > 0 {
		hint += ", after finding out what was changed (with a tool that reads), and only for what is left"
	}
	e.Hint = strings.TrimSuffix(hint+"; "+e.Hint, "; ")
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

// storedRun is a run of which outputs are kept.
type storedRun struct {
	runs Runs
	id   string
	plan
}

// plan is what is kept of the pipeline of a run.
type plan struct {
	Fed       bool   `json:"fed,omitempty"`     // it was given input of its own, which is not kept
	DryRun    bool   `json:"dry_run,omitempty"` // its calls that may change something were only shown
	Continues string `json:"continues,omitempty"`
	Stages    List   `json:"stages"`
	Shard     *shard `json:"shard,omitempty"` // it is a part of a for_each; nil: a run of its own
}

// Names of the outputs of a run, beside those of its stages.
const (
	planName = "plan" // the pipeline
	endName  = "end"  // how the run ended
)

// An end says how a run ended.
type end struct {
	Failed  bool  `json:"failed,omitempty"`
	At      int   `json:"at,omitempty"`      // the stage that failed, or before which a dry run ended; 0: it ended, or was ended from outside
	Stopped []int `json:"stopped,omitempty"` // the stages that failed or were ended

	Shard []byte `json:"shard,omitempty"` // the report on its for_each, of a shard that has succeeded
}

// findRun returns an earlier run of the caller. Another caller's run is as unknown as one that never was.
func findRun(ctx context.Context, runs Runs, id string) (storedRun, error) {
	under, err := runs.Fetch(ctx, id)
	switch {
	case err != nil:
		return storedRun{}, storeError(err)
	case under:
		return storedRun{}, stillRunning(id)
	}
	return keptRun(runs, id)
}

// stillRunning refuses a run that has not ended.
func stillRunning(id string) *Error {
	return fielded("run", Errorf(InvalidPipeline, "wait until it has ended", "run %s is still running", id))
}

// storeError is the failure of the store that gateways share. Its operator has the details, which name places that are none of the
// caller's concern.
func storeError(err error) *Error {
	return &Error{
		Code: ServerUnavailable, Err: storeFailure{err}, Hint: "try again later, or run the pipeline again, without from",
		Msg: "earlier runs cannot be looked up now, in the store that gateways share",
	}
}

// keptRun returns a run of the caller that is here.
func keptRun(runs Runs, id string) (storedRun, error) {
	p := storedRun{runs: runs, id: id}
	found, incomplete, err := p.read(planName, &p.plan)
	switch {
	case err != nil:
		return storedRun{}, Errorf(Internal, "run the pipeline again, without from", "what is kept of run %s cannot be read: %w", id, err)
	case incomplete != "":
		return storedRun{}, fielded("run", Errorf(UnknownRun, "run the pipeline again, without from", "run %s was not kept: %w", id, Incomplete(incomplete)))
	case !found:
		return storedRun{}, fielded("run", Errorf(UnknownRun, "runs are kept for some time after their last use; run the pipeline again, without from",
			"there is no run %s", texts.Quote(id)))
	}
	return p, nil
}

// read decodes an output that write has written.
func (p storedRun) read(name string, to any) (found bool, incomplete string, err error) {
	text, incomplete, err := p.text(name)
	if err == nil && text != nil {
		err = json.Unmarshal(text, to)
	}
	return text != nil, incomplete, err
}

// text returns an output, nil if it is not kept.
func (p storedRun) text(name string) (text []byte, incomplete string, err error) {
	data, incomplete, release := p.runs.Open(p.id, name)
	defer release()
	if data == nil {
		return nil, incomplete, nil
	}
	text, err = io.ReadAll(data)
	return text, "", err
}

// write keeps a value as an output of a run that is under way.
func (p storedRun) write(name string, value any) {
	out, end := p.runs.Create(p.id, name, false)
	text, err := json.Marshal(value)
	if err != nil {
		end("it cannot be written down")
		return
	}
	_, _ = out.Write(text) // it does not fail
	end("")
}

// gone is the failure of a run that was there when the pipeline was checked.
func (p storedRun) gone() *Error {
	return Errorf(UnknownRun, "run its stages again", "run %s was evicted after this pipeline was checked", p.id)
}

// whole reports whether the output of a stage and its description are kept, or why they are not. Before the first stage there is nothing.
func (p storedRun) whole(stage int) (bool, string) {
	if stage == 0 {
		return !p.Fed, "the input of the run is not kept"
	}
	for _, name := range []string{outputName(stage), aboutName(outputName(stage))} {
		data, incomplete, release := p.runs.Open(p.id, name)
		release()
		if data == nil && incomplete == "" {
			incomplete = "it is not kept by itself"
		}
		if incomplete != "" {
			return false, incomplete
		}
	}
	return true, ""
}

// nearest returns the last stage up to the given one whose output is kept, 0 if there is none, -1 if the run was given
// input, which is not kept. why says it of the given stage.
func (p storedRun) nearest(stage int) (at int, why string) {
	for at = stage; at >= 0; at-- {
		whole, incomplete := p.whole(at)
		if whole {
			break
		}
		why = cmp.Or(why, incomplete)
	}
	return at, why
}

// source is where the data of a from stage comes from: a stage whose output is kept, and what is run on it.
type source struct {
	storedRun
	stage  int     // the stage whose output is kept
	replay []*Step // what is run on it
}

// source finds the data of a stage: its output, or that of an earlier stage, if what stands between only depends on
// its input.
func (p storedRun) source(ctx context.Context, s Scope, stage int) (*source, error) {
	from, why := p.nearest(stage)
	if from < 0 {
		return nil, p.refuse(stage, why)
	}
	src := &source{storedRun: p, stage: from}
	if from == stage {
		return src, nil
	}
	var between List
	for i, raw := range p.Stages[from:stage] {
		kind, err := kindOf(raw, nil)
		if err != nil {
			return nil, err
		}
		if !kind.Window {
			between = append(between, raw)
		} else if from+i+1 == len(p.Stages) {
			return nil, p.refuse(stage, why) // it was no window but the output
		}
	}
	steps, err := s.List(ctx, between, InInput, "", from > 0)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(steps, func(s *Step) bool { return !s.Replayable }) {
		return nil, p.refuse(stage, why)
	}
	src.replay = steps
	return src, nil
}

// refuse says why one cannot begin from a stage, and from which one can.
func (p storedRun) refuse(stage int, why string) *Error {
	hint := "run the pipeline again, without from"
	if at, _ := p.nearest(stage - 1); at > 0 {
		hint = fmt.Sprintf(`begin from {"type": "from", "run": %q, "stage": %d}, and give the stages behind it; or continue that run: %s`, p.id, at, ResumeStage(p.id))
	}
	return fielded("stage", Errorf(InvalidPipeline, hint, "the output of stage %d of that run is incomplete: %w", stage, Incomplete(why)))
}

// Incomplete is the cause of an error that tells that an output is not there: why it was not kept.
type Incomplete string

// Error implements error.
func (i Incomplete) Error() string { return string(i) }

// OpenOutput returns what a stage of an earlier run produced, or of the last run that continues it, to be released after use; stage 0
// is the last. The error is an *Error: UNKNOWN_RUN, or why the output is not there.
func OpenOutput(ctx context.Context, runs Runs, run string, stage int) (data *io.SectionReader, release func(), err error) {
	if runs == nil {
		return nil, nil, Errorf(UnknownRun, "", "nothing is kept here of earlier runs")
	}
	p, err := findRun(ctx, runs, run)
	if err != nil {
		return nil, nil, err
	}
	if stage > len(p.Stages) {
		return nil, nil, Errorf(InvalidArguments, "", "there is no stage %d: run %s has %s", stage, run, texts.Count(len(p.Stages), "stage"))
	}
	stage = cmp.Or(stage, len(p.Stages))
	if p, err = p.continued(ctx, stage); err != nil {
		return nil, nil, err
	}
	if whole, why := p.whole(stage); !whole {
		return nil, nil, p.refuse(stage, why)
	}
	data, _, release = runs.Open(p.id, outputName(stage))
	if data == nil { // it has just been evicted
		return nil, nil, Errorf(UnknownRun, "", "there is no run %s", texts.Quote(run))
	}
	return data, release, nil
}

// KeptSizes returns the bytes of the kept outputs of an ended run, by their stages.
func KeptSizes(ctx context.Context, runs Runs, run string) map[Place]int64 {
	p, err := findRun(ctx, runs, run)
	if err != nil {
		return nil
	}
	sizes := map[Place]int64{}
	for stage := range p.Stages {
		name := outputName(stage + 1)
		data, _, release := runs.Open(run, name)
		if data != nil {
			sizes[Place(name)] = data.Size()
		}
		release()
	}
	return sizes
}

// Runs keeps what the runs of one caller produce, in named outputs. It is implemented by *runs.Caller. All methods may
// be called concurrently.
type Runs interface {
	// Begin opens a run and returns its id, which nobody can guess. After end nothing is added to the run.
	Begin() (id string, end func())

	// Create adds an output to a run that is under way. Writing to it never fails and takes hardly any time; what
	// cannot be kept is dropped. end says that the output is whole, or why it is incomplete: then it is dropped too,
	// but for its beginning where partial is set, which consists of whole writes.
	Create(run, name string, partial bool) (out io.Writer, end func(incomplete string))

	// Share gives a run that is under way an output of an earlier one, and reports whether it is there.
	Share(run, name, to, as string) bool

	// Claim makes claimant the only run that continues a run, until release is called. It returns the holder of the claim:
	// claimant, or the run that claimed it first, or the run itself while it is under way; empty if no run continues it, or there
	// is no such run. An empty claimant claims nothing.
	Claim(ctx context.Context, run, claimant string) (holder string, release func(), err error)

	// Fetch brings a run here that another gateway has kept, so that the other methods find it, and reports whether it is
	// still under way there.
	Fetch(ctx context.Context, run string) (running bool, err error)

	// Flush returns when what was written to a run under way is where it outlives this process, if runs do. After an error
	// another gateway may continue the run without it.
	Flush(ctx context.Context, run string) error

	// Publish returns when a run that has ended is where other gateways find it.
	Publish(ctx context.Context, run string) error

	// Forget frees what is here of a run that was published.
	Forget(run string)

	// Outlive reports whether runs outlive this process.
	Outlive() bool

	// Open returns an output, to be released after use. Without data it was not kept, and incomplete says why;
	// with neither, the caller has no such run, or the run no such output.
	Open(run, name string) (data *io.SectionReader, incomplete string, release func())
}

// PlanOf returns the stages of an earlier run of the caller, as they were sent; those of the whole plan for a run that was
// continued. The error is an *Error: UNKNOWN_RUN, or the reason that the plan cannot be run again by itself.
func PlanOf(ctx context.Context, runs Runs, run string) (List, error) {
	if runs == nil {
		return nil, Errorf(UnknownRun, "", "nothing is kept here of earlier runs")
	}
	p, err := findRun(ctx, runs, run)
	switch {
	case err != nil:
		return nil, err
	case p.Fed:
		return nil, Errorf(InvalidPipeline, "begin the pipeline with a stage that makes its input", "run %s was given input of its own, which is not a part of its plan", run)
	}
	return p.Stages, nil
}
