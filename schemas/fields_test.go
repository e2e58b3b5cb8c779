package schemas_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/schemas"
)

// fieldsOf describes the value of a schema, a line for each field.
func fieldsOf(t *testing.T, schema string) (text string, whole bool) {
	said, whole := schemas.Fields(schemas.NewSteps(t.Context(), schemas.DefaultSteps), json.RawMessage(schema))
	var write func(f schemas.Field, at string)
	write = func(f schemas.Field, at string) {
		for _, one := range f.Fields {
			text += fmt.Sprintf("%s%s: %s", at, one.Name, one.Type())
			for _, word := range []struct {
				said bool
				text string
			}{{one.Required, "required"}, {len(one.Choices) > 0, strings.Join(one.Choices, "|")}, {one.Default != "", "= " + one.Default}, {one.Open, "open"}, {one.Description != "", "(" + one.Description + ")"}} {
				if word.said {
					text += " " + word.text
				}
			}
			text += "\n"
			write(one, at+one.Name+".")
		}
	}
	write(said, "")
	return strings.TrimSuffix(text, "\n"), whole
}

// TestFields: a schema is described with its references and alternatives, required fields first.
func TestFields(t *testing.T) {
	const point = `"$defs":{"point":{"type":"object","description":"A place","required":["x"],"properties":{"x":{"type":"number"},"y":{"type":"number"}}}}`
	for _, c := range []struct{ schema, want string }{
		{`{"properties":{"b":{"type":"string"},"a":{"type":"integer"}},"required":["a"]}`, "a: integer required\nb: string"},
		{`{"properties":{"a":{"type":"integer","default":1}},"required":["a"]}`, "a: integer = 1"},
		{`{"required":["a"]}`, "a: any required"},
		{`{"properties":{"a":{"enum":["x", 1, null]},"b":{"const": {"c": [1, 2]}}}}`, "a: one of \"x\"|1|null\nb: one of {\"c\":[1,2]}"},
		{`{"properties":{"a":{"type":["string","null"]},"b":{"type":["string","integer"]}}}`, "a: string\nb: string or integer"},
		{`{"properties":{"a":{"anyOf":[{"type":"string","enum":["x"]},{"type":"null"}],"default":null,"description":"Said here"}}}`, "a: string \"x\" (Said here)"},
		{`{"properties":{"a":{"anyOf":[{"type":"string"},{"type":"integer"},{"type":"string"}]}}}`, "a: string or integer"},
		{`{"properties":{"a":{"type":"array","items":{"type":"string"}},"b":{"type":"array"}}}`, "a: array of string\nb: array"},
		{`{"properties":{"a":{"anyOf":[{"$ref":"#/$defs/point"},{"type":"null"}]}},` + point + `}`, "a: object (A place)\na.x: number required\na.y: number"},
		{`{"properties":{"a":{"$ref":"#/$defs/point","description":"Near"}},` + point + `}`, "a: object (Near)\na.x: number required\na.y: number"},
		{`{"allOf":[{"properties":{"a":{}},"required":["a"]},{"properties":{"b":{}}}]}`, "a: any required\nb: any"},
		{`{"properties":{"a":{"type":"object","additionalProperties":{"type":"string"}},"b":{"type":"object","properties":{"c":{}},"patternProperties":{"x":{}}}}}`, "a: object open\nb: object open\nb.c: any"},
		{`{"properties":{"a":{"$ref":"#/properties/a"}}}`, "a: any"},
		{`{"properties":{"a":7,"b":{"type":{},"enum":{},"required":1,"items":[]}},"required":"a"}`, "a: any required\nb: any"},
	} {
		if got, whole := fieldsOf(t, c.schema); got != c.want || !whole {
			t.Errorf("%s: whole %v, got\n%s\nwant\n%s", c.schema, whole, got, c.want)
		}
	}
}

// TestFieldsBounds: no schema has more than the bounds allow, and what is beyond them is said.
func TestFieldsBounds(t *testing.T) {
	wide := `{"properties":{` + strings.TrimSuffix(strings.Repeat(`"a%d":{},`, 300), ",") + `}}`
	numbers := make([]any, 300)
	for i := range numbers {
		numbers[i] = i
	}
	for name, c := range map[string]struct {
		schema string
		most   int
		whole  bool
	}{
		"many":      {fmt.Sprintf(wide, numbers...), 200, false},
		"deep":      {strings.Repeat(`{"type":"object","properties":{"a":`, 50) + "{}" + strings.Repeat("}}", 50), 5, true},
		"endless":   {`{"$defs":{"t":{"type":"object","properties":{"l":{"$ref":"#/$defs/t"},"r":{"$ref":"#/$defs/t"}}}},"$ref":"#/$defs/t"}`, 62, true},
		"no JSON":   {`{"properties":`, 0, false},
		"no object": {`[1]`, 0, true},
	} {
		text, whole := fieldsOf(t, c.schema)
		if n := len(strings.Fields(strings.ReplaceAll(text, ": ", ":"))); n > c.most || whole != c.whole {
			t.Errorf("%s: %d fields, want at most %d; whole %v, want %v", name, n, c.most, whole, c.whole)
		}
	}
}

// TestFieldsRepeat: fields that refer to one long list of values, or to one long default, do not copy it without end.
func TestFieldsRepeat(t *testing.T) {
	for _, long := range []string{`"enum":[` + strings.Repeat("0,", 1000) + `1]`, `"default":"` + strings.Repeat("x", 20_000) + `"`} {
		var fields []string
		for i := range 150 {
			fields = append(fields, fmt.Sprintf(`"a%d":{"$ref":"#/$defs/long"}`, i))
		}
		schema := `{"$defs":{"long":{` + long + `}},"properties":{` + strings.Join(fields, ",") + `}}`
		if said, whole := schemas.Fields(schemas.NewSteps(t.Context(), 30_000), json.RawMessage(schema)); whole {
			t.Errorf("%.20s: all %d fields have it", long, len(said.Fields))
		}
	}
}

// FuzzFields: no schema makes the description fail.
func FuzzFields(f *testing.F) {
	f.Add(`{"properties":{"a":{"anyOf":[{"$ref":"#"},{"type":"null"}],"enum":[1],"items":{"type":"string"},"maxLength":7}},"required":["a"]}`)
	f.Fuzz(func(t *testing.T, schema string) {
		said, _ := schemas.Fields(schemas.NewSteps(t.Context(), 10_000), json.RawMessage(schema))
		for _, one := range said.Fields {
			for _, value := range append(one.Choices, one.Default) {
				if value != "" && !json.Valid([]byte(value)) {
					t.Errorf("%q is no JSON", value)
				}
			}
		}
	})
}
