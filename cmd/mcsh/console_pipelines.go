package main

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/mcsh-dev/mcsh/pipelines"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/ui"
)

// savedShown answers for the pages of saved pipelines.
type savedShown struct{ savedPipelines }

// Set implements [ui.Pipelines].
func (s *savedShown) Set() *pipelines.Set { return s.set }

// Plan implements [ui.Pipelines].
func (s *savedShown) Plan(ctx context.Context, t *pipelines.Tool, args json.RawMessage) ([]stages.PlanStage, error) {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	deps := s.parts.deps()
	deps.CheckOnly = true
	plan, errs, err := s.set.Compile(ctx, t, args, deps, pipelines.Operator())
	switch {
	case err != nil:
		return nil, err
	case errs != nil:
		return nil, planError(errs)
	}
	return plan.Plan().Stages, nil
}

// Test implements [ui.Pipelines].
func (s *savedShown) Test(ctx context.Context, t *pipelines.Tool) []ui.Tested {
	return convert(s.test(ctx, t, false), func(j testedJSON) ui.Tested {
		return ui.Tested{Status: string(j.Status), Args: string(j.Args), Text: j.Text, Output: j.Output, Millis: j.Millis}
	})
}

// Draft implements [ui.Pipelines].
func (s *savedShown) Draft(plan json.RawMessage, description string) (string, error) {
	text, errs := pipelines.Draft{Description: description, Pipeline: plan, Ran: true}.Text()
	if errs != nil {
		return "", planError(errs)
	}
	return strings.TrimRight(string(text), "\n") + "\n", nil
}

// Diff implements [ui.Pipelines].
func (s *savedShown) Diff(from, to, was, is string) string {
	return string(diff.Diff(from, endedLine(was), to, endedLine(is)))
}

var _ ui.Pipelines = (*savedShown)(nil)
