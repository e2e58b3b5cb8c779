package schemas_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// inputShapes are shapes of inputSchema that servers publish. Each takes good and refuses bad, or does not compile.
var inputShapes = []struct {
	name, schema string
	good, bad    string // bad is empty where nothing is judged
	fails        string // part of the error of a schema that does not compile
}{
	{"empty", ``, `{"a":1}`, ``, ""},
	{"anything", `{}`, `{"a":1}`, ``, ""},
	{"true", `true`, `{"a":1}`, ``, ""},
	{"bare object", `{"type":"object"}`, `{"a":1}`, ``, ""},
	{"no parameters", `{"type":"object","properties":{},"additionalProperties":false}`, `{}`, `{"a":1}`, ""},
	{"2020-12", `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`, `{"a":"x"}`, `{}`, ""},
	{"2019-09", `{"$schema":"https://json-schema.org/draft/2019-09/schema","type":"object","properties":{"a":{"items":[{"type":"string"}]}}}`, `{"a":["x"]}`, `{"a":[1]}`, ""},
	{"draft-07", `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"a":{"const":1}}}`, `{"a":1}`, `{"a":2}`, ""},
	{"draft-06", `{"$schema":"http://json-schema.org/draft-06/schema#","type":"object","properties":{"a":{"exclusiveMinimum":1}}}`, `{"a":2}`, `{"a":1}`, ""},
	{"draft-04", `{"$schema":"http://json-schema.org/draft-04/schema#","id":"x","type":"object","properties":{"a":{"minimum":1,"exclusiveMinimum":true}}}`, `{"a":2}`, `{"a":1}`, ""},
	{"draft-04 unsaid", `{"type":"object","properties":{"a":{"type":"number","minimum":1,"exclusiveMinimum":true}}}`, `{"a":2}`, `{"a":1}`, ""},
	{"draft-07 tuple unsaid", `{"type":"object","properties":{"a":{"type":"array","items":[{"type":"string"},{"type":"number"}],"additionalItems":false}}}`, `{"a":["x",1]}`, `{"a":["x",1,2]}`, ""},
	{"draft-07 dependencies unsaid", `{"type":"object","dependencies":{"a":["b"]}}`, `{"a":1,"b":1}`, `{"a":1}`, ""},
	{"unknown dialect", `{"$schema":"https://example.com/own-dialect","type":"object","properties":{"a":{"type":"string"}}}`, `{"a":"x"}`, `{"a":1}`, ""},
	{"dialect of the wrong type", `{"$schema":7,"type":"object","properties":{"a":{"type":"string"}}}`, `{"a":"x"}`, `{"a":1}`, ""},
	{"relative id", `{"$id":"tools/get","type":"object","properties":{"a":{"$ref":"#/$defs/n"}},"$defs":{"n":{"type":"integer"}}}`, `{"a":1}`, `{"a":"1"}`, ""},
	{"defs", `{"type":"object","properties":{"u":{"$ref":"#/$defs/user"}},"$defs":{"user":{"type":"object","required":["id"],"properties":{"id":{"type":"integer"}}}}}`, `{"u":{"id":1}}`, `{"u":{}}`, ""},
	{"definitions", `{"type":"object","properties":{"u":{"$ref":"#/definitions/user"}},"definitions":{"user":{"type":"string"}}}`, `{"u":"x"}`, `{"u":1}`, ""},
	{"anchor", `{"type":"object","properties":{"u":{"$ref":"#user"}},"$defs":{"x":{"$anchor":"user","type":"string"}}}`, `{"u":"x"}`, `{"u":1}`, ""},
	{"reference at the root", `{"$ref":"#/$defs/in","$defs":{"in":{"type":"object","required":["a"],"properties":{"a":{"type":"string"}}}}}`, `{"a":"x"}`, `{}`, ""},
	{"reference into a property", `{"type":"object","properties":{"a":{"type":"string"},"b":{"$ref":"#/properties/a"}}}`, `{"b":"x"}`, `{"b":1}`, ""},
	{"recursion", `{"type":"object","properties":{"f":{"$ref":"#/$defs/filter"}},"$defs":{"filter":{"type":"object","properties":{"and":{"type":"array","items":{"$ref":"#/$defs/filter"}},"eq":{"type":"string"}},"additionalProperties":false}}}`, `{"f":{"and":[{"eq":"x"},{"and":[]}]}}`, `{"f":{"and":[{"and":[{"eq":1}]}]}}`, ""},
	{"recursion at the root", `{"type":"object","properties":{"a":{"$ref":"#"}},"additionalProperties":false}`, `{"a":{"a":{}}}`, `{"a":{"b":1}}`, ""},
	{"boolean properties", `{"type":"object","properties":{"any":true,"none":false}}`, `{"any":1}`, `{"none":1}`, ""},
	{"nullable", `{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}],"default":null}}}`, `{"a":null}`, `{"a":1}`, ""},
	{"types", `{"type":"object","properties":{"a":{"type":["string","integer"]}}}`, `{"a":1}`, `{"a":1.5}`, ""},
	{"union by constant", `{"type":"object","properties":{"s":{"oneOf":[{"type":"object","properties":{"k":{"const":"a"},"n":{"type":"integer"}},"required":["k","n"]},{"type":"object","properties":{"k":{"const":"b"}},"required":["k"]}]}}}`, `{"s":{"k":"b"}}`, `{"s":{"k":"a","n":"1"}}`, ""},
	{"union at the root", `{"type":"object","oneOf":[{"properties":{"id":{"type":"integer"}},"required":["id"]},{"properties":{"name":{"type":"string"}},"required":["name"]}]}`, `{"id":1}`, `{}`, ""},
	{"allOf", `{"type":"object","allOf":[{"properties":{"a":{"type":"string"}},"required":["a"]},{"properties":{"b":{"type":"string"}}}]}`, `{"a":"x"}`, `{"b":1,"a":"x"}`, ""},
	{"if then", `{"type":"object","properties":{"m":{"enum":["x","y"]}},"if":{"properties":{"m":{"const":"x"}},"required":["m"]},"then":{"required":["a"]}}`, `{"m":"y"}`, `{"m":"x"}`, ""},
	{"not", `{"type":"object","not":{"required":["a","b"]}}`, `{"a":1}`, `{"a":1,"b":2}`, ""},
	{"lookahead", `{"type":"object","properties":{"p":{"type":"string","pattern":"^(?!.*\\.\\.)[a-z./]+$"}}}`, `{"p":"a/b.c"}`, `{"p":"a/../b"}`, ""},
	{"ECMA escapes", `{"type":"object","properties":{"p":{"type":"string","pattern":"^[\\u0041-\\u005A]\\/$"}}}`, `{"p":"A/"}`, `{"p":"a/"}`, ""},
	{"pattern properties", `{"type":"object","patternProperties":{"^x-":{"type":"string"}},"additionalProperties":false}`, `{"x-a":"1"}`, `{"y":"1"}`, ""},
	{"property names", `{"type":"object","propertyNames":{"pattern":"^[a-z]+$"}}`, `{"a":1}`, `{"A":1}`, ""},
	{"unevaluated", `{"type":"object","allOf":[{"properties":{"a":true}}],"unevaluatedProperties":false}`, `{"a":1}`, `{"b":1}`, ""},
	{"format", `{"type":"object","properties":{"u":{"type":"string","format":"uri"}}}`, `{"u":"not a uri"}`, ``, ""},
	{"unknown keywords", `{"type":"object","x-order":1,"properties":{"a":{"type":"string","x-ui":{"$ref":"nowhere"}}}}`, `{"a":"x"}`, `{"a":1}`, ""},
	{"large integers", `{"type":"object","properties":{"n":{"type":"integer","maximum":9007199254740993}}}`, `{"n":9007199254740993}`, `{"n":9007199254740994}`, ""},
	{"required with a default", `{"type":"object","properties":{"n":{"type":"integer","default":5}},"required":["n"]}`, `{}`, `{"n":"5"}`, ""},
	{"null character", `{"type":"object","properties":{"a":{"const":"\u0000"}}}`, `{"a":"\u0000"}`, `{"a":""}`, ""},
	{"required: true", `{"type":"object","properties":{"a":{"type":"string","required":true}}}`, `{"a":1}`, ``, "required"},
	{"type any", `{"type":"object","properties":{"a":{"type":"any"}}}`, `{"a":1}`, ``, "type"},
	{"limit as text", `{"type":"object","properties":{"a":{"minLength":"1"}}}`, `{"a":1}`, ``, "minLength"},
	{"reference to nothing", `{"type":"object","properties":{"a":{"$ref":"#/$defs/none"}}}`, `{"a":1}`, ``, "none"},
	{"reference to another document", `{"type":"object","properties":{"a":{"$ref":"https://example.com/a.json"}}}`, `{"a":1}`, ``, "not fetched"},
	{"reference to a file", `{"type":"object","properties":{"a":{"$ref":"file:///etc/passwd"}}}`, `{"a":1}`, ``, "not fetched"},
	{"dynamic reference", `{"type":"object","properties":{"a":{"$dynamicRef":"#x"}},"$defs":{"x":{"$dynamicAnchor":"x"}}}`, `{"a":1}`, ``, ""},
	{"broken pattern", `{"type":"object","properties":{"a":{"pattern":"("}}}`, `{"a":"x"}`, ``, "("},
	{"a list", `[]`, `{"a":1}`, ``, "schema"},
	{"not JSON", `{"type":`, `{"a":1}`, ``, "not valid JSON"},
}

