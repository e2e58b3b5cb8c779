package stages

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
)

// passesOn reports whether the data passes a stage unchanged, wherever it stands before others.
func passesOn(raw json.RawMessage) bool {
	t := typeOf(raw)
	return t == "preview" || t == "tee"
}

// repeats refuses a stage that would do again what stages of that run did at its place, from first to the stage of p,
// where that took effect or may have: then, or in a run that went on from there.
func (p *resumption) repeats(step *Step, first int, done []taken) error {
	keys := step.acts()
	if len(keys) == 0 {
		return nil
	}
	if step.resume == nil { // a for_each that is taken up has a claim of its own
		step.after = p
	}
	for _, t := range done {
		if t.Stage >= first && t.Stage <= p.stage && slices.ContainsFunc(keys, func(k actKey) bool { return slices.Contains(t.Acts, k) }) {
			return p.repeated(t, p.id, "")
		}
	}
	for _, key := range keys {
		if holder, _ := p.runs.Claim(p.id, p.didName(key), ""); holder != "" {
			return p.repeatedBy(holder)
		}
	}
	return nil
}

func (p *resumption) repeated(t taken, run, which string) error {
	hint := "find out what was changed (with a tool that reads), and run only what is left"
	if whole, _ := p.whole(t.Stage); whole && t.Stage > 0 {
		hint = fmt.Sprintf(`go on behind it with {"type": "from", "run": %q, "stage": %d}`, p.id, t.Stage)
	}
	return Errorf(InvalidPipeline, hint+"; to do it once more on purpose, do it in a pipeline without from, or put a command such as jq . before it",
		"run %s%s has done this already, or may have: %s; to run it again could repeat that",
		run, which, cmp.Or(t.Done, "what this stage would change"))
}

// repeatedBy refuses what a run does, or has done, that goes on from the one of p too.
func (p *resumption) repeatedBy(run string) error {
	return p.repeated(taken{}, run, fmt.Sprintf(", which goes on from run %s,", p.id))
}

// didName is what a run claims that has done what stood behind a stage of an earlier one.
func (p *resumption) didName(key actKey) string { return fmt.Sprintf("%d did %s", p.stage, key) }

// claimActs makes this run the one that does what stood behind stages of the runs from which it goes on: of two, each
// would do it. release gives up what, as the meters say, it has not done in the end.
func (r *Run) claimActs(steps []*Step) (release func([]*Meter), err error) {
	given := map[string]func(){}
	release = func(meters []*Meter) {
		for _, m := range meters {
			m.holdClaims(given)
		}
		for _, up := range given {
			up()
		}
	}
	if r.dry == nil && r.record != nil {
		err = claimAll(r.record.id, steps, given)
	}
	return release, err
}

func claimAll(run string, steps []*Step, given map[string]func()) error {
	for _, s := range steps {
		if p := s.after; p != nil {
			for _, key := range s.acts() {
				holder, up := p.runs.Claim(p.id, p.didName(key), run)
				if holder != "" && holder != run {
					return located(p.repeatedBy(holder), s.place, s.Label)
				}
				if name := p.id + " " + p.didName(key); given[name] == nil {
					given[name] = up
				}
			}
		}
		for _, n := range s.Nested {
			if err := claimAll(run, n.Steps, given); err != nil {
				return err
			}
		}
	}
	return nil
}

// holdClaims takes what was done out of the claims that are to be given up.
func (m *Meter) holdClaims(given map[string]func()) {
	for inner := range m.all() {
		p := inner.step.after
		if p == nil {
			continue
		}
		for _, key := range inner.acted() {
			delete(given, p.id+" "+p.didName(key))
		}
	}
}

// takenOrAll returns what keepTaken has written. Where that could not be kept, all that may have been done counts.
func (p past) takenOrAll() []taken {
	_, incomplete, release := p.runs.Open(p.id, takenName)
	release()
	if incomplete == "" {
		return p.takenStages()
	}
	var all []taken
	for i, raw := range p.Stages {
		all = append(all, taken{Stage: i + 1, Done: fmt.Sprintf("what stage %d has done was not kept", i+1), Acts: actsIn(raw)})
	}
	return all
}
