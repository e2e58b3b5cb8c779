package stages

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

// Compile checks a whole pipeline and returns it ready to run, or everything that is wrong with it. The pipeline is a
// JSON array of stages; a JSON string that holds such an array is accepted, because models send that. Nothing is
// called, and no command gets any data. ctx bounds the waiting for servers that are still starting.
func Compile(ctx context.Context, pipeline []byte, d Deps) (*Pipeline, []*Error) {
	return compile(ctx, pipeline, d, false)
}

// CompileFed is [Compile] for a pipeline that is given input of its own: its first stage does not start from nothing.
func CompileFed(ctx context.Context, pipeline []byte, d Deps) (*Pipeline, []*Error) {
	return compile(ctx, pipeline, d, true)
}

func compile(ctx context.Context, pipeline []byte, d Deps, fed bool) (*Pipeline, []*Error) {
	d.Limits = d.Limits.WithDefaults()
	list, err := parseList(pipeline)
	if err != nil {
		return nil, []*Error{err}
	}
	c := &compiler{}
	if d.Commands != nil {
		c.commands = d.Commands.Plan(d.Caller, d.Owner, d.WorkersOf)
	}
	steps, cerr := c.list(ctx, list, Scope{Deps: d, Fed: fed, c: c})
	if c.commands != nil && (cerr != nil || d.CheckOnly) {
		_ = c.commands.Close() // a worker that is lost has ended too
	}
	if cerr != nil {
		return nil, limitOnce(flatten(cerr))
	}
	if most := commandsAtOnce * d.Limits.Stages; chainsOf(steps) > most { // only saved pipelines can make it so many
		return nil, []*Error{OverLimit("stages", "split the work into several pipelines", "the pipeline, with those that it calls, runs more than %d commands at a time", most)}
	}
	p := &Pipeline{steps: steps, list: list, deps: d, commands: c.commands, resumed: c.resumed}
	if p.resumed != nil {
		p.steps, p.list = p.resumed.steps, p.resumed.Stages
	}
	return p, nil
}

// limitOnce keeps the first of the mistakes that are about the number of stages: every list that comes after it says the same.
func limitOnce(errs []*Error) []*Error {
	seen := false
	return slices.DeleteFunc(errs, func(e *Error) bool {
		again := seen && e.Limit == "stages"
		seen = seen || e.Limit == "stages"
		return again
	})
}

func parseList(pipeline []byte) (List, *Error) {
	text := bytes.TrimSpace(pipeline)
	if len(text) > 0 && text[0] == '"' {
		var inner string
		if json.Unmarshal(text, &inner) == nil {
			text = bytes.TrimSpace([]byte(inner))
		}
	}
	const hint = `send an array of stages: [{"type": "tool", "server": "...", "name": "..."}, ...]`
	if len(text) == 0 {
		return nil, Errorf(InvalidPipeline, hint, "the pipeline is missing")
	}
	if at := invalidUTF8(text); at >= 0 { // encoding/json would replace it
		return nil, Errorf(InvalidPipeline, "send the pipeline as UTF-8", "the pipeline is not valid UTF-8 at %s", position(text, at))
	}
	var list List
	if err := json.Unmarshal(text, &list); err == nil && text[0] == '[' {
		return list, nil
	}
	if !json.Valid(text) {
		return nil, Errorf(InvalidPipeline, hint, "the pipeline is not valid JSON: %s", syntaxError(text))
	}
	return nil, Errorf(InvalidPipeline, hint, "the pipeline must be an array of stages, got %s", describe(text))
}

// syntaxError says where text stops being JSON, by line and column.
func syntaxError(text []byte) string {
	var v any
	err := json.Unmarshal(text, &v)
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return fmt.Sprint(err)
	}
	return position(text, int(syntax.Offset)-firstOffset()) + ": " + syntax.Error()
}

// position says where the byte at an offset of text is, by line and column.
func position(text []byte, at int) string {
	before := text[:min(at+1, len(text))]
	return fmt.Sprintf("line %d, column %d", 1+bytes.Count(before, []byte("\n")), len(before)-(bytes.LastIndexByte(before, '\n')+1))
}

