package pipelines

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/mcsh-dev/mcsh/internal/exactjson"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/schemas"
	"github.com/mcsh-dev/mcsh/stages"
)

// Inspect checks a pipeline that an agent of a caller wants to save. The error is that of a plan that cannot be right, whatever
// servers do.
func (s *Set) Inspect(ctx context.Context, name string, d *Definition, caller string) *stages.Error {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	t := s.inspect(ctx, Saved{Name: name, Definition: d, Version: Version{Author: Author{Agent: true, Caller: caller}}})
	if t.Broken == nil || transient(t.Broken) {
		return nil
	}
	return t.Broken.(*stages.Error)
}

// inspect checks a saved pipeline against the tools that it calls.
func (s *Set) inspect(ctx context.Context, p Saved) *Tool {
	t := &Tool{Saved: p}
	if p.Err != nil {
		said := strings.ReplaceAll(p.Err.Error(), filepath.Dir(p.Path)+string(filepath.Separator), "") // agents need not know where
		t.Broken = stages.Errorf(stages.InvalidPipeline, "", "%s", said)
		return t
	}
	d := p.Definition
	t.Schema = d.InputSchema()
	said, err := schemas.Describe(schemas.NewSteps(ctx, schemas.DefaultSteps), p.Name, t.Schema)
	t.Long, t.Brief = said.Long, said.Brief
	t.Info = stages.Tool{Server: Server, Name: p.Name, Annotated: true, Signature: said.Signature, Input: said.Input, IsPipeline: true, Timeout: s.deps.Limits.WithDefaults().Run}
	t.Info.Input.Check = d.check
	if err != nil {
		t.Broken = stages.Errorf(stages.InvalidPipeline, "", "%w", err)
		return t
	}
	called, err := s.calledBy(ctx, p)
	t.Servers, t.allServers = serversOf(p, called), err == nil
	if err == nil {
		err = circle(p, called, s.deps.Limits.WithDefaults().Nesting)
	}
	if t.Broken = err; err != nil {
		return t
	}
	look := &lookup{Tools: s.deps.Tools, effects: Effects{ReadOnly: true, Idempotent: true, Additive: true}}
	t.Broken = s.compile(ctx, d, look, t)
	t.Effects = look.effects
	t.Info.ReadOnly, t.Info.Idempotent = t.Effects.ReadOnly, t.Effects.Idempotent
	return t
}

// withRemedy adds a hint that says who can correct a mistake of the saved plan.
func withRemedy(t *Tool) {
	if t.Broken != nil && !transient(t.Broken) {
		e := t.Broken.(*stages.Error)
		hint := e.Hint + "; the saved pipeline has to be changed and saved again (the operator sees it with mcsh pipeline show " + t.Name + ")"
		t.Broken = stages.Errorf(e.Code, strings.TrimPrefix(hint, "; "), "%s", e.Error())
	}
}

// compile checks the plan with values that stand for those of calls.
func (s *Set) compile(ctx context.Context, d *Definition, look *lookup, t *Tool) error {
	values, guessed := d.guesses(ctx, t.Info.Input)
	f := &filler{values: values, guessed: guessed}
	filled := f.fill(d)
	if len(f.errs) > 0 {
		return stages.Errorf(stages.InvalidPipeline, "", "%s: %s", f.errs[0].key, f.errs[0].text)
	}
	deps := s.deps
	look.Tools = s.forPlan(deps, ownViewer(t.Version))
	deps.Tools, deps.Values, deps.CheckOnly, deps.Caller, deps.Runs = look, f.spots, true, "check of saved pipelines", nil
	plan, errs := stages.Compile(ctx, filled, deps)
	errs = slices.DeleteFunc(errs, func(e *stages.Error) bool {
		return e.Code == stages.DisallowedArgument && f.doubtful[e.Place] // another value may do
	})
	if len(errs) > 0 {
		return errs[0]
	}
	if plan == nil || saves(plan.Plan().Stages) {
		look.effects = Effects{} // it may do anything
	}
	if plan != nil {
		t.Info.Chains, t.Info.Calls = plan.Chains(), plan.Plan().Most.Calls
	}
	return nil
}

