package schemas

import (
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/mcsh-dev/mcsh/internal/nearest"
)

// A flaw is one mistake in a value. Its sentence is made last, because the branches of an anyOf can merge theirs.
type flaw struct {
	path  []string // where
	want  []string // what could stand there: types, or values if fixed
	fixed bool
	said  string // the rest of the sentence after the place, instead of want
	whole bool   // said is the whole sentence
	field string // the member that is wrong, if it is not the one at path
	hint  string // what to do about it
}

// A finder turns what the validator reports, a tree in terms of the schema, into flaws in terms of the value.
type finder struct {
	value any
	at    map[string]*jsonschema.Schema
}

// flaws returns the mistakes under e.
func (f finder) flaws(e *jsonschema.ValidationError) []flaw {
	switch k := e.ErrorKind.(type) {
	case *kind.Type:
		return []flaw{{path: e.InstanceLocation, want: typesOf(f.at[e.SchemaURL], k.Want)}}
	case *kind.Enum:
		return []flaw{{path: e.InstanceLocation, want: shownAll(k.Want), fixed: true}}
	case *kind.Const:
		return []flaw{{path: e.InstanceLocation, want: []string{show(k.Want)}, fixed: true}}
	case *kind.Required:
		return f.missing(e, k.Missing)
	case *kind.AdditionalProperties:
		return f.unknown(e, k.Properties)
	case *kind.AnyOf, *kind.OneOf:
		return f.branches(e)
	case *kind.FalseSchema:
		return []flaw{{path: e.InstanceLocation, said: "is not allowed here"}}
	case *kind.PropertyNames:
		return []flaw{f.badName(e, k.Property)}
	case *kind.Contains, *kind.MinContains, *kind.MaxContains, *kind.Not:
		return []flaw{{path: e.InstanceLocation, said: phrase(k)}}
	}
	if len(e.Causes) == 0 {
		if said := phrase(e.ErrorKind); said != "" {
			return []flaw{{path: e.InstanceLocation, said: said}}
		}
		return nil
	}
	var all []flaw
	for _, cause := range e.Causes {
		all = append(all, f.flaws(cause)...)
	}
	return all
}

// missing reports required members that are not there, with what belongs in them.
func (f finder) missing(e *jsonschema.ValidationError, names []string) []flaw {
	var flaws []flaw
	for _, name := range names {
		place := join(field(f.value, e.InstanceLocation), name)
		said := "missing field " + quoteJSON(place)
		if s := f.at[e.SchemaURL]; s != nil {
			if what := describe(s.Properties[name], 0); what != "" {
				said += ", " + what
			}
		}
		flaws = append(flaws, flaw{path: e.InstanceLocation, said: said, whole: true, field: place})
	}
	return flaws
}

// unknown reports members that a closed object does not have, with the known one that was likely meant.
func (f finder) unknown(e *jsonschema.ValidationError, names []string) []flaw {
	var known []string
	if s := f.at[e.SchemaURL]; s != nil {
		known = slices.Sorted(maps.Keys(s.Properties))
	}
	given, _ := lookup(f.value, e.InstanceLocation).(map[string]any)
	free := slices.DeleteFunc(slices.Clone(known), func(name string) bool { _, ok := given[name]; return ok })
	var flaws []flaw
	slices.Sort(names)
	for i, name := range names {
		place := join(field(f.value, e.InstanceLocation), name)
		fl := flaw{path: e.InstanceLocation, said: "unknown field " + quoteJSON(place), whole: true, field: place}
		best := ""
		if i < maxFlaws { // those beyond are only counted
			best = nearest.Name(name, free)
		}
		switch {
		case best != "":
			fl.hint = "did you mean " + quoteJSON(best) + "?"
		case len(known) > 0:
			fl.hint = "the fields are " + strings.Join(cutList(known, 12), ", ")
		default:
			fl.hint = "no fields are allowed here"
		}
		flaws = append(flaws, fl)
	}
	return flaws
}

func (f finder) badName(e *jsonschema.ValidationError, name string) flaw {
	why := ""
	for _, cause := range e.Causes {
		for _, inner := range f.flaws(cause) {
			if inner.said != "" {
				why = ": it " + inner.said
			}
		}
	}
	place := join(field(f.value, e.InstanceLocation), name)
	return flaw{path: e.InstanceLocation, said: "field name " + quoteJSON(place) + " is not allowed" + why, whole: true}
}

