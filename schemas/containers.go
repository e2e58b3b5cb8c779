package schemas

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

// length checks how many characters, items or fields a value has.
func (e *evaluation) length(f *frame, n int, least, most *int, noun string) {
	switch {
	case least == nil || n >= *least || f.partial:
	case *least == 1 && noun != "field":
		e.say(f, "must not be empty")
	default:
		e.say(f, "must have at least %s", texts.Count(*least, noun))
	}
	if most != nil && n > *most {
		has := ""
		if noun == "item" {
			has = fmt.Sprintf(", has %d", n)
		}
		e.say(f, "must have at most %s%s", texts.Count(*most, noun), has)
	}
}

// object applies the keywords about objects.
func (e *evaluation) object(f *frame, o map[string]any) {
	s := f.schema
	e.length(f, len(o), s.MinProperties, s.MaxProperties, "field")
	if !f.partial {
		for _, name := range e.missing(o, s.Required) {
			e.add(f, flaw{about: missingField, member: name})
		}
	}
	if f.done() {
		return
	}
	e.members(f, o)
	if s.PropertyNames != nil {
		for name := range o {
			e.name(f, name)
		}
	}
	if !f.partial {
		e.dependent(f, o)
	}
}

// missing returns the names that an object lacks.
func (e *evaluation) missing(o map[string]any, names []string) []string {
	var missing []string
	for _, name := range names {
		if _, ok := o[name]; !ok && e.steps.Take(1) {
			missing = append(missing, name)
		}
	}
	e.steps.Take(len(names) / 4)
	return missing
}

// names returns the names of an object's members. They are in order if the flaws matter: merged looks at the first one.
func (f *frame) names(o map[string]any) iter.Seq[string] {
	if f.quiet || len(o) < 2 {
		return maps.Keys(o)
	}
	return slices.Values(slices.Sorted(maps.Keys(o)))
}

// members applies the schemas of the members of an object.
func (e *evaluation) members(f *frame, o map[string]any) {
	s := f.schema
	if len(s.Properties) == 0 && len(s.PatternProperties) == 0 && s.AdditionalProperties == nil {
		return
	}
	if !e.steps.Take(len(s.PatternProperties)) {
		return
	}
	patterns := slices.AppendSeq(make([]jsonschema.Regexp, 0, len(s.PatternProperties)), maps.Keys(s.PatternProperties))
	if !f.quiet {
		slices.SortFunc(patterns, func(a, b jsonschema.Regexp) int { return strings.Compare(a.String(), b.String()) })
	}
	var unknown []string
	for name := range f.names(o) {
		if f.done() || !e.steps.Take(1) {
			return
		}
		value := o[name]
		sub, evaluated := s.Properties[name]
		if evaluated {
			e.child(f, sub, value, name)
		}
		for _, re := range patterns {
			if e.matches(re, name) {
				evaluated = true
				e.child(f, s.PatternProperties[re], value, name)
			}
		}
		if !evaluated && s.AdditionalProperties != nil {
			evaluated = true
			if sub, ok := s.AdditionalProperties.(*jsonschema.Schema); ok {
				e.child(f, sub, value, name)
			} else if s.AdditionalProperties == false {
				f.failed, unknown = true, append(unknown, name)
			}
		}
		if evaluated {
			delete(f.open.left, name)
		}
	}
	if unknown != nil {
		e.add(f, flaw{about: unknownField, members: unknown})
	}
}

// name applies the schema of the names of members.
func (e *evaluation) name(f *frame, name string) {
	begin := len(e.flaws)
	sub := &frame{schema: f.schema.PropertyNames, above: f, depth: f.depth + 1, quiet: f.quiet, open: open{value: name}}
	if e.apply(sub, name) {
		return
	}
	why := ""
	for _, fl := range e.flaws[begin:] {
		if fl.said != "" {
			why = ": it " + fl.said
		}
	}
	e.flaws = e.flaws[:begin]
	e.add(f, flaw{about: fieldName, member: name, said: "is not allowed" + why})
}

// dependent applies the keywords that one member's presence activates.
func (e *evaluation) dependent(f *frame, o map[string]any) {
	s := f.schema
	if len(s.Dependencies) == 0 && len(s.DependentSchemas) == 0 && len(s.DependentRequired) == 0 {
		return
	}
	for name := range f.names(o) {
		if !e.steps.Take(1) {
			return
		}
		switch either := s.Dependencies[name].(type) {
		case []string:
			e.requires(f, o, name, either)
		case *jsonschema.Schema:
			e.self(f, either, f.quiet, false)
		}
		if sub := s.DependentSchemas[name]; sub != nil {
			e.self(f, sub, f.quiet, false)
		}
		e.requires(f, o, name, s.DependentRequired[name])
	}
}

// requires refuses an object that has one member and lacks others.
func (e *evaluation) requires(f *frame, o map[string]any, name string, others []string) {
	if missing := e.missing(o, others); missing != nil {
		e.say(f, "must have %s where it has %s", quoted(missing, 8), texts.JSON(texts.Fit(name, maxShown)))
	}
}

// array applies the keywords about arrays.
func (e *evaluation) array(f *frame, a []any) {
	s := f.schema
	e.length(f, len(a), s.MinItems, s.MaxItems, "item")
	if s.UniqueItems && len(a) > 1 {
		e.unique(f, a)
	}
	e.items(f, a)
	if s.Contains != nil {
		e.contains(f, a)
	}
}

