package stages

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

// CommandStage runs one allow-listed command over its input (docs/pipeline.md, command).
type CommandStage struct {
	Command string  `json:"command" jsonschema:"minLength=1" jsonschema_description:"One of list_available_shell_commands, such as jq, grep or sort."`
	Args    Args    `json:"args,omitempty" jsonschema_description:"Arguments, one per element, given to the command as they are. One string means one argument."`
	Inputs  Inputs  `json:"inputs,omitempty" jsonschema_description:"Stages by name, which run once on empty input beside the pipeline; the command reads their output as @NAME: join - @b, grep -f @b, jq --slurpfile b @b."`
	Timeout float64 `json:"timeout,omitempty" jsonschema:"exclusiveMinimum=0" jsonschema_description:"Seconds in which the command has work to do."`
}

func (c *CommandStage) label() Label { return Label{Name: strings.TrimRight(shown(c.Command), " ")} }

// Compile checks the command and its arguments.
func (c *CommandStage) Compile(ctx context.Context, s Scope) (*Step, error) {
	if err := missing("command", c.Command); err != nil {
		return nil, err
	}
	if s.Commands == nil {
		return nil, Errorf(DisallowedCommand, "start the gateway with a sandbox", "there is no sandbox to run commands in")
	}
	timeout, terr := within(c.Timeout, s.Limits.Command, "command")
	command := Command{Name: c.Command, Args: c.Args, Values: s.Values[s.place], Timeout: timeout, Dir: s.Dir, Searches: s.Dir != "" && !s.Fed}
	inputs, ierr := c.Inputs.compile(ctx, s)
	for _, n := range inputs {
		command.Inputs = append(command.Inputs, n.Branch)
	}
	traits, cerr := s.c.commands.Check(ctx, command)
	if ctx.Err() != nil {
		return nil, unchecked(ctx)
	}
	if err := errors.Join(terr, ierr, cerr); err != nil {
		return nil, err
	}
	command.MapsLines = traits.MapsLines
	step := &Step{
		Command: &command, Nested: inputs, Traits: traits,
		clock:   clock{timeout, s.Limits.Command, "command", `the stage's "timeout"`},
		Does:    strings.TrimSpace(fmt.Sprintf("runs %s %s", c.Command, visible(texts.Cut(strings.Join(c.Args, " "), 300)))),
		Expects: "any bytes",
	}
	if traits.Note != "" {
		step.Does += " (" + traits.Note + ")"
	}
	for _, n := range inputs {
		step.Changes = step.Changes || changing(n.Steps)
		for _, inner := range n.Steps {
			step.Replayable = step.Replayable && inner.Replayable
		}
	}
	return step, nil
}

// Commands runs allow-listed programs in a sandbox. It is implemented by *sandbox.Pool.
type Commands interface {
	// Plan returns what checks the commands of one plan, and then runs them. It starts nothing. See [Deps.Caller],
	// [Deps.Owner] and [Deps.WorkersOf].
	Plan(caller, owner, workersOf string) CommandPlan
}

// A CommandPlan checks the commands of one plan and runs them. Its methods may be called concurrently.
type CommandPlan interface {
	// Check says what a command does with its data. It checks arguments at once by the command's grammar; a
	// script in them is read in a worker, which has bounds, and nothing runs without its verdict. The error is an *Error:
	// DISALLOWED_COMMAND or DISALLOWED_ARGUMENT, with what to use instead, LIMIT_EXCEEDED where the check takes too
	// much, or SANDBOX_UNAVAILABLE where there is no worker for it.
	Check(ctx context.Context, c Command) (Traits, error)

	// Open takes a worker for one run of the plan: runs that take their workers by different names share nothing,
	// of any characters. ctx bounds only the taking. The error is an *Error.
	Open(ctx context.Context) (Session, error)

	// Close gives up what the checks have kept for a run: there will be none.
	io.Closer
}

// Anonymous is the caller who stands for all that cannot be distinguished.
const Anonymous = "anonymous"

// Traits are what a command does with its data, as far as its arguments tell.
type Traits struct {
	StopsEarly bool // it may stop reading before its input ends, as head does
	Blocking   bool // it writes nothing before it has read all of its input, as sort does
	Replayable bool // it writes the same whenever it reads the same, as shuf does not
	MapsLines  bool // it makes one line of each line of its input, and looks at no other
	KeepsKind  bool // it only picks or orders whole lines, so that they are what they were: JSON values or text
	Values     bool // it writes JSON values, as jq and what only counts

	Note string // what may surprise the author of these arguments, for the plan; empty: nothing
}

// A Command is one program of the allow list with its arguments as the agent wrote them: no shell reads them.
type Command struct {
	Name string
	Args []string

	// Values are the indexes of arguments that are values: see [Deps].
	Values []int

	// Timeout bounds the time in which the command has something to do: it counts only while there is unread input
	// or the input has ended, and the reader of the output is ready.
	Timeout time.Duration

	// Inputs are the names of what the command reads besides its input: "@NAME" in Args. Set tells apart those of
	// different commands of a session; it is above zero where there are any.
	Inputs []string
	Set    int

	// LineBuffered says that the reader of the output may stop early, or a reader behind it that each line reaches at once: a
	// line is worth more now than in a block later.
	LineBuffered bool

	// MapsLines is what [CommandPlan.Check] has found ([Traits]).
	MapsLines bool

	// Dir is that of [Deps]. Searches says that a search without a name searches it.
	Dir      string
	Searches bool

	// Each says that the command runs once per item of a for_each: its process is worth keeping.
	Each bool
}

// A Session is one sandbox worker that serves one run.
type Session interface {
	// Prepare readies a chain of neighbouring commands, each reading what the one before writes, to run as one
	// filter. The filter may be called many times and concurrently, also by more callers than the worker has room
	// for: they wait their turn. After each call it calls used for every command that ran, by its index in the chain.
	//
	// The filter's error is an *Error whose Place is the index of the command in the chain, counted from 1, and
	// whose Sample holds the beginning of that command's input where it is known.
	Prepare(chain []Command, used func(i int, u Usage)) (Filter, error)
	// Map readies a command that runs on many items without waiting for the end of each. It returns nil where that is no better
	// than to call what Prepare returns for each. It calls used for every item.
	Map(c Command, used func(i int, u Usage)) (MapFilter, error)

	// Keep reads in to its end and keeps it as an input of the commands with that set, for as long as the session
	// lives. All inputs of a command are kept before a filter with it is called. It may be called concurrently.
	Keep(ctx context.Context, set int, name string, in io.Reader) error

	// Close ends everything that still runs and gives the worker back. It may be called more than once.
	io.Closer
}

// A MapFilter is a [Filter] for many inputs: it runs each job that comes, at most concurrency of them at the same time, until
// jobs is closed, and returns when all have ended. It takes jobs as soon as they come and never waits for more of them. Errors
// are those of a filter of the session, and [ErrUntried]. When the error of a job has ended ctx, no job behind it was begun.
type MapFilter func(ctx context.Context, jobs <-chan Job, concurrency int)

// ErrUntried is what a [Job] ends with that was not begun when there was a reason for all of them to end.
var ErrUntried = errors.New("not tried")

// A Job is one input of a [MapFilter], which calls one method at a time.
type Job interface {
	// Input returns what is to be read.
	Input() []byte

	// Write takes output. Its error ends the job.
	io.Writer

	// End is called once, when the job is over.
	End(err error)
}

// Usage is what one command used in one call of its chain.
type Usage struct {
	BytesIn, BytesOut int64
	Said              string // what a command that has succeeded wrote to standard error, shortened
	Elapsed, CPU      time.Duration
}
