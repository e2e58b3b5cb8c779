package stages

// PlanOf returns the stages of an earlier run of the caller, as they were sent; those of the whole plan for a run that was
// continued. The error is an *Error: UNKNOWN_RUN, or the reason that the plan cannot be run again by itself.
func PlanOf(runs Runs, run string) (List, error) {
	if runs == nil {
		return nil, Errorf(UnknownRun, "", "nothing is kept here of earlier runs")
	}
	p, err := findRun(runs, run)
	switch {
	case err != nil:
		return nil, err
	case p.Fed:
		return nil, Errorf(InvalidPipeline, "begin the pipeline with a stage that makes its input", "run %s was given input of its own, which is not a part of its plan", run)
	}
	return p.Stages, nil
}
