package schemas

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mcsh-dev/mcsh/internal/nearest"
	"github.com/mcsh-dev/mcsh/internal/texts"
)

// A flaw is one mistake in a value. Its sentence is written last, since the branches of an anyOf can merge their flaws.
type flaw struct {
	path   []string // of the value with the mistake
	schema *jsonschema.Schema
	about  string // a constant below: the mistake is about a member of the value; or empty
	member string
	// members, while the value is evaluated, are all unknown fields: a union can have many closed objects.
	members []string
	said    string     // the sentence after the place; empty if about or want says all
	want    [][]string // allowed types, or values if fixed; a list for each branch
	fixed   bool
}

// The values of flaw.about.
const (
	missingField = "missing field"
	unknownField = "unknown field"
	fieldName    = "field name"
)

const (
	maxShownValues = 256     // values of an enum that are compared with a wrong one
	maxWant        = 1 << 12 // values of all branches together that are compared
	maxHintSteps   = 1 << 18 // steps of searching the hints of one check
	stepsPerName   = 32      // steps of comparing a wrong name with a known one
	shownWords     = 20      // allowed types or values that a sentence lists
)

// words returns the allowed types or values, each once. When the steps are spent it returns only those that are shown.
func (t teller) words(fl flaw) []string {
	var words []string
	seen := map[string]bool{}
	left := maxWant
	for _, list := range fl.want {
		for _, word := range list[:min(left, len(list))] {
			if !seen[word] && (t.steps.Take(1) || len(words) <= shownWords) {
				seen[word], words = true, append(words, word)
			}
		}
		left -= min(left, len(list))
	}
	return words
}

// merged joins the branches if each fails at the same place because of the type there, or each because of a fixed value.
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
		all.want = append(all.want, option[i].want...)
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
			score += max(0, len(fl.members)-1)
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

// tidy sorts flaws by place and drops repetitions. It makes one flaw of each unknown field.
func tidy(found []flaw, steps *Steps) []flaw {
	var flaws []flaw
	for _, fl := range found {
		for _, name := range fl.members {
			if steps.Take(stepsPerFlaw) {
				fl.member = name
				flaws = append(flaws, fl)
			}
		}
		if fl.members == nil {
			flaws = append(flaws, fl)
		}
	}
	compare := func(a, b flaw) int {
		return cmp.Or(
			slices.Compare(a.path, b.path),
			strings.Compare(cmp.Or(a.about, a.said), cmp.Or(b.about, b.said)),
			strings.Compare(a.member, b.member),
		)
	}
	slices.SortStableFunc(flaws, compare)
	return slices.CompactFunc(flaws, func(a, b flaw) bool {
		return compare(a, b) == 0 && slices.EqualFunc(a.want, b.want, slices.Equal[[]string])
	})
}

// A teller describes the flaws of a value. It searches for hints until its steps are spent.
type teller struct {
	value any
	root  string // the name of the value itself
	steps *Steps
}

// tell returns the sentence of a flaw, and a hint or "".
func (t teller) tell(fl flaw) (said, hint string) {
	place := texts.JSON(t.field(fl))
	switch fl.about {
	case missingField:
		if what := describe(fl.schema.Properties[fl.member], 0); what != "" {
			return "missing field " + place + ", " + what, ""
		}
		return "missing field " + place, ""
	case unknownField:
		return "unknown field " + place, t.knownFields(fl)
	case fieldName:
		return "field name " + place + " " + fl.said, ""
	}
	said, got := fl.said, lookup(t.value, fl.path)
	if words := t.words(fl); len(words) > 0 {
		said = "must be " + alternatives(cutList(words, shownWords))
		if fl.fixed && len(words) > 1 {
			said = "must be one of " + strings.Join(cutList(words, shownWords), ", ")
			if text, ok := got.(string); ok && t.steps.Take(stepsPerName*len(words)) {
				hint = meant(nearest.Name(texts.JSON(text), words))
			}
		}
	}
	return cmp.Or(t.field(fl), t.root) + " " + said + ", got " + show(got), hint
}

// field returns the place of the value or the member with a flaw.
func (t teller) field(fl flaw) string {
	place := field(t.value, fl.path)
	if fl.about != "" {
		place += member(fl.member, place == "")
	}
	return place
}

// knownFields proposes the known member that an unknown one probably means, or names some that are known.
func (t teller) knownFields(fl flaw) string {
	all := fl.schema.Properties
	if len(all) == 0 {
		return "no fields are allowed here"
	}
	if !t.steps.Take(2 * len(all)) {
		return ""
	}
	known := slices.Sorted(maps.Keys(all))
	given, _ := lookup(t.value, fl.path).(map[string]any)
	free := slices.DeleteFunc(slices.Clone(known), func(name string) bool { _, ok := given[name]; return ok })
	if t.steps.Take(stepsPerName * len(free)) {
		if best := nearest.Name(fl.member, free); best != "" {
			return meant(texts.JSON(best))
		}
	}
	return "the fields are " + strings.Join(cutList(known, 12), ", ")
}

// meant proposes a name or value, if there is one.
func meant(shown string) string {
	if shown == "" {
		return ""
	}
	return "did you mean " + shown + "?"
}

func cutList(names []string, n int) []string {
	if len(names) <= n {
		return names
	}
	return append(slices.Clone(names[:n]), "...")
}
