package schemas_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/schemas"
)

func TestWithout(t *testing.T) {
	for _, c := range []struct{ name, schema, want string }{
		{
			"plain", `{"type":"object", "properties":{"root":{"type":"string"}, "n": {"type":"integer","maximum":1.10}},"required":["n","root"]}`,
			`{"type":"object", "properties":{ "n": {"type":"integer","maximum":1.10}},"required":["n"]}`,
		},
		{
			"nothing is left", `{"properties":{"root":{}},"required":["root"],"additionalProperties":false}`,
			`{"properties":{},"additionalProperties":false}`,
		},
		{"not there", `{"properties":{"n":{"properties":{"root":{}}}}}`, `{"properties":{"n":{"properties":{"root":{}}}}}`},
		{
			"combined", `{"allOf":[{"required":["root"]},{"properties":{"root":{},"a":{}}}],"anyOf":[{"required":["root","a"]}],"oneOf":[true],"if":{"properties":{"root":{"const":1}}},"then":{"required":["root"]}}`,
			`{"allOf":[{},{"properties":{"a":{}}}],"anyOf":[{"required":["a"]}],"oneOf":[true],"if":{"properties":{}},"then":{}}`,
		},
		{
			"depends", `{"dependentRequired":{"a":["root","b"],"root":["a"]},"dependencies":{"root":{}}}`,
			`{"dependentRequired":{"a":["b"]},"dependencies":{}}`,
		},
		{
			"reference", `{"$ref":"#/$defs/in","$defs":{"in":{"properties":{"root":{},"a":{}}}}}`,
			`{"$ref":"#/$defs/in","$defs":{"in":{"properties":{"a":{}}}}}`,
		},
		{
			"shared reference", `{"allOf":[{"$ref":"#/$defs/in"}],"properties":{"a":{"$ref":"#/$defs/in"}},"$defs":{"in":{"properties":{"root":{}}}}}`,
			`{"allOf":[{"$ref":"#/$defs/in%20%28without%20what%20is%20fixed%29"}],"properties":{"a":{"$ref":"#/$defs/in"}},"$defs":{"in":{"properties":{"root":{}}},"in (without what is fixed)":{"properties":{}}}}`,
		},
		{"circle", `{"properties":{"root":{},"child":{"$ref":"#"}},"allOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"allOf":[{"$ref":"#/$defs/b"}]},"b":{"$ref":"#/$defs/a"}}}`, "any"},
		{"elsewhere", `{"$ref":"https://example.com/x"}`, `{"$ref":"https://example.com/x"}`},
		{"odd", `{"properties":["root"],"required":"root","allOf":{"a":1},"$ref":7}`, `{"properties":["root"],"required":"root","allOf":{"a":1},"$ref":7}`},
		{"no JSON", `{`, ""},
		{"too many values", `{"properties":{"root":{}},"enum":[` + strings.Repeat("0,", 261_000) + `0]}`, ""},
		{"too many parts", `{"properties":{"root":{}},"allOf":[` + strings.Repeat("{},", 300) + `{}]}`, ""},
		{"true", `true`, `true`},
	} {
		pruned, err := schemas.Without(steps(), json.RawMessage(c.schema), []string{"root"})
		got := string(pruned)
		if (err != nil) != (c.want == "") {
			t.Errorf("%s: got %s, %v", c.name, got, err)
		}
		if c.want == "" || c.want == "any" {
			continue
		}
		if got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, got, c.want)
		}
		if _, err := compileInput(json.RawMessage(c.schema)); err == nil {
			if _, err := compileInput(json.RawMessage(got)); err != nil {
				t.Errorf("%s: the schema does not compile any more: %v", c.name, err)
			}
		}
	}
}

func FuzzWithout(f *testing.F) {
	f.Add([]byte(`{"$ref":"#/$defs/a%20b","$defs":{"a b":{"$ref":"#","properties":{"root":{}}}},"allOf":[{"$ref":"#/allOf/0"}]}`))
	f.Add([]byte(`{"$ref":"#/$defs/a","x":{"$ref":"#/$defs/a"},"$defs":{"a":{"$ref":"#/$defs/a"}}}`))
	f.Fuzz(func(t *testing.T, schema []byte) {
		got, err := schemas.Without(steps(), schema, []string{"root"})
		if (err == nil) != json.Valid(got) || err == nil && !json.Valid(schema) {
			t.Errorf("%s became %s, %v", schema, got, err)
		}
	})
}

// TestWithoutDoubling: definitions within definitions, each of which is used twice, would double with each copy.
func TestWithoutDoubling(t *testing.T) {
	const depth = 18
	inner, path := `{"properties":{"root":{}},"description":"`+strings.Repeat(".", 8<<10)+`"}`, ""
	var refs []string
	for range depth {
		inner, path = `{"x":`+inner+`}`, path+"/x"
		refs = append(refs, `{"$ref":"#`+path+`"}`, `{"$ref":"#`+path+`"}`)
	}
	slices.Reverse(refs)
	schema := `{"allOf":[` + strings.Join(refs, ",") + `],"x":` + strings.TrimSuffix(strings.TrimPrefix(inner, `{"x":`), "}") + `}`
	if !json.Valid([]byte(schema)) {
		t.Fatal(schema)
	}
	if got, _ := schemas.Without(steps(), json.RawMessage(schema), []string{"root"}); len(got) > 4<<20 {
		t.Errorf("%d bytes became %d", len(schema), len(got))
	}
}
