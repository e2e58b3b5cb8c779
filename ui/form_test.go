package ui_test

import (
	"encoding/json"
	"maps"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsh-dev/mcsh/ui"
)

// evil is a text that would show itself if a page took it for HTML, or ran it.
const evil = `<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>"><svg onload=window.hacked=1> {{.Name}} ${hacked} </textarea></pre>`

// wide is a schema with every kind of field.
const wide = `{"type":"object","required":["text","count","mode"],"properties":{
	"text":{"type":"string","description":"Some text. ` + `<img src=x onerror='window.hacked=1'>` + `"},
	"count":{"type":"integer","minimum":1,"maximum":10,"description":"How often, 1 to 10","default":2},
	"ratio":{"type":["number","null"]},
	"mode":{"enum":["plain","loud"],"description":"How it is said"},
	"flag":{"type":"boolean","default":true},
	"tags":{"type":"array","items":{"type":"string"},"description":"One tag a line"},
	"near":{"$ref":"#/$defs/point"},
	"filter":{"anyOf":[{"type":"object","additionalProperties":true},{"type":"array"}],"description":"Anything as JSON"}},
	"$defs":{"point":{"type":"object","title":"A place","required":["x"],"properties":{"x":{"type":"number"},"y":{"type":"number"}}}}}`

