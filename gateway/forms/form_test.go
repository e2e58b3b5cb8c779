package forms_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/gateway/forms"
)

// clean leaves out control characters.
func clean(text string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' {
			return -1
		}
		return c
	}, text)
}

// TestRead: a form is written anew from the keywords of the specification, and any other field is refused.
func TestRead(t *testing.T) {
	of := func(field string) string { return `{"type":"object","properties":{"a":` + field + `}}` }
	tests := map[string]struct{ schema, want, wrong string }{
		"strings": {
			`{"$schema":"https://json-schema.org/x","type":"object","properties":{"b":{"type":"string","title":"B\u0007","minLength":1,"pattern":"(a+)+$"},"a":{"type":"string","format":"email"}},"required":["a"],"additionalProperties":false}`,
			`{"type":"object","properties":{"b":{"type":"string","title":"B","minLength":1},"a":{"type":"string","format":"email"}},"required":["a"]}`, "",
		},
		"numbers": {
			of(`{"type":"integer","minimum":1,"maximum":9007199254740993,"default":5}`),
			`{"type":"object","properties":{"a":{"type":"integer","minimum":1,"maximum":9007199254740993,"default":5}},"required":[]}`, "",
		},
		"choices": {
			of(`{"type":"string","enum":["x","y"],"enumNames":["X","Y"],"default":"y"}`),
			`{"type":"object","properties":{"a":{"type":"string","enum":["x","y"],"enumNames":["X","Y"],"default":"y"}},"required":[]}`, "",
		},
		"titled choices": {
			of(`{"type":"string","oneOf":[{"const":"x","title":"X"}]}`),
			`{"type":"object","properties":{"a":{"type":"string","oneOf":[{"const":"x","title":"X"}]}},"required":[]}`, "",
		},
		"several choices": {
			of(`{"type":"array","minItems":1,"items":{"anyOf":[{"const":"x","title":"X"}]},"default":["x"]}`),
			`{"type":"object","properties":{"a":{"type":"array","items":{"anyOf":[{"const":"x","title":"X"}]},"minItems":1,"default":["x"]}},"required":[]}`, "",
		},
		"no fields":             {`{"type":"object","properties":{}}`, `{"type":"object","properties":{},"required":[]}`, ""},
		"no schema":             {``, "", "not a schema of an object"},
		"not an object":         {`{"type":"array"}`, "", "not a schema of an object"},
		"nested":                {of(`{"type":"object","properties":{"b":{"type":"string"}}}`), "", `has the type "object"`},
		"reference":             {of(`{"$ref":"#/x"}`), "", `has the type ""`},
		"free array":            {of(`{"type":"array","items":{"type":"string"}}`), "", "items that are choices"},
		"unknown format":        {of(`{"type":"string","format":"password"}`), "", "the formats are"},
		"wrong default":         {of(`{"type":"integer","default":"x"}`), "", "the answer is not an integer"},
		"default of no choice":  {of(`{"type":"string","enum":["x"],"default":"z"}`), "", "none of the choices"},
		"names of no choices":   {of(`{"type":"string","enum":["x"],"enumNames":["X","Y"]}`), "", "2 enumNames for 1 choices"},
		"required and unknown":  {`{"type":"object","properties":{},"required":["z"]}`, "", `requires a field "z"`},
		"twice":                 {`{"type":"object","properties":{"a":{"type":"string"},"\u0061":{"type":"string"}}}`, "", "twice"},
		"control in a name":     {`{"type":"object","properties":{"a\u0007":{"type":"string"}}}`, "", "the name of a field"},
		"control in a choice":   {of(`{"type":"string","enum":["x\u001b[2J"]}`), "", "has a choice"},
		"many fields":           {`{"type":"object","properties":{` + strings.TrimSuffix(manyFields(33), ",") + `}}`, "", "more than 32 fields"},
		"many choices":          {of(`{"type":"string","enum":[` + strings.TrimSuffix(strings.Repeat(`"x",`, 201), ",") + `]}`), "", "201 choices"},
		"long":                  {`{"type":"object","title":"` + strings.Repeat("x", 64<<10) + `"}`, "", "bytes, more than"},
		"deep":                  {of(strings.Repeat(`{"type":"object","properties":{"a":`, 1000) + `1` + strings.Repeat("}}", 1000)), "", "has the type"},
		"choices of an integer": {of(`{"type":"integer","enum":["1"]}`), "", "not for the type integer"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f, err := forms.Read(json.RawMessage(test.schema), clean)
			switch {
			case test.wrong != "" && (err == nil || !strings.Contains(err.Error(), test.wrong)):
				t.Errorf("got %v, want an error with %q", err, test.wrong)
			case test.wrong == "" && (err != nil || string(f.Schema) != test.want):
				t.Errorf("got %v\n%s\nwant\n%s", err, schemaOf(f), test.want)
			}
		})
	}
}

func schemaOf(f *forms.Form) string {
	if f == nil {
		return ""
	}
	return string(f.Schema)
}

func manyFields(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(`"f` + strings.Repeat("x", i) + `":{"type":"string"},`)
	}
	return b.String()
}

