package schemas_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mcsh-dev/mcsh/schemas"
	"github.com/mcsh-dev/mcsh/stages"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestExecutePipelineGolden(t *testing.T) {
	for _, tt := range []struct {
		file   string
		schema json.RawMessage
	}{
		{"testdata/full.json", schemas.ExecutePipeline(testKinds(), schemas.Options{})},
	} {
		var got bytes.Buffer
		if err := json.Indent(&got, tt.schema, "", "  "); err != nil {
			t.Fatalf("%s: %v", tt.file, err)
		}
		got.WriteByte('\n')
		if *update {
			if err := os.WriteFile(tt.file, got.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(tt.file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got.String()); diff != "" {
			t.Errorf("%s (-want +got; -update rewrites it):\n%s", tt.file, diff)
		}
	}
}

// mounted compiles a schema as a client would: as it is published.
func mounted(t *testing.T, schema json.RawMessage) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("mem:///published", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("mem:///published")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestExecutePipelineTakes(t *testing.T) {
	full := mounted(t, schemas.ExecutePipeline(testKinds(), schemas.Options{}))
	brief := mounted(t, schemas.ExecutePipeline(testKinds(), schemas.Options{Brief: true}))
	for _, tt := range []struct {
		args string
		want bool
		flat bool // the brief schema takes it all the same
	}{
		{`{"pipeline": []}`, true, false},
		{`{"pipeline": [{"type": "tool", "server": "s", "name": "n"}], "mode": "check", "timeout": 5, "max_output": 100}`, true, false},
		{`{"pipeline": [{"type": "tool", "server": "s", "name": "n", "paginate": true, "for_each": true, "on_error": "skip"}]}`, true, false},
		{`{"pipeline": [{"type": "tool", "server": "s", "name": "n", "paginate": {"arg": "after"}}]}`, true, false},
		{`{"pipeline": [{"type": "for_each", "stages": [{"type": "parallel", "branches": {"a": [{"type": "preview"}]}}]}]}`, true, false},
		{`{"pipeline": [{"type": "command", "command": "join", "args": ["-", "@b"], "inputs": {"b": []}}]}`, true, false},
		{`{}`, false, false},
		{`{"pipeline": [], "mod": "run"}`, false, false},
		{`{"pipeline": [{"type": "tool", "server": "s"}]}`, false, true},
		{`{"pipeline": [{"type": "tool", "server": "s", "name": "n", "argz": {}}]}`, false, false},
		{`{"pipeline": [{"server": "s", "name": "n"}]}`, false, false},
		{`{"pipeline": [{"type": "shell"}]}`, false, false},
		{`{"pipeline": [{"type": "for_each", "stages": [{"type": "shell"}]}]}`, false, false},
		{`{"pipeline": [{"type": "tool", "server": "s", "name": "n", "on_error": "ignore"}]}`, false, false},
	} {
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader([]byte(tt.args)))
		if err != nil {
			t.Fatal(err)
		}
		if err := full.Validate(value); (err == nil) != tt.want {
			t.Errorf("the full schema on %s: %v, want it taken: %v", tt.args, err, tt.want)
		}
		if err := brief.Validate(value); (err == nil) != (tt.want || tt.flat) {
			t.Errorf("the brief schema on %s: %v, want it taken: %v", tt.args, err, tt.want)
		}
	}
}

// TestKinds holds the real table to the texts for agents: the brief schema is short, and every example is taken.
func TestKinds(t *testing.T) {
	kinds := stages.Kinds()
	if n := len(schemas.ExecutePipeline(kinds, schemas.Options{Brief: true})); n > 1600 {
		t.Errorf("the brief schema has %d characters, want at most 1600: agents pay for it in every session", n)
	}
	full := string(schemas.ExecutePipeline(kinds, schemas.Options{}))
	mounted(t, json.RawMessage(full))
	mapped := reflect.VisibleFields(reflect.TypeFor[stages.EachOptions]())
	for _, f := range mapped {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && strings.Count(full, `"`+name+`":{`) < 2 {
			t.Errorf("the full schema has the field %q of EachOptions less than twice", name)
		}
	}
	checker := schemas.NewStageChecker(kinds)
	for _, k := range kinds {
		for _, err := range checker.Check(k.Name, []byte(k.Example)) {
			t.Errorf("the example of %q: %v", k.Name, err)
		}
	}
}
