package schemas_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsh-dev/mcsh/schemas"
	"github.com/mcsh-dev/mcsh/stages"
)

// A shapeCase is a stage with the errors that it must give, each written "field | message | hint".
type shapeCase struct {
	Stage  string   `json:"stage"`
	Errors []string `json:"errors"`
}

// TestStageChecker runs testdata/stages.json.
func TestStageChecker(t *testing.T) {
	const file = "testdata/stages.json"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var cases []shapeCase
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	checker := schemas.NewStageChecker(testKinds())
	for i, c := range cases {
		var head struct{ Type string }
		_ = json.Unmarshal([]byte(c.Stage), &head) // a stage without a type has the kind ""
		got := []string{}
		for _, err := range checker.Check(head.Type, []byte(c.Stage)) {
			if err.Code != stages.InvalidPipeline {
				t.Errorf("%s: code %s, want %s", c.Stage, err.Code, stages.InvalidPipeline)
			}
			got = append(got, strings.Join([]string{err.Field, err.Msg, err.Hint}, " | "))
		}
		if diff := cmp.Diff(c.Errors, got); diff != "" && !*update {
			t.Errorf("%s (-want +got; -update rewrites %s):\n%s", c.Stage, file, diff)
		}
		cases[i].Errors = got
	}
	if *update {
		writeJSON(t, file, cases)
	}
}

func writeJSON(t *testing.T, file string, v any) {
	t.Helper()
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestStageCheckerConcurrently(t *testing.T) {
	checker := schemas.NewStageChecker(testKinds())
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				if errs := checker.Check("preview", []byte(`{"type":"preview","chars":1}`)); len(errs) != 1 {
					t.Errorf("got %v, want one error", errs)
				}
			}
		})
	}
	wg.Wait()
}

func FuzzStageChecker(f *testing.F) {
	data, err := os.ReadFile("testdata/stages.json")
	if err != nil {
		f.Fatal(err)
	}
	var cases []shapeCase
	if err := json.Unmarshal(data, &cases); err != nil {
		f.Fatal(err)
	}
	for _, c := range cases {
		f.Add("tool", []byte(c.Stage))
	}
	for _, k := range testKinds() {
		f.Add(k.Name, []byte(`{"type":"`+k.Name+`"}`))
	}
	checker := schemas.NewStageChecker(testKinds())
	f.Fuzz(func(t *testing.T, kind string, stage []byte) {
		errs := checker.Check(kind, stage)
		for _, err := range errs {
			if err.Msg == "" || err.Code != stages.InvalidPipeline {
				t.Errorf("an error without message or code: %+v", err)
			}
			if len(err.Msg) > 1500 {
				t.Errorf("a message of %d bytes", len(err.Msg))
			}
		}
		if len(errs) == 0 && !json.Valid(stage) {
			t.Errorf("took %q, which is not JSON", stage)
		}
	})
}

func BenchmarkStageChecker(b *testing.B) {
	checker := schemas.NewStageChecker(testKinds())
	stage := []byte(`{"type":"tool","server":"github","name":"get_issue","args":{"owner":"a","repo":"b"},"for_each":true,"concurrency":16}`)
	for b.Loop() {
		if errs := checker.Check("tool", stage); len(errs) > 0 {
			b.Fatal(errs)
		}
	}
}

// TestManyFlaws: a stage's error lists a bounded number of mistakes; the rest is counted.
func TestManyFlaws(t *testing.T) {
	var fields, numbers []string
	for i := range 5000 {
		fields = append(fields, fmt.Sprintf(`"x%d": 1`, i))
		numbers = append(numbers, "1")
	}
	for kind, stage := range map[string]string{
		"preview": `{"type": "preview", ` + strings.Join(fields, ", ") + `}`,
		"command": `{"type": "command", "command": "jq", "args": [` + strings.Join(numbers, ", ") + `]}`,
	} {
		errs := schemas.NewStageChecker(stages.Kinds()).Check(kind, []byte(stage))
		if len(errs) != 101 || errs[100].Msg != "the stage has 4900 more mistakes" {
			t.Errorf("%s: %d mistakes, the last is %v", kind, len(errs), errs[len(errs)-1])
		}
	}
}
