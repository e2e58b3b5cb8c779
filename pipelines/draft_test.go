package pipelines_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/pipelines"
)

const drafted = `[{"type":"tool","server":"shop","name":"list","args":{"state":"open","where":{"team":"x \u003c y","deep":{"n":1.5}},"a.b":true}},
 {"type":"for_each","stages":[{"type":"tool","server":"shop","name":"get","args":{"id":7}}]},
 {"type":"parallel","branches":{"users":[{"type":"command","command":"head","args":["-n","5"]}]}},
 {"type":"command","command":"sort","args":["-k","1","-t","1"]}, {"type":"preview"}]`

// TestDraft: literals that somebody names become parameters, whose schema says what the literal was.
func TestDraft(t *testing.T) {
	for _, test := range []struct{ name, parameters, args, schema string }{
		{"no parameters", ``, `"state":"open"`, ``},
		{"an argument", `{"s": {"stage": 1, "arg": "state"}}`, `"state":{"$param":"s"}`, `{"type":"object","properties":{"s":{"type":"string","default":"open"}}}`},
		{
			"with a schema", `{"s": {"stage": "1", "arg": "state", "enum": ["open", "closed"], "description": "Of the issues"}}`, `"state":{"$param":"s"}`,
			`{"type":"object","properties":{"s":{"enum":["open","closed"],"description":"Of the issues","default":"open"}}}`,
		},
		{
			"with a schema of its own", `{"s": {"stage": 1, "arg": "state", "required": true, "schema": {"type": "string", "minLength": 2}}}`, `"state":{"$param":"s"}`,
			`{"type":"object","properties":{"s":{"type":"string","minLength":2}},"required":["s"]}`,
		},
		{"a text with an escape", `{"t": {"stage": 1, "arg": "where.team"}}`, `"team":{"$param":"t"}`, `{"type":"object","properties":{"t":{"type":"string","default":"x < y"}}}`},
		{"a number", `{"n": {"stage": 1, "arg": "where.deep.n"}}`, `"n":{"$param":"n"}`, `{"type":"object","properties":{"n":{"type":"number","default":1.5}}}`},
		{"a name with a point", `{"b": {"stage": 1, "arg": "a.b"}}`, `"a.b":{"$param":"b"}`, `{"type":"object","properties":{"b":{"type":"boolean","default":true}}}`},
		{"a whole object", `{"w": {"stage": 1, "arg": "where.deep"}}`, `"deep":{"$param":"w"}`, `{"type":"object","properties":{"w":{"type":"object","default":{"n":1.5}}}}`},
		{"in a for_each", `{"id": {"stage": "2.1", "arg": "id"}}`, `"id":{"$param":"id"}`, `{"type":"object","properties":{"id":{"type":"integer","default":7}}}`},
		{"of a command in a branch", `{"top": {"stage": "3.users.1", "arg": "5"}}`, `"-n",{"$param":"top"}`, `{"type":"object","properties":{"top":{"type":"string","default":"5"}}}`},
		{
			"text that is meant as a number", `{"top": {"stage": "3.users.1", "arg": "5", "type": "integer"}}`, `"-n",{"$param":"top"}`,
			`{"type":"object","properties":{"top":{"type":"integer","default":5}}}`,
		},
		{
			"without a literal", `{"a": {"type": "string"}, "b": {"default": 1}, "c": {"type": "string", "required": false}}`, `"state":"open"`,
			`{"type":"object","properties":{"a":{"type":"string"},"b":{"default":1},"c":{"type":"string"}},"required":["a"]}`,
		},
		{"a whole schema", `{"type": "object", "properties": {"s": {"type": "string"}}}`, `"state":"open"`, `{"type": "object", "properties": {"s": {"type": "string"}}}`},
	} {
		text, errs := pipelines.Draft{Description: "d", Pipeline: json.RawMessage(drafted), Ran: true, Parameters: json.RawMessage(test.parameters)}.Text()
		if errs != nil {
			t.Errorf("%s: %v", test.name, errs)
			continue
		}
		var file struct{ Parameters, Pipeline json.RawMessage }
		if err := json.Unmarshal(text, &file); err != nil {
			t.Fatal(err)
		}
		if plan := texts.JSON(file.Pipeline); !strings.Contains(plan, test.args) || strings.Contains(plan, `\u003c`) {
			t.Errorf("%s: no %s in %s", test.name, test.args, plan)
		}
		if diff := cmp.Diff(compact(test.schema), compact(string(file.Parameters))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

func compact(text string) string {
	if text == "" {
		return ""
	}
	return texts.JSON(json.RawMessage(text))
}

// TestDraftMistakes: an error names what is there, so that the next try is right.
func TestDraftMistakes(t *testing.T) {
	for _, test := range []struct{ pipeline, parameters, want, hint string }{
		{drafted, `[]`, "parameters is not an object", `{"state": {"stage": 1, "arg": "state"}}`},
		{drafted, `{"s": 1}`, "parameters.s: it is not an object", `"stage": 1`},
		{drafted, `{"s": {"stage": 7, "arg": "state"}}`, `parameters.s: there is no stage "7"`, "the stages are 1, 2, 2.1, 3, 3.users.1, 4, 5"},
		{drafted, `{"s": {"arg": "state"}}`, `there is no stage ""`, "the stages are"},
		{drafted, `{"s": {"stage": 1}}`, "arg is not a string", `"arg": "state"`},
		{drafted, `{"s": {"stage": 1, "arg": "stat"}}`, `stage 1 has no argument "stat"`, `did you mean "state"?`},
		{drafted, `{"s": {"stage": 1, "arg": "zzzzzz"}}`, `"zzzzzz"`, `its arguments are ["state","where","a.b"]`},
		{drafted, `{"s": {"stage": 4, "arg": "1"}}`, "or more than one", `its arguments are ["-k","1","-t","1"]`},
		{drafted, `{"s": {"stage": 5, "arg": "1"}}`, "stage 5 has no argument", `{"$param": "s"}`},
		{drafted, `{"a": {"stage": 1, "arg": "state"}, "b": {"stage": 1, "arg": "state"}}`, `is the parameter "a" already`, "one parameter for both"},
		{`[{"type": "from", "run": "r_x"}]`, ``, "stage 1 begins with what an earlier run has left", "save the run that it begins with"},
		{`"[1"`, ``, "not an array", "send it as an array"},
		{`"` + strings.Repeat("[", 300_000) + `"`, ``, "larger than 256 KiB", "keep data out of it"},
	} {
		_, errs := pipelines.Draft{Description: "d", Pipeline: json.RawMessage(test.pipeline), Parameters: json.RawMessage(test.parameters)}.Text()
		if len(errs) != 1 || !strings.Contains(errs[0].Msg, test.want) || !strings.Contains(errs[0].Hint, test.hint) {
			t.Errorf("%s: got %v, want %s; %s", test.parameters, errs, test.want, test.hint)
		}
	}
}

// FuzzDraft: whatever a run has sent, the pipeline that is saved from it does the same.
func FuzzDraft(f *testing.F) {
	f.Add(drafted, `{"s": {"stage": 1, "arg": "state"}}`)
	f.Add(`[{"type":"tool","args":{"a":{"$param":"x"},"b":[{"$literal":{"$param":1}}],"c":{"$literal":1,"d":2}}}]`, ``)
	f.Fuzz(func(t *testing.T, pipeline, parameters string) {
		_, _ = pipelines.Draft{Description: "d", Pipeline: json.RawMessage(pipeline), Parameters: json.RawMessage(parameters)}.Text()
		if !json.Valid([]byte(pipeline)) || strings.Contains(pipeline, "$params") || strings.Contains(pipeline, `\`) {
			return
		}
		text, errs := pipelines.Draft{Description: "d", Pipeline: json.RawMessage(pipeline), Ran: true}.Text()
		if errs != nil {
			return
		}
		d, err := pipelines.Parse("x", text)
		if err != nil {
			return
		}
		plan, err := d.Fill(nil)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		var was, is any
		if json.Unmarshal([]byte(pipeline), &was) != nil || json.Unmarshal(plan.Stages, &is) != nil {
			t.Fatalf("%s became %s", pipeline, plan.Stages)
		}
		if diff := cmp.Diff(was, is); diff != "" {
			t.Errorf("(-sent +saved):\n%s", diff)
		}
	})
}
