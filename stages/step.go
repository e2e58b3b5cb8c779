package stages

import (
	"context"
	"encoding/json"
	"iter"
	"slices"
)

// A Step is a compiled stage: what it is called, what it may change and how it becomes a filter.
type Step struct {
	Label   Label
	Effect  Effect
	Does    string // one clause for a reader of the plan: "calls github/get_issue once per item, 8 at a time"
	Expects string // the input that it makes sense of, such as "a JSON object of arguments"
	Command *Command

	// Bind makes the filter for one run, before anything has run. The filter may then be called many times and
	// concurrently. A step with a Command has no Bind: neighbouring commands are bound together, as one chain.
	Bind func(ctx context.Context, r *Run, m *Meter) (Filter, error)

	Nested []Nested // lists of stages within this one

	// rehearse makes the filter for a dry run, of a step that changes something by itself: it does all that Bind's
	// does but for the change, and notes what that would be done with. Nil: that it would be run is all there is to say.
	rehearse func(r *Run, m *Meter, note noteCall) Filter

	Traits // what it does with its data

	most    int64       // bytes of input, more than which it refuses; 0: any number
	clock   clock       // how long a command, a call or all items may take
	tool    *toolCall   // nil: it calls no tool by itself
	each    *forEach    // nil: it runs once
	flag    bool        // it is a for_each flag: it and the step that it wraps are one line of the report
	window  bool        // its output is its input
	origin  *source     // of a from stage
	resumed *resumption // of one that stands for the rest of a run

	place Place
	raw   json.RawMessage // the stage as it was written
}

// Nested is a compiled list of stages inside of a step.
type Nested struct {
	Branch string // the branch of a parallel stage, or the input of a command, else empty
	Input  bool   // whether it is an input: it runs once, beside the stages around it
	Steps  []*Step
}

// names returns the name as that of a branch, and as that of an input.
func (n Nested) names() (branch, input string) {
	if n.Input {
		return "", shown(n.Branch)
	}
	return shown(n.Branch), ""
}

// stopEarly reports whether the first of steps may stop reading before its input ends: it does so by itself, or because
// a step behind it does. A step that reads all of its input first ends the search.
func stopEarly(steps []*Step) bool {
	for _, s := range steps {
		if s.StopsEarly {
			return true
		}
		if s.Effect == Changes || s.Blocking {
			return false
		}
	}
	return false
}

// describeLines describes what steps write, from the last one back. It reports false where that depends on what a tool returns.
func describeLines(steps []*Step, h headers) bool {
	for _, s := range slices.Backward(steps) {
		switch {
		case s.KeepsKind:
			continue
		case s.Command == nil:
			return false
		case s.Values:
			h.out.describe(about{Kind: Values})
		default:
			h.out.describe(about{Kind: CommandText})
		}
		return true
	}
	h.out.linesOf(h.in)
	return true
}

// own returns the step that a for_each flag wraps, else s.
func (s *Step) own() *Step {
	if s.flag {
		return s.Nested[0].Steps[0]
	}
	return s
}

// alone reports whether calls of a step should not run side by side unless asked to.
func (s *Step) alone() bool {
	if s.tool != nil {
		return !sideBySide(s.tool.info)
	}
	return s.Effect == Changes && len(s.Nested) == 0
}

// tooMuch reports whether the step refuses n bytes of input.
func (s *Step) tooMuch(n int64) bool { return s.most > 0 && n > s.most }

// ends reports whether what follows a command begins a chain of its own, so that its output can be kept.
func (r *Run) ends(s *Step) bool { return r.record != nil && !s.Replayable && !s.place.nested() }

// allSteps yields steps and those within them, at any depth.
func allSteps(steps []*Step) iter.Seq[*Step] {
	return func(yield func(*Step) bool) { walkSteps(steps, true, yield) }
}

// repeatedSteps are [allSteps] without those of named inputs, which run once.
func repeatedSteps(steps []*Step) iter.Seq[*Step] {
	return func(yield func(*Step) bool) { walkSteps(steps, false, yield) }
}

func walkSteps(steps []*Step, inputs bool, yield func(*Step) bool) bool {
	for _, s := range steps {
		if !yield(s) {
			return false
		}
		for _, n := range s.Nested {
			if (inputs || !n.Input) && !walkSteps(n.Steps, inputs, yield) {
				return false
			}
		}
	}
	return true
}

// toolsOf returns the tool stages among steps and within them.
func toolsOf(steps []*Step) (tools []*Step) {
	for s := range repeatedSteps(steps) {
		if s.tool != nil {
			tools = append(tools, s)
		}
	}
	return tools
}

// effectOf returns what running all of steps may do.
func effectOf(steps []*Step) Effect {
	for _, s := range steps {
		if s.Effect == Changes {
			return Changes
		}
	}
	return ReadOnly
}