// items applies the schemas of the items of an array.
func (e *evaluation) items(f *frame, a []any) {
	first, rest, _ := itemSchemas(f.schema)
	if f.schema.AdditionalItems == false && len(a) > len(first) {
		e.say(f, "has %s too many", texts.Count(len(a)-len(first), "item"))
	}
	for i, item := range a {
		sub := rest
		if i < len(first) {
			sub = first[i]
		}
		if sub == nil || !e.steps.Take(1) {
			return
		}
		e.child(f, sub, item, strconv.Itoa(i))
	}
}

// unique refuses an array with equal items.
func (e *evaluation) unique(f *frame, a []any) {
	seen := make(map[string]int, min(len(a), 1024))
	for i, item := range a {
		e.scratch = canonical(e.scratch[:0], item, e.steps)
		if !e.steps.Take(2 + len(e.scratch)/bytesPerStep) {
			return
		}
		if j, ok := seen[string(e.scratch)]; ok {
			e.say(f, "must not repeat items, but [%d] and [%d] are equal", j, i)
			return
		}
		seen[string(e.scratch)] = i
	}
}

// contains counts the items that match the schema of contains.
func (e *evaluation) contains(f *frame, a []any) {
	s := f.schema
	fits := 0
	for i, item := range a {
		if !e.steps.Take(1) {
			return
		}
		if e.part(f, s.Contains, item, strconv.Itoa(i), true) {
			fits++
			if s.DraftVersion >= 2020 {
				delete(f.open.left, strconv.Itoa(i))
			}
		}
	}
	switch {
	case s.MinContains != nil && fits < *s.MinContains:
		e.say(f, "must have at least %s of a certain form", texts.Count(*s.MinContains, "item"))
	case s.MinContains == nil && fits == 0:
		e.say(f, "has no item of the form that it needs")
	}
	if s.MaxContains != nil && fits > *s.MaxContains {
		e.say(f, "must have at most %s of a certain form", texts.Count(*s.MaxContains, "item"))
	}
}

// text applies the keywords about strings.
func (e *evaluation) text(f *frame, text string) {
	s := f.schema
	if (s.MinLength != nil || s.MaxLength != nil) && e.steps.Take(len(text)/bytesPerStep) {
		e.length(f, utf8.RuneCountInString(text), s.MinLength, s.MaxLength, "character")
	}
	if s.Pattern != nil && !e.matches(s.Pattern, text) {
		e.say(f, "must match the pattern %s", texts.Fit(s.Pattern.String(), 200))
	}
}

// open holds the members or items of a value that no keyword has evaluated yet, if some keyword needs to know.
type open struct {
	value any
	left  map[string]struct{} // names of members, or indexes of items
}

// opened returns the open members or items before a schema is applied to a value.
func opened(v any, s *jsonschema.Schema, asked bool, e *evaluation) open {
	o := open{value: v}
	switch v := v.(type) {
	case map[string]any:
		if s.AdditionalProperties == nil && (asked || s.UnevaluatedProperties != nil) && e.steps.Take(4*len(v)) {
			o.left = make(map[string]struct{}, len(v))
			for name := range v {
				o.left[name] = struct{}{}
			}
		}
	case []any:
		first, _, all := itemSchemas(s)
		if !all && len(first) < len(v) && (asked || s.UnevaluatedItems != nil) && e.steps.Take(4*len(v)) {
			o.left = make(map[string]struct{}, len(v))
			for i := len(first); i < len(v); i++ {
				o.left[strconv.Itoa(i)] = struct{}{}
			}
		}
	}
	return o
}

// itemSchemas returns the schemas of the first items and of the rest, and whether a keyword evaluates all items. The
// schemas of the first items are in prefixItems, in drafts before 2020-12 in items.
func itemSchemas(s *jsonschema.Schema) (first []*jsonschema.Schema, rest *jsonschema.Schema, all bool) {
	if s.DraftVersion >= 2020 {
		return s.PrefixItems, s.Items2020, s.Items2020 != nil
	}
	if rest, ok := s.Items.(*jsonschema.Schema); ok {
		return nil, rest, true
	}
	first, _ = s.Items.([]*jsonschema.Schema)
	rest, _ = s.AdditionalItems.(*jsonschema.Schema)
	return first, rest, s.AdditionalItems != nil
}

func (o open) isEmpty() bool { return len(o.left) == 0 }

// merge removes the members and items that another schema has evaluated, which the value satisfies.
func (o open) merge(other open) {
	for token := range o.left {
		if _, ok := other.left[token]; !ok {
			delete(o.left, token)
		}
	}
}

// unevaluated applies unevaluatedProperties and unevaluatedItems.
func (e *evaluation) unevaluated(f *frame, v any) {
	sub := f.schema.UnevaluatedItems
	if _, ok := v.(map[string]any); ok {
		sub = f.schema.UnevaluatedProperties
	}
	if sub == nil || f.partial {
		return
	}
	for _, token := range slices.Sorted(maps.Keys(f.open.left)) {
		e.child(f, sub, lookup(v, []string{token}), token)
	}
	f.open.left = nil
}
