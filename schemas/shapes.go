package schemas

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mcsh-dev/mcsh/internal/nearest"
	"github.com/mcsh-dev/mcsh/stages"
)

// maxStage bounds the JSON of one stage, nested ones included, in bytes.
const maxStage = 16 << 20

// maxFlaws is how many mistakes of one stage are told; those beyond are counted. Whoever makes more has sent something else
// than a stage, and its words would take longer than a run.
const maxFlaws = 100

// Shapes checks the JSON of stages against the schemas of their kinds. It implements [stages.Shapes] and may be used
// concurrently.
type Shapes struct {
	names []string
	kinds map[string]shape
}

// A shape is what stages of one kind look like.
type shape struct {
	validator *validator
	fields    []string // in the order of the schema
	nested    []string // the fields that hold stages
}

var _ stages.Shapes = (*Shapes)(nil)

// NewShapes prepares the check of stages of the given kinds. It panics if the schema of a Go type does not compile,
// which is a mistake in the table.
func NewShapes(kinds []stages.Kind) *Shapes {
	s := &Shapes{kinds: map[string]shape{}}
	for _, k := range kinds {
		schema := checked.kind(k)
		v, err := compile(marshal(schema))
		if err != nil {
			panic(fmt.Sprintf("schemas: compiling the schema of stage type %q: %v", k.Name, err))
		}
		kind := shape{validator: v}
		for pair := schema.Properties.Oldest(); pair != nil; pair = pair.Next() {
			kind.fields = append(kind.fields, pair.Key)
		}
		kind.nested = nestedFields(k)
		s.names = append(s.names, k.Name)
		s.kinds[k.Name] = kind
	}
	return s
}

// nestedFields returns the fields of a kind that hold stages.
func nestedFields(k stages.Kind) []string {
	var names []string
	s := published.kind(k)
	for pair := s.Properties.Oldest(); pair != nil; pair = pair.Next() {
		if strings.Contains(string(marshal(pair.Value)), stageRef) {
			names = append(names, pair.Key)
		}
	}
	return names
}

// CheckShape returns every mistake of one stage, each with Code, Field, Msg and Hint. The kind comes first: a stage of
// no known kind has that one mistake. Stages nested in it are not looked into.
func (s *Shapes) CheckShape(kind string, stage []byte) []*stages.Error {
	if err := bounded(stage, maxStage); err != nil {
		return []*stages.Error{wrong("", "make the stage smaller and flatter", "a stage cannot be read: %w", err)}
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(stage))
	if err != nil {
		return []*stages.Error{wrong("", "", "a stage is not valid JSON: %w", err)}
	}
	fields, ok := value.(map[string]any)
	if !ok {
		return []*stages.Error{wrong("", `write a stage as {"type": ..., ...}`, "a stage must be a JSON object, got %s", show(value))}
	}
	sh, ok := s.kinds[kind]
	if !ok {
		return []*stages.Error{s.badKind(kind, fields)}
	}
	errs := repeated(stage, nil, sh.nested)
	flaws := sh.validator.check(value, false)
	more := max(0, len(flaws)-maxFlaws)
	for _, fl := range s.fewest(kind, fields, flaws[:len(flaws)-more]) {
		errs = append(errs, fl.asError(value))
	}
	if more > 0 {
		errs = append(errs, wrong("", "mend those that are told first", "the stage has %s more than that", count(more, "mistake")))
	}
	return append(errs, s.integers(kind, fields)...)
}

// wrong makes the error of a stage that has a mistake in one field.
func wrong(field, hint, format string, args ...any) *stages.Error {
	err := stages.Errorf(stages.InvalidPipeline, hint, format, args...)
	err.Field = field
	return err
}

func (fl flaw) asError(value any) *stages.Error {
	place := fl.field
	if place == "" {
		place = field(value, fl.path)
	}
	hint := fl.hinted(value)
	if hint == "" && !fl.whole {
		hint = advice(fl, lookup(value, fl.path))
	}
	fl.hint, fl.fixed = "", fl.fixed && hint == ""
	return wrong(place, hint, "%s", fl.sentence("the stage", value))
}

// advice is what to do about a value of the wrong type.
func advice(fl flaw, got any) string {
	_, isObject := got.(map[string]any)
	switch {
	case got == nil:
		return "leave the field out for its default"
	case isObject && len(fl.want) == 1 && strings.HasPrefix(fl.want[0], articles["array"]):
		return "put it into an array: [{...}]"
	}
	return ""
}

// fewest leaves one flaw where a wrong name makes two: a field that is unknown, and the one meant by it missing. It
// gives unknown fields the hints that only somebody who knows the language can give.
func (s *Shapes) fewest(kind string, fields map[string]any, flaws []flaw) []flaw {
	var missing []string
	for _, fl := range flaws {
		if strings.HasPrefix(fl.said, "missing field") {
			missing = append(missing, fl.field)
		}
	}
	meant := map[string]bool{}
	for i, fl := range flaws {
		if !strings.HasPrefix(fl.said, "unknown field") || len(fl.path) > 0 {
			continue
		}
		target := s.meant(kind, fl.field, fields, missing)
		if target != "" {
			meant[target] = true
			flaws[i].hint = "did you mean " + quoteJSON(target) + "?"
			continue
		}
		flaws[i].hint = s.others(kind, fl.field)
	}
	return slices.DeleteFunc(flaws, func(fl flaw) bool {
		return strings.HasPrefix(fl.said, "missing field") && meant[fl.field]
	})
}

