package stages

// Plan says what a pipeline would do, without doing it.
type Plan struct {
	Stages []PlanStage `json:"stages"`
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
	Stages  []PlanStage `json:"stages,omitempty"`
}

// Plan describes the pipeline stage by stage.
func (p *Pipeline) Plan() Plan { return Plan{Stages: planOf(p.steps, Nested{})} }

func planOf(steps []*Step, within Nested) []PlanStage {
	var list []PlanStage
	for _, s := range steps {
		stage := PlanStage{
			Place: s.place, Label: s.Label,
			Does: s.Does, Expects: s.Expects, Changes: s.Effect == Changes,
		}
		stage.Branch, stage.Input = within.names()
		for _, n := range s.Nested {
			stage.Stages = append(stage.Stages, planOf(n.Steps, n)...)
		}
		list = append(list, stage)
	}
	return list
}
