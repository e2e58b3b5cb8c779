package stages

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

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
	tries, merr := f.check()
	body, err := s.mapping(f.Mapping).List(ctx, f.Stages, InEach, "", true)
	if err := errors.Join(terr, merr, err); err != nil {
		return nil, err
	}
	step := eachStep("for_each", body, f.Mapping, tries, s, collectArray, timeout)
	step.Nested = []Nested{{Steps: body}}
	return step, nil
}

// A collecting stage may write many values by itself. It is told what "collect" says where no for_each has it,
// and reports whether it has use for that.
type collecting interface{ collectAs(form string) bool }

// compileEach compiles a stage that may have the for_each flag: shorthand for a for_each stage around it.
func compileEach(ctx context.Context, stage Stage, o EachOptions, s Scope) (*Step, error) {
	if !o.ForEach {
		var form error
		if c, ok := stage.(collecting); ok && c.collectAs(o.Collect) {
			_, form = Mapping{Collect: o.Collect}.check()
			o.Collect = ""
		}
		step, err := stage.Compile(ctx, s)
		return step, errors.Join(form, err, o.withoutFlag())
	}
	inner := s.mapping(o.Mapping)
	inner.Site, inner.Each, inner.Fed, inner.Last = InEach, true, true, true
	step, err := stage.Compile(ctx, inner)
	tries, merr := o.check()
	if err := errors.Join(merr, err); err != nil {
		return nil, err
	}
	step.place = s.place
	form := collectArray
	if step.Command != nil {
		form = collectLines
	}
	each := eachStep(step.Label, []*Step{step}, o.Mapping, tries, s, form, s.Limits.Run)
	each.mapped, each.Nested = step, step.Nested
	return each, nil
}

// eachStep wraps compiled stages so that they run once per item. collect is the form of the results where o names none.
func eachStep(label string, body []*Step, o Mapping, tries tries, s Scope, collect string, timeout time.Duration) *Step {
	concurrency := o.Concurrency
	concurrency = cmp.Or(concurrency, defaultConcurrency(body))
	if chains := chainsOf(body); chains > 0 {
		concurrency = min(concurrency, max(1, commandsAtOnce/chains))
	}
	o.Collect = cmp.Or(o.Collect, collect)
	o.OnError = cmp.Or(o.OnError, onErrorFail)
	command := len(body) > 0 && body[len(body)-1].Command != nil
	form := form{lines: o.Collect == collectLines, withItem: o.WithItem, onError: o.OnError}
	form.raw = form.lines && command && !o.WithItem
	step := &Step{
		Label: label, Effect: effectOf(body), chains: chainsOf(body) * concurrency, passes: true,
		Does:    "runs once per item",
		Expects: "a JSON array, JSON values or lines",
	}
	if len(body) == 1 {
		step.Does = body[0].Does + " once per item"
	}
	step.Does += fmt.Sprintf(", up to %d at a time, results in order as %s", concurrency, o.Collect) + o.notes(body)
	tools := toolsOf(body)
	if len(tools) == 0 {
		tries.more = 0
	}
	for _, t := range tools {
		t.stale = t.stale || step.Effect == Changes
	}
	step.most = bounds{attempts: tries.more + 1, concurrency: concurrency, time: timeout}
	step.Bind = func(ctx context.Context, r *Run, m *Meter) (Filter, error) {
		log, err := r.newItemLog(step)
		if err != nil {
			return nil, err
		}
		if around := r.log; log != nil {
			r.log = log
			defer func() { r.log = around }()
		}
		watched := r.watched
		r.watched = false // of every item would be too much
		defer func() { r.watched = watched }()
		filter, many, meters, err := r.bindEach(ctx, body)
		if err != nil {
			return nil, err
		}
		m.nested = meters
		e := &each{
			log: log,
			r:   r, m: m, body: filter, many: many, effect: step.Effect, value: len(body) > 0 && body[0].takesValue,
			concurrency: concurrency, form: form, tries: tries, direct: s.direct, timeout: timeout,
		}
		if r.dry.alone(body) {
			e.concurrency = 1
		}
		return e.filter, nil
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
		if s.alone || s.mapped != nil && s.mapped.alone {
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
