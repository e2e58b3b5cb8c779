package stages

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	paths "path"
	"slices"
)

// An actKey stands for what a stage does that may change something: the call of a tool with its literal arguments, or
// the appending to a file. Empty: it does nothing of that kind, or again the same (a file that is replaced).
type actKey string

func actKeyOf(stage map[string]any) actKey {
	var what any
	switch stage["type"] {
	case "tool":
		args, _ := stage["args"].(map[string]any)
		if len(args) == 0 {
			args = nil
		}
		what = []any{"tool", stage["server"], stage["name"], args}
	case "tee":
		file, _ := stage["path"].(string)
		if stage["append"] != true {
			return ""
		}
		what = []any{"tee", paths.Clean(file)}
	default:
		return ""
	}
	text, err := json.Marshal(what) // sorts the names
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return actKey(hex.EncodeToString(sum[:16]))
}

// acts lists what a step and the steps within it, inputs too, do that may change something.
func (s *Step) acts() (keys []actKey) {
	if s.mapped != nil {
		return s.mapped.acts()
	}
	if key := actKeyOf(decoded(s.raw)); s.Effect == Changes && key != "" {
		keys = append(keys, key)
	}
	for _, n := range s.Nested {
		for _, inner := range n.Steps {
			keys = append(keys, inner.acts()...)
		}
	}
	return keys
}

// acted lists what a stage, and those within it, have done that took effect, or may have.
func (m *Meter) acted() (keys []actKey) {
	if key := actKeyOf(decoded(m.step.raw)); m.took.Load() > 0 && key != "" {
		keys = append(keys, key)
	}
	for _, inner := range m.nested {
		keys = append(keys, inner.acted()...)
	}
	return keys
}

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
			return p.repeated(taken{}, holder, fmt.Sprintf(", which goes on from run %s,", p.id))
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
					return located(p.repeated(taken{}, holder, fmt.Sprintf(", which goes on from run %s,", p.id)), s.place, s.Label)
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
	if p := m.step.after; p != nil {
		for _, key := range m.acted() {
			delete(given, p.id+" "+p.didName(key))
		}
	}
	for _, inner := range m.nested {
		inner.holdClaims(given)
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
		all = append(all, taken{Stage: i + 1, Done: fmt.Sprintf("what stage %d has done was not kept", i+1), Acts: actsIn(decoded(raw))})
	}
	return all
}

// actsIn lists what a stage as it was written may do, at any depth.
func actsIn(value any) (keys []actKey) {
	switch v := value.(type) {
	case map[string]any:
		if key := actKeyOf(v); key != "" {
			keys = append(keys, key)
		}
		for _, member := range v {
			keys = append(keys, actsIn(member)...)
		}
	case []any:
		for _, element := range v {
			keys = append(keys, actsIn(element)...)
		}
	}
	return keys
}

// takeUp compares the stages behind a from stage with those that stood there in the run that it names, for as long as
// they are the same; those through which the data passes unchanged are looked through. A for_each that stood there too
// is taken up: its completed items are not run again. Refused is what would do again what may have taken effect.
func takeUp(list List, steps []*Step, site Site) error {
	if len(steps) == 0 || steps[0].origin == nil {
		return nil
	}
	src := steps[0].origin
	done := src.takenOrAll()
	at := src.wanted // how many stages of that run have been compared
	var errs []error
	for i := 1; i < len(steps); i++ {
		next := at
		for next < len(src.Stages) && passesOn(src.Stages[next]) {
			next++
		}
		if passesOn(list[i]) {
			earlier := &resumption{src.past, next}
			errs = append(errs, located(earlier.repeats(steps[i], at+1, done), steps[i].place, steps[i].Label))
			continue
		}
		if next == len(src.Stages) {
			break
		}
		earlier := &resumption{src.past, next + 1}
		same, err := earlier.meet(list[i], steps[i], site, src, at == src.wanted)
		if err == nil {
			err = earlier.repeats(steps[i], next+1, done)
		}
		errs = append(errs, located(err, steps[i].place, steps[i].Label))
		if !same {
			break
		}
		at = next + 1
	}
	return errors.Join(errs...)
}
