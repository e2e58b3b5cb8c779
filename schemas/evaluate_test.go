package schemas

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// FuzzEvaluate compares an evaluation with the validator of the library, on the same compiled schema.
func FuzzEvaluate(f *testing.F) {
	for _, seed := range []struct{ schema, value string }{
		{`{"properties":{"a":{"type":"integer","minimum":1}},"required":["a","b"],"additionalProperties":false}`, `{"a":1.0,"c":0}`},
		{`{"anyOf":[{"required":["a"]},{"properties":{"b":{"const":1.50}}}],"unevaluatedProperties":false}`, `{"b":15e-1,"c":1}`},
		{`{"anyOf":[{"properties":{"a":true}},{"properties":{"b":true}}],"unevaluatedProperties":{"type":"string"}}`, `{"a":1,"b":2,"c":3}`},
		{`{"properties":{"l":{"prefixItems":[{"type":"string"}],"contains":{"type":"number"},"unevaluatedItems":false,"minContains":2,"maxContains":3}}}`, `{"l":["x",1,2,"y"]}`},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"l":{"items":[{"type":"string"}],"additionalItems":{"type":"null"},"uniqueItems":true}}}`, `{"l":[1,null,2,null,{"a":1},{"a":1.0}]}`},
		{`{"$schema":"http://json-schema.org/draft-04/schema#","properties":{"l":{"items":[{}],"additionalItems":false},"n":{"maximum":3,"exclusiveMaximum":true}}}`, `{"l":[1,2],"n":3}`},
		{`{"$schema":"https://json-schema.org/draft/2019-09/schema","items":{"$ref":"#/$defs/x"},"$defs":{"x":{"minLength":2}},"properties":{"a":{"items":[true],"additionalItems":true,"unevaluatedItems":false}}}`, `{"a":["x",1]}`},
		{`{"oneOf":[{"required":["a"]},{"required":["b"]},{"not":{"required":["c"]}}]}`, `{"a":1,"b":2}`},
		{`{"if":{"properties":{"a":{"const":1}}},"then":{"required":["b"]},"else":{"required":["c"]}}`, `{"a":2}`},
		{`{"propertyNames":{"pattern":"^[a-z]+$","maxLength":3},"patternProperties":{"^a":{"enum":["x",1,null]}},"minProperties":3,"maxProperties":1}`, `{"A":1,"abcd":2}`},
		{`{"dependencies":{"a":["b"],"c":{"required":["d"]}},"dependentRequired":{"a":["z"]},"dependentSchemas":{"a":{"minProperties":9}}}`, `{"a":1,"c":2}`},
		{`{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"anyOf":[{"$ref":"#/$defs/a"},{"type":"string"}]}}}`, `{}`},
		{`{"allOf":[{"properties":{"a":{"multipleOf":0.1}}},{"properties":{"a":{"type":"array"}}}],"properties":{"a":false}}`, `{"a":0.25}`},
	} {
		f.Add([]byte(seed.schema), []byte(seed.value))
	}
	f.Fuzz(func(t *testing.T, schema, text []byte) {
		v, err := compile(NewSteps(context.Background(), 1<<16), schema)
		if err != nil || bounded(text, 1<<16, 1<<10) != nil {
			return
		}
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			return
		}
		flaws, more, err := v.check(NewSteps(context.Background(), 1<<14), value, false)
		if err != nil || more {
			return
		}
		var want []flaw
		var invalid *jsonschema.ValidationError
		if errors.As(v.root.Validate(value), &invalid) {
			at := map[string]*jsonschema.Schema{}
			for _, s := range v.all() {
				at[s.Location] = s
			}
			want = tidy(finder{value, NewSteps(context.Background(), maxFlawSteps)}.flaws(failureOf(invalid, at)))
		}
		said := func(flaws []flaw) (list []string) {
			for _, fl := range flaws {
				list = append(list, fl.sentence("it", value))
			}
			slices.Sort(list)
			return list
		}
		if diff := cmp.Diff(said(want), said(flaws)); diff != "" {
			t.Errorf("%s on %s (-library +evaluation):\n%s", schema, text, diff)
		}
	})
}

func failureOf(e *jsonschema.ValidationError, at map[string]*jsonschema.Schema) *failure {
	fl := &failure{kind: e.ErrorKind, schema: at[e.SchemaURL], path: e.InstanceLocation}
	for _, cause := range e.Causes {
		fl.causes = append(fl.causes, failureOf(cause, at))
	}
	return fl
}

// TestCanonical: equal values have one canonical text, and others have others.
func TestCanonical(t *testing.T) {
	of := func(text string) string {
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(json.RawMessage(text)))
		if err != nil {
			t.Fatal(err)
		}
		return string(canonical(nil, value, NewSteps(context.Background(), 1000)))
	}
	for _, same := range [][]string{
		{`1`, `1.0`, `10e-1`, `0.1e1`, `1e0`, `1E+0`},
		{`0`, `-0`, `0.0`, `0e7`},
		{`-120`, `-1.2e2`, `-0.12E3`},
		{`{"a":1,"b":[]}`, `{"b":[],"a":1.0}`},
		{`"\u0041"`, `"A"`},
		{`[null,true]`, `[ null , true ]`},
	} {
		for _, text := range same {
			if of(text) != of(same[0]) {
				t.Errorf("%s and %s differ: %s, %s", text, same[0], of(text), of(same[0]))
			}
		}
	}
	seen := map[string]string{}
	for _, text := range []string{
		`1`, `10`, `-1`, `0.1`, `11`, `"1"`, `"11"`, `null`, `"null"`, `true`, `false`, `[]`, `{}`, `[1]`, `[[1]]`, `[1,1]`, `[11]`, `["a","b"]`, `["ab"]`,
		`["a","1:b"]`, `{"a":1}`, `{"a":"1"}`, `{"a1":1}`, `["a1:"]`, `""`, `[""]`, `[[],[]]`, `[[[]]]`, `{"":{}}`, `1e400`, `1e-400`,
	} {
		if other, ok := seen[of(text)]; ok {
			t.Errorf("%s and %s are equal: %s", text, other, of(text))
		}
		seen[of(text)] = text
	}
}
