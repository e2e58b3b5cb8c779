//go:build !race

package schemas_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestHostile gives schemas that would take a validator down, and arguments that would. Without bounds they take years: the limit of
// time of the test binary ends them. TestCosts measures.
func TestHostile(t *testing.T) {
	doubling := func(format, last string, n int) string {
		var defs []string
		for i := range n {
			next := fmt.Sprintf(`{"$ref":"#/$defs/d%d"}`, i+1)
			defs = append(defs, fmt.Sprintf(`"d%d":`, i)+fmt.Sprintf(format, next, next))
		}
		return strings.Join(append(defs, fmt.Sprintf(`"d%d":%s`, n, last)), ",")
	}
	nest := func(open, end string, n int) string { return strings.Repeat(open, n) + strings.Repeat(end, n) }
	for _, tt := range []struct{ name, schema, args string }{
		{"doubling allOf", `{"$ref":"#/$defs/d0","$defs":{` + doubling(`{"allOf":[%s,%s]}`, `{"required":["a"]}`, 60) + `}}`, `{}`},
		{"doubling anyOf", `{"$ref":"#/$defs/d0","$defs":{` + doubling(`{"anyOf":[%s,%s]}`, `{"required":["a"]}`, 60) + `}}`, `{}`},
		{"doubling not", `{"not":{"not":{"$ref":"#/$defs/d0"}},"$defs":{` + doubling(`{"oneOf":[%s,%s]}`, `true`, 60) + `}}`, `{}`},
		{"doubling with the data", `{"$ref":"#/$defs/a","$defs":{"a":{"properties":{"a":{"$ref":"#/$defs/a"}},"patternProperties":{"a":{"$ref":"#/$defs/a"}}}}}`, nest(`{"a":`, "", 60) + "1" + nest("", "}", 60)},
		{"doubling refusals", `{"not":{"$ref":"#/$defs/a"},"$defs":{"a":{"patternProperties":{"a":{"$ref":"#/$defs/a"},"^a":{"$ref":"#/$defs/a"}},"required":["b"]}}}`, nest(`{"a":`, "", 60) + "1" + nest("", "}", 60)},
		{"cycle", `{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`, `{}`},
		{"cycle of allOf", `{"allOf":[{"$ref":"#"}]}`, `{}`},
		{"backtracking", `{"properties":{"a":{"pattern":"^(?=x)?(a+)+$"}}}`, `{"a":"` + strings.Repeat("a", 5000) + `!"}`},
		{"backtracking many times", `{"properties":{"a":{"items":{"pattern":"^(?=x)?(a+)+$"}}}}`, `{"a":[` + strings.Repeat(`"`+strings.Repeat("a", 60)+`!",`, 500) + `""]}`},
		{"deep schema", nest(`{"properties":{"a":`, "", 5000) + "{}" + nest("", "}}", 5000), `{}`},
		{"deep arguments", `{}`, `{"a":` + nest("[", "]", 100_000) + `}`},
		{"huge exponent", `{"properties":{"a":{"type":"integer"}}}`, `{"a":1e1000000000}`},
		{"huge limit", `{"properties":{"a":{"maximum":1e1000000000}}}`, `{"a":1}`},
		{"huge number", `{"properties":{"a":{"type":"integer"}}}`, `{"a":` + strings.Repeat("9", 5_000_000) + `}`},
		{"long pattern", `{"properties":{"a":{"pattern":"` + strings.Repeat("(a|", 3000) + strings.Repeat(")", 3000) + `"}}}`, `{"a":"a"}`},
		{"many items", `{"properties":{"a":{"type":"array","uniqueItems":true,"items":{"type":"string"}}}}`, `{"a":[` + strings.Repeat("1,", 100_000) + `1]}`},
		{"references around a large schema", `{"$ref":"#","properties":{` + strings.Repeat(`"a":{"$ref":"#/properties/a"},`, 30_000) + `"b":{"anyOf":[{"$ref":"#/properties/b"},{"$ref":"#/properties/b"}]}}}`, `{}`},
		{"large schema", `{"enum":[` + strings.Repeat(`"x",`, 400_000) + `1]}`, `{}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			in, err := compileInput(json.RawMessage(tt.schema))
			if err != nil {
				t.Logf("does not compile: %v", err)
			}
			signature("tool", json.RawMessage(tt.schema))
			if in.Check != nil {
				for _, partial := range []bool{false, true} {
					if said := strings.Join(check(in, json.RawMessage(tt.args), partial), "; "); len(said) > 4000 {
						t.Errorf("says %d bytes", len(said))
					}
				}
			}
		})
	}
}
