package stages

import "time"

// Limits bound what one run may use (pipeline.md §8). Reaching one is an error that names it. The zero value of a
// field means its default.
type Limits struct {
	Stages    int           // stages in a plan, nested ones included
	Nesting   int           // stages within stages, counted without the pipeline itself
	Items     int           // items in one for_each
	Calls     int           // tool calls in a run
	Run       time.Duration // the whole run
	Call      time.Duration // one tool call
	Command   time.Duration // one command, see [Command.Timeout]
	Input     int64         // bytes of input that one tool call takes
	Item      int64         // bytes of one item
	Waiting   int64         // bytes of results that wait behind a slower item, per for_each
	Attempt   int64         // bytes of the result of one item that may be tried again
	Shared    int64         // bytes of results kept for equal calls, of one run
	Held      int64         // bytes held in memory by one run
	Spool     int64         // bytes that wait on disk for a later stage, of one run
	SpoolHead int64         // of those, bytes kept in memory before one spool goes to disk
	SpoolDir  string        // where spools go, the system's temporary directory if empty
}

// WithDefaults returns l with every zero field set to its default.
func (l Limits) WithDefaults() Limits {
	or(&l.Stages, 64)
	or(&l.Nesting, 3)
	or(&l.Items, 100_000)
	or(&l.Calls, 100_000)
	or(&l.Run, 300*time.Second)
	or(&l.Call, 60*time.Second)
	or(&l.Command, 30*time.Second)
	or(&l.Input, 16<<20)
	or(&l.Item, 16<<20)
	or(&l.Waiting, 16<<20)
	or(&l.Attempt, 16<<20)
	or(&l.Shared, 16<<20)
	or(&l.Held, 256<<20)
	or(&l.Spool, 2<<30)
	or(&l.SpoolHead, 1<<20)
	l.Shared = min(l.Shared, l.Held/8) // what is kept does not hold back what runs, see crowded
	return l
}

func or[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
