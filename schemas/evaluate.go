package schemas

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// stepsPerFlaw is the cost of a flaw besides its path: it stays in memory until the evaluation ends.
const stepsPerFlaw = 16

// maxFrames bounds the nesting of applied schemas.
const maxFrames = 4096

var errDeep = errors.New("its references go too deep")

// An evaluation applies a compiled schema to one value and collects its flaws. The library's own validator cannot be
// interrupted and counts no work. One schema may be in several evaluations at once.
type evaluation struct {
	v       *validator
	steps   *Steps
	flaws   []flaw // of the value so far; those of a branch that does not count are removed
	scratch []byte // for canonical texts
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

	open   open // members and items that no keyword has evaluated
	failed bool // the value is not valid
}

// done reports whether nothing more about the frame matters.
func (f *frame) done() bool { return f.quiet && f.failed }

// apply applies a frame's schema to a value and reports whether the value is valid. If not, it has added the flaws, unless
// the frame is quiet. After the steps are spent the outcome must not be used.
func (e *evaluation) apply(f *frame, v any) bool {
	s := f.schema
	switch {
	case !e.steps.Take(1):
		return false
	case s.Bool != nil:
		if !*s.Bool {
			e.say(f, "is not allowed here")
		}
		return *s.Bool
	case e.circular(f): // invalid, but there is nothing to say about the value
		return false
	}
	if e.simple(f, v); f.failed {
		return false
	}
	if s.Ref != nil {
		e.self(f, s.Ref, f.quiet, f.partial)
		if s.DraftVersion < 2019 {
			return !f.failed
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
	if !f.done() {
		e.combined(f)
		e.unevaluated(f, v)
	}
	return !f.failed
}

// circular reports whether a frame above applies the same schema to the same value.
func (e *evaluation) circular(f *frame) bool {
	if f.depth > maxFrames {
		e.steps.stop(errDeep)
	}
	for a := f; a.same && e.steps.Take(1); a = a.above {
		if a.above.schema == f.schema {
			return true
		}
	}
	return false
}

// add adds a flaw of a frame's value.
func (e *evaluation) add(f *frame, fl flaw) {
	if f.failed = true; !f.quiet && e.steps.Take(stepsPerFlaw+len(f.path)) {
		fl.path, fl.schema = slices.Clone(f.path), f.schema
		e.flaws = append(e.flaws, fl)
	}
}

// say adds a flaw with a sentence that follows the name of the value.
func (e *evaluation) say(f *frame, format string, args ...any) {
	if f.failed = true; !f.quiet {
		e.add(f, flaw{said: fmt.Sprintf(format, args...)})
	}
}

// test applies another schema to the same value, which need not be valid.
func (e *evaluation) test(f *frame, s *jsonschema.Schema, quiet, partial bool) bool {
	sub := &frame{
		schema: s, above: f, same: true, depth: f.depth + 1, path: f.path, quiet: quiet, partial: partial,
		open: opened(f.open.value, s, !f.open.isEmpty(), e),
	}
	ok := e.apply(sub, f.open.value)
	if ok {
		f.open.merge(sub.open)
	}
	return ok
}

// self applies another schema to the same value, which must be valid.
func (e *evaluation) self(f *frame, s *jsonschema.Schema, quiet, partial bool) {
	if !e.test(f, s, quiet, partial) {
		f.failed = true
	}
}

// child applies a schema to a part of the value, which must be valid.
func (e *evaluation) child(f *frame, s *jsonschema.Schema, v any, token string) {
	if !e.part(f, s, v, token, f.quiet) {
		f.failed = true
	}
}

// part reports whether a part of the value is valid.
func (e *evaluation) part(f *frame, s *jsonschema.Schema, v any, token string, quiet bool) bool {
	sub := &frame{schema: s, above: f, depth: f.depth + 1, path: append(f.path, token), quiet: quiet, open: opened(v, s, false, e)}
	return e.apply(sub, v)
}

// simple checks type, const and enum.
func (e *evaluation) simple(f *frame, v any) {
	s := f.schema
	if s.Types != nil && !s.Types.IsEmpty() && !takes(*s.Types, v) {
		e.add(f, flaw{want: [][]string{typesOf(s)}})
		return
	}
	if f.partial || s.Const == nil && s.Enum == nil {
		return
	}
	e.scratch = canonical(e.scratch[:0], v, e.steps)
	for _, keyword := range []any{s.Const, s.Enum} {
		c, ok := e.v.choices[keyword]
		if !ok {
			continue
		}
		if _, ok := c.texts[string(e.scratch)]; !ok {
			e.add(f, flaw{want: [][]string{c.shown}, fixed: true})
			return
		}
	}
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
	if !e.steps.Take(p.steps(text)) {
		return false
	}
	begun := time.Now()
	ok, err := p.match(text)
	if err != nil {
		e.steps.stop(err)
	}
	if p.linear == nil {
		e.steps.Take(int(time.Since(begun) / backtrackingStep))
	}
	return ok
}

// number applies the keywords about numbers.
func (e *evaluation) number(f *frame, n json.Number) {
	s := f.schema
	if s.Minimum == nil && s.Maximum == nil && s.ExclusiveMinimum == nil && s.ExclusiveMaximum == nil && s.MultipleOf == nil {
		return
	}
	if !e.steps.Take(8 + len(n)) {
		return
	}
	r, ok := new(big.Rat).SetString(string(n))
	if !ok {
		return
	}
	bound := func(limit *big.Rat, must string, fits func(compared int) bool) {
		if limit != nil && !fits(r.Cmp(limit)) {
			e.say(f, "must be %s %s", must, decimals{limit})
		}
	}
	bound(s.Minimum, "at least", func(c int) bool { return c >= 0 })
	bound(s.Maximum, "at most", func(c int) bool { return c <= 0 })
	bound(s.ExclusiveMinimum, "more than", func(c int) bool { return c > 0 })
	bound(s.ExclusiveMaximum, "less than", func(c int) bool { return c < 0 })
	if s.MultipleOf != nil && s.MultipleOf.Sign() != 0 && e.steps.Take(64) && !new(big.Rat).Quo(r, s.MultipleOf).IsInt() {
		e.say(f, "must be a multiple of %s", decimals{s.MultipleOf})
	}
}

// combined applies the keywords that combine schemas.
func (e *evaluation) combined(f *frame) {
	s := f.schema
	for _, sub := range s.AllOf {
		if e.self(f, sub, f.quiet, f.partial); f.done() || e.steps.Err() != nil {
			break
		}
	}
	if f.partial {
		return // more members can change the outcome of the others
	}
	if s.Not != nil && e.test(f, s.Not, true, false) {
		e.say(f, "has a form that is ruled out")
	}
	if len(s.AnyOf) > 0 {
		e.branches(f, s.AnyOf, false)
	}
	if len(s.OneOf) > 0 {
		e.branches(f, s.OneOf, true)
	}
	if s.If == nil {
		return
	}
	then := s.Then
	if !e.test(f, s.If, true, false) {
		then = s.Else
	}
	if then != nil {
		e.self(f, then, f.quiet, false)
	}
}

// branches applies an anyOf, or a oneOf, whose schemas exclude each other. If none fits, the flaws that explain it best
// stay.
func (e *evaluation) branches(f *frame, schemas []*jsonschema.Schema, exclusive bool) {
	fits, begin := false, len(e.flaws)
	var options [][]flaw
	for _, s := range schemas {
		from := len(e.flaws)
		ok := e.test(f, s, f.quiet || exclusive && fits, false)
		if e.steps.Err() != nil {
			return
		}
		if ok && fits && exclusive {
			e.flaws = e.flaws[:begin]
			e.say(f, "fits more than one of the forms that exclude each other")
			return
		}
		if fits = fits || ok; ok && !exclusive && f.open.isEmpty() {
			break // otherwise all matching branches must be applied, since each evaluates members
		}
		if len(e.flaws) > from {
			options = append(options, e.flaws[from:])
		}
	}
	seen := len(e.flaws) - begin
	if e.flaws = e.flaws[:begin]; fits {
		return
	}
	if f.failed = true; f.quiet || !e.steps.Take(stepsPerFlaw+len(f.path)+seen) {
		return
	}
	if len(options) == 0 {
		e.say(f, "fits none of the allowed forms")
	} else if one, ok := merged(options, len(f.path)); ok {
		e.flaws = append(e.flaws, one)
	} else {
		e.flaws = append(e.flaws, closest(options, len(f.path))...)
	}
}
