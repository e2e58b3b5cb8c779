package schemas_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/mcsh-dev/mcsh/schemas"
)

// TestOutputShape: what an output schema says of the data; an empty text where it says nothing.
func TestOutputShape(t *testing.T) {
	for _, c := range []struct{ schema, want string }{
		{`{"type":"object","properties":{"n":{"type":"integer"},"x":{"type":["number","null"]}},"required":["n"]}`, `{n: int, x?: num|null}`},
		{`{"type":"object","properties":{"content":{"type":"string"}},"required":["content"]}`, ``},
		{`{"type":"object","properties":{"id":{"type":"integer"}},"required":["id"]}`, `{id: int}`},
		{`{"type":"object","properties":{"result":{"type":"array","items":{"type":"string"}}},"required":["result"],"x-fastmcp-wrap-result":true}`, `[str]`},
		{`{"type":"object","properties":{"result":{"type":"string"}},"x-fastmcp-wrap-result":true}`, `str`},
		{
			`{"type":"object","properties":{"user":{"$ref":"#/$defs/user"}},"$defs":{"user":{"type":"object","properties":{"name":{"type":"string"},"friends":{"type":"array","items":{"$ref":"#/$defs/user"}}},"required":["name"]}}}`,
			`{user?: {name: str, friends?: [{name: str, friends?: [{name: str, friends?: [any]}]}]}}`,
		},
		{`{"type":"object","additionalProperties":{"type":"integer"}}`, `{<key>: int}`},
		{`{"type":"object","properties":{"s":{"anyOf":[{"type":"string"},{"type":"null"}]},"e":{"enum":["a",1]},"c":{"const":true}}}`, `{s?: str|null, e?: str|num, c?: bool}`},
		{`{"type":"object","allOf":[{"properties":{"a":{"type":"string"}},"required":["a"]},{"properties":{"b":{"type":"string"}}}]}`, `{a: str, b?: str}`},
		{`{"type":"object"}`, ``},
		{`{}`, ``},
		{`true`, ``},
		{``, ``},
		{`{"type":`, ``},
		{`{"$ref":"#"}`, ``},
		{`{"type":"array"}`, `[any]`},
		{`{"type":"array","items":{"type":"object"}}`, `[{…}]`},
	} {
		got := schemas.ResultShape(steps(), json.RawMessage(c.schema))
		if !got.Known() {
			if c.want != "" {
				t.Errorf("%s: nothing known, want %s", c.schema, c.want)
			}
			continue
		}
		if brief := got.Brief(300); brief != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.schema, brief, c.want)
		}
	}
}

func TestExampleValues(t *testing.T) {
	for _, c := range []struct{ schema, want string }{
		{`{"type":"object","properties":{"a":{"type":"string","enum":["x","y"]},"n":{"type":"integer","minimum":5},"b":{"type":"boolean"}},"required":["n","a","b"]}`, `{"n":5,"a":"x","b":true}`},
		{`{"type":"object","properties":{"l":{"type":"array","minItems":2,"items":{"type":"string","maxLength":2}}},"required":["l"]}`, `{"l":["..",".."]}`},
		{`{"type":"object","properties":{"o":{"$ref":"#/$defs/o"}},"required":["o"],"$defs":{"o":{"type":"object","properties":{"when":{"type":"string","format":"date"}},"required":["when"]}}}`, `{"o":{"when":"2026-01-31"}}`},
		{`{"type":"object","properties":{"o":{"$ref":"#"}},"required":["o"]}`, ``},
		{`{}`, `{}`},
		{``, `{}`},
	} {
		in, _ := compileInput(json.RawMessage(c.schema))
		got, ok := schemas.Example(context.Background(), json.RawMessage(c.schema), in)
		if c.want == "" {
			if ok {
				t.Errorf("%s: %s is said to satisfy it", c.schema, got)
			}
			continue
		}
		if string(got) != c.want || !ok {
			t.Errorf("%s: got %s, %v; want %s", c.schema, got, ok, c.want)
		}
	}
}

func FuzzOutputShape(f *testing.F) {
	f.Add([]byte(`{"type":"object","properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"anyOf":[{"type":"null"},{"$ref":"#"}]}}}`))
	f.Fuzz(func(t *testing.T, schema []byte) {
		if got := schemas.ResultShape(steps(), schema); got.Known() && len([]rune(got.Brief(300))) > 300 {
			t.Errorf("too long: %s", got.Brief(300))
		}
		in, _ := compileInput(schema)
		if args, _ := schemas.Example(context.Background(), schema, in); !json.Valid(args) {
			t.Errorf("%s is no JSON", args)
		}
	})
}

// TestExampleOfLists: lists of lists, each with several elements, do not multiply.
func TestExampleOfLists(t *testing.T) {
	schema := `{"type":"string","minLength":100}`
	for range 8 {
		schema = `{"type":"array","minItems":8,"items":` + schema + `}`
	}
	schema = `{"type":"object","properties":{"a":` + schema + `},"required":["a"]}`
	input, err := compileInput(json.RawMessage(schema))
	if err != nil {
		t.Fatal(err)
	}
	input.Check = nil
	if args, _ := schemas.Example(context.Background(), json.RawMessage(schema), input); len(args) > 64<<10 || !json.Valid(args) {
		t.Errorf("the example has %d bytes", len(args))
	}
}
