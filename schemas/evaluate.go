package schemas

import (
	"encoding/json"
	"errors"
	"math/big"
	"slices"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// A failure is a keyword that a value does not satisfy, or a group of failures.
type failure struct {
	kind   jsonschema.ErrorKind
	schema *jsonschema.Schema
	path   []string // of the value
	causes []*failure
}

// stepsPerFailure is the cost of a failure besides its path: it stays in memory until the evaluation ends.
const stepsPerFailure = 16

// maxFrames bounds the nesting of applied schemas.
const maxFrames = 4096

var errDeep = errors.New("its references go too deep")

// An evaluation applies a compiled schema to one value, like the library's own validator, which cannot be interrupted and
// counts no work. One schema may be in several evaluations at once.
type evaluation struct {
	v         *validator
	steps     *Steps
	undecided error   // why some keyword could not be checked
	failed    failure // stands for all failures without details
	scratch   []byte  // for canonical texts
}

// ok spends steps and reports whether the evaluation goes on. If it does not, err is set and the outcome must not be used.
func (e *evaluation) ok(steps int) bool { return e.undecided == nil && e.steps.Take(steps) }

func (e *evaluation) err() error {
	if e.undecided != nil {
		return e.undecided
	}
	return e.steps.Err()
}

// A frame is a schema that is being applied to a value.
type frame struct {
	schema *jsonschema.Schema
	above  *frame
	same   bool // above is applied to the same value
	depth  int
	path   []string

	quiet   bool // only whether the value is valid matters
	partial bool // members may still be added to the value

	open     open // members and items that no keyword has evaluated
	failures []*failure
}

// apply returns the failure of a frame's schema on a value, or nil.
func (e *evaluation) apply(f *frame, v any) *failure {
	s := f.schema
	if s.Bool != nil {
		if *s.Bool && e.ok(1) {
			return nil
		}
		return e.fail(f, &kind.FalseSchema{})
	}
	if e.circular(f) {
		return e.fail(f, &kind.RefCycle{})
	}
	if !e.ok(1) {
		return &e.failed
	}
	if k := e.simple(f, v); k != nil {
		return e.fail(f, k)
	}
	if s.Ref != nil {
		fl := e.self(f, s.Ref, f.quiet, f.partial)
		if fl != nil {
			fl = e.group(f, &kind.Reference{}, fl.flat())
			f.failures = append(f.failures, fl)
		}
		if s.DraftVersion < 2019 {
			return fl
		}
	}
	switch v := v.(type) {
	case map[string]any:
		e.object(f, v)
	case []any:
		e.array(f, v)
	case string:
		e.text(f, v)
	case json.Number:
		e.number(f, v)
	}
	if len(f.failures) == 0 || !f.quiet {
		e.combined(f)
		e.unevaluated(f, v)
	}
	switch len(f.failures) {
	case 0:
		return nil
	case 1:
		return f.failures[0]
	}
	return e.group(f, &kind.Group{}, f.failures)
}

// circular reports whether a frame above applies the same schema to the same value.
func (e *evaluation) circular(f *frame) bool {
	if f.depth > maxFrames && e.undecided == nil {
		e.undecided = errDeep
	}
	for a := f; a.same && e.ok(1); a = a.above {
		if a.above.schema == f.schema {
			return true
		}
	}
	return false
}

// flat returns the failures in a group.
func (fl *failure) flat() []*failure {
	if _, ok := fl.kind.(*kind.Group); ok {
		return fl.causes
	}
	return []*failure{fl}
}

// fail makes a failure of a frame.
func (e *evaluation) fail(f *frame, k jsonschema.ErrorKind) *failure { return e.group(f, k, nil) }

func (e *evaluation) group(f *frame, k jsonschema.ErrorKind, causes []*failure) *failure {
	if f.quiet || !e.ok(stepsPerFailure+len(f.path)) {
		return &e.failed
	}
	return &failure{kind: k, schema: f.schema, path: slices.Clone(f.path), causes: causes}
}

// add adds a failure to a frame.
func (e *evaluation) add(f *frame, k jsonschema.ErrorKind) {
	f.failures = append(f.failures, e.fail(f, k))
}

// self applies another schema to the same value.
func (e *evaluation) self(f *frame, s *jsonschema.Schema, quiet, partial bool) *failure {
	sub := &frame{
		schema: s, above: f, same: true, depth: f.depth + 1, path: f.path, quiet: quiet, partial: partial,
		open: f.open.of(s, e),
	}
	fl := e.apply(sub, f.open.value)
	if fl == nil {
		f.open.merge(sub.open)
	}
	return fl
}

// child applies a schema to a part of the value.
func (e *evaluation) child(f *frame, s *jsonschema.Schema, v any, token string) {
	if fl := e.part(f, s, v, token, f.quiet); fl != nil {
		f.failures = append(f.failures, fl)
	}
}

// part returns the failure of a schema on a part of the value, or nil.
func (e *evaluation) part(f *frame, s *jsonschema.Schema, v any, token string, quiet bool) *failure {
	sub := &frame{schema: s, above: f, depth: f.depth + 1, path: append(f.path, token), quiet: quiet}
	sub.open = opened(v, s, false, e)
	return e.apply(sub, v)
}

// simple checks type, const and enum.
func (e *evaluation) simple(f *frame, v any) jsonschema.ErrorKind {
	s := f.schema
	if s.Types != nil && !s.Types.IsEmpty() && !takes(*s.Types, v) {
		return &kind.Type{Want: s.Types.ToStrings()}
	}
	if f.partial || s.Const == nil && s.Enum == nil {
		return nil
	}
	e.scratch = canonical(e.scratch[:0], v, e.steps)
	if s.Const != nil && !e.v.sets[s.Const].has(e.scratch) {
		return &kind.Const{Want: *s.Const}
	}
	if s.Enum != nil && !e.v.sets[s.Enum].has(e.scratch) {
		return &kind.Enum{Want: s.Enum.Values}
	}
	return nil
}

// takes reports whether a value has one of some types.
func takes(types jsonschema.Types, v any) bool {
	var own jsonschema.Types
	switch v := v.(type) {
	case nil:
		own.Add("null")
	case bool:
		own.Add("boolean")
	case string:
		own.Add("string")
	case []any:
		own.Add("array")
	case map[string]any:
		own.Add("object")
	case json.Number:
		if own.Add("number"); types&own == 0 && whole(v) {
			own.Add("integer")
		}
	}
	return types&own != 0
}

// matches reports whether a name or a string matches a pattern.
func (e *evaluation) matches(re jsonschema.Regexp, text string) bool {
	p := re.(*pattern)
	if !e.ok(p.steps(text)) {
		return false
	}
	begun := time.Now()
	ok, err := p.match(text)
	if err != nil && e.undecided == nil {
		e.undecided = err
	}
	if p.linear == nil {
		e.ok(int(time.Since(begun) / backtrackingStep))
	}
	return ok
}

// values are JSON values by their canonical texts.
type values map[string]struct{}

func newValues(steps *Steps, list ...any) values {
	vs := make(values, len(list))
	for _, v := range list {
		vs[string(canonical(nil, v, steps))] = struct{}{}
	}
	return vs
}

func (vs values) has(canonical []byte) bool {
	_, ok := vs[string(canonical)]
	return ok
}

func (e *evaluation) number(f *frame, n json.Number) {
	s := f.schema
	if s.Minimum == nil && s.Maximum == nil && s.ExclusiveMinimum == nil && s.ExclusiveMaximum == nil && s.MultipleOf == nil {
		return
	}
	if !e.ok(8 + len(n)) {
		return
	}
	r, ok := new(big.Rat).SetString(string(n))
	if !ok {
		return
	}
	if s.Minimum != nil && r.Cmp(s.Minimum) < 0 {
		e.add(f, &kind.Minimum{Want: s.Minimum})
	}
	if s.Maximum != nil && r.Cmp(s.Maximum) > 0 {
		e.add(f, &kind.Maximum{Want: s.Maximum})
	}
	if s.ExclusiveMinimum != nil && r.Cmp(s.ExclusiveMinimum) <= 0 {
		e.add(f, &kind.ExclusiveMinimum{Want: s.ExclusiveMinimum})
	}
	if s.ExclusiveMaximum != nil && r.Cmp(s.ExclusiveMaximum) >= 0 {
		e.add(f, &kind.ExclusiveMaximum{Want: s.ExclusiveMaximum})
	}
	if s.MultipleOf != nil && s.MultipleOf.Sign() != 0 && e.ok(64) && !new(big.Rat).Quo(r, s.MultipleOf).IsInt() {
		e.add(f, &kind.MultipleOf{Want: s.MultipleOf})
	}
}

// combined applies the keywords that combine schemas.
func (e *evaluation) combined(f *frame) {
	s := f.schema
	if len(s.AllOf) > 0 {
		e.all(f)
	}
	if f.partial {
		return // more members can change the outcome of the others
	}
	if s.Not != nil && e.self(f, s.Not, true, false) == nil {
		e.add(f, &kind.Not{})
	}
	if len(s.AnyOf) > 0 {
		e.any(f)
	}
	if len(s.OneOf) > 0 {
		e.one(f)
	}
	if s.If == nil {
		return
	}
	then := s.Then
	if e.self(f, s.If, true, false) != nil {
		then = s.Else
	}
	if then != nil {
		e.also(f, then)
	}
}

func (e *evaluation) all(f *frame) {
	var failures []*failure
	for _, sub := range f.schema.AllOf {
		if fl := e.self(f, sub, f.quiet, f.partial); fl != nil {
			failures = append(failures, fl)
			if f.quiet || e.err() != nil {
				break
			}
		}
	}
	if len(failures) > 0 {
		f.failures = append(f.failures, e.group(f, &kind.AllOf{}, failures))
	}
}

func (e *evaluation) any(f *frame) {
	var failures []*failure
	for _, sub := range f.schema.AnyOf {
		fl := e.self(f, sub, f.quiet, false)
		if fl == nil && f.open.isEmpty() {
			return // otherwise all matching branches must be applied, since each evaluates members
		}
		if fl != nil {
			failures = append(failures, fl)
		}
		if e.err() != nil {
			return
		}
	}
	if len(failures) > 0 && len(failures) == len(f.schema.AnyOf) {
		f.failures = append(f.failures, e.group(f, &kind.AnyOf{}, failures))
	}
}

func (e *evaluation) one(f *frame) {
	fits := -1
	var failures []*failure
	for i, sub := range f.schema.OneOf {
		fl := e.self(f, sub, f.quiet || fits >= 0, false)
		switch {
		case e.err() != nil:
			return
		case fl != nil && fits < 0:
			failures = append(failures, fl)
		case fl == nil && fits >= 0:
			e.add(f, &kind.OneOf{Subschemas: []int{fits, i}})
			return
		case fl == nil:
			fits = i
		}
	}
	if fits < 0 {
		f.failures = append(f.failures, e.group(f, &kind.OneOf{}, failures))
	}
}