func TestCompileInputShapes(t *testing.T) {
	for _, tt := range inputShapes {
		t.Run(tt.name, func(t *testing.T) {
			in, err := compileInput(json.RawMessage(tt.schema))
			if tt.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tt.fails) {
					t.Errorf("error %v, want one that says %q", err, tt.fails)
				}
				if in.Check != nil {
					t.Error("a schema that does not compile has a Check")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, partial := range []bool{false, true} {
				if said := check(in, json.RawMessage(tt.good), partial); len(said) > 0 {
					t.Errorf("refused %s (partial %v): %q", tt.good, partial, said)
				}
			}
			if tt.bad != "" && len(check(in, json.RawMessage(tt.bad), false)) == 0 {
				t.Errorf("took %s", tt.bad)
			}
		})
	}
}

func TestCheckSentences(t *testing.T) {
	const issue = `{"type":"object","additionalProperties":false,"required":["owner","number"],"properties":{
		"owner":{"type":"string","minLength":1,"pattern":"^[a-z-]+$"},"number":{"type":"integer","minimum":1},
		"state":{"type":"string","enum":["open","closed"]},"labels":{"type":"array","items":{"type":"string"},"maxItems":2,"uniqueItems":true},
		"ratio":{"type":"number","maximum":0.5,"multipleOf":0.1},
		"filter":{"type":"object","properties":{"since":{"type":"string"},"by":{"$ref":"#/$defs/user"}},"required":["since"]},
		"assignee":{"anyOf":[{"type":"string"},{"type":"null"}]},
		"shape":{"oneOf":[{"type":"object","properties":{"k":{"const":"circle"},"r":{"type":"number"}},"required":["k","r"]},
			{"type":"object","properties":{"k":{"const":"square"},"a":{"type":"number"}},"required":["k","a"]},{"type":"string"}]}},
		"$defs":{"user":{"type":"object","properties":{"id":{"type":"integer"}},"required":["id"]}}}`
	in, err := compileInput(json.RawMessage(issue))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args    string
		partial bool
		want    []string
	}{
		{`{"owner":"a","number":1}`, false, nil},
		{`{}`, false, []string{`missing field "number", an integer`, `missing field "owner", a string`}},
		{`{}`, true, nil},
		{`{"owner":5}`, true, []string{`owner must be a string, got 5`}},
		{`{"owner":"a","number":"many"}`, false, []string{`number must be an integer, got "many"`}},
		{`{"owner":"a","number":1.5}`, false, []string{`number must be an integer, got 1.5`}},
		{`{"owner":"a","number":0}`, false, []string{`number must be at least 1, got 0`}},
		{`{"owner":"A","number":1}`, false, []string{`owner must match the pattern ^[a-z-]+$, got "A"`}},
		{`{"owner":"a","number":1,"state":"opne"}`, false, []string{`state must be one of "open", "closed", got "opne" (did you mean "open"?)`}},
		{`{"owner":"a","number":1,"lables":[]}`, false, []string{`unknown field "lables" (did you mean "labels"?)`}},
		{`{"xyz":1}`, true, []string{`unknown field "xyz" (the fields are assignee, filter, labels, number, owner, ratio, shape, state)`}},
		{`{"owner":"a","number":1,"labels":"bug"}`, false, []string{`labels must be an array of strings, got "bug"`}},
		{`{"owner":"a","number":1,"labels":["a",2]}`, false, []string{`labels[1] must be a string, got 2`}},
		{`{"owner":"a","number":1,"labels":["a","b","c"]}`, false, []string{`labels must have at most 2 items, has 3, got ["a","b","c"]`}},
		{`{"owner":"a","number":1,"labels":["a","a"]}`, false, []string{`labels must not repeat items, but [0] and [1] are equal, got ["a","a"]`}},
		{`{"owner":"a","number":1,"ratio":0.75}`, false, []string{`ratio must be a multiple of 0.1, got 0.75`, `ratio must be at most 0.5, got 0.75`}},
		{`{"owner":"a","number":1,"filter":{}}`, true, []string{`missing field "filter.since", a string`}},
		{`{"owner":"a","number":1,"filter":{"since":"x","by":{"id":"7"}}}`, false, []string{`filter.by.id must be an integer, got "7"`}},
		{`{"owner":"a","number":1,"assignee":7}`, false, []string{`assignee must be a string or null, got 7`}},
		{`{"owner":"a","number":1,"shape":{"k":"circle","r":"x"}}`, false, []string{`shape.r must be a number, got "x"`}},
		{`{"owner":"a","number":1,"shape":{"k":"circel","r":1}}`, false, []string{`shape.k must be one of "circle", "square", got "circel" (did you mean "circle"?)`}},
		{`{"owner":"a","number":1,"shape":3}`, false, []string{`shape must be an object or a string, got 3`}},
		{`[1]`, false, []string{`the arguments must be an object, got [1]`}},
		{`{"owner":1e9999}`, false, []string{`the arguments cannot be checked: a number has the exponent 9999, beyond 400`}},
		{`{`, false, []string{`the arguments are not valid JSON: unexpected EOF`}},
	} {
		if diff := cmp.Diff(tt.want, check(in, json.RawMessage(tt.args), tt.partial)); diff != "" {
			t.Errorf("%s, partial %v (-want +got):\n%s", tt.args, tt.partial, diff)
		}
	}
}

