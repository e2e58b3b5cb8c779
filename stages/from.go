package stages

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// FromStage begins with what a stage of an earlier run produced, or continues that run (docs/pipeline.md, from).
type FromStage struct {
	Run    string `json:"run" jsonschema:"minLength=1" jsonschema_description:"Id of an earlier run, as replies name it."`
	Stage  int    `json:"stage,omitempty" jsonschema:"minimum=1" jsonschema_description:"Its stage whose output is wanted; default: the last."`
	Resume bool   `json:"resume,omitempty" jsonschema_description:"As the only stage: continue the plan of that run where it stopped."`
	Overrides
}

// Compile checks that the run is kept and that the stage's output is whole, or can be made again.
func (f *FromStage) Compile(ctx context.Context, s Scope) (*Step, error) {
	if err := missing("run", f.Run); err != nil {
		return nil, err
	}
	switch {
	case s.Fed:
		return nil, Errorf(InvalidPipeline, `make it the first stage; to join it with other data, make it an input of a command: "inputs": {"b": [{"type": "from", ...}]}`,
			"from would drop the data that flows into it: it may only be the first stage")
	case s.Runs == nil:
		return nil, fielded("run", Errorf(UnknownRun, "give the stages themselves; a gateway (mcsh serve) keeps runs for a while",
			"nothing is kept here of earlier runs"))
	case f.Resume:
		return f.resume(ctx, s)
	case f.Overrides != Overrides{}:
		return nil, Errorf(InvalidPipeline, `add "resume": true, or give them to a for_each`, "concurrency, on_error and retries have no meaning here without resume")
	}
	run, err := findRun(ctx, s.Runs, f.Run)
	if err != nil {
		return nil, err
	}
	stage := cmp.Or(f.Stage, len(run.Stages))
	if stage < 0 || stage > len(run.Stages) || stage == 0 {
		return nil, fielded("stage", Errorf(InvalidPipeline, "leave stage out for the last one",
			"that run has %d stages, there is no stage %d", len(run.Stages), stage))
	}
	if run, err = run.continued(ctx, stage); err != nil {
		return nil, err
	}
	src, err := run.source(ctx, s, stage)
	if err != nil {
		return nil, err
	}
	return fromStep(src, stage, s.label.Kind), nil
}

// continued returns the run if it has the output of a stage, else the last one that continues it.
func (p storedRun) continued(ctx context.Context, stage int) (storedRun, error) {
	if whole, _ := p.whole(stage); whole {
		return p, nil
	}
	last, err := lastOf(ctx, p.runs, p.id)
	if err != nil || last == p.id {
		return p, nil // its own output is why the stage is refused
	}
	return findRun(ctx, p.runs, last)
}

func fromStep(src *source, stage int, kind string) *Step {
	step := &Step{
		Label: Label{Kind: kind, Name: fmt.Sprintf("stage %d", stage)}, Expects: "nothing", Traits: Traits{Replayable: true}, origin: src,
		Does: fmt.Sprintf("begins with what stage %d of run %s produced", stage, src.id),
	}
	if len(src.replay) == 0 {
		step.Bind = func(context.Context, *Run, *Meter) (Filter, error) { return src.filter(nil), nil }
		return step
	}
	step.Does += fmt.Sprintf(", made again from the output of its stage %d", src.stage)
	if src.stage == 0 {
		step.Does = fmt.Sprintf("runs the first stages of run %s again", src.id)
	}
	step.Nested = []Nested{{Steps: src.replay}}
	step.Bind = func(ctx context.Context, r *Run, m *Meter) (Filter, error) {
		replay, meters, err := r.bind(ctx, src.replay, true)
		m.nested = meters
		return src.filter(replay), err
	}
	return step
}

