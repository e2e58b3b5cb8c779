package schemas

import (
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/mcsh-dev/mcsh/internal/nearest"
	"github.com/mcsh-dev/mcsh/internal/texts"
)

// A flaw is one mistake in a value. Its sentence is written last, since the branches of an anyOf can merge their flaws.
type flaw struct {
	path  []string // of the value with the mistake
	want  []string // allowed types, or values if fixed
	fixed bool
	said  string // the sentence after the place, instead of want
	whole bool   // said is the whole sentence
	field string // the wrong member, if it is not the one at path
	hint  string
}

// A finder turns a tree of failures, which follows the schema, into flaws of the value. It stops when its steps are spent.
type finder struct {
	value any
	steps *Steps
}

// maxWant is the number of values of an enum that are compared with a wrong one.
const maxWant = 256

// flaws returns the mistakes under a failure.
func (f finder) flaws(e *failure) []flaw {
	if !f.steps.Take(4) {
		return nil
	}
	switch k := e.kind.(type) {
	case *kind.Type:
		return []flaw{{path: e.path, want: typesOf(e.schema, k.Want)}}
	case *kind.Enum:
		f.steps.Take(2 * min(len(k.Want), maxWant))
		return []flaw{{path: e.path, want: shownAll(k.Want, maxWant), fixed: true}}
	case *kind.Const:
		return []flaw{{path: e.path, want: []string{show(k.Want)}, fixed: true}}
	case *kind.Required:
		return f.missing(e, k.Missing)
	case *kind.AdditionalProperties:
		return f.unknown(e, k.Properties)
	case *kind.AnyOf, *kind.OneOf:
		return f.branches(e)
	case *kind.FalseSchema:
		return []flaw{{path: e.path, said: "is not allowed here"}}
	case *kind.PropertyNames:
		return []flaw{f.badName(e, k.Property)}
	case *kind.Contains, *kind.MinContains, *kind.MaxContains, *kind.Not:
		return []flaw{{path: e.path, said: phrase(k)}}
	}
	if len(e.causes) == 0 {
		if said := phrase(e.kind); said != "" {
			return []flaw{{path: e.path, said: said}}
		}
		return nil
	}
	var all []flaw
	for _, cause := range e.causes {
		all = append(all, f.flaws(cause)...)
	}
	return all
}

// missing reports required members that the value lacks, and their types.
func (f finder) missing(e *failure, names []string) []flaw {
	var flaws []flaw
	for _, name := range names {
		if !f.steps.Take(16) && flaws != nil {
			break
		}
		place := join(field(f.value, e.path), name)
		said := "missing field " + texts.JSON(place)
		if what := describe(e.schema.Properties[name], 0); what != "" {
			said += ", " + what
		}
		flaws = append(flaws, flaw{path: e.path, said: said, whole: true, field: place})
	}
	return flaws
}

// unknown reports members that a closed object must not have, and the known member that was probably meant.
func (f finder) unknown(e *failure, names []string) []flaw {
	var known []string
	if f.steps.Take(2 * len(e.schema.Properties)) {
		known = slices.Sorted(maps.Keys(e.schema.Properties))
	}
	given, _ := lookup(f.value, e.path).(map[string]any)
	free := slices.DeleteFunc(slices.Clone(known), func(name string) bool { _, ok := given[name]; return ok })
	var flaws []flaw
	slices.Sort(names)
	for i, name := range names {
		if !f.steps.Take(4) && flaws != nil {
			break
		}
		place := join(field(f.value, e.path), name)
		fl := flaw{path: e.path, said: "unknown field " + texts.JSON(place), whole: true, field: place}
		best := ""
		if i < maxFlaws && f.steps.Take(32*len(free)) { // later flaws are only counted
			best = nearest.Name(name, free)
		}
		switch {
		case best != "":
			fl.hint = "did you mean " + texts.JSON(best) + "?"
		case len(known) > 0:
			fl.hint = "the fields are " + strings.Join(cutList(known, 12), ", ")
		case len(e.schema.Properties) == 0:
			fl.hint = "no fields are allowed here"
		}
		flaws = append(flaws, fl)
	}
	return flaws
}

func (f finder) badName(e *failure, name string) flaw {
	why := ""
	for _, cause := range e.causes {
		for _, inner := range f.flaws(cause) {
			if inner.said != "" {
				why = ": it " + inner.said
			}
		}
	}
	place := join(field(f.value, e.path), name)
	return flaw{path: e.path, said: "field name " + texts.JSON(place) + " is not allowed" + why, whole: true}
}

// branches explains why no alternative fits, or more than one.
func (f finder) branches(e *failure) []flaw {
	if one, ok := e.kind.(*kind.OneOf); ok && len(one.Subschemas) > 1 {
		return []flaw{{path: e.path, said: "fits more than one of the forms that exclude each other"}}
	}
	var options [][]flaw
	for _, cause := range e.causes {
		if found := f.flaws(cause); len(found) > 0 {
			options = append(options, found)
		}
	}
	if len(options) == 0 {
		return []flaw{{path: e.path, said: "fits none of the allowed forms"}}
	}
	depth := len(e.path)
	if wrong, ok := f.merged(options, depth); ok {
		return []flaw{wrong}
	}
	return closest(options, depth)
}

// merged joins the branches if each fails at the same place because of the type there, or each because of a fixed value.
func (f finder) merged(options [][]flaw, depth int) (flaw, bool) {
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
			if f.steps.Take(1+len(all.want)/8) && !slices.Contains(all.want, want) {
				all.want = append(all.want, want)
			}
		}
	}
	return all, len(typed) > 1
}

// mistyped reports whether a branch fails because it wants another type of value.
func mistyped(option []flaw, depth int) bool {
	return slices.ContainsFunc(option, func(fl flaw) bool {
		return len(fl.want) > 0 && !fl.fixed && len(fl.path) == depth
	})
}

// closest returns the flaws of the branch that was probably meant: it has the right type, the right fixed values (such as
// a discriminator), and the fewest flaws.
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

// sentence describes a flaw of value; root is the name of the value itself.
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
	if hint := fl.advice(value); hint != "" {
		said += " (" + hint + ")"
	}
	return said
}

// advice returns the hint of a flaw, or proposes the allowed value that was probably meant.
func (fl flaw) advice(value any) string {
	if fl.hint != "" || !fl.fixed {
		return fl.hint
	}
	got, ok := lookup(value, fl.path).(string)
	if !ok || len(fl.want) < 2 {
		return ""
	}
	if best := nearest.Name(texts.JSON(got), fl.want); best != "" {
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

// shownAll shows at most n of some values.
func shownAll(values []any, n int) []string {
	shown := make([]string, min(len(values), n))
	for i := range shown {
		shown[i] = show(values[i])
	}
	return shown
}