// branches explains why none, or more than one, of several alternatives fits.
func (f finder) branches(e *jsonschema.ValidationError) []flaw {
	if one, ok := e.ErrorKind.(*kind.OneOf); ok && len(one.Subschemas) > 1 {
		return []flaw{{path: e.InstanceLocation, said: "fits more than one of the forms that exclude each other"}}
	}
	var options [][]flaw
	for _, cause := range e.Causes {
		if found := f.flaws(cause); len(found) > 0 {
			options = append(options, found)
		}
	}
	if len(options) == 0 {
		return []flaw{{path: e.InstanceLocation, said: "fits none of the allowed forms"}}
	}
	depth := len(e.InstanceLocation)
	if wrong, ok := merged(options, depth); ok {
		return []flaw{wrong}
	}
	return closest(options, depth)
}

// merged joins branches that each fail in one place for its type or its fixed value alone.
func merged(options [][]flaw, depth int) (flaw, bool) {
	typed := slices.DeleteFunc(slices.Clone(options), func(o []flaw) bool { return mistyped(o, depth) })
	if len(typed) == 0 {
		typed = options
	}
	first := typed[0][0]
	all := flaw{path: first.path, fixed: first.fixed}
	for _, option := range typed {
		i := slices.IndexFunc(option, func(fl flaw) bool {
			return len(fl.want) > 0 && fl.fixed == all.fixed && slices.Equal(fl.path, all.path)
		})
		if i < 0 {
			return flaw{}, false
		}
		for _, want := range option[i].want {
			if !slices.Contains(all.want, want) {
				all.want = append(all.want, want)
			}
		}
	}
	return all, len(typed) > 1
}

// mistyped reports whether a branch fails because it takes another type altogether.
func mistyped(option []flaw, depth int) bool {
	return slices.ContainsFunc(option, func(fl flaw) bool {
		return len(fl.want) > 0 && !fl.fixed && len(fl.path) == depth
	})
}

// closest returns the flaws of the branch that was most likely meant: of the right type, with the right fixed values
// (such as a discriminator), and with the fewest flaws.
func closest(options [][]flaw, depth int) []flaw {
	badness := func(option []flaw) int {
		score := len(option)
		for _, fl := range option {
			if fl.fixed {
				score += 100
			}
		}
		if mistyped(option, depth) {
			score += 10_000
		}
		return score
	}
	return slices.MinFunc(options, func(a, b []flaw) int { return badness(a) - badness(b) })
}

// tidy sorts flaws by place and drops repetitions.
func tidy(flaws []flaw) []flaw {
	slices.SortStableFunc(flaws, func(a, b flaw) int {
		if c := slices.Compare(a.path, b.path); c != 0 {
			return c
		}
		return strings.Compare(a.said, b.said)
	})
	return slices.CompactFunc(flaws, func(a, b flaw) bool {
		return slices.Equal(a.path, b.path) && a.said == b.said && slices.Equal(a.want, b.want)
	})
}

// sentence writes a flaw of value, whose own name is root.
func (fl flaw) sentence(root string, value any) string {
	said := fl.said
	if !fl.whole {
		name := field(value, fl.path)
		if name == "" {
			name = root
		}
		if len(fl.want) > 0 {
			said = "must be " + alternatives(cutList(fl.want, 20))
			if fl.fixed && len(fl.want) > 1 {
				said = "must be one of " + strings.Join(cutList(fl.want, 20), ", ")
			}
		}
		said = name + " " + said + ", got " + show(lookup(value, fl.path))
	}
	if hint := fl.hinted(value); hint != "" {
		said += " (" + hint + ")"
	}
	return said
}

// hinted returns what to do about a flaw: its own hint, or the allowed value that was likely meant.
func (fl flaw) hinted(value any) string {
	if fl.hint != "" || !fl.fixed {
		return fl.hint
	}
	got, ok := lookup(value, fl.path).(string)
	if !ok || len(fl.want) < 2 {
		return ""
	}
	if best := nearest.Name(quoteJSON(got), fl.want); best != "" {
		return "did you mean " + best + "?"
	}
	return ""
}

func join(place, name string) string { return place + member(name, place == "") }

func cutList(names []string, n int) []string {
	if len(names) <= n {
		return names
	}
	return append(slices.Clone(names[:n]), "...")
}

func shownAll(values []any) []string {
	shown := make([]string, len(values))
	for i, v := range values {
		shown[i] = show(v)
	}
	return shown
}
