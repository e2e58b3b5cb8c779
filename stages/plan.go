package stages

import (
	"fmt"
	"time"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

// Plan says what a pipeline would do, without doing it.
type Plan struct {
	Stages []PlanStage `json:"stages"`
	Most   Most        `json:"most"` // of the whole run
}

// PlanStage is one stage of a plan.
type PlanStage struct {
	Place   Place       `json:"stage"`
	Label   string      `json:"label"`
	Branch  string      `json:"branch,omitempty"`
	Input   string      `json:"input,omitempty"` // of a command, whose output it becomes
	Does    string      `json:"does"`
	Expects string      `json:"expects"`
	Changes bool        `json:"changes"` // whether it may change something; otherwise it only reads
	Most    Most        `json:"most"`
	Stages  []PlanStage `json:"stages,omitempty"`
}

// Most is what a stage or a run does at most. Zero members do not apply.
type Most struct {
	Calls       int64         `json:"calls,omitempty"`       // tool calls, those within it included
	Items       int64         `json:"items,omitempty"`       // of a for_each
	Concurrency int           `json:"concurrency,omitempty"` // items at a time
	Time        time.Duration `json:"-"`                     // of a run, of one tool call, of what a command has to do, of all items
	Seconds     float64       `json:"seconds,omitempty"`
}

// Plan describes the pipeline stage by stage.
func (p *Pipeline) Plan() Plan {
	plan := Plan{Stages: planOf(p.steps, Nested{}, 1, p.deps), Most: Most{Time: p.deps.Limits.Run}}
	plan.Most.Seconds = plan.Most.Time.Seconds()
	for _, s := range plan.Stages {
		plan.Most.Calls = min(plan.Most.Calls+s.Most.Calls, int64(p.deps.Limits.Calls))
	}
	return plan
}

// planOf describes steps that run as often as times says.
func planOf(steps []*Step, within Nested, times int64, d Deps) []PlanStage {
	var list []PlanStage
	l := d.Limits
	for i, s := range steps {
		stage := PlanStage{
			Place: s.place, Label: s.Label.String(),
			Does: s.Does, Expects: s.Expects, Changes: s.Changes,
			Most: Most{Calls: s.calls(times, l), Time: s.clock.given, Seconds: s.clock.given.Seconds()},
		}
		if s.each != nil {
			stage.Most.Concurrency, stage.Most.Items = s.each.Concurrency, int64(l.Items)
			if d.canSpread(s, steps[i+1:], false) {
				shards, items := d.Spread.concurrency(s.each)
				stage.Does += fmt.Sprintf("; behind the first %s at most, workers run them, up to %d at a time", texts.Count(d.Spread.From, "item"), shards*items)
			}
		}
		stage.Branch, stage.Input = within.names()
		for _, n := range s.own().Nested {
			stage.Stages = append(stage.Stages, planOf(n.Steps, n, s.nestedRuns(n, times, l), d)...)
		}
		list = append(list, stage)
	}
	return list
}

// nestedRuns is how often the stages of n run at most where s runs as often as times says.
func (s *Step) nestedRuns(n Nested, times int64, l Limits) int64 {
	if n.Input {
		return 1
	}
	return min(times*s.attempts(l), int64(l.Calls))
}

// attempts is how often a for_each runs its stages, and 1 for other stages.
func (s *Step) attempts(l Limits) int64 {
	if s.each == nil {
		return 1
	}
	return min(int64(l.Items)*int64(1+s.each.Retries), int64(l.Calls))
}

// calls is how many tools are called at most where s runs as often as times says.
func (s *Step) calls(times int64, l Limits) (n int64) {
	if s.tool != nil {
		n = times * (int64(max(1, s.tool.pages)) + s.tool.info.Calls)
	}
	for _, nested := range s.Nested {
		for _, step := range nested.Steps {
			n = min(n+step.calls(s.nestedRuns(nested, times, l), l), int64(l.Calls))
		}
	}
	return min(n, int64(l.Calls))
}
