package schemas

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
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
		{`{"properties":{"f":{"oneOf":[{"properties":{"k":{"const":"a"}},"additionalProperties":false},{"properties":{"k":{"const":"b"}},"additionalProperties":false}]}}}`, `{"f":{"k":"c","y":1}}`},
		{`{"properties":{"f":{"anyOf":[{"patternProperties":{"a":{"type":"null"},"b":{"const":1}}},{"dependentSchemas":{"ab":{"type":"array"},"c":{"minProperties":3}},"properties":{"c":{"const":2},"ab":{"const":3}}}]}}}`, `{"f":{"ab":"c","c":1}}`},
		{`{"allOf":[{"properties":{"a":{"multipleOf":0.1}}},{"properties":{"a":{"type":"array"}}}],"properties":{"a":false}}`, `{"a":0.25}`},
	} {
		f.Add([]byte(seed.schema), []byte(seed.value))
	}
	f.Fuzz(func(t *testing.T, schema, text []byte) {
		v, err := compile(NewSteps(context.Background(), 1<<16), schema)
		if err != nil {
			return
		}
		if _, err := bounded(text, 1<<16, 1<<10); err != nil {
			return
		}
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			return
		}
		apply := func() (valid bool, flaws []flaw, messages []string, err error) {
			e := evaluation{v: v, steps: NewSteps(context.Background(), 1<<14)}
			valid = e.apply(&frame{schema: v.root, open: opened(value, v.root, false, &e)}, value)
			flaws = tidy(e.flaws, e.steps)
			for _, fl := range flaws {
				said, _ := teller{value, "it", NewSteps(context.Background(), maxHintSteps)}.tell(fl)
				messages = append(messages, said)
			}
			return valid, flaws, messages, e.steps.Err()
		}
		valid, flaws, messages, err := apply()
		_, _, again, errAgain := apply()
		if err != nil || errAgain != nil {
			return
		}
		if !slices.Equal(messages, again) {
			t.Errorf("%s on %s: it says %q and then %q", schema, text, messages, again)
		}
		var invalid *jsonschema.ValidationError
		errors.As(v.root.Validate(value), &invalid)
		if valid != (invalid == nil) || valid && len(flaws) > 0 {
			t.Fatalf("%s on %s: valid %v with the flaws %v, the library says %v", schema, text, valid, flaws, invalid)
		}
		at := map[string][]jsonschema.ErrorKind{}
		places(invalid, at)
		for i, fl := range flaws {
			if messages[i] == "" || !slices.ContainsFunc(at[fmt.Sprint(fl.path)], fl.agrees) {
				t.Errorf("%s on %s: the library does not say %q, but %v", schema, text, messages[i], invalid)
			}
		}
		if !valid && len(flaws) == 0 && !slices.ContainsFunc(slices.Concat(slices.Collect(maps.Values(at))...), isCycle) {
			t.Errorf("%s on %s: it is not valid, but has no flaw; the library says %v", schema, text, invalid)
		}
	})
}

// places collects the kinds of errors by the places of their values.
func places(e *jsonschema.ValidationError, at map[string][]jsonschema.ErrorKind) {
	if e == nil {
		return
	}
	place := fmt.Sprint(e.InstanceLocation)
	at[place] = append(at[place], e.ErrorKind)
	for _, cause := range e.Causes {
		places(cause, at)
	}
}

func isCycle(k jsonschema.ErrorKind) bool { _, ok := k.(*kind.RefCycle); return ok }

// phrases are parts of what is said of the library's kinds of errors.
var phrases = map[string][]string{
	"FalseSchema":   {"is not allowed here"},
	"MinProperties": {"must have at least", "must not be empty"}, "MaxProperties": {"must have at most"},
	"MinItems": {"must have at least", "must not be empty"}, "MaxItems": {"must have at most"},
	"MinLength": {"must have at least", "must not be empty"}, "MaxLength": {"must have at most"},
	"AdditionalItems": {"too many"}, "UniqueItems": {"must not repeat items"},
	"Dependency": {" where it has "}, "DependentRequired": {" where it has "},
	"Contains": {"has no item of the form"}, "MinContains": {"of a certain form"}, "MaxContains": {"of a certain form"},
	"Pattern": {"must match the pattern"}, "MultipleOf": {"must be a multiple of"},
	"Minimum": {"must be at least"}, "Maximum": {"must be at most"},
	"ExclusiveMinimum": {"must be more than"}, "ExclusiveMaximum": {"must be less than"},
	"Not": {"is ruled out"}, "AnyOf": {"fits none of"}, "OneOf": {"fits none of", "fits more than one of"},
}

// agrees reports whether an error of the library can be the flaw.
func (fl flaw) agrees(k jsonschema.ErrorKind) bool {
	switch k := k.(type) {
	case *kind.Required:
		return fl.about == missingField && slices.Contains(k.Missing, fl.member)
	case *kind.AdditionalProperties:
		return fl.about == unknownField && slices.Contains(k.Properties, fl.member)
	case *kind.PropertyNames:
		return fl.about == fieldName && k.Property == fl.member
	case *kind.Type:
		return len(fl.want) > 0 && !fl.fixed
	case *kind.Enum, *kind.Const:
		return len(fl.want) > 0 && fl.fixed
	}
	named := strings.TrimPrefix(fmt.Sprintf("%T", k), "*kind.")
	return fl.about == "" && fl.want == nil && slices.ContainsFunc(phrases[named], func(p string) bool { return strings.Contains(fl.said, p) })
}

// TestTellSpent: a flaw with many allowed values is reported after the steps are spent, but without a hint.
func TestTellSpent(t *testing.T) {
	var want []string
	for i := range maxWant {
		want = append(want, fmt.Sprintf(`"w%d"`, i))
	}
	for steps, hint := range map[int]string{0: "", maxWant: "", (1 + stepsPerName) * maxWant: `did you mean "w1"?`} {
		tell := teller{"w1x", "it", NewSteps(t.Context(), steps)}
		said, got := tell.tell(flaw{want: [][]string{want[1:], want}, fixed: true})
		if !strings.HasPrefix(said, `it must be one of "w1", `) || !strings.HasSuffix(said, `, "w20", ..., got "w1x"`) || got != hint {
			t.Errorf("in %d steps it says %s (%s), want the hint %q", steps, said, got, hint)
		}
	}
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
