package stages_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/mcsh-dev/mcsh/runs"
	"github.com/mcsh-dev/mcsh/stages"
)

// TestKindsExamples: the example of every kind compiles.
func TestKindsExamples(t *testing.T) {
	w := newWorld()
	w.withFiles(t, "")
	w.add("get_customer", reads, "id", nil)
	for _, k := range stages.Kinds() {
		if k.Begins { // of an example there can be no run
			_, errs := newKept(t, runs.Options{}).compile(t, "["+k.Example+"]")
			if len(errs) != 1 || errs[0].Code != stages.UnknownRun {
				t.Errorf("%s: %v", k.Name, errs)
			}
			continue
		}
		p, errs := stages.CompileFed(t.Context(), []byte("["+strings.ReplaceAll(k.Example, `"jq"`, `"cat"`)+"]"), w.deps())
		if errs != nil || len(p.Plan().Stages) != 1 {
			t.Errorf("%s: %v", k.Name, errs)
		}
	}
}

// TestKindsAreComplete: every kind has a case, rows for people and words for agents, and a kind without them is noticed.
func TestKindsAreComplete(t *testing.T) {
	files, err := filepath.Glob("testdata/run/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var cases strings.Builder
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		pipeline, _ := part(archive, "pipeline")
		cases.WriteString(pipeline)
	}
	read := func(name string) string {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	places := []struct{ where, text, form string }{
		{"a case in testdata/run", cases.String(), `"type": *"NAME"`},
		{"a row in README.md", read("../README.md"), "(?m)^\\| `NAME` \\| .+ \\|$"},
		{"a section in docs/pipeline.md", read("../docs/pipeline.md"), "(?m)^## NAME$"},
		{"a sentence in gateway/texts/execute_pipeline.md", read("../gateway/texts/execute_pipeline.md"), `(?m)(^|\. )NAME \{.+\}: `},
	}
	lacks := func(kind string) (list []string) {
		for _, p := range places {
			if !regexp.MustCompile(strings.ReplaceAll(p.form, "NAME", kind)).MatchString(p.text) {
				list = append(list, p.where)
			}
		}
		return list
	}
	for _, k := range stages.Kinds() {
		for _, where := range lacks(k.Name) {
			t.Errorf("the kind %s lacks %s", k.Name, where)
		}
	}
	if list := lacks("nosuch"); len(list) != len(places) {
		t.Errorf("a kind that is nowhere lacks only %q", list)
	}
}
