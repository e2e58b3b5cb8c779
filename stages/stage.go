package stages

import (
	"context"
	"io"
)

// A Stage is one decoded element of a pipeline. A Stage is data; a [Filter] is code.
type Stage interface {
	// Compile checks the stage against s and returns how it runs. It must not start work: when any stage of the
	// pipeline has an error, nothing has run, but for commands on nothing (see [Tryouts]). It may be called concurrently with the Compile of other stages.
	// An error is an [*Error], or several joined by [errors.Join].
	Compile(ctx context.Context, s Scope) (*Step, error)
}

// A Filter reads in until EOF and writes its result to out. It must return soon after ctx is done, and may return
// before in is drained: whatever feeds it is then stopped, and that is no error.
type Filter func(ctx context.Context, in io.Reader, out io.Writer) error

// Deps is what the stages of a pipeline may call. A nil Tools or Commands refuses the stages that need it.
type Deps struct {
	Tools    Tools
	Commands Commands
	Shapes   Shapes
	Files    Files // where data is saved; nil refuses stages that do
	Runs     Runs  // what runs produce is kept, and may be begun from; nil: it is not
	Limits   Limits

	// Caller is on whose behalf the pipeline is checked and runs: what a sandbox keeps, it keeps for one caller. Empty is
	// a caller as well.
	Caller string

	// CheckOnly says that the pipeline will not run: mistakes that running it would show at once are looked for as well.
	CheckOnly bool
}

// Shapes checks the JSON of one stage against the schema of its kind: unknown fields, missing fields, types, ranges.
// Nested stages are not looked into; the compiler asks for each of them.
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