// TestFormKinds: every schema has a form or none, and no schema has an endless one.
func TestFormKinds(t *testing.T) {
	deep := strings.Repeat(`{"type":"object","properties":{"a":`, 50) + `{"type":"string"}` + strings.Repeat(`}}`, 50)
	for name, c := range map[string]struct {
		schema string
		want   map[string]string
	}{
		"all kinds": {wide, map[string]string{
			"/text": "text", "/count": "integer", "/ratio": "number", "/mode": "choice", "/flag": "boolean", "/tags": "list", "/near": "object", "/near/x": "number", "/near/y": "number", "/filter": "json",
		}},
		"optional as pydantic writes it": {`{"properties":{"n":{"anyOf":[{"type":"integer"},{"type":"null"}],"default":null}}}`, map[string]string{"/n": "integer"}},
		"endless reference":              {`{"properties":{"a":{"$ref":"#/properties/a"}}}`, map[string]string{"/a": "json"}},
		"recursive tree":                 {`{"$defs":{"t":{"type":"object","properties":{"t":{"$ref":"#/$defs/t"}}}},"properties":{"t":{"$ref":"#/$defs/t"}}}`, map[string]string{"/t": "object", "/t/t": "object", "/t/t/t": "object", "/t/t/t/t": "object", "/t/t/t/t/t": "json"}},
		"deep":                           {deep, map[string]string{"/a": "object", "/a/a": "object", "/a/a/a": "object", "/a/a/a/a": "object", "/a/a/a/a/a": "json"}},
		"names with slashes":             {`{"properties":{"a/b~c":{"type":"string"}}}`, map[string]string{"/a~1b~0c": "text"}},
		"nonsense":                       {`{"properties":{"a":7,"b":{"type":{},"enum":{},"required":1,"items":[]},"c":{"type":["string","integer"]}},"required":"a"}`, map[string]string{"/a": "json", "/b": "json", "/c": "json"}},
		"no object":                      {`[1,2]`, map[string]string{}},
		"no JSON":                        {`{"properties":`, map[string]string{}},
		"nothing":                        {``, map[string]string{}},
	} {
		if diff := cmp.Diff(c.want, ui.FieldKinds(json.RawMessage(c.schema))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestFormBounds: a schema with very many properties has a form of bounded size.
func TestFormBounds(t *testing.T) {
	var b strings.Builder
	for i := range 5000 {
		b.WriteString(`,"p` + strings.Repeat("x", i%7) + string(rune('a'+i%26)) + url.QueryEscape(string(rune(i+200))) + `":{"type":"string","description":"` + strings.Repeat("d", 90) + `"}`)
	}
	if n := len(ui.FieldKinds(json.RawMessage(`{"properties":{` + b.String()[1:] + `}}`))); n > 200 {
		t.Errorf("there are %d fields", n)
	}
}

// TestReadForm: what somebody enters becomes values of the schema's types; nothing entered stays away.
func TestReadForm(t *testing.T) {
	for name, c := range map[string]struct {
		entered map[string]string
		want    string
		wrong   bool
	}{
		"nothing":       {nil, `{}`, false},
		"each":          {map[string]string{"/text": "a \"b\"\r\nc", "/count": " 3 ", "/ratio": "1e3", "/mode": `"loud"`, "/flag": "false", "/tags": "one\n\n two \n", "/near/x": "1", "/filter": `{"a":[1]}`}, `{"text":"a \"b\"\nc","count":3,"mode":"loud","ratio":1e3,"flag":false,"tags":["one","two"],"near":{"x":1},"filter":{"a":[1]}}`, false},
		"exact numbers": {map[string]string{"/count": "12345678901234567890"}, `{"count":12345678901234567890}`, false},
		"no number":     {map[string]string{"/count": "many"}, `{"count":"many"}`, true},
		"an injection":  {map[string]string{"/count": `1,"admin":true`}, `{"count":"1,\"admin\":true"}`, true},
		"no JSON":       {map[string]string{"/filter": `{"a":`}, `{"filter":"{\"a\":"}`, true},
		"another field": {map[string]string{"/other": "x"}, `{}`, false},
	} {
		form := url.Values{}
		for path, text := range c.entered {
			form.Set("a"+path, text)
		}
		got, wrong := ui.ReadForm(json.RawMessage(wide), form)
		var a, b any
		if err := json.Unmarshal(got, &a); err != nil {
			t.Errorf("%s: %q is no JSON", name, got)
			continue
		}
		_ = json.Unmarshal([]byte(c.want), &b)
		if diff := cmp.Diff(b, a); diff != "" || wrong != c.wrong {
			t.Errorf("%s: wrong %v (-want +got):\n%s", name, wrong, diff)
		}
	}
}

// TestRefilledForm: a form shows arguments as they are, or says that it cannot.
func TestRefilledForm(t *testing.T) {
	for args, want := range map[string]bool{
		`{"text":"a <b> \"c\"\nd","count":3,"mode":"plain","ratio":0.5,"flag":true,"tags":["x","y z"],"near":{"x":1,"y":-2},"filter":[1,{"a":null}]}`: true,
		`{}`:                             true,
		`{"count":12345678901234567890}`: true,
		`{"other":1}`:                    false,
		`{"text":7}`:                     false,
		`{"text":""}`:                    false,
		`{"tags":["two\nlines"]}`:        false,
		`{"tags":[]}`:                    false,
		`{"near":{"x":1,"z":2}}`:         false,
		`{"near":5}`:                     false,
		`[1]`:                            false,
	} {
		if got := ui.Refilled(json.RawMessage(wide), json.RawMessage(args)); got != want {
			t.Errorf("%s: %v, want %v", args, got, want)
		}
	}
}

// TestBlame: the sentences of a check stand at their fields.
func TestBlame(t *testing.T) {
	for said, at := range map[string]string{
		`count must be at most 10, got 99`: "/count", `missing field "text", a string`: "/text", `missing field "near.x", a number`: "/near/x",
		`near.y must be a number, got "z"`: "/near/y", `tags[1] must be a string, got 4`: "/tags", `counting must be fun`: "", `the arguments must be an object`: "",
		`unknown field "zzz"`: "",
	} {
		want := map[string]string{at: said}
		if got := ui.Blamed(json.RawMessage(wide), said); !maps.Equal(got, want) {
			t.Errorf("%q stands at %v, want %v", said, got, want)
		}
	}
}

func FuzzForm(f *testing.F) {
	f.Add(wide, "1", "a\nb")
	f.Add(`{"properties":{"a":{"$ref":"#/properties/b"},"b":{"$ref":"#/properties/a"}}}`, "{", "\"")
	f.Fuzz(func(t *testing.T, schema, one, two string) {
		form := url.Values{}
		for path := range ui.FieldKinds(json.RawMessage(schema)) {
			form.Set("a"+path, one)
			one, two = two, one
		}
		if args, _ := ui.ReadForm(json.RawMessage(schema), form); !json.Valid(args) {
			t.Errorf("it reads %q, which is no JSON", args)
		}
	})
}
