package schemas

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

// maxShown is the number of characters that a message shows of a value.
const maxShown = 60

// quoted lists names as "a", "b", "c", at most n of them.
func quoted(names []string, n int) string {
	shown := make([]string, 0, n)
	for _, name := range names[:min(n, len(names))] {
		shown = append(shown, strconv.Quote(texts.Fit(name, maxShown)))
	}
	if len(names) > n {
		shown = append(shown, fmt.Sprintf("and %d more", len(names)-n))
	}
	return strings.Join(shown, ", ")
}

// show writes a value as JSON for a message, and only the beginning of a long one.
func show(v any) string {
	left := maxShown
	return texts.Fit(texts.JSON(beginning(v, &left)), maxShown)
}

// beginning returns a value with at most left of its parts: the others would not be shown.
func beginning(v any, left *int) any {
	if *left--; *left < 0 {
		return nil
	}
	switch v := v.(type) {
	case string:
		return texts.Fit(v, maxShown)
	case []any:
		short := []any{}
		for _, element := range v[:min(len(v), maxShown)] {
			short = append(short, beginning(element, left))
		}
		return short
	case map[string]any:
		short := map[string]any{}
		names := slices.Sorted(maps.Keys(v))
		for _, name := range names[:min(len(names), maxShown)] {
			short[texts.Fit(name, maxShown)] = beginning(v[name], left)
		}
		return short
	}
	return v
}

// field writes a path in a JSON value: filter.labels[2], or ["a b"] for names that need quotes.
func field(value any, path []string) string {
	var b strings.Builder
	for _, token := range path {
		if array, ok := value.([]any); ok {
			b.WriteString("[" + token + "]")
			if i, err := strconv.Atoi(token); err == nil && i >= 0 && i < len(array) {
				value = array[i]
			}
			continue
		}
		b.WriteString(member(token, b.Len() == 0))
		if object, ok := value.(map[string]any); ok {
			value = object[token]
		}
	}
	return b.String()
}

// member writes the name of an object's member as a step of a path.
func member(name string, first bool) string {
	switch {
	case name == "" || strings.ContainsFunc(name, func(c rune) bool { return strings.ContainsRune(`.[]": `, c) || !unicode.IsPrint(c) }):
		return "[" + texts.JSON(texts.Fit(name, maxShown)) + "]"
	case first:
		return texts.Fit(name, maxShown)
	}
	return "." + texts.Fit(name, maxShown)
}

// lookup returns the value at a path, nil if there is none.
func lookup(value any, path []string) any {
	for _, token := range path {
		switch v := value.(type) {
		case map[string]any:
			value = v[token]
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(v) {
				return nil
			}
			value = v[i]
		default:
			return nil
		}
	}
	return value
}

// alternatives joins words as "a", "a or b", "a, b or c".
func alternatives(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

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
