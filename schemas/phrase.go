package schemas

import (
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

// articles are the names of JSON types in a sentence.
var articles = map[string]string{
	"string": "a string", "integer": "an integer", "number": "a number", "boolean": "a boolean",
	"object": "an object", "array": "an array", "null": "null",
}

// typesOf names the types of a schema, and the type of an array's items.
func typesOf(s *jsonschema.Schema, types []string) []string {
	if slices.Contains(types, "number") {
		types = slices.DeleteFunc(slices.Clone(types), func(t string) bool { return t == "integer" })
	}
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = articles[t]
		if t == "array" && s != nil {
			names[i] += itemsOf(s)
		}
	}
	return names
}

// phrase describes a mistake, as in "must be at least 1". It returns "" for kinds of failures that only group others.
func phrase(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Pattern:
		return "must match the pattern " + texts.Fit(k.Want, 200)
	case *kind.MinLength:
		return atLeast(k.Want, "character")
	case *kind.MaxLength:
		return "must have at most " + count(k.Want, "character")
	case *kind.Minimum:
		return "must be at least " + limit(k.Want)
	case *kind.Maximum:
		return "must be at most " + limit(k.Want)
	case *kind.ExclusiveMinimum:
		return "must be more than " + limit(k.Want)
	case *kind.ExclusiveMaximum:
		return "must be less than " + limit(k.Want)
	case *kind.MultipleOf:
		return "must be a multiple of " + limit(k.Want)
	case *kind.Not:
		return "has a form that is ruled out"
	}
	return containerPhrase(k)
}

func containerPhrase(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.MinItems:
		return atLeast(k.Want, "item")
	case *kind.MaxItems:
		return fmt.Sprintf("must have at most %s, has %d", count(k.Want, "item"), k.Got)
	case *kind.AdditionalItems:
		return fmt.Sprintf("has %s too many", count(k.Count, "item"))
	case *kind.UniqueItems:
		return fmt.Sprintf("must not repeat items, but [%d] and [%d] are equal", k.Duplicates[0], k.Duplicates[1])
	case *kind.Contains:
		return "has no item of the form that it needs"
	case *kind.MinContains:
		return "must have at least " + count(k.Want, "item") + " of a certain form"
	case *kind.MaxContains:
		return "must have at most " + count(k.Want, "item") + " of a certain form"
	case *kind.MinProperties:
		return "must have at least " + count(k.Want, "field")
	case *kind.MaxProperties:
		return "must have at most " + count(k.Want, "field")
	case *kind.DependentRequired:
		return needs(k.Prop, k.Missing)
	case *kind.Dependency:
		return needs(k.Prop, k.Missing)
	}
	return ""
}

func atLeast(n int, noun string) string {
	if n == 1 {
		return "must not be empty"
	}
	return "must have at least " + count(n, noun)
}

func needs(given string, missing []string) string {
	return "must have " + quoted(missing, 8) + " where it has " + texts.JSON(texts.Fit(given, maxShown))
}

// limit writes a limit as a schema does.
func limit(r *big.Rat) string {
	if r.IsInt() {
		return texts.Fit(r.Num().String(), maxShown)
	}
	text := r.FloatString(20)
	return strings.TrimRight(text, "0")
}

// describe describes a schema in a few words: "an integer", `one of "open", "closed"`, "an array of strings".
func describe(s *jsonschema.Schema, depth int) string {
	if s == nil || depth > 4 {
		return ""
	}
	if s.Enum != nil && len(s.Enum.Values) > 0 {
		return "one of " + strings.Join(cutList(shownAll(s.Enum.Values, 13), 12), ", ")
	}
	if s.Const != nil {
		return show(*s.Const)
	}
	if s.Types != nil && !s.Types.IsEmpty() {
		return alternatives(typesOf(s, s.Types.ToStrings()))
	}
	return describe(s.Ref, depth+1)
}

// itemsOf names the type of an array's items, if it is one simple type.
func itemsOf(s *jsonschema.Schema) string {
	items := s.Items2020
	if old, ok := s.Items.(*jsonschema.Schema); ok {
		items = old
	}
	if items == nil || items.Types == nil || len(items.Types.ToStrings()) != 1 || items.Types.ToStrings()[0] == "null" {
		return ""
	}
	return " of " + items.Types.ToStrings()[0] + "s"
}
