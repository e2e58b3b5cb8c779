package stages

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/mcsh-dev/mcsh/internal/memory"
)

// A Stage is one decoded element of a pipeline. A Stage is data; a [Filter] is code.
type Stage interface {
	// Compile checks the stage against s and returns how it runs. It must not start work: when any stage of the
	// pipeline has an error, nothing has run but the checks of commands (see [CommandPlan]). It may be called concurrently
	// with the Compile of other stages. An error is an [*Error], or several joined by [errors.Join].
	Compile(ctx context.Context, s Scope) (*Step, error)
}

// A Filter reads in until EOF and writes its result to out. It must return soon after ctx is done, and may return
// before in is drained: the stage before is then stopped, and that is no error.
type Filter func(ctx context.Context, in io.Reader, out io.Writer) error

// Deps is what the stages of a pipeline may call. A nil Tools or Commands refuses the stages that need it.
type Deps struct {
	Tools    Tools
	Commands Commands
	Schemas  Schemas // nil: the plan is known to have the form that the schemas demand
	Files    Files   // where data is saved; nil refuses stages that do
	Runs     Runs    // keeps the outputs of runs, for from stages; nil: they are not kept
	Limits   Limits
	Spread   Spread

	// Memory is what all runs together may hold; nil: no more is known than [Limits.Held].
	Memory *memory.Share

	// Caller is on whose behalf the pipeline is checked and runs. Empty is a caller as well.
	Caller string

	// WorkersOf names those whose runs may get the same worker, one after another: a sandbox keeps workers for one
	// such name. Empty: the name is Caller.
	WorkersOf string

	// Owner names those for whom the run counts where the sandbox shares its workers out: without authentication, all
	// callers of one address. Empty: it counts for none.
	Owner string

	// Dir is the directory of the workspace in which commands run, clean and relative to it, for callers that have one, as in a
	// shell: names of files begin there, and a search without a name searches it if nothing flows into it. Empty: commands
	// run in the workspace itself and search what flows into them.
	Dir string

	// Values are arguments of commands that are values, by the place of the stage: the indexes of operands and values of options,
	// even if they look like others. They are never options, and never the program of jq, awk or sed.
	Values map[Place][]int

	// CheckOnly says that the pipeline will not run: mistakes that running it would show at once are looked for as well.
	CheckOnly bool
}

// Schemas check the JSON of one stage against the schema of its kind: unknown fields, missing fields, types, ranges.
// Nested stages are not looked into; the compiler asks for each of them. Compile itself checks only what no schema says.
type Schemas interface {
	// Check returns every mistake of the stage, with Code, Msg and Hint set. It may be called concurrently.
	Check(kind string, stage []byte) []*Error
}

// List is a list of stages that is not decoded yet; [Scope.List] compiles it.
type List []json.RawMessage

// Branches are named lists of stages, in the order in which they were written: of a parallel stage or a command.
type Branches []Branch

// Branch is one named list of stages.
type Branch struct {
	Name   string
	Stages List
}

// UnmarshalJSON decodes an object of lists, keeping the order of its keys.
func (b *Branches) UnmarshalJSON(data []byte) error {
	members, err := readObject(data)
	if err != nil {
		return err
	}
	*b = nil
	seen := map[string]bool{}
	for _, m := range members {
		if seen[m.key] {
			return fmt.Errorf("%q is given twice", m.key)
		}
		seen[m.key] = true
		var list List
		if err := json.Unmarshal(m.value, &list); err != nil {
			return fmt.Errorf("%q must be an array of stages", m.key)
		}
		*b = append(*b, Branch{Name: m.key, Stages: list})
	}
	return nil
}

// Args are the arguments of a command. One string is taken as one argument, because models write "args": "map(.a)".
type Args []string

// UnmarshalJSON accepts an array of strings, or one string.
func (a *Args) UnmarshalJSON(data []byte) error {
	if data = bytes.TrimSpace(data); len(data) > 0 && data[0] == '"' {
		*a = make(Args, 1)
		return json.Unmarshal(data, &(*a)[0])
	}
	return json.Unmarshal(data, (*[]string)(a))
}

// A ListKind says where a list of stages stands; a few rules depend on it.
type ListKind int

// The kinds of lists of stages.
const (
	AtTop    ListKind = iota // the pipeline itself
	InEach                   // the stages of a for_each
	InBranch                 // a branch of a parallel stage
	InInput                  // a named input of a command, which runs once, even if the command runs for each item
)

// Scope is what a stage knows of its surroundings while it is compiled.
type Scope struct {
	Deps
	ListKind ListKind
	Each     bool // whether the stage runs once per item, of a for_each at any depth
	Fed      bool // whether anything flows into the stage; if not, its input is empty
	Last     bool // whether its output is the output of its list

	place Place
	label Label
	depth int
	c     *compiler

	direct   bool  // the input is the item itself, unchanged: of the innermost for_each that tries items again
	joins    bool  // whether items come out beside their results
	distinct *bool // whether equal calls are to be made once, if a for_each around it says so
}

// mapping returns the scope of what runs once per item with the choices of o.
func (s Scope) mapping(o Mapping) Scope {
	if o.Retries > 0 {
		s.direct = true
	}
	if o.Distinct != nil {
		s.distinct = o.Distinct
	}
	s.joins = o.WithItem
	return s
}

// List compiles the stages of a list that belongs to the stage of s. A branch or an input is named, a for_each's list is not.
// The steps that compiled are returned along with the error, an [errors.Join] of everything that is wrong.
func (s Scope) List(ctx context.Context, list List, kind ListKind, branch string, fed bool) ([]*Step, error) {
	inner := s
	inner.ListKind, inner.Fed, inner.depth = kind, fed, s.depth+1
	inner.Each = kind == InEach || s.Each && kind != InInput
	if kind == InInput { // it runs once, not for each item
		inner.direct, inner.distinct, inner.joins = false, nil, false
	}
	if branch != "" {
		inner.place = BranchPlace(branch).In(s.place)
	}
	if inner.depth > s.Limits.Nesting {
		return nil, OverLimit("nesting", "flatten the pipeline, or run the inner part as a pipeline of its own",
			"stages are nested deeper than %d", s.Limits.Nesting)
	}
	return s.c.list(ctx, list, inner)
}

// A Step is a compiled stage: what it is called, what it may change and how it becomes a filter.
type Step struct {
	Label Label
	// Changes says that running the step may change something outside of the pipeline: it waits until every stage before it has
	// succeeded, and a call that has begun finishes. Other steps only read: they may be started, cancelled and repeated freely.
	Changes bool
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

	most   int64     // bytes of input, more than which it refuses; 0: any number
	clock  clock     // how long a command, a call or all items may take
	tool   *toolCall // nil: it calls no tool by itself
	each   *forEach  // nil: it runs once
	flag   bool      // it is a for_each flag: it and the step that it wraps are one line of the report
	origin *source   // of a from stage

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
		if s.Changes || s.Blocking {
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

// isWindow reports whether the output of a step is its input, which it does not change nor save.
func (s *Step) isWindow() bool { return s.Command == nil && s.KeepsKind && s.Replayable }

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
	return s.Changes && len(s.Nested) == 0
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

// changing reports whether one of steps may change something.
func changing(steps []*Step) bool {
	return slices.ContainsFunc(steps, func(s *Step) bool { return s.Changes })
}