// firstOffset is the offset of a mistake in the first byte: encoding/json counts that byte, GOEXPERIMENT=jsonv2 does not.
func firstOffset() int {
	syntax, _ := errors.AsType[*json.SyntaxError](json.Unmarshal([]byte("!"), new(any)))
	return int(syntax.Offset)
}

// compiler is what the stages of one pipeline share while they are compiled side by side.
type compiler struct {
	stages   atomic.Int64
	commands CommandPlan // nil where there are no commands
	resumed  *resumption // set by the only stage, if that continues a run
}

// list compiles stages concurrently, so that servers that have to be started for the check start together.
func (c *compiler) list(ctx context.Context, list List, s Scope) ([]*Step, error) {
	if n := c.stages.Add(int64(len(list))); n > int64(s.Limits.Stages) {
		return nil, OverLimit("stages", "split the work into several pipelines",
			"the pipeline has more than %d stages", s.Limits.Stages)
	}
	steps, errs := make([]*Step, len(list)), make([]error, len(list))
	one := func(i int) {
		at := s
		at.Fed, at.Last, at.direct = s.Fed || i > 0, i == len(list)-1, s.direct && i == 0
		at.place = Place(fmt.Sprint(i + 1)).In(s.place)
		steps[i], errs[i] = c.stage(ctx, list[i], at)
	}
	var wg sync.WaitGroup
	for i := 1; i < len(list); i++ {
		wg.Go(func() { one(i) })
	}
	if len(list) > 0 {
		one(0) // here: many pipelines have no other
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return slices.DeleteFunc(steps, func(s *Step) bool { return s == nil }), err
	}
	for i, step := range steps {
		behind := slices.IndexFunc(steps[i+1:], func(s *Step) bool { return !s.KeepsKind || s.Command != nil })
		if step.tool != nil {
			step.tool.picked = behind >= 0 && steps[i+1+behind].KeepsKind
		}
	}
	return steps, nil
}

// stage compiles one stage: its shape, then its meaning. A stage whose shape is wrong in some field is still compiled
// as far as it can be decoded, so that one pass finds everything.
func (c *compiler) stage(ctx context.Context, raw json.RawMessage, s Scope) (step *Step, err error) {
	defer recovered(&err)
	kind, kerr := kindOf(raw, s.Schemas)
	if kerr != nil {
		return nil, located(kerr, s.place, Label{})
	}
	shape := checkShape(kind, raw, s)
	if ctx.Err() != nil {
		return nil, located(unchecked(ctx), s.place, Label{})
	}
	stage := kind.New()
	var each EachOptions
	if derr := errors.Join(json.Unmarshal(raw, stage), json.Unmarshal(raw, &each)); derr != nil {
		if shape == nil {
			shape = decodeError("", derr)
		}
		return nil, located(hinted(shape, kind, raw), s.place, labelOf(kind, stage))
	}
	s.label = labelOf(kind, stage)
	if kind.Each {
		step, err = compileEach(ctx, stage, each, s)
	} else {
		step, err = stage.Compile(ctx, s)
	}
	if err := errors.Join(shape, unlessImplied(shape, err, kind, raw)); err != nil {
		return nil, located(hinted(err, kind, raw), s.place, s.label)
	}
	step.place, step.raw, step.own().raw = s.place, raw, raw
	if step.Label.Kind == "" {
		step.Label = s.label
	}
	return step, nil
}

// unchecked is the mistake of a stage that the check has not come to. It does not blame the plan: the machine may be slow, or
// the worker that checks commands still starting.
func unchecked(ctx context.Context) *Error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return Errorf(Timeout, "send the plan again with more time, or with fewer stages",
			"the time was up before the plan was checked: %w", ctx.Err())
	}
	return Errorf(Cancelled, "send the plan again", "the check of the plan had not ended: %w", ctx.Err())
}

// completed is the stage raw with members of fix in the place of its own; nil where there is nothing to fix.
func completed(raw, fix json.RawMessage) json.RawMessage {
	stage, err := readObject(raw)
	changes, ferr := readObject(fix)
	if err != nil || ferr != nil {
		return nil
	}
	return encodeObject(merge(stage, changes))
}