func TestPartial(t *testing.T) {
	for _, tt := range []struct {
		schema, args string
		want         int // mistakes
	}{
		{`{"oneOf":[{"required":["a"]},{"required":["b"]}]}`, `{}`, 0},
		{`{"anyOf":[{"required":["a"]}],"minProperties":2,"not":{"maxProperties":0}}`, `{}`, 0},
		{`{"dependentRequired":{"a":["b"]},"dependencies":{"a":["c"]}}`, `{"a":1}`, 0},
		{`{"if":{"required":["a"]},"then":{"required":["b"]}}`, `{"a":1}`, 0},
		{`{"allOf":[{"required":["a"],"properties":{"b":{"type":"string"}}}]}`, `{"b":1}`, 1},
		{`{"$ref":"#/$defs/x","$defs":{"x":{"required":["a"],"properties":{"b":{"type":"string"}}}}}`, `{"b":1}`, 1},
		{`{"properties":{"o":{"required":["a"]}}}`, `{"o":{}}`, 1},
		{`{"maxProperties":1}`, `{"a":1,"b":1}`, 1},
	} {
		in, err := compileInput(json.RawMessage(tt.schema))
		if err != nil {
			t.Errorf("%s: %v", tt.schema, err)
			continue
		}
		if got := check(in, json.RawMessage(tt.args), true); len(got) != tt.want {
			t.Errorf("%s on %s: %q, want %d mistakes", tt.schema, tt.args, got, tt.want)
		}
	}
}