// filter writes what is kept, as replay makes it if there is one.
func (src *source) filter(replay Filter) Filter {
	return func(ctx context.Context, _ io.Reader, out io.Writer) error {
		var in io.Reader = bytes.NewReader(nil)
		h := headersOf(ctx)
		h.in = new(header)
		if src.stage > 0 {
			if err := src.describe(src.stage, h.in); err != nil {
				return err
			}
			data, _, release := src.runs.Open(src.id, outputName(src.stage))
			defer release()
			if data == nil {
				return src.gone()
			}
			in = data
		}
		if replay != nil {
			return replay(withHeaders(ctx, h), in, out)
		}
		h.out.copyOf(h.in)
		_, err := io.Copy(out, in)
		return err
	}
}

// resumption is a run that is continued.
type resumption struct {
	storedRun
	from  int          // the last of its stages whose output is kept; 0: none
	steps []*Step      // those behind it, after one that begins with that output
	shard *StageReport // of a shard that has succeeded: nothing runs again
}

// Overrides are the choices of a for_each that may change when its run is continued.
type Overrides struct {
	Concurrency int    `json:"concurrency,omitempty" jsonschema:"minimum=1,maximum=64" jsonschema_description:"With resume: of the for_each that stopped."`
	OnError     string `json:"on_error,omitempty" jsonschema:"enum=fail,enum=skip,enum=collect" jsonschema_description:"With resume: of the for_each that stopped."`
	Retries     int    `json:"retries,omitempty" jsonschema:"minimum=0,maximum=100" jsonschema_description:"With resume: of the for_each that stopped."`
}

// ResumeStage is the stage that continues a run, with more members.
func ResumeStage(run string, more ...string) string {
	return fmt.Sprintf(`{%s}`, strings.Join(append([]string{fmt.Sprintf(`"type": "from", "run": %q, "resume": true`, run)}, more...), ", "))
}

// ResumeStage is the stage that continues a run with these choices.
func (o Overrides) ResumeStage(run string) string {
	text, _ := json.Marshal(o) // it has only numbers and strings
	if more := string(text[1 : len(text)-1]); more != "" {
		return ResumeStage(run, more)
	}
	return ResumeStage(run)
}

// resume compiles the stored plan of a run again, from the stage where it stopped.
func (f *FromStage) resume(ctx context.Context, s Scope) (*Step, error) {
	switch {
	case f.Stage != 0:
		return nil, fielded("stage", Errorf(InvalidPipeline, "leave stage out, or resume", "resume continues where the run stopped, and stage names another place"))
	case s.ListKind != AtTop || !s.Last:
		return nil, fielded("resume", Errorf(InvalidPipeline, "send "+ResumeStage(f.Run)+" as the only stage; for other stages behind what the run has produced, use from with stage",
			"resume continues the stored plan of a run, and must be the only stage"))
	}
	run, err := findRun(ctx, s.Runs, f.Run)
	if err != nil {
		return nil, err
	}
	how, err := run.howEnded()
	if err != nil {
		return nil, unreadable(err)
	}
	if err := run.free(ctx); err != nil {
		return nil, err
	}
	r := &resumption{storedRun: run}
	if r.shard, err = decodeReport(how.Shard); err != nil {
		return nil, unreadable(err)
	}
	r.Stages, err = run.overridden(f.Overrides, how)
	if err != nil {
		return nil, err
	}
	if err := r.compile(ctx, s, how); err != nil {
		return nil, err
	}
	if err := r.shown(how); err != nil {
		return nil, err
	}
	s.c.resumed = r
	return new(Step), nil
}

// howEnded says how the run ended. One whose gateway has died stopped at every stage that has no output.
func (p storedRun) howEnded() (how end, err error) {
	found, _, err := p.read(endName, &how)
	if found || err != nil {
		return how, err
	}
	how.Failed = true
	for stage := range p.Stages {
		if whole, _ := p.whole(stage + 1); !whole {
			how.Stopped = append(how.Stopped, stage+1)
		}
	}
	return how, nil
}

