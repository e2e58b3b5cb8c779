//go:build !race

package schemas_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/internal/costtest"
	"github.com/mcsh-dev/mcsh/schemas"
)

// A costCase is a schema and arguments that cost too much unless they are bounded. said is what must be said of the
// arguments, or of the schema: part of a mistake or of a note; empty: they are valid.
type costCase struct{ name, schema, args, said string }

// costly returns the cases, or the same in small: everything that is there many times is divided.
func costly(by int) []costCase {
	repeat := func(n int, format string) string { return repeat(max(1, n/by), format) }
	times := func(text string, n int) string { return strings.Repeat(text, max(1, n/by)) }
	return []costCase{
		{"patterns that unroll", `{"properties":{` + repeat(3000, `"p#N":{"pattern":"((a{1,30}){1,30})#N"}`) + `}}`, `{"p1":"a1"}`, "regexp instructions"},
		{"patterns that unroll, as names", `{"patternProperties":{` + repeat(3000, `"((a{1,30}){1,30})#N":{}`) + `}}`, `{"p1":"a1"}`, "regexp instructions"},
		{"one pattern that unrolls", `{"properties":{"p":{"pattern":"` + times("((a{1,30}){1,30})", 100) + `"}}}`, `{"p":"a"}`, "regexp instructions"},
		{"large classes", `{"properties":{` + repeat(100, `"p#N":{"pattern":"`+times(`\\p{L}`, 600)+`"}`) + `}}`, `{"p":"a"}`, "regexp instructions"},
		{"escaped keyword", `{"properties":{` + repeat(3000, `"p#N":{"p\u0061ttern":"((a{1,30}){1,30})#N"}`) + `}}`, `{"p1":"a1"}`, "regexp instructions"},
		{"pattern and long text", `{"properties":{"p":{"pattern":"(a|aa|b|c|d|e){1,900}$"}}}`, `{"p":"` + times("a", 8<<20) + `"}`, "too"},
		{"lookahead and long text", `{"properties":{"p":{"pattern":"^(?!.*secret)"}}}`, `{"p":"` + times("a", 8<<20) + `"}`, "too"},
		{"lookaheads that are slow", `{"properties":{"l":{"items":{"pattern":"^(?=x)?(a+)+$"}}}}`, `{"l":[` + repeat(5000, `"aaaaaaaaaaaaaaaaaa#N"`) + `]}`, "too"},
		{"deep references", deepReferences(max(3, 300/by)), `{}`, ""},
		{"many parts", `{"properties":{` + repeat(30_000, `"p#N":{"type":"string"}`) + `}}`, `{}`, "more than 4096 parts"},
		{"many references", `{"properties":{` + repeat(1500, `"p#N":{"$ref":"#/x/#N"}`) + `},"x":[` + repeat(1500, `{}`) + `]}`, `{}`, "references to"},
		{"long places", `{"properties":{"` + times("a", 400_000) + `":{"properties":{` + repeat(5000, `"p#N":{}`) + `}}}}`, `{}`, "too long for its depth"},
		{"many required", `{"required":[` + repeat(60_000, `"p#N"`) + `],"properties":{"l":{"items":{"required":[` + repeat(10_000, `"p#N"`) + `]}}}}`, `{"l":[` + repeat(10_000, `{}`) + `]}`, "takes more than"},
		{"enum of arrays", `{"properties":{"l":{"items":{"enum":[` + repeat(40_000, `[1,2,3,#N]`) + `]}}}}`, `{"l":[` + repeat(20_000, `[1,2,3,#N]`) + `]}`, "takes more than 262144 steps"},
		{"enum that fits no item", `{"properties":{"l":{"items":{"enum":[` + repeat(40_000, `[1,#N]`) + `]}}}}`, `{"l":[` + repeat(20_000, `[2,#N]`) + `]}`, "and 19988 mistakes more"},
		{"enums of branches", `{"properties":{"l":{"items":{"anyOf":[` + repeat(300, `{"enum":[`+repeat(200, `"v#N"`)+`]}`) + `]}}}}`, `{"l":[` + repeat(200, `"x"`) + `]}`, "must be one of"},
		{"enums of branches with long words", `{"properties":{"l":{"items":{"anyOf":[` + repeat(16, `{"enum":[`+strings.ReplaceAll(repeat(256, `"`+strings.Repeat("w", 16)+`-#N"`), "-", "-#N-")+`]}`) + `]}}}}`, `{"l":[` + repeat(12, `"`+strings.Repeat("x", 40)+`"`) + `]}`, "must be one of"},
		{"unions of closed objects", `{"properties":{"f":{"anyOf":[` + repeat(130, `{"properties":{"p#N":{}},"additionalProperties":false}`) + `]}}}`, `{"f":{` + repeat(1000, `"y#N":1`) + `}}`, "and 988 mistakes more"},
		{"many patternProperties", `{"patternProperties":{` + repeat(300, `"^(key|name)?.*[a-f]#N$":{}`) + `}}`, `{` + repeat(5000, `"key of some length #N":1`) + `}`, "takes more than"},
		{"equal items", `{"properties":{"l":{"uniqueItems":true}}}`, `{"l":[` + repeat(20_000, `[[[#N]]]`) + `]}`, ""},
		{"large numbers", `{"properties":{"l":{"uniqueItems":true,"items":{"multipleOf":1e-300,"enum":[1e400]}}}}`, `{"l":[` + repeat(20_000, `1e400`) + `]}`, "must not repeat items"},
		{"unevaluated in many branches", `{"allOf":[` + repeat(500, `{"properties":{"p#N":true}}`) + `],"unevaluatedProperties":false}`, `{` + repeat(5000, `"p#N":1`) + `}`, "takes more than"},
		{"unknown fields", `{"properties":{` + repeat(4000, `"`+times("x", 100)+`#N":{}`) + `},"additionalProperties":false}`, `{` + repeat(50_000, `"`+times("y", 90)+`#N":1`) + `}`, "unknown field"},
		{"chains of references", chain(max(1, 1000/by)), `{}`, ""},
		{"many values", `{}`, `{"l":[` + repeat(1_000_000, `{}`) + `]}`, "more than 262144 values"},
		{"many failures", `{"properties":{"l":{"items":{"items":{"type":"string"}}}}}`, `{"l":[` + repeat(60, `[`+repeat(1000, `1`)+`]`) + `]}`, "and 59988 mistakes more"},
	}
}

