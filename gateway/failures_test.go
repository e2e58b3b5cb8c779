package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/schemas"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
)

// failingPlan is one row of testdata/failures.json: a pipeline that fails, what an agent reads, and what the pipeline
// gives with the stage that the error proposes.
type failingPlan struct {
	Why      string            `json:"why"`
	Pipeline []json.RawMessage `json:"pipeline"`
	Reply    string            `json:"reply"`
	Fixed    json.RawMessage   `json:"fixed,omitempty"`
	Output   string            `json:"output,omitempty"`
}

// TestFailures: every failure has the form of docs/pipeline.md, Errors, and the stages that errors propose work. The
// programs, the servers and the sandbox are real.
func TestFailures(t *testing.T) {
	const file = "testdata/failures.json"
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var plans []failingPlan
	if err := json.Unmarshal(raw, &plans); err != nil {
		t.Fatal(err)
	}
	deps := failingDeps(t)
	for i, plan := range plans {
		got := failingPlan{Why: plan.Why, Pipeline: plan.Pipeline}
		_, errs, ran := execute(t, deps, plan.Pipeline)
		got.Reply = reply(errs, ran)
		if errs == nil {
			t.Errorf("%s: it does not fail", plan.Why)
			continue
		}
		if fixed, ok := fixedPlan(plan.Pipeline, errs); ok {
			got.Fixed = errs[0].Fix
			out, errs, ran := execute(t, deps, fixed)
			if errs != nil {
				t.Errorf("%s: the stage that the error proposes fails too:\n%s", plan.Why, reply(errs, ran))
			}
			got.Output = out
		}
		plans[i] = got
		if strings.Contains(plan.Reply, inputLine) != strings.Contains(got.Reply, inputLine) {
			plan.Reply, got.Reply = withoutInput(plan.Reply), withoutInput(got.Reply)
		}
		if diff := cmp.Diff(plan.Reply, got.Reply); diff != "" && os.Getenv("UPDATE") == "" {
			t.Errorf("%s: (-want +got)\n%s", plan.Why, diff)
		}
		if plan.Output != got.Output && os.Getenv("UPDATE") == "" {
			t.Errorf("%s: the proposed stage gives %q, want %q", plan.Why, got.Output, plan.Output)
		}
	}
	if os.Getenv("UPDATE") != "" {
		writeJSONRows(t, file, plans)
	}
}

// A program that refuses its arguments may be gone before its input has come.
const inputLine = "\nInput of the stage: "

func withoutInput(reply string) string {
	before, rest, ok := strings.Cut(reply, inputLine)
	if !ok {
		return reply
	}
	_, after, _ := strings.Cut(rest, "\nTry: ")
	return before + "\nTry: " + after
}

func failingDeps(t *testing.T) stages.Deps {
	shop := mcptest.New(append(
		shopTools(),
		mcptest.Tool{Name: "wrapped", ReadOnly: true, Text: `{"items":[{"id":2,"name":"b"},{"id":1,"name":"a"}],"next":null}`},
		mcptest.Tool{Name: "text", ReadOnly: true, Text: "one (1)\ntwo [2]\n"},
	)...)
	pool := mcptest.NewPool(t, upstream.Options{Sources: []upstream.Source{upstream.Static{
		{Name: "shop", Dial: shop.Dial},
		{Name: "down", Dial: func(context.Context) (mcp.Transport, error) { return nil, errors.New("nobody is there") }},
	}}})
	return stages.Deps{Tools: pool, Commands: sharedSandbox(t), Schemas: schemas.Stages()}
}

// execute returns the output of a pipeline, or its errors and whether it ran.
func execute(t *testing.T, deps stages.Deps, pipeline []json.RawMessage) (output string, errs []*stages.Error, ran bool) {
	t.Helper()
	text, err := json.Marshal(pipeline)
	if err != nil {
		t.Fatal(err)
	}
	p, errs := stages.Compile(t.Context(), text, deps)
	if errs != nil {
		return "", errs, false
	}
	var out bytes.Buffer
	if _, err := p.Run(t.Context(), nil, &out, stages.RunOptions{}); err != nil {
		return "", []*stages.Error{err.(*stages.Error)}, true
	}
	return out.String(), nil, true
}

// reply is what an agent reads.
func reply(errs []*stages.Error, ran bool) string {
	if ran && len(errs) == 1 {
		return gateway.ErrorText(errs[0])
	}
	return gateway.PlanErrorText(errs)
}

// fixedPlan puts the stages that errors propose in their places.
func fixedPlan(pipeline []json.RawMessage, errs []*stages.Error) ([]json.RawMessage, bool) {
	fixed, changed := append([]json.RawMessage(nil), pipeline...), false
	for _, e := range errs {
		if at, err := strconv.Atoi(string(e.Place)); err == nil && e.Fix != nil {
			fixed[at-1], changed = e.Fix, true
		}
	}
	return fixed, changed
}

func writeJSONRows[T any](t *testing.T, file string, rows []T) {
	t.Helper()
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	for _, row := range rows {
		if err := enc.Encode(row); err != nil {
			t.Fatal(err)
		}
	}
	text := "[\n" + strings.ReplaceAll(strings.TrimSpace(b.String()), "\n", ",\n") + "\n]\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
