package pipelines_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/pipelines"
	"github.com/mcsh-dev/mcsh/stages"
)

// file is a file with these members, one a line from the second on.
func file(members ...string) string { return "{\n" + strings.Join(members, ",\n") + "\n}" }

const (
	said = `"description": "It does something."`
	plan = `"pipeline": [{"type": "preview"}]`
)

func params(properties string) string {
	return `"parameters": {"type": "object", "properties": ` + properties + `}`
}

// args is a plan with arguments of a tool.
func args(text string) string {
	return `"pipeline": [{"type": "tool", "server": "s", "name": "t", "args": ` + text + `}]`
}

// TestParse: each mistake is an error with file, line and key.
func TestParse(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{file(said, plan), ""},
		{"\xef\xbb\xbf// a comment\n" + file(said, plan) + "\n// another\n", ""},
		{file(said, params(`{"x": {}}`), args(`{"a": {"$param": "x"}}`), `"examples": [{"args": {"x": 1}, "expect": {"jq": "true"}}, {}]`, `"outputSchema": {"type": "object"}`), ""},
		{"", "f.json: the file is empty"},
		{"[]", "f.json:1: want an object with description"},
		{"{", "f.json:1:2: "},
		{"\xff", "f.json: the file is not valid UTF-8"},
		{file(said, plan, `"desciption": "x"`), `f.json:4: desciption: unknown key, want one of description, parameters, pipeline, examples, outputSchema; did you mean "description"?`},
		{file(said, plan, said), "f.json:4: description: it is given twice"},
		{file(plan), "f.json:1: description: it is missing"},
		{file(said), "f.json:1: pipeline: it is missing"},
		{file(`"description": " "`, plan), "f.json:2: description: it is empty"},
		{file(`"description": 1`, plan), "f.json:2: description: want a string"},
		{file(`"description": "`+strings.Repeat("x", 9000)+`"`, plan), "f.json:2: description: it has 9000 bytes, more than 8 KiB"},
		{file(said, `"pipeline": []`), "f.json:3: pipeline: it has no stages"},
		{file(said, `"pipeline": {}`), "f.json:3: pipeline: want an array of stages"},
		{file(said, `"pipeline": [{"type": "from", "run": "r_x"}]`), "f.json:3: pipeline[0]: a saved pipeline cannot begin with"},
		{file(said, plan, `"parameters": []`), "f.json:4: parameters: want a JSON Schema of an object"},
		{file(said, plan, `"parameters": {"state": {"type": "string"}}`), `f.json:4: parameters: the parameters stand in "properties"`},
		{file(said, plan, `"parameters": {"type": "array"}`), `f.json:4: parameters.type: want "object"`},
		{file(said, plan, `"parameters": {"properties": {"a": 5}}`), "f.json:4: parameters: it is no JSON Schema that can be used"},
		{file(said, plan, params(`{"": {}}`)), `f.json:4: parameters.properties."": the name of a parameter has 1 to 64 of A-Z, a-z, 0-9, _, . and -`},
		{file(said, plan, params(`{"ｘ": {}}`)), "the name of a parameter has 1 to 64 of"},
		{file(said, plan, params(`{"$param": {}}`)), "the name of a parameter has 1 to 64 of"},
		{file(said, plan, params(`{"x\u0000": {}}`)), "the name of a parameter has 1 to 64 of"},
		{file(said, plan, params(`{"x": {}}`)), "f.json:4: parameters.properties.x: the parameter is declared and not used"},
		{file(said, args(`{"a": {"$param": "x"}}`)), `f.json:3: pipeline: the parameter "x" is used and not declared in parameters; these are none`},
		{file(said, params(`{"y": {}}`), args(`{"a": [{"$param": "x"}, {"$param": "y"}]}`)), `f.json:4: pipeline: the parameter "x" is used and not declared in parameters; these are y`},
		{file(said, params(`{"x": {}}`), args(`{"a": {"$param": "x", "b": 1}}`)), "f.json:4: pipeline[0].args.a: $param must be the only member"},
		{file(said, args(`{"a": {"$param": 1}}`)), "f.json:3: pipeline[0].args.a: $param must be the only member"},
		{file(said, args(`{"a": {"$literal": 1, "b": 1}}`)), "f.json:3: pipeline[0].args.a: $literal stands alone"},
		{file(said, params(`{"x": {}}`), `"pipeline": [{"type": "tool", "server": {"$param": "x"}, "name": "t"}]`), "f.json:4: pipeline[0].server: the parameter \"x\" cannot stand here"},
		{file(said, params(`{"x": {}}`), `"pipeline": [{"type": "for_each", "stages": [{"type": "command", "command": "head", "timeout": {"$param": "x"}}]}]`), "pipeline[0].stages[0].timeout: the parameter \"x\" cannot stand here"},
		{file(said, params(`{"x": {}}`), `"pipeline": [{"type": "command", "command": "grep", "args": ["a", ["b", {"$param": "x"}]]}]`), `f.json:4: pipeline[0].args[1]: the parameter "x" cannot stand here`},
		{file(said, params(`{"x": {}}`), `"pipeline": [{"type": "command", "command": "jq", "args": ["$params.y"]}]`), `the parameter "y" is used and not declared`},
		{file(said, params(`{"x": {}, "y": {}}`), `"pipeline": [{"type": "command", "command": "jq", "args": ["[$params[]]"]}]`), ""},
		{file(said, params(`{"x": {}}`), `"pipeline": [{"$param": "x"}]`), `f.json:4: pipeline[0]: the parameter "x" cannot stand here`},
		{file(said, params(`{"x": {}}`), `"pipeline": [{"type": "for_each", "stages": {"$param": "x"}}]`), `f.json:4: pipeline[0].stages: the parameter "x" cannot stand here`},
		{file(said, params(`{"x": {}}`), `"pipeline": [{"type": "command", "command": "jq", "args": ["-c", {"$param": "x"}]}]`), `f.json:4: pipeline[0].args[1]: the parameter "x" cannot be the program of jq: a value is no text of a program; write the program here, which reads the value as $params.x`},
		{file(said, params(`{"x": {}}`), `"pipeline": [{"type": "command", "command": "jq", "args": {"$param": "x"}}]`), `pipeline[0].args[0]: the parameter "x" cannot be the program of jq`},
		{file(said, params(`{"x": {}}`), `"pipeline": [{"type": "command", "command": "jq", "args": ["--arg", "a", {"$param": "x"}, "$a"]}]`), ""},
		{file(said, params(`{"x": {}}`), `"pipeline": [{"type": "for_each", "stages": [{"type": "command", "command": "awk", "args": ["-F", ",", {"$param": "x"}]}]}]`), `pipeline[0].stages[0].args[2]: the parameter "x" cannot be the program of awk`},
		{file(said, params(`{"x": {}}`), `"pipeline": [{"type": "command", "command": "sed", "args": ["-n", "-e", {"$param": "x"}]}]`), `pipeline[0].args[2]: the parameter "x" cannot be the program of sed`},
		{file(said, params(`{"x": {}}`), `"pipeline": [{"type": "command", "command": "grep", "args": [{"$param": "x"}]}]`), ""},
		{file(said, params(`{"x": {"type": "integer", "default": "a"}}`), args(`{"a": {"$param": "x"}}`)), "f.json:3: parameters: a default is not allowed by its own schema: x must be an integer"},
		{file(said, plan, `"examples": [{"arg": {}}]`), `f.json:4: examples[0].arg: unknown key, want one of args, expect; did you mean "args"?`},
		{file(said, plan, `"examples": [{"expect": {"jq": 1}}]`), "f.json:4: examples[0].expect.jq: want a string"},
		{file(said, plan, `"outputSchema": {"type": "array"}`), `f.json:4: outputSchema: want a JSON Schema with "type": "object"`},
		{file(said, plan, `"outputSchema": {"type": "object", "properties": 1}`), "f.json:4: outputSchema: it is no JSON Schema"},
		{file(said, args(strings.Repeat("[", 70)+strings.Repeat("]", 70))), "f.json: brackets are nested deeper than 64"},
		{file(said, plan) + strings.Repeat(" ", pipelines.MaxFile), "f.json: the file has 262218 bytes, more than 256 KiB"},
	} {
		_, err := pipelines.Parse("f.json", []byte(c.text))
		switch {
		case c.want == "" && err != nil, c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%.200s\n got %v\nwant %s", c.text, err, c.want)
		}
	}
}

