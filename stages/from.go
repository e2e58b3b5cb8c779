package stages

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
)

// FromStage begins with what a stage of an earlier run produced (pipeline.md §7).
type FromStage struct {
	Run   string `json:"run" jsonschema:"minLength=1" jsonschema_description:"Id of an earlier run, as replies name it."`
	Stage int    `json:"stage,omitempty" jsonschema:"minimum=1" jsonschema_description:"Its stage whose output is wanted; default: the last."`
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
	}
	run, err := findRun(s.Runs, f.Run)
	if err != nil {
		return nil, err
	}
	stage := f.Stage
	stage = cmp.Or(stage, len(run.Stages))
	if stage < 0 || stage > len(run.Stages) || stage == 0 {
		return nil, fielded("stage", Errorf(InvalidPipeline, "leave stage out for the last one",
			"that run has %d stages, there is no stage %d", len(run.Stages), stage))
	}
	src, err := run.source(ctx, s, stage)
	if err != nil {
		return nil, err
	}
	return fromStep(src, stage), nil
}

func fromStep(src *source, stage int) *Step {
	step := &Step{
		Label: fmt.Sprintf("from stage %d", stage), Expects: "nothing", replays: true, origin: src,
		Does: fmt.Sprintf("begins with what stage %d of run %s produced", stage, src.id),
	}
	if len(src.replay) == 0 {
		step.from = src
		step.Bind = func(context.Context, *Run, *Meter) (Filter, error) { return src.filter(nil), nil }
		return step
	}
	step.Does += fmt.Sprintf(", made again from the output of its stage %d", src.stage)
	if src.stage == 0 {
		step.Does = fmt.Sprintf("runs the first stages of run %s again", src.id)
	}
	step.Nested, step.chains = []Nested{{Steps: src.replay}}, chainsOf(src.replay)
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
		if src.stage > 0 {
			data, _, release := src.runs.Open(src.id, outputName(src.stage))
			defer release()
			if data == nil {
				return Errorf(UnknownRun, "run its stages again", "what run %s produced had to give way after this pipeline was checked", src.id)
			}
			in = data
		}
		if replay != nil {
			return replay(ctx, in, out)
		}
		_, err := io.Copy(out, in)
		return err
	}
}