// TestCheck: answers fit their form.
func TestCheck(t *testing.T) {
	const form = `{"type":"object","required":["name"],"properties":{"name":{"type":"string","minLength":2,"maxLength":4},
		"mail":{"type":"string","format":"email"},"day":{"type":"string","format":"date"},"at":{"type":"string","format":"date-time"},
		"site":{"type":"string","format":"uri"},"n":{"type":"integer","minimum":1,"maximum":9007199254740993},"x":{"type":"number"},
		"ok":{"type":"boolean"},"one":{"type":"string","enum":["a","b"]},"many":{"type":"array","maxItems":2,"items":{"type":"string","enum":["a","b","c"]}}}}`
	f, err := forms.Read(json.RawMessage(form), clean)
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct{ answers, want string }{
		"all": {
			`{"name":"Ann","mail":"a@b.org","day":"2026-01-31","at":"2026-01-31T10:00:00Z","site":"https://x.org","n":9007199254740993,"x":1.5,"ok":true,"one":"a","many":["a","c"]}`,
			`{"at":"2026-01-31T10:00:00Z","day":"2026-01-31","mail":"a@b.org","many":["a","c"],"n":9007199254740993,"name":"Ann","ok":true,"one":"a","site":"https://x.org","x":1.5}`,
		},
		"required only":      {`{"name":"Ann"}`, `{"name":"Ann"}`},
		"null for optional":  {`{"name":"Ann","mail":null}`, `{"name":"Ann"}`},
		"no required":        {`{"ok":true}`, `the field "name" has no answer`},
		"null for required":  {`{"name":null}`, `the field "name" has no answer`},
		"unknown":            {`{"name":"Ann","password":"x"}`, "fields that the form does not have"},
		"list":               {`["Ann"]`, "not a JSON object"},
		"null":               {`null`, "not a JSON object"},
		"short":              {`{"name":"A"}`, "too few or too many characters: 1"},
		"long":               {`{"name":"Annna"}`, "too few or too many characters: 5"},
		"other type":         {`{"name":7}`, "not a string"},
		"no mail":            {`{"name":"Ann","mail":"Ann <a@b.org>"}`, "not have the format email"},
		"no day":             {`{"name":"Ann","day":"2026-02-31"}`, "not have the format date"},
		"no time":            {`{"name":"Ann","at":"10:00"}`, "not have the format date-time"},
		"no URI":             {`{"name":"Ann","site":"x.org"}`, "not have the format uri"},
		"below":              {`{"name":"Ann","n":0}`, "out of the range"},
		"just above":         {`{"name":"Ann","n":9007199254740994}`, "out of the range"},
		"fraction":           {`{"name":"Ann","n":1.5}`, "not an integer"},
		"huge":               {`{"name":"Ann","x":1e999999999}`, "not a number"},
		"tiny":               {`{"name":"Ann","n":1e-999999999}`, "out of the range"},
		"no choice":          {`{"name":"Ann","one":"c"}`, "none of the choices"},
		"no choice in many":  {`{"name":"Ann","many":["a","z"]}`, "none of the choices"},
		"many of other type": {`{"name":"Ann","many":[1]}`, "none of the choices"},
		"too many":           {`{"name":"Ann","many":["a","b","c"]}`, "too few or too many choices: 3"},
		"text for a boolean": {`{"name":"Ann","ok":"true"}`, "neither true nor false"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := f.Check(json.RawMessage(test.answers))
			if text := string(got); err == nil && text != test.want || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %s, %v; want %s", text, err, test.want)
			}
		})
	}
}

// FuzzForm: a form that is read stays the same when it is read again, and its answers too.
func FuzzForm(f *testing.F) {
	f.Add(`{"type":"object","properties":{"a":{"type":"string","enum":["x"]},"n":{"type":"number","minimum":1e9}},"required":["a"]}`, `{"a":"x","n":2e9}`)
	f.Add(`{"type":"object","properties":{"a":{"type":"array","items":{"anyOf":[{"const":"x","title":"X"}]}}}}`, `{"a":["x"]}`)
	f.Fuzz(func(t *testing.T, schema, answers string) {
		form, err := forms.Read(json.RawMessage(schema), clean)
		if err != nil {
			return
		}
		again, err := forms.Read(form.Schema, clean)
		if err != nil || string(again.Schema) != string(form.Schema) {
			t.Fatalf("%s became %s, %v", form.Schema, schemaOf(again), err)
		}
		checked, err := form.Check(json.RawMessage(answers))
		if err != nil {
			return
		}
		if twice, err := again.Check(checked); err != nil || string(twice) != string(checked) {
			t.Fatalf("%s became %s, %v", checked, twice, err)
		}
	})
}

// TestFields: a person at a terminal types the answers to the fields of a form.
func TestFields(t *testing.T) {
	f, err := forms.Read(json.RawMessage(`{"type":"object","required":["s"],"properties":{"s":{"type":"string","title":"T","description":"D"},
		"n":{"type":"number"},"i":{"type":"integer","description":"D"},"b":{"type":"boolean"},"o":{"type":"string","enum":["x","y"]},
		"a":{"type":"array","items":{"enum":["x","y"]}}}}`), clean)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct{ about, typed, want, wrong string }{
		{"T: D", "text, with a comma", `"text, with a comma"`, ""},
		{"", "1.50", "1.50", "one"},
		{"D", "9007199254740993", "9007199254740993", "1.5"},
		{"", "Yes", "true", "perhaps"},
		{"", "y", `"y"`, "z"},
		{"", "x, y", `["x","y"]`, "x, z"},
	}
	for i, field := range f.Fields() {
		test := tests[i]
		got, err := field.Parse(test.typed)
		if field.About != test.about || err != nil || string(got) != test.want || field.Required != (field.Name == "s") {
			t.Errorf("%+v: got %s, %v", field, got, err)
		}
		if got, err := field.Parse(test.wrong); err == nil && test.wrong != "" {
			t.Errorf("%+v takes %s", field, got)
		}
	}
}