func TestOutline(t *testing.T) {
	for _, tt := range []struct {
		schema     string
		properties []string
		required   []string
		closed     bool
	}{
		{`{"properties":{"z":{},"a":{},"m":{}},"required":["m"]}`, []string{"z", "a", "m"}, []string{"m"}, false},
		{`{"properties":{"a":{}},"additionalProperties":false}`, []string{"a"}, nil, true},
		{`{"properties":{"a":{}},"additionalProperties":false,"patternProperties":{"^x":{}}}`, []string{"a"}, nil, false},
		{`{"$ref":"#/$defs/x","$defs":{"x":{"properties":{"a":{}},"required":["a"],"additionalProperties":false}}}`, []string{"a"}, []string{"a"}, true},
		{`{"oneOf":[{"properties":{"a":{}},"required":["a"]},{"properties":{"b":{}}}]}`, []string{"a", "b"}, nil, false},
		{`{"properties":{"a":{"type":"any"}},"required":["a"]}`, []string{"a"}, []string{"a"}, false},
		{`{"properties":{"a":{"default":1}},"required":["a"]}`, []string{"a"}, nil, false},
		{`{"$ref":"#"}`, nil, nil, false},
	} {
		in, _ := compileInput(json.RawMessage(tt.schema)) // what does not compile is read all the same
		if !slices.Equal(in.Properties, tt.properties) || !slices.Equal(in.Required, tt.required) || in.Closed != tt.closed {
			t.Errorf("%s: got %q, required %q, closed %v", tt.schema, in.Properties, in.Required, in.Closed)
		}
	}
}

