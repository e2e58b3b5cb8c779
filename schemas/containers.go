package schemas

import (
	"strconv"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// object applies the keywords about objects.
func (e *evaluation) object(f *frame, o map[string]any) {
	s := f.schema
	if s.MinProperties != nil && !f.partial && len(o) < *s.MinProperties {
		e.add(f, &kind.MinProperties{Got: len(o), Want: *s.MinProperties})
	}
	if s.MaxProperties != nil && len(o) > *s.MaxProperties {
		e.add(f, &kind.MaxProperties{Got: len(o), Want: *s.MaxProperties})
	}
	if !f.partial {
		if missing := e.missing(o, s.Required); missing != nil {
			e.add(f, &kind.Required{Missing: missing})
		}
	}
	if f.quiet && len(f.failures) > 0 {
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
		if _, ok := o[name]; !ok && e.ok(1) {
			missing = append(missing, name)
		}
	}
	e.ok(len(names) / 4)
	return missing
}

// members applies the schemas of the members of an object.
func (e *evaluation) members(f *frame, o map[string]any) {
	s := f.schema
	if len(s.Properties) == 0 && len(s.PatternProperties) == 0 && s.AdditionalProperties == nil {
		return
	}
	var unknown []string
	for name, value := range o {
		if f.quiet && len(f.failures) > 0 || !e.ok(1) {
			return
		}
		evaluated := false
		if sub, ok := s.Properties[name]; ok {
			evaluated = true
			e.child(f, sub, value, name)
		}
		for re, sub := range s.PatternProperties {
			if e.matches(re, name) {
				evaluated = true
				e.child(f, sub, value, name)
			}
		}
		if !evaluated && s.AdditionalProperties != nil {
			evaluated = true
			if allowed, ok := s.AdditionalProperties.(bool); ok && !allowed {
				unknown = append(unknown, name)
			} else if sub, ok := s.AdditionalProperties.(*jsonschema.Schema); ok {
				e.child(f, sub, value, name)
			}
		}
		if evaluated {
			delete(f.open.members, name)
		}
	}
	if len(unknown) > 0 {
		e.add(f, &kind.AdditionalProperties{Properties: unknown})
	}
}

// name applies the schema of the names of members.
func (e *evaluation) name(f *frame, name string) {
	sub := &frame{schema: f.schema.PropertyNames, above: f, depth: f.depth + 1, quiet: f.quiet, open: open{value: name}}
	fl := e.apply(sub, name)
	if fl != nil {
		f.failures = append(f.failures, e.group(f, &kind.PropertyNames{Property: name}, fl.flat()))
	}
}

// dependent applies the keywords that one member's presence activates.
func (e *evaluation) dependent(f *frame, o map[string]any) {
	s := f.schema
	for name, either := range s.Dependencies {
		switch either := either.(type) {
		case []string:
			e.requires(f, o, name, either)
		case *jsonschema.Schema:
			if _, ok := o[name]; ok && e.ok(1) {
				e.also(f, either)
			}
		}
	}
	for name, sub := range s.DependentSchemas {
		if _, ok := o[name]; ok {
			e.also(f, sub)
		}
	}
	for name, required := range s.DependentRequired {
		e.requires(f, o, name, required)
	}
}

// requires refuses an object that has one member and lacks others.
func (e *evaluation) requires(f *frame, o map[string]any, name string, others []string) {
	if _, ok := o[name]; !ok || !e.ok(1) {
		return
	}
	if missing := e.missing(o, others); missing != nil {
		e.add(f, &kind.DependentRequired{Prop: name, Missing: missing})
	}
}

// also applies another schema to the same value and adds its failure.
func (e *evaluation) also(f *frame, s *jsonschema.Schema) {
	if fl := e.self(f, s, f.quiet, false); fl != nil {
		f.failures = append(f.failures, fl)
	}
}

// array applies the keywords about arrays.
func (e *evaluation) array(f *frame, a []any) {
	s := f.schema
	if s.MinItems != nil && len(a) < *s.MinItems {
		e.add(f, &kind.MinItems{Got: len(a), Want: *s.MinItems})
	}
	if s.MaxItems != nil && len(a) > *s.MaxItems {
		e.add(f, &kind.MaxItems{Got: len(a), Want: *s.MaxItems})
	}
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
		e.add(f, &kind.AdditionalItems{Count: len(a) - len(first)})
	}
	for i, item := range a {
		sub := rest
		if i < len(first) {
			sub = first[i]
		}
		if sub == nil || !e.ok(1) {
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
		if !e.ok(2 + len(e.scratch)/bytesPerStep) {
			return
		}
		if j, ok := seen[string(e.scratch)]; ok {
			e.add(f, &kind.UniqueItems{Duplicates: [2]int{j, i}})
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
		if !e.ok(1) {
			return
		}
		if e.part(f, s.Contains, item, strconv.Itoa(i), true) == nil {
			fits++
			if s.DraftVersion >= 2020 {
				delete(f.open.items, i)
			}
		}
	}
	switch {
	case s.MinContains != nil && fits < *s.MinContains:
		e.add(f, &kind.MinContains{Want: *s.MinContains})
	case s.MinContains == nil && fits == 0:
		e.add(f, &kind.Contains{})
	}
	if s.MaxContains != nil && fits > *s.MaxContains {
		e.add(f, &kind.MaxContains{Want: *s.MaxContains})
	}
}

// text applies the keywords about strings.
func (e *evaluation) text(f *frame, text string) {
	s := f.schema
	if (s.MinLength != nil || s.MaxLength != nil) && e.ok(len(text)/bytesPerStep) {
		n := utf8.RuneCountInString(text)
		if s.MinLength != nil && n < *s.MinLength {
			e.add(f, &kind.MinLength{Got: n, Want: *s.MinLength})
		}
		if s.MaxLength != nil && n > *s.MaxLength {
			e.add(f, &kind.MaxLength{Got: n, Want: *s.MaxLength})
		}
	}
	if s.Pattern != nil && !e.matches(s.Pattern, text) {
		e.add(f, &kind.Pattern{Got: text, Want: s.Pattern.String()})
	}
}

// open holds the members or items of a value that no keyword has evaluated yet, if some keyword needs to know.
type open struct {
	value   any
	members map[string]struct{}
	items   map[int]struct{}
}

// opened returns the open members or items before a schema is applied to a value.
func opened(v any, s *jsonschema.Schema, asked bool, e *evaluation) open {
	o := open{value: v}
	switch v := v.(type) {
	case map[string]any:
		if s.AdditionalProperties == nil && (asked || s.UnevaluatedProperties != nil) && e.ok(4*len(v)) {
			o.members = make(map[string]struct{}, len(v))
			for name := range v {
				o.members[name] = struct{}{}
			}
		}
	case []any:
		first, _, all := itemSchemas(s)
		if !all && len(first) < len(v) && (asked || s.UnevaluatedItems != nil) && e.ok(4*len(v)) {
			o.items = make(map[int]struct{}, len(v))
			for i := len(first); i < len(v); i++ {
				o.items[i] = struct{}{}
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

// of returns the open members or items before another schema is applied to the same value.
func (o open) of(s *jsonschema.Schema, e *evaluation) open {
	return opened(o.value, s, !o.isEmpty(), e)
}

func (o open) isEmpty() bool { return len(o.members) == 0 && len(o.items) == 0 }

// merge removes the members and items that another schema has evaluated, which the value satisfies.
func (o open) merge(other open) {
	for name := range o.members {
		if _, ok := other.members[name]; !ok {
			delete(o.members, name)
		}
	}
	for i := range o.items {
		if _, ok := other.items[i]; !ok {
			delete(o.items, i)
		}
	}
}

// unevaluated applies unevaluatedProperties and unevaluatedItems.
func (e *evaluation) unevaluated(f *frame, v any) {
	s := f.schema
	if o, ok := v.(map[string]any); ok && s.UnevaluatedProperties != nil && !f.partial {
		for name := range f.open.members {
			e.child(f, s.UnevaluatedProperties, o[name], name)
		}
		f.open.members = nil
	}
	if a, ok := v.([]any); ok && s.UnevaluatedItems != nil {
		for i := range f.open.items {
			e.child(f, s.UnevaluatedItems, a[i], strconv.Itoa(i))
		}
		f.open.items = nil
	}
}