// TestNames: names are for files, tools and lines of text.
func TestNames(t *testing.T) {
	for name, fine := range map[string]bool{
		"a": true, "open_by_team": true, "x9": true, strings.Repeat("a", 48): true, strings.Repeat("a", 49): false,
		"": false, "9a": false, "_a": false, "A": false, "a-b": false, "a.b": false, "../a": false, "a/b": false, "é": false, "a\n": false,
		"execute_pipeline": false, "save_pipeline": false,
	} {
		if err := pipelines.CheckName(name); (err == nil) != fine {
			t.Errorf("%q: %v", name, err)
		}
	}
	for text, want := range map[string]string{"a@3": "a 3", "a": "a 0", "a@0": "", "a@03": "", "a@": "", "a@x": "", "@1": "", "a@1@2": ""} {
		name, version, err := pipelines.SplitName(text)
		if got := fmt.Sprint(name, " ", version); (err == nil) != (want != "") || err == nil && got != want {
			t.Errorf("%q: got %s, %v", text, got, err)
		}
	}
}

// TestFill: a value takes the place of a whole node, at any depth of the plan, and the engine is told which arguments are values.
func TestFill(t *testing.T) {
	d, err := pipelines.Parse("f.json", []byte(file(said, params(`{"x": {}, "y": {}, "z": {"default": "d"}}`), `"pipeline": [
		{"type": "tool", "server": "s", "name": "t", "args": {"a": {"$param": "x"}, "b": {"$param": "y"}, "c": [{"$param": "y"}, {"$param": "z"}]}},
		{"type": "parallel", "branches": {"left": [{"type": "for_each", "stages": [{"type": "command", "command": "grep", "args": ["-e", "a", {"$param": "x"}, {"$param": "y"}]}]}],
			"right": [{"type": "command", "command": "join", "args": ["-", "@b"], "inputs": {"b": [{"type": "command", "command": "jq", "args": ["-n", "$params.x, $params.z"]}, {"type": "command", "command": "jq", "args": "."}]}}]}}]`)))
	if err != nil {
		t.Fatal(err)
	}
	values, err := d.Values(t.Context(), json.RawMessage(`{"x": 1.50}`))
	if err != nil {
		t.Fatal(err)
	}
	filled, err := d.Fill(values)
	if err != nil {
		t.Fatal(err)
	}
	const want = `[{"type":"tool","server":"s","name":"t","args":{"a":1.50,"c":["d"]}},` +
		`{"type":"parallel","branches":{"left":[{"type":"for_each","stages":[{"type":"command","command":"grep","args":["-e","a","1.50"]}]}],` +
		`"right":[{"type":"command","command":"join","args":["-","@b"],"inputs":{"b":[{"type":"command","command":"jq","args":["--argjson","params","{\"x\":1.50,\"z\":\"d\"}","-n","$params.x, $params.z"]},{"type":"command","command":"jq","args":"."}]}}]}}]`
	if string(filled.Stages) != want {
		t.Errorf("got  %s\nwant %s", filled.Stages, want)
	}
	if got := fmt.Sprint(filled.Values); got != "map[2.left.1.1:[2]]" {
		t.Errorf("the values are at %s", got)
	}
}

