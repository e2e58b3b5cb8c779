package stages

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
)

// resumption is the for_each of an earlier run that a for_each takes up again.
type resumption struct {
	past
	stage int
}

func itemsName(stage int) string { return outputName(stage) + " items" }

// open returns what is kept of the items, nil if there is nothing.
func (p *resumption) open() (data *io.SectionReader, incomplete string, release func()) {
	return p.runs.Open(p.id, itemsName(p.stage))
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

// meet compares a stage with the one that stood in its place, and reports whether it is the same. A for_each is taken up.
// Refused is one that may have changed something for items that nothing is known of, and one within another stage: what
// a stage of a stage completes is not kept item by item. first says that nothing stands before it that changes the data.
func (p *resumption) meet(raw json.RawMessage, step *Step, site Site, src *source, first bool) (same bool, err error) {
	before := p.Stages[p.stage-1]
	switch {
	case sameEach(raw, before) && site != AtTop:
		return true, p.buried(step, before)
	case sameEach(raw, before):
		step.resume = p
		return true, p.check(src, step, first, raw)
	case isEach(raw) || !sameStage(raw, before):
		return false, p.differs(step, before)
	}
	return true, nil
}

// differs refuses a stage that is not the for_each that stood there, and would call a tool that may have changed
// something for items of that one: which of them it would change again cannot be told.
func (p *resumption) differs(step *Step, before json.RawMessage) error {
	tool := p.again(step, before)
	if tool == "" {
		return nil
	}
	return Errorf(InvalidPipeline, "write the for_each as it was, to take it up (how it maps and its timeout may differ); "+
		"to call the tool anew all the same, put a command such as jq . before it",
		"run %s has called %s for items of its stage %d already, in a for_each that was another: to run them again could repeat what they have changed",
		p.id, tool, p.stage)
}

// buried refuses the for_each that stood there where it cannot be taken up.
func (p *resumption) buried(step *Step, before json.RawMessage) error {
	tool := p.again(step, before)
	if tool == "" {
		return nil
	}
	return Errorf(InvalidPipeline, "make from and the for_each the first stages of a pipeline, which takes it up; "+
		"to call the tool anew all the same, put a command such as jq . before it",
		"run %s has called %s for items of its stage %d already, and within another stage a for_each is not taken up: to run them again could repeat what they have changed",
		p.id, tool, p.stage)
}

// again names a tool that a stage calls, that may change something, and that the for_each has called for items; empty if
// there is none.
func (p *resumption) again(step *Step, before json.RawMessage) string {
	data, incomplete, release := p.open()
	defer release()
	if (data == nil || data.Size() == 0) && incomplete == "" {
		return ""
	}
	called := toolsIn(before)
	for _, t := range toolsOf([]*Step{step}) {
		if t.Effect == Changes && slices.Contains(called, t.Label) {
			return strings.TrimPrefix(t.Label, "tool ")
		}
	}
	return ""
}

// toolsIn are the labels of the tools in a stage as it was written, at any depth.
func toolsIn(raw json.RawMessage) (labels []string) {
	for stage := range objectsIn(decoded(raw)) {
		server, _ := stage["server"].(string)
		name, _ := stage["name"].(string)
		if stage["type"] == "tool" {
			labels = append(labels, (&ToolStage{Server: server, Name: name}).Label())
		}
	}
	return labels
}

// check refuses to take up a for_each with effects where they could be had twice: an item whose result was not kept,
// one that may have taken effect although it did not succeed, equal calls that were not kept, inputs with effects, or
// items that are read anew and may be others.
func (p *resumption) check(src *source, step *Step, next bool, raw json.RawMessage) error {
	if step.Effect != Changes {
		return nil
	}
	const hint = "find out what was changed (with a tool that reads), and give for_each only the items that are left"
	if holder, _ := p.claim(""); holder != "" {
		return p.claimed(holder)
	}
	data, incomplete, release := p.open()
	defer release()
	if incomplete != "" {
		return Errorf(InvalidPipeline, hint, "not all results of the items that this for_each has completed were kept (%s); "+
			"to run those items again could repeat what they have changed", incomplete)
	}
	if err := p.unsure(data); err != nil {
		return err
	}
	if decoded(raw)["distinct"] == true && decoded(p.Stages[p.stage-1])["distinct"] != true {
		return fielded("distinct", Errorf(InvalidPipeline, "leave distinct out, as it was; or give for_each only the items that are left",
			"that run did not have distinct: which calls it made is not known, and equal ones would be made again"))
	}
	if changingInputs([]*Step{step}) {
		return Errorf(InvalidPipeline, hint, "inputs within this for_each call tools that may change something, and would call them again")
	}
	if next && slices.ContainsFunc(src.replay, func(s *Step) bool { return !s.replays }) {
		return Errorf(InvalidPipeline, hint, "the items of this for_each were not kept, and would have to be read again; "+
			"others than before could change things twice")
	}
	return nil
}

// claim makes a run the one that takes the for_each up, and returns the run that does: each of two would run the items
// that are left. With an empty run it only tells.
func (p *resumption) claim(run string) (holder string, release func()) {
	return p.runs.Claim(p.id, itemsName(p.stage), run)
}

// claimed refuses a for_each that another run has taken up. That one knows more: one can go on from it.
func (p *resumption) claimed(holder string) error {
	hint := "find out what was changed (with a tool that reads), and give for_each only the items that are left"
	if later, err := findRun(p.runs, holder); err == nil {
		for i, raw := range later.Stages {
			if i > 0 && sameEach(raw, p.Stages[p.stage-1]) {
				hint = fmt.Sprintf(`when that run has ended, take up what it has left: {"type": "from", "run": %q, "stage": %d}, then the for_each`, holder, i)
				break
			}
		}
	}
	return Errorf(InvalidPipeline, hint, "run %s takes up this for_each already, or has done so: to run its items here as well could repeat what they change", holder)
}

// sameStage reports whether two stages are equal.
func sameStage(a, b json.RawMessage) bool {
	x, y := decoded(a), decoded(b)
	return x != nil && reflect.DeepEqual(x, y)
}

// unsure refuses to run items again that did not succeed, and may have taken effect.
func (p *resumption) unsure(data *io.SectionReader) error {
	var done, unsure []int
	err := eachEntry(data, func(e entry) error {
		switch e.kind {
		case entryResult:
			done = append(done, e.number)
		case entryUnsure:
			unsure = append(unsure, e.number)
		}
		return nil
	})
	if err != nil || len(unsure) == 0 {
		return err
	}
	hint := "find out what was changed (with a tool that reads), and give the for_each only the items that are left: "
	if len(done) > 0 {
		hint += ranges(done) + " succeeded; "
	}
	first := fmt.Sprintf(`{"type": "from", "run": %q, "stage": %d}`, p.id, p.stage-1)
	program := "the stage that picks them"
	if gone := append(done, unsure...); len(spans(gone)) <= rangesMax {
		program = fmt.Sprintf("jq '%s' where the items are one array", without(gone))
	}
	hint += fmt.Sprintf("%s, then %s, then the for_each", first, program)
	return Errorf(InvalidPipeline, hint, "%s may have taken effect in that run: a call that may change something was sent, "+
		"and nobody knows that it failed; to run this again could repeat it", itemsOf(unsure))
}

// changingInputs reports whether steps have inputs that may change something, at any depth.
func changingInputs(steps []*Step) bool {
	for _, s := range steps {
		for _, n := range s.Nested {
			if n.Input && effectOf(n.Steps) == Changes || changingInputs(n.Steps) {
				return true
			}
		}
	}
	return false
}

// itemsOf names items by their numbers: "item 3", "items 1-59, 61".
func itemsOf(numbers []int) string {
	if len(numbers) == 1 {
		return "item " + ranges(numbers)
	}
	return "items " + ranges(numbers)
}

// rangesMax is how many ranges of items a message names.
const rangesMax = 20

// spans sorts numbers and joins those that follow each other.
func spans(numbers []int) (list [][2]int) {
	slices.Sort(numbers)
	for _, n := range numbers {
		if last := len(list) - 1; last >= 0 && n <= list[last][1]+1 {
			list[last][1] = n
			continue
		}
		list = append(list, [2]int{n, n})
	}
	return list
}

// ranges writes numbers for people: "1-59, 61".
func ranges(numbers []int) string {
	var parts []string
	list := spans(numbers)
	for _, s := range list[:min(len(list), rangesMax)] {
		part := fmt.Sprint(s[0])
		if s[1] > s[0] {
			part = fmt.Sprintf("%d-%d", s[0], s[1])
		}
		parts = append(parts, part)
	}
	text := strings.Join(parts, ", ")
	if more := len(list) - len(parts); more > 0 {
		text += fmt.Sprintf(" and others up to %d", list[len(list)-1][1])
	}
	return text
}

// without is a jq program that leaves elements of an array out, counted from 1.
func without(numbers []int) string {
	var parts []string
	for _, s := range spans(numbers) {
		parts = append(parts, fmt.Sprintf(".[%d:%d]", s[0]-1, s[1]))
	}
	return "del(" + strings.Join(parts, ", ") + ")"
}