// TestCheckRepeated: a check says the same each time, in whatever order the maps are read.
func TestCheckRepeated(t *testing.T) {
	for _, tt := range []struct{ schema, args, want string }{
		{
			`{"properties":{"f":{"oneOf":[{"properties":{"kind":{"const":"a"}},"additionalProperties":false},{"properties":{"kind":{"const":"b"}},"additionalProperties":false}]}}}`,
			`{"f":{"kind":"c","y":1}}`, `f.kind must be one of "a", "b", got "c" (did you mean "a"?)`,
		},
		{
			`{"anyOf":[{"properties":{"a":{"const":1},"b":{"type":"null"}}},{"properties":{"a":{"const":2},"b":{"type":"null"}}}]}`,
			`{"a":3,"b":4}`, `a must be one of 1, 2, got 3`,
		},
		{
			`{"properties":{"a":{"anyOf":[{"const":1},{"const":2}]}},"patternProperties":{"a":{"anyOf":[{"type":"null"},{"const":2}]}}}`,
			`{"a":3}`, `a must be one of 1, 2, got 3; a must be 2, got 3`,
		},
	} {
		in, err := compileInput(json.RawMessage(tt.schema))
		if err != nil {
			t.Fatal(err)
		}
		for range 100 {
			if said := strings.Join(check(in, json.RawMessage(tt.args), false), "; "); said != tt.want {
				t.Fatalf("%s on %s: %s, want %s", tt.schema, tt.args, said, tt.want)
			}
		}
	}
}

func TestCheckConcurrently(t *testing.T) {
	in, err := compileInput(json.RawMessage(`{"properties":{"a":{"pattern":"^(?!b).$"}},"required":["a"]}`))
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				if said := check(in, json.RawMessage(`{"a":"b"}`), false); len(said) != 1 {
					t.Errorf("got %q, want one mistake", said)
				}
			}
		})
	}
	wg.Wait()
}

