package gateway_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsh-dev/mcsh/runs"
	"github.com/mcsh-dev/mcsh/schemas"
	"github.com/mcsh-dev/mcsh/stages"
)

// wrongPlan is one row of testdata/wrong_plans.json: a pipeline and everything that is wrong with it.
type wrongPlan struct {
	Why      string          `json:"why"`
	Pipeline json.RawMessage `json:"pipeline"`
	Mistakes []mistake       `json:"mistakes"`
}

type mistake struct {
	Place stages.Place `json:"stage,omitempty"`
	Code  stages.Code  `json:"code"`
	Field string       `json:"field,omitempty"`
	Msg   string       `json:"says"`
	Hint  string       `json:"hint"`
}

// TestWrongPlans: every mistake of a plan is found in one pass, with code, place and hint, and nothing is called.
func TestWrongPlans(t *testing.T) {
	const file = "testdata/wrong_plans.json"
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var plans []wrongPlan
	if err := json.Unmarshal(raw, &plans); err != nil {
		t.Fatal(err)
	}
	if len(plans) < 60 {
		t.Errorf("%d plans, want at least 60", len(plans))
	}
	w := newWorld(t)
	store := runs.New(runs.Options{Dir: t.TempDir()})
	defer store.Close()
	deps := stages.Deps{Tools: w.pool, Commands: sharedSandbox(t), Schemas: schemas.Stages(), Runs: store.Of("me")}
	for i, plan := range plans {
		_, errs := stages.Compile(t.Context(), plan.Pipeline, deps)
		var got []mistake
		for _, e := range errs {
			got = append(got, mistake{e.Place, e.Code, e.Field, withoutKinds(e.Msg), withoutKinds(e.Hint)})
			if e.Hint == "" {
				t.Errorf("%s: no hint: %s", plan.Why, e)
			}
		}
		if os.Getenv("UPDATE") != "" {
			plans[i].Mistakes = got
		} else if diff := cmp.Diff(plan.Mistakes, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", plan.Why, diff)
		}
	}
	if n := w.shop.Calls(); n != 0 {
		t.Errorf("%d calls were made", n)
	}
	if os.Getenv("UPDATE") != "" {
		writePlans(t, file, plans)
	}
}

// withoutKinds puts a placeholder for the list of all stage types, so that one more of them changes no expectation.
func withoutKinds(text string) string {
	var names []string
	for _, k := range stages.Kinds() {
		names = append(names, k.Name)
	}
	return strings.ReplaceAll(text, strings.Join(names, ", "), "KINDS")
}

func writePlans(t *testing.T, file string, plans []wrongPlan) {
	t.Helper()
	var b bytes.Buffer
	b.WriteString("[\n")
	for i, p := range plans {
		line := &bytes.Buffer{}
		enc := json.NewEncoder(line)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(p); err != nil {
			t.Fatal(err)
		}
		sep := ","
		if i == len(plans)-1 {
			sep = ""
		}
		fmt.Fprintf(&b, "%s%s\n", bytes.TrimSpace(line.Bytes()), sep)
	}
	b.WriteString("]\n")
	if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