// meant returns the field of a kind that was likely meant by an unknown name, or "". Fields that the stage already
// has are not it.
func (s *Shapes) meant(kind, name string, given map[string]any, missing []string) string {
	free := slices.DeleteFunc(slices.Clone(s.kinds[kind].fields), func(f string) bool { _, ok := given[f]; return ok })
	for _, target := range slips[strings.ToLower(name)] {
		if slices.Contains(free, target) {
			return target
		}
	}
	if best := nearest.Name(name, missing); best != "" {
		return best
	}
	return nearest.Name(name, free)
}

// others says which kinds have a field, if any has, and which fields this kind has.
func (s *Shapes) others(kind, name string) string {
	var have []string
	for _, other := range s.names {
		if slices.Contains(s.kinds[other].fields, name) {
			have = append(have, other)
		}
	}
	hint := fmt.Sprintf("the fields of a %s stage are %s", kind, strings.Join(s.kinds[kind].fields, ", "))
	if len(have) > 0 {
		hint = fmt.Sprintf("it belongs to %s stages; %s", alternatives(have), hint)
	}
	return hint
}

// badKind is the error of a stage without a known type.
func (s *Shapes) badKind(kind string, fields map[string]any) *stages.Error {
	types := "the types are " + strings.Join(s.names, ", ")
	likely := s.likelyKind(fields)
	given, present := fields["type"]
	if !present && kind == "" {
		if likely != "" {
			return wrong("type", fmt.Sprintf(`add "type": %q`, likely), `missing field "type"`)
		}
		return wrong("type", types, `missing field "type"`)
	}
	name, isString := given.(string)
	if present && !isString {
		return wrong("type", types, "type must be a string, got %s", show(given))
	}
	if name == "" {
		name = kind
	}
	hint := types
	if slices.Contains(programs, name) && slices.Contains(s.names, "command") {
		hint = fmt.Sprintf(`write "type": "command", "command": %q`, name)
	} else if best := s.meantKind(name); best != "" {
		hint = fmt.Sprintf("did you mean %q? %s", best, types)
	} else if likely != "" {
		hint = fmt.Sprintf(`write "type": %q; %s`, likely, types)
	}
	return wrong("type", hint, "unknown stage type %s", quoteJSON(cut(name, maxShown)))
}

func (s *Shapes) meantKind(name string) string {
	if target := kindSlips[strings.ToLower(name)]; slices.Contains(s.names, target) {
		return target
	}
	return nearest.Name(name, s.names)
}

// likelyKind guesses the kind of a stage by its fields: the one that knows most of them.
func (s *Shapes) likelyKind(fields map[string]any) string {
	best, most := "", 0
	for _, name := range s.names {
		score := 0
		for field := range fields {
			known := s.kinds[name].fields
			if field != "type" && slices.Contains(known, field) {
				score += 2
			} else if slices.ContainsFunc(slips[strings.ToLower(field)], func(f string) bool { return slices.Contains(known, f) }) {
				score++
			}
		}
		if score > most {
			best, most = name, score
		}
	}
	return best
}

// repeated returns an error for every member that an object holds twice: JSON readers keep only the last, and what
// the first one said would be lost. Nested stages are left to their own check.
func repeated(raw json.RawMessage, path []string, skip []string) []*stages.Error {
	var errs []*stages.Error
	seen := map[string]int{}
	for _, e := range readObject(raw) {
		at := append(slices.Clone(path), e.name)
		if seen[e.name]++; seen[e.name] == 2 {
			place := field(nil, at)
			errs = append(errs, wrong(place, "keep one of the two", "field %s is given twice", quoteJSON(place)))
		}
		if !slices.Contains(skip, e.name) && len(e.value) > 0 && e.value[0] == '{' {
			errs = append(errs, repeated(e.value, at, nil)...)
		}
	}
	return errs
}

// integers returns an error for every whole number that is written with a fraction or an exponent, such as 3e3: JSON
// Schema takes it for an integer, but a decoder of integers does not.
func (s *Shapes) integers(kind string, fields map[string]any) []*stages.Error {
	var errs []*stages.Error
	root := s.kinds[kind].validator.whole
	for _, name := range s.kinds[kind].fields {
		number, ok := fields[name].(json.Number)
		if !ok || !strings.ContainsAny(number.String(), ".eE") || root.Properties[name] == nil {
			continue
		}
		types := root.Properties[name].Types
		if types == nil || !slices.Equal(types.ToStrings(), []string{"integer"}) || !whole(number) {
			continue // no integer at all is found by the schema
		}
		errs = append(errs, wrong(name, "write it with digits only", "%s must be a plain integer, got %s", name, number))
	}
	return errs
}