// TestWrongExample: an example that does not fit the parameters has a mistake of its own, and the file has none.
func TestWrongExample(t *testing.T) {
	text := file(said, params(`{"x": {"type": "integer"}}`), args(`{"a": {"$param": "x"}}`), `"examples": [{"args": {"x": 1}},`+"\n"+`{"args": {"y": 1}}, {"args": {"x": "one"}}]`)
	d, err := pipelines.Parse("f.json", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	p := pipelines.Saved{Path: "f.json", Definition: d, Version: pipelines.Version{Text: text}}
	want := `f.json:6: examples[1].args: unknown field "y" (the fields are x); f.json:6: examples[2].args: x must be an integer, got "one"`
	if got := strings.Join(p.WrongExamples(), "; "); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := (pipelines.Saved{}).WrongExamples(); got != nil {
		t.Errorf("a file that cannot be read has the wrong examples %q", got)
	}
}

// TestTypedValues: what a person types is read as the schema of the parameter says, and so are the values that it takes.
func TestTypedValues(t *testing.T) {
	d, err := pipelines.Parse("f.json", []byte(file(said, `"parameters": {"properties": {"flag": {"type": "boolean"}, "state": {"enum": ["open", 2, null]},
		"shared": {"$ref": "#/$defs/s"}, "maybe": {"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "null"}]}, "n": {"type": "integer"}, "text": {"type": "string", "Default": "no"}},
		"$defs": {"s": {"enum": ["x", "y"]}}}`, `"pipeline": [{"type": "command", "command": "jq", "args": ["-n", "$params"]}]`)))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, text, value, choices string }{
		{"flag", "true", "true", "false true"},
		{"state", "open", `"open"`, "open 2 null"},
		{"state", "2", "2", "open 2 null"},
		{"shared", "x", `"x"`, "x y"},
		{"maybe", "7", `"7"`, "a"},
		{"n", " 7 ", "7", ""},
		{"n", "seven", `"seven"`, ""},
		{"text", "7", `"7"`, ""},
		{"none", "7", "7", ""},
	} {
		if got := string(d.FromText(t.Context(), c.name, c.text)); got != c.value {
			t.Errorf("%s: %q is %s, want %s", c.name, c.text, got, c.value)
		}
		if got := strings.Join(d.Choices(t.Context(), c.name), " "); got != c.choices {
			t.Errorf("%s has the values %q, want %q", c.name, got, c.choices)
		}
	}
	if values, err := d.Values(t.Context(), nil); err != nil || len(values) > 0 {
		t.Errorf("the defaults are %s, %v", values, err)
	}
}