// free refuses a run that cannot be continued: it has not ended, or another continues it.
func (p storedRun) free(ctx context.Context) error {
	holder, _, err := p.runs.Claim(ctx, p.id, "")
	switch {
	case err != nil:
		return storeError(err)
	case holder == "":
		return nil
	case holder == p.id:
		return stillRunning(p.id)
	}
	if last, err := lastOf(ctx, p.runs, holder); err == nil {
		holder = last
	}
	return p.taken(holder)
}

// taken refuses a run that another one continues.
func (p storedRun) taken(holder string) error {
	return Errorf(InvalidPipeline, "when that run has ended, continue it instead: "+ResumeStage(holder), "run %s is continued by run %s already", p.id, holder)
}

// overridden returns the stages of a run, with other choices for the for_each that stopped.
func (p storedRun) overridden(o Overrides, how end) (List, error) {
	if o == (Overrides{}) {
		return p.Stages, nil
	}
	fix, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	list, changed := append(List(nil), p.Stages...), false
	for _, stage := range how.Stopped {
		if stage > 0 && mapsItems(list[stage-1]) {
			list[stage-1], changed = completed(list[stage-1], fix), true
		}
	}
	if !changed && p.Shard == nil { // the run that the shard belongs to may not know that it has succeeded
		return nil, Errorf(InvalidPipeline, "resume without them, or send the changed plan behind a from stage",
			"concurrency, on_error and retries apply to the for_each that stopped, and no for_each of the plan of run %s did", p.id)
	}
	return list, nil
}

// mapsItems reports whether a stage runs once per item.
func mapsItems(raw json.RawMessage) bool {
	kind, err := kindOf(raw, nil)
	var each EachOptions
	return err == nil && (kind.Maps || kind.Each && json.Unmarshal(raw, &each) == nil && each.ForEach)
}

// begins reports whether a stage begins with what a run has produced.
func begins(raw json.RawMessage) bool {
	kind, err := kindOf(raw, nil)
	return err == nil && kind.Begins
}

// compile checks the whole plan, as it is today, and replaces the stages that have ended by what they have produced.
func (r *resumption) compile(ctx context.Context, s Scope, how end) error {
	ended := len(r.Stages)
	if how.At > 0 {
		ended = how.At - 1 // what stands behind saw only a part
	}
	from, _ := r.nearest(ended)
	if from < 0 {
		_, why := r.whole(0)
		return Errorf(InvalidPipeline, "run the pipeline again", "run %s cannot be continued: %w", r.id, Incomplete(why))
	}
	r.from = from
	list := append(List(nil), r.Stages...)
	if from > 0 && begins(list[0]) { // the run that it names may be gone
		list[0] = json.RawMessage(fmt.Sprintf(`{"type":"from","run":%q,"stage":%d}`, r.id, from))
	}
	s.c.stages.Add(-1) // the stage that stands for them
	s.place = ""
	steps, err := s.c.list(ctx, list, s)
	if err != nil || from == 0 {
		r.steps = steps
		return err
	}
	if r.Shard != nil && !slices.Equal(slices.Collect(marksOf(steps[1:])), r.Shard.Marks) {
		return disagreement()
	}
	first := fromStep(&source{storedRun: r.storedRun, stage: from}, from, s.label.Kind)
	first.place = Place(outputName(from))
	r.steps = append([]*Step{first}, steps[from:]...)
	return nil
}

// shown refuses to make the calls of a dry run where they could be others than it has shown.
func (r *resumption) shown(how end) error {
	switch {
	case !r.DryRun || how.At == 0 && !how.Failed:
		return nil
	case how.Failed:
		return Errorf(InvalidPipeline, "make the dry run again, or run the pipeline", "run %s is a dry run that failed, and has shown no calls", r.id)
	}
	for _, s := range r.steps {
		at := s.place.top()
		if at > r.from && at < how.At && !s.Replayable {
			return Errorf(InvalidPipeline, "make the dry run again, or run the pipeline",
				"the output of stage %d of the dry run %s is not kept: read again, the calls could be others than it has shown", how.At-1, r.id)
		}
	}
	return nil
}