// deepReferences is a schema of n properties, each of which refers to the next one.
func deepReferences(n int) string {
	var b strings.Builder
	b.WriteString(`{"type":"object","properties":{`)
	for i := range n {
		fmt.Fprintf(&b, `"p%d":{"anyOf":[{"$ref":"#/properties/p%d"},{"$ref":"#/properties/p%d"},{"type":"object","properties":{"a":{"$ref":"#/properties/p%d"}}}]},`, i, i+1, i+2, i+1)
	}
	fmt.Fprintf(&b, `"p%d":{"type":"string"},"p%d":{"type":"string"}}}`, n, n+1)
	return b.String()
}

// chain is a schema that refers to n definitions, one behind the other.
func chain(n int) string {
	defs := make([]string, n)
	for i := range defs {
		defs[i] = fmt.Sprintf(`"d%d":{"allOf":[{"$ref":"#/$defs/d%d"}]}`, i, (i+1)%n)
	}
	return `{"$ref":"#/$defs/d0","$defs":{` + strings.Join(defs, ",") + `}}`
}

// TestCosts: what one schema and its arguments cost is bounded, and what is not checked is said.
func TestCosts(t *testing.T) {
	for _, c := range costly(1) {
		t.Run(c.name, func(t *testing.T) {
			schema, args := json.RawMessage(c.schema), json.RawMessage(c.args)
			if !json.Valid(schema) || !json.Valid(args) {
				t.Fatal("no JSON")
			}
			var said string
			costtest.Run(t, func() { said = look(schema, args) })
			if c.said == "" && said != "" || !strings.Contains(said, c.said) {
				t.Errorf("it says %.300q, want %q", said, c.said)
			}
			if len(said) > 16<<10 {
				t.Errorf("it says %d bytes", len(said))
			}
		})
	}
}

// look does with a schema and arguments everything that is done with them, and returns what is said.
func look(schema, args json.RawMessage) string {
	ctx := context.Background()
	said := ""
	d, err := schemas.Describe(schemas.NewSteps(ctx, 1<<18), "tool", schema)
	if err != nil {
		said += err.Error() + "\n"
	}
	schemas.ResultShape(schemas.NewSteps(ctx, 1<<18), schema)
	d.Input.Check = schemas.NewCache(1<<20, nil, schemas.Limits{}).Check(schema)
	schemas.Example(ctx, schema, d.Input)
	for _, partial := range []bool{true, false} {
		wrong, note := d.Input.Check(ctx, args, partial)
		said += strings.Join(wrong, "\n") + note
	}
	return said
}

// FuzzCost: nothing that is done with 100 KB of a schema and arguments is expensive.
func FuzzCost(f *testing.F) {
	for _, c := range costly(40) {
		if len(c.schema)+len(c.args) <= costtest.Input {
			f.Add([]byte(c.schema), []byte(c.args))
		}
	}
	for _, s := range inputShapes {
		f.Add([]byte(s.schema), []byte(s.good))
	}
	f.Fuzz(func(t *testing.T, schema, args []byte) {
		schema = schema[:min(len(schema), costtest.Input)]
		args = args[:min(len(args), costtest.Input-len(schema))]
		costtest.Run(t, func() { look(schema, args) })
	})
}
