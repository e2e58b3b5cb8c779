package stages

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// Mapping holds the choices of a for_each that do not depend on what it runs.
type Mapping struct {
	Concurrency int    `json:"concurrency,omitempty" jsonschema:"minimum=1,maximum=64" jsonschema_description:"Items in flight. Default 8 where everything only reads, else 1."`
	Collect     string `json:"collect,omitempty" jsonschema:"enum=array,enum=lines" jsonschema_description:"array: one JSON array. lines: one result a line (default for commands)."`
}

// maxConcurrency is the most items that may be in flight (pipeline.md §4).
const maxConcurrency = 64

// check refuses what the engine cannot do, for callers without a schema.
func (o Mapping) check() error {
	var errs []error
	if o.Concurrency < 0 || o.Concurrency > maxConcurrency {
		errs = append(errs, fielded("concurrency", Errorf(InvalidPipeline, "", "concurrency must be 1 to %d, got %d", maxConcurrency, o.Concurrency)))
	}
	if o.Collect != "" && o.Collect != collectArray && o.Collect != collectLines {
		errs = append(errs, fielded("collect", Errorf(InvalidPipeline, "", "collect must be array or lines, got %s", quoted(o.Collect))))
	}
	return errors.Join(errs...)
}

// EachOptions are the fields that every kind of stage with Each set accepts beside its own.
type EachOptions struct {
	ForEach bool `json:"for_each,omitempty" jsonschema_description:"Run the stage once per item of the input, in parallel, results in order."`
	Mapping
}

// ForEachStage runs a pipeline of its own for every item of its input (pipeline.md §4).
type ForEachStage struct {
	Stages List `json:"stages" jsonschema:"minItems=1" jsonschema_description:"Stages that run for each item."`
	Mapping
	Timeout float64 `json:"timeout,omitempty" jsonschema:"exclusiveMinimum=0" jsonschema_description:"Seconds for all items together."`
}

// Compile compiles the stages of the body.
func (f *ForEachStage) Compile(ctx context.Context, s Scope) (*Step, error) {
	timeout, terr := within(f.Timeout, s.Limits.Run, "run")
	if len(f.Stages) == 0 {
		terr = errors.Join(terr, fielded("stages", Errorf(InvalidPipeline, "", "missing stages to run for each item")))
	}
	body, err := s.List(ctx, f.Stages, InEach, "", true)
	if err := errors.Join(terr, f.check(), err); err != nil {
		return nil, err
	}
	step := eachStep("for_each", body, f.Mapping, collectArray, timeout)
	step.Nested = []Nested{{Steps: body}}
	return step, nil
}

// compileEach compiles a stage that may have the for_each flag: shorthand for a for_each stage around it.
func compileEach(ctx context.Context, stage Stage, o EachOptions, s Scope) (*Step, error) {
	if !o.ForEach {
		step, err := stage.Compile(ctx, s)
		return step, errors.Join(err, o.withoutFlag())
	}
	inner := s
	inner.Site, inner.Fed, inner.Last = InEach, true, true
	step, err := stage.Compile(ctx, inner)
	if err := errors.Join(o.check(), err); err != nil {
		return nil, err
	}
	step.place = s.place
	form := collectArray
	if step.Command != nil {
		form = collectLines
	}
	each := eachStep(step.Label, []*Step{step}, o.Mapping, form, s.Limits.Run)
	each.mapped, each.Nested = step, step.Nested
	return each, nil
}

// eachStep wraps compiled stages so that they run once per item.
func eachStep(label string, body []*Step, o Mapping, form string, timeout time.Duration) *Step {
	concurrency := o.Concurrency
	or(&concurrency, defaultConcurrency(body))
	if chains := chainsOf(body); chains > 0 {
		concurrency = min(concurrency, max(1, commandsAtOnce/chains))
	}
	if o.Collect != "" {
		form = o.Collect
	}
	raw := form == collectLines && len(body) > 0 && body[len(body)-1].Command != nil
	step := &Step{
		Label: label, Effect: effectOf(body), chains: chainsOf(body) * concurrency, passes: true,
		Does:    fmt.Sprintf("runs once per item, up to %d at a time, results in order as %s", concurrency, form),
		Expects: "a JSON array, JSON values or lines",
	}
	if len(body) == 1 {
		step.Does = body[0].Does + " once per item, " + fmt.Sprintf("up to %d at a time, results in order as %s", concurrency, form)
	}
	step.Bind = func(ctx context.Context, r *Run, m *Meter) (Filter, error) {
		filter, meters, err := r.bind(ctx, body, false)
		if err != nil {
			return nil, err
		}
		m.nested = meters
		first := len(body) > 0 && body[0].takesValue
		e := &each{r: r, m: m, body: filter, effect: step.Effect, value: first, concurrency: concurrency, lines: form == collectLines, raw: raw, timeout: timeout}
		if r.dry.alone(body) {
			e.concurrency = 1
		}
		return func(ctx context.Context, in io.Reader, out io.Writer) error { return e.filter(ctx, in, out) }, nil
	}
	return step
}

// commandsAtOnce is how many chains of commands one for_each runs side by side: for commands concurrency is an upper
// bound (pipeline.md §4), and what a plan may ask of its worker stays within what the worker takes.
const commandsAtOnce = 4

// chainsOf counts the chains of commands of steps that run at the same time.
func chainsOf(steps []*Step) int {
	n := 0
	for i, s := range steps {
		if s.Command != nil && (i == 0 || steps[i-1].Command == nil) {
			n++
		}
		n += s.chains
	}
	return n
}

// defaultConcurrency is 8 where running side by side is known to do no harm, else 1.
func defaultConcurrency(body []*Step) int {
	for _, s := range body {
		if s.alone {
			return 1
		}
		for _, n := range s.Nested {
			if !n.Input && defaultConcurrency(n.Steps) == 1 {
				return 1
			}
		}
	}
	return 8
}

// withoutFlag refuses the fields of a mapping where nothing is mapped: they would silently do nothing.
func (o EachOptions) withoutFlag() error {
	var errs []error
	refuse := func(name string, present bool) {
		if present {
			errs = append(errs, fielded(name, Errorf(InvalidPipeline, `add "for_each": true, or leave `+name+` out`,
				"%s has no meaning without for_each", name)))
		}
	}
	refuse("concurrency", o.Concurrency != 0)
	refuse("collect", o.Collect != "")
	return errors.Join(errs...)
}

const (
	collectArray = "array"
	collectLines = "lines"
)
