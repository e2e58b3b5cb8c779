package cli

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
type savedShown struct {
	set   *pipelines.Set
	shown *shown
}

// Set implements [ui.Pipelines].
func (s *savedShown) Set() *pipelines.Set { return s.set }

// Viewer implements [ui.Pipelines].
func (s *savedShown) Viewer(ctx context.Context) pipelines.Viewer {
	return s.shown.person(ctx).Viewer(ctx)
}

// Plan implements [ui.Pipelines].
func (s *savedShown) Plan(ctx context.Context, t *pipelines.Tool, args json.RawMessage) (list []stages.PlanStage, err error) {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	err = s.shown.person(ctx).Work(ctx, func(ctx context.Context, deps stages.Deps, v pipelines.Viewer) error {
		deps.CheckOnly = true
		plan, errs, err := s.set.Compile(ctx, t, args, deps, v)
		switch {
		case err != nil:
			return err
		case errs != nil:
			return planError(errs)
		}
		list = plan.Plan().Stages
		return nil
	})
	return list, err
}

// Test implements [ui.Pipelines].
func (s *savedShown) Test(ctx context.Context, t *pipelines.Tool) (list []ui.Tested, err error) {
	person := s.shown.person(ctx)
	err = person.Work(ctx, func(ctx context.Context, deps stages.Deps, v pipelines.Viewer) error {
		list = convert(compiling{s.set, deps, v, person.Run}.test(ctx, t, false), func(j testedJSON) ui.Tested {
			return ui.Tested{Status: string(j.Status), Run: j.run, Text: j.Text, Output: j.Output, Millis: j.Millis}
		})
		return nil
	})
	return list, err
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
