package stages

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
)

// FromStage begins with what a stage of an earlier run produced, or continues that run (pipeline.md §7).
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
	run, err := findRun(s.Runs, f.Run)
	if err != nil {
		return nil, err
	}
	stage := cmp.Or(f.Stage, len(run.Stages))
	if stage < 0 || stage > len(run.Stages) || stage == 0 {
		return nil, fielded("stage", Errorf(InvalidPipeline, "leave stage out for the last one",
			"that run has %d stages, there is no stage %d", len(run.Stages), stage))
	}
	src, err := run.source(ctx, s, stage)
	if err != nil {
		return nil, err
	}
	return fromStep(src, stage, s.label.Kind), nil
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
