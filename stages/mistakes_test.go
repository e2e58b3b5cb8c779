package stages_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/stages"
)

// A stage may have as many mistakes as it has fields: what it takes to tell them grows with the fields, not with their square.
func TestManyMistakes(t *testing.T) {
	compile := func(n int) float64 {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `, "field%d": 1`, i)
		}
		plan := []byte(`[{"type": "preview"` + b.String() + `}]`)
		return testing.AllocsPerRun(1, func() {
			if _, errs := stages.Compile(t.Context(), plan, stages.Deps{Schemas: stageSchemas}); len(errs) != n {
				t.Fatalf("%d mistakes, want %d", len(errs), n)
			}
		})
	}
	if few, many := compile(6), compile(96); many > 32*few {
		t.Errorf("6 mistakes take %.0f allocations, 16 times as many %.0f", few, many)
	}
}

// A check that nobody waits for any more, or whose time is up, goes no further.
func TestCheckEnds(t *testing.T) {
	plan := []byte(`[{"type": "preview"}, {"type": "for_each", "stages": [{"type": "preview"}]}]`)
	gone, leave := context.WithCancel(t.Context())
	leave()
	late, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	for want, ctx := range map[stages.Code]context.Context{stages.Cancelled: gone, stages.Timeout: late} {
		_, errs := stages.Compile(ctx, plan, stages.Deps{Schemas: stageSchemas})
		if len(errs) != 2 || errs[0].Code != want || !errors.Is(errs[1], ctx.Err()) {
			t.Errorf("got %v, want %s for each stage", errs, want)
		}
	}
}

// However many lists of a plan are too much, there is one error about the limit.
func TestTooManyStagesOnce(t *testing.T) {
	var branches []string
	for i := range 3 * (stages.Limits{}).WithDefaults().Stages {
		branches = append(branches, fmt.Sprintf(`"b%d": [{"type": "preview"}]`, i))
	}
	plan := `[{"type": "parallel", "branches": {` + strings.Join(branches, ", ") + `}}, {"type": "preview", "char": 1}]`
	_, errs := stages.Compile(t.Context(), []byte(plan), stages.Deps{Schemas: stageSchemas})
	var limits, others int
	for _, e := range errs {
		if e.Limit == "stages" {
			limits++
		} else {
			others++
		}
	}
	if limits != 1 || others != 1 {
		t.Errorf("got the limit %d times, want once, and %d other mistakes, want 1: %v", limits, others, errs)
	}
}