// unlessImplied drops from err what the mistakes of the shape bring about: another word on the same field, also on that of
// a stage to which a stage that resumes passes it on, and a field or an argument that is missing because it stands under a
// mistyped name.
func unlessImplied(shape, err error, kind *Kind, raw json.RawMessage) error {
	if shape == nil {
		return err
	}
	wrong := map[string]bool{}
	for _, e := range flatten(shape) {
		wrong[e.Field] = true
	}
	members, _ := readObject(raw)
	var rest []error
	for _, e := range flatten(err) {
		missing := e.Code == InvalidPipeline && !given(members, e.Field)
		if wrong[e.Field] && kind.Begins || e.Place == "" && (wrong[e.Field] || missing || e.Code == InvalidArguments) {
			continue
		}
		rest = append(rest, e)
	}
	return errors.Join(rest...)
}

// hinted gives every mistake that has no hint of its own an example of the stage, and completes what there is of a
// corrected stage.
func hinted(err error, kind *Kind, raw json.RawMessage) error {
	return changed(err, func(e *Error) {
		if e.Place == "" && e.Fix != nil { // it reads the whole stage, and there may be as many mistakes as the stage has fields
			e.Fix = completed(raw, e.Fix)
		}
		e.Hint = cmp.Or(e.Hint, kind.Hints[e.Field], "a "+kind.Name+" stage looks like "+kind.Example)
	})
}

// kindOf finds the kind of a stage by its "type".
func kindOf(raw json.RawMessage, schemas Schemas) (*Kind, error) {
	members, err := readObject(raw)
	if err != nil {
		return nil, Errorf(InvalidPipeline, `a stage is an object such as {"type": "command", "command": "jq", "args": ["."]}`,
			"a stage must be an object, got %s", describe(raw))
	}
	i := slices.IndexFunc(members, func(m member) bool { return m.key == "type" })
	if i < 0 {
		return nil, fielded("type", Errorf(InvalidPipeline, `add "type": one of `+allKinds(), `missing field "type"`))
	}
	var name string
	if json.Unmarshal(members[i].value, &name) != nil {
		return nil, fielded("type", Errorf(InvalidPipeline, "the types are "+allKinds(), "type must be a string, got %s", describe(members[i].value)))
	}
	if kind := KindNamed(name); kind != nil {
		return kind, nil
	}
	if schemas != nil { // they know what words are taken for types
		if errs := schemas.Check(name, raw); len(errs) > 0 {
			return nil, errs[0]
		}
	}
	return nil, fielded("type", Errorf(InvalidPipeline, "the types are "+allKinds(), "unknown stage type %s", texts.Quote(name)))
}

func allKinds() string {
	var names []string
	for _, k := range Kinds() {
		names = append(names, k.Name)
	}
	return strings.Join(names, ", ")
}

func checkShape(kind *Kind, raw json.RawMessage, s Scope) error {
	if s.Schemas == nil {
		return nil
	}
	return Join(s.Schemas.Check(kind.Name, raw))
}

// decodeError puts the words of encoding/json about a field, or about the whole stage (""), into ours.
func decodeError(field string, err error) error {
	if known, ok := errors.AsType[*Error](err); ok {
		return known
	}
	wrong, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok {
		return Errorf(InvalidPipeline, "", "%s", err.Error())
	}
	field = strings.Trim(field+"."+wrong.Field, ".")
	what, isNumber := strings.CutPrefix(wrong.Value, "number ")
	switch {
	case isNumber && strings.ContainsAny(what, ".eE"):
		return fielded(field, Errorf(InvalidPipeline, "", "%s must be a plain integer, got %s", field, texts.Cut(what, 60)))
	case isNumber:
		return fielded(field, Errorf(InvalidPipeline, "", "%s %s is too large", field, texts.Cut(what, 60)))
	}
	return fielded(field, Errorf(InvalidPipeline, "", "field %q cannot be a JSON %s", field, wrong.Value))
}