// saves reports whether some stage changes something by itself and not by calling a tool.
func saves(list []stages.PlanStage) bool {
	return slices.ContainsFunc(list, func(s stages.PlanStage) bool {
		return s.Changes && len(s.Stages) == 0 && s.Most.Calls == 0 || saves(s.Stages)
	})
}

// ownViewer sees what the pipelines of a version may call: those of everybody, and what its own agent has saved.
func ownViewer(v Version) Viewer {
	if v.Private() {
		return Viewer{Caller: v.Author.Caller}
	}
	return Viewer{}
}

// guesses returns a value for each parameter: its default, that of an example, or one that fits its schema. guessed are those
// that nobody has written.
func (d *Definition) guesses(ctx context.Context, in stages.Input) (values map[string]json.RawMessage, guessed map[string]bool) {
	values, guessed = map[string]json.RawMessage{}, map[string]bool{}
	in.Required, in.Check = d.names, nil
	made, _ := schemas.Example(ctx, d.InputSchema(), in)
	list, _ := exactjson.List(made)
	for _, m := range list {
		values[m.Name], guessed[m.Name] = m.Value, true
	}
	var written []exactjson.Member
	for _, e := range slices.Backward(d.Examples) {
		if members, _ := exactjson.List(e.Args); e.Wrong == "" {
			written = append(written, members...)
		}
	}
	for _, m := range append(written, d.defaults...) {
		values[m.Name] = m.Value
		delete(guessed, m.Name)
	}
	return values, guessed
}

// guess stands in a plan for a value that is not known yet. No text of a file has its first character: it would be removed.
const guess = `"\u0000a value of a parameter"`

// A lookup is the tools as a check sees them: what a parameter fills is judged by its name only.
type lookup struct {
	stages.Tools

	mu      sync.Mutex
	effects Effects // of the tools that were looked up; guarded by mu
}

// Tool implements [stages.Tools].
func (l *lookup) Tool(ctx context.Context, server, name string) (*stages.Tool, error) {
	t, err := l.Tools.Tool(ctx, server, name)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.effects = Effects{} // it may do anything
		return nil, err
	}
	l.effects.ReadOnly = l.effects.ReadOnly && t.ReadOnly
	l.effects.Idempotent = l.effects.Idempotent && (t.ReadOnly || t.Idempotent)
	l.effects.Additive = l.effects.Additive && (t.ReadOnly || t.Additive)
	own := *t
	if own.Input.Check != nil {
		own.Input.Check = func(ctx context.Context, args json.RawMessage, partial bool) ([]string, string) {
			return judge(ctx, t.Input, args, partial)
		}
	}
	return &own, nil
}

// judge checks arguments, some of which have values that are not known.
func judge(ctx context.Context, in stages.Input, args json.RawMessage, partial bool) (wrong []string, note string) {
	members, err := exactjson.List(args)
	if err != nil || !bytes.Contains(args, []byte(guess)) {
		return in.Check(ctx, args, partial)
	}
	var known []exactjson.Member
	named := map[string]bool{}
	for _, m := range members {
		named[m.Name] = true
		switch {
		case !bytes.Contains(m.Value, []byte(guess)):
			known = append(known, m)
		case in.Closed && !slices.Contains(in.Properties, m.Name):
			wrong = append(wrong, fmt.Sprintf("unknown field %s", texts.Quote(m.Name)))
		}
	}
	if !partial {
		for _, name := range in.Required {
			if !named[name] && in.Declared[name].Default == nil {
				wrong = append(wrong, "missing required field "+texts.Quote(name))
			}
		}
	}
	more, note := in.Check(ctx, object(known), true)
	return append(wrong, more...), note
}
