package stages

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// CommandStage runs one allow-listed command over its input (pipeline.md §5).
type CommandStage struct {
	Command string  `json:"command" jsonschema:"minLength=1" jsonschema_description:"One of list_available_shell_commands, such as jq, grep or sort."`
	Args    Args    `json:"args,omitempty" jsonschema_description:"Arguments, one per element, given to the command as they are. One string means one argument."`
	Inputs  Inputs  `json:"inputs,omitempty" jsonschema_description:"Stages by name, which run once on empty input beside the pipeline; the command reads their output as @NAME: join - @b, grep -f @b, jq --slurpfile b @b."`
	Timeout float64 `json:"timeout,omitempty" jsonschema:"exclusiveMinimum=0" jsonschema_description:"Seconds in which the command has work to do."`
}

// Label names the stage in messages.
func (c *CommandStage) Label() string {
	return strings.TrimSpace("command " + shown(c.Command))
}

// Compile checks the command and its arguments; jq programs are compiled.
func (c *CommandStage) Compile(ctx context.Context, s Scope) (*Step, error) {
	if err := missing("command", c.Command); err != nil {
		return nil, err
	}
	if s.Commands == nil {
		return nil, Errorf(DisallowedCommand, "start the gateway with a sandbox", "there is no sandbox to run commands in")
	}
	timeout, terr := within(c.Timeout, s.Limits.Command, "command")
	command := Command{Name: c.Command, Args: c.Args, Timeout: timeout}
	inputs, ierr := c.Inputs.compile(ctx, s)
	for _, n := range inputs {
		command.Inputs = append(command.Inputs, n.Branch)
	}
	habits, cerr := s.Commands.CheckCommand(command)
	if err := errors.Join(terr, ierr, cerr); err != nil {
		return nil, err
	}
	if s.c.tryouts != nil {
		if err := s.c.tryouts.TryOut(ctx, command); err != nil {
			return nil, err
		}
	}
	step := &Step{
		Label: c.Label(), Command: &command, Nested: inputs, stops: habits.StopsEarly, passes: !habits.Gathers,
		Does:    strings.TrimSpace(fmt.Sprintf("runs %s %s", c.Command, visible(shortened(strings.Join(c.Args, " "), 300)))),
		Expects: "any bytes",
	}
	step.replays = habits.Replayable
	step.most.time = timeout
	step.clock = clock{timeout, s.Limits.Command, "command", `the stage's "timeout"`}
	for _, n := range inputs {
		step.Effect = max(step.Effect, effectOf(n.Steps))
		for _, inner := range n.Steps {
			step.replays = step.replays && inner.replays
		}
	}
	return step, nil
}
