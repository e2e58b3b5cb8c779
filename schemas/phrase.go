package schemas

import (
	"math/big"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

// articles are the names of JSON types in a sentence.
var articles = map[string]string{
	"string": "a string", "integer": "an integer", "number": "a number", "boolean": "a boolean",
	"object": "an object", "array": "an array", "null": "null",
}

// typesOf names the types of a schema, and the type of an array's items.
func typesOf(s *jsonschema.Schema) []string {
	types := s.Types.ToStrings()
	if slices.Contains(types, "number") {
		types = slices.DeleteFunc(types, func(t string) bool { return t == "integer" })
	}
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = articles[t]
		if t == "array" {
			names[i] += itemsOf(s)
		}
	}
	return names
}

// decimals is a number that is written as in a schema.
type decimals struct{ *big.Rat }

func (d decimals) String() string {
	if d.IsInt() {
		return texts.Fit(d.Num().String(), maxShown)
	}
	return strings.TrimRight(d.FloatString(20), "0")
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
		return alternatives(typesOf(s))
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

// shownAll shows at most n of some values.
func shownAll(values []any, n int) []string {
	shown := make([]string, min(len(values), n))
	for i := range shown {
		shown[i] = show(values[i])
	}
	return shown
}
