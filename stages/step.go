package stages

import (
	"context"
	"encoding/json"
)

// A Step is a compiled stage: what it is called, what it may change and how it becomes a filter.
type Step struct {
	Label   string // "tool github/get_issue", "command jq"
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
	rehearse func(r *Run, m *Meter, note func(undone) error) Filter

	alone      bool  // calls should not run side by side unless asked to
	stops      bool  // a command that may stop reading before its input ends
	passes     bool  // stops reading soon after its reader does: it does not read everything first
	takesValue bool  // reads its item as one value, not as a line of text
	chains     int   // chains of commands within it that run at the same time
	accepts    int64 // bytes of input beyond which it fails; 0: any
	mapped     *Step // the step that a for_each flag wraps: both are one line of the report

	// Of a tool stage, the first two of a command as well:
	most    bounds
	clock   clock // of one call, or of a command
	tool    *Tool
	repeats bool // a call of it in an item that is tried again does no harm, whatever became of the call before
	stale   bool // a for_each around it changes something: what the tool has returned for one item may be out of date for the next

	replays bool    // writes the same whenever it reads the same, and calls nothing
	ends    bool    // of commands: what follows begins a chain of its own, so that the output can be kept
	window  bool    // its output is its input
	from    *source // the output that it begins with, as it is

	origin *source     // of a from stage
	resume *resumption // of a for_each
	after  *resumption // the stage that stood in its place in the run from which the pipeline goes on

	place Place
	raw   json.RawMessage // the stage as it was written
	file  string          // that it saves, by the name that stands for it
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
		if s.stops {
			return true
		}
		if s.Effect == Changes || !s.passes {
			return false
		}
	}
	return false
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