func TestSignature(t *testing.T) {
	for _, tt := range []struct{ schema, want string }{
		{
			`{"type":"object","properties":{"owner":{"type":"string"},"state":{"enum":["open","closed"],"default":"open"},"labels":{"type":"array","items":{"type":"string"}},"number":{"type":"integer"}},"required":["owner","number"]}`,
			`t(owner: string, number: integer, state?: "open"|"closed" = "open", labels?: [string])`,
		},
		{``, `t(...)`},
		{`{"type":"object"}`, `t()`},
		{`{"type":"object","properties":{}}`, `t()`},
		{`nonsense`, `t(...)`},
		{`{"properties":{"a":{"type":["string","null"]},"b":{"anyOf":[{"type":"integer"},{"type":"null"}]},"c":{},"d":true}}`, `t(a?: string|null, b?: integer|null, c?: any, d?: any)`},
		{`{"properties":{"f":{"type":"object","properties":{"x":{"type":"number"},"y":{"const":"k"}},"required":["x"]}},"required":["f"]}`, `t(f: {x: number, y?: "k"})`},
		{`{"properties":{"f":{"$ref":"#/$defs/f"}},"$defs":{"f":{"properties":{"sub":{"$ref":"#/$defs/f"}}}}}`, `t(f?: {sub?: object})`},
		{`{"required":["ghost"]}`, `t(ghost: any)`},
		{`{"properties":{"p":{"type":"string","pattern":"^[0-9]+\\.[0-9]{2}$"},"n":{"type":"integer","minimum":1,"maximum":100,"default":30},"m":{"type":"integer","maximum":50}}}`, `t(p?: string /^[0-9]+\.[0-9]{2}$/, n?: integer 1..100 = 30, m?: integer ≤ 50)`},
		{`{"properties":{"x":{"type":"number","exclusiveMinimum":0},"s":{"type":["string","null"],"format":"date-time"},"i":{"type":"integer","minimum":0,"maximum":9007199254740991}}}`, `t(x?: number > 0, s?: string date-time|null, i?: integer ≥ 0)`},
		{`{"properties":{"e":{"enum":[1,2,3,4,5,6,7,8,9,10,11,12]}}}`, `t(e?: 1|2|3|4|5|6|7|8|9|10|...)`},
	} {
		if got := signature("t", json.RawMessage(tt.schema)); got != tt.want {
			t.Errorf("%s\n got %s\nwant %s", tt.schema, got, tt.want)
		}
	}
}

func TestSignatureIsShort(t *testing.T) {
	var properties []string
	for i := range 500 {
		properties = append(properties, fmt.Sprintf(`"parameter_%d":{"type":"string"}`, i))
	}
	got := signature("t", json.RawMessage(`{"properties":{`+strings.Join(properties, ",")+`}}`))
	if len(got) > 450 || !strings.HasSuffix(got, " more)") {
		t.Errorf("%d characters: %s", len(got), got)
	}
	for server, tools := range recordedTools(t) {
		for _, tool := range tools {
			if got := signature(tool.Name, tool.InputSchema); len([]rune(got)) > 500 {
				t.Errorf("%s: %d characters: %s", server, len(got), got)
			}
		}
	}
}

func FuzzCompileInput(f *testing.F) {
	for _, s := range inputShapes {
		f.Add([]byte(s.schema), []byte(s.good))
		f.Add([]byte(s.schema), []byte(s.bad))
	}
	f.Fuzz(func(t *testing.T, schema, args []byte) {
		signature("tool", schema)
		in, err := compileInput(schema)
		if (err == nil) != (in.Check != nil) {
			t.Fatalf("error %v with Check %v", err, in.Check != nil)
		}
		if in.Check == nil {
			return
		}
		for _, said := range slices.Concat(check(in, args, false), check(in, args, true)) {
			if said == "" || len(said) > 4000 {
				t.Errorf("a sentence of %d bytes: %q", len(said), said)
			}
		}
	})
}

func benchmarkSchema(b *testing.B) json.RawMessage {
	for _, tool := range recordedTools(b)["github.json"] {
		if tool.Name == "create_pull_request" || tool.Name == "list_issues" {
			return tool.InputSchema
		}
	}
	b.Fatal("the recorded tools have neither create_pull_request nor list_issues")
	return nil
}

func BenchmarkCompileInput(b *testing.B) {
	schema := benchmarkSchema(b)
	for b.Loop() {
		if _, err := compileInput(schema); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	in, err := compileInput(benchmarkSchema(b))
	if err != nil {
		b.Fatal(err)
	}
	args := json.RawMessage(`{"owner":"a","repo":"b"}`)
	for b.Loop() {
		check(in, args, true)
	}
}
