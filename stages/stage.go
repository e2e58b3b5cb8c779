package stages

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"

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
// before in is drained: whatever feeds it is then stopped, and that is no error.
type Filter func(ctx context.Context, in io.Reader, out io.Writer) error

// Deps is what the stages of a pipeline may call. A nil Tools or Commands refuses the stages that need it.
type Deps struct {
	Tools    Tools
	Commands Commands
	Shapes   Shapes // nil: the plan is known to have the form that the schemas demand
	Files    Files  // where data is saved; nil refuses stages that do
	Runs     Runs   // what runs produce is kept, and may be begun from; nil: it is not
	Limits   Limits

	// Memory is what all runs together may hold; nil: no more is known than [Limits.Held].
	Memory *memory.Share

	// Caller is on whose behalf the pipeline is checked and runs. Empty is a caller as well.
	Caller string

	// WorkersOf names those whose runs may get the same worker, one after another: what a sandbox keeps, it keeps for one
	// such name. Empty: the name is Caller.
	WorkersOf string

	// Owner is whom the run counts for where the sandbox shares its workers out: all callers of one address, where
	// nobody is asked who they are. Empty: it is nobody's.
	Owner string

	// CheckOnly says that the pipeline will not run: mistakes that running it would show at once are looked for as well.
	CheckOnly bool
}

// Shapes checks the JSON of one stage against the schema of its kind: unknown fields, missing fields, types, ranges.
// Nested stages are not looked into; the compiler asks for each of them. Compile itself checks only what no schema says.
type Shapes interface {
	// CheckShape returns every mistake of the stage, with Code, Msg and Hint set. It may be called concurrently.
	CheckShape(kind string, stage []byte) []*Error
}

// Effect says what running a step may do to the world outside of the pipeline.
type Effect int

const (
	// ReadOnly steps may be started, cancelled and repeated freely.
	ReadOnly Effect = iota
	// Changes marks steps that may change something: they wait until every stage before them has succeeded, and a
	// call that has begun is let finish.
	Changes
)

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