// FuzzParse: whatever the file is, there is an error or a plan that is JSON with its own parameters alone.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		file(said, plan), file(said, params(`{"x": {}}`), args(`{"a": {"$param": "x"}}`)),
		file(said, params(`{"x": {"default": {"$param": "x"}}}`), `"pipeline": [{"type": "command", "command": "jq", "args": ["$params.x", {"$param": "x"}]}]`),
		"{", "/* */ {}", `{"pipeline": [[]], "description": "\ud800"}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := pipelines.Parse("f.json", text)
		if err != nil {
			return
		}
		if !json.Valid(d.Pipeline) || !json.Valid(d.InputSchema()) {
			t.Errorf("the plan is %q, the schema %q", d.Pipeline, d.InputSchema())
		}
		if values, err := d.Values(t.Context(), nil); err == nil {
			if filled, err := d.Fill(values); err == nil && !json.Valid(filled.Stages) {
				t.Errorf("filled: %q", filled.Stages)
			}
		}
	})
}

// FuzzFill: any value of a parameter leaves the rest of the plan as it is, and comes out as it went in.
func FuzzFill(f *testing.F) {
	for _, value := range []string{`"x"`, `"\""`, `{"$param":"x"}`, `[1,{"$literal":2}]`, `"$params.x"`, `-1e400`, `"\u0000"`, `null`} {
		f.Add(value)
	}
	d, err := pipelines.Parse("f.json", []byte(file(said, params(`{"x": {}}`), `"pipeline": [
		{"type": "tool", "server": "s", "name": "t", "args": {"a": [{"$param": "x"}], "b": 1}},
		{"type": "command", "command": "grep", "args": ["-e", {"$param": "x"}, "z"]}]`)))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, value string) {
		values, err := d.Values(t.Context(), fmt.Appendf(nil, `{"x":%s}`, value))
		if err != nil {
			return
		}
		filled, err := d.Fill(values)
		if err != nil {
			return
		}
		var got []struct {
			Args json.RawMessage
		}
		if err := json.Unmarshal(filled.Stages, &got); err != nil || len(got) != 2 {
			t.Fatalf("%q makes the plan %q", value, filled.Stages)
		}
		var tool struct {
			A []json.RawMessage
			B int
		}
		var command []string
		if json.Unmarshal(got[0].Args, &tool) != nil || len(tool.A) != 1 || tool.B != 1 || json.Unmarshal(got[1].Args, &command) != nil || len(command) != 3 ||
			command[0] != "-e" || command[2] != "z" {
			t.Errorf("%q makes the plan %q", value, filled.Stages)
		}
		if at := filled.Values[stages.Place("2")]; len(at) != 1 || at[0] != 1 {
			t.Errorf("%q: the values are at %v", value, filled.Values)
		}
	})
}

func parse(text string) error {
	_, err := pipelines.Parse("f.json", []byte(text))
	return err
}
