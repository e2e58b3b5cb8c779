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
	Does    string      `json:"does"`
	Expects string      `json:"expects"`
	Changes bool        `json:"changes"` // whether it may change something; otherwise it only reads
	Stages  []PlanStage `json:"stages,omitempty"`
}

// Plan describes the pipeline stage by stage.
func (p *Pipeline) Plan() Plan { return Plan{Stages: planOf(p.steps, "")} }

func planOf(steps []*Step, branch string) []PlanStage {
	var list []PlanStage
	for _, s := range steps {
		stage := PlanStage{
			Place: s.place, Label: s.Label, Branch: shown(branch),
			Does: s.Does, Expects: s.Expects, Changes: s.Effect == Changes,
		}
		for _, n := range s.Nested {
			stage.Stages = append(stage.Stages, planOf(n.Steps, n.Branch)...)
		}
		list = append(list, stage)
	}
	return list
}
