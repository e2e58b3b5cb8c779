package stages

import (
	"context"
	"errors"
	"io"
	"time"
)

// Commands runs allow-listed programs in a sandbox. It is implemented by *sandbox.Pool.
type Commands interface {
	// CheckCommand checks a command and its arguments, says what it does with its data, and runs nothing. The error is an
	// *Error: DISALLOWED_COMMAND or DISALLOWED_ARGUMENT, with what to use instead. It may be called concurrently.
	CheckCommand(c Command) (Habits, error)

	// Tryouts returns what finds mistakes in the commands of one plan of a caller that CheckCommand does not. It starts
	// nothing.
	Tryouts(caller string) Tryouts

	// Open takes a worker for one run of a caller: runs of different callers share nothing, whatever the name is made
	// of. ctx bounds only the taking. The error is an *Error.
	Open(ctx context.Context, caller string) (Session, error)
}

// Anybody is the caller who stands for all that cannot be told apart.
const Anybody = "anonymous"

// Tryouts runs commands on empty input, where that shows what is wrong with their arguments and does no more.
type Tryouts interface {
	// TryOut returns what the program of a command that was checked says of its arguments: an *Error,
	// DISALLOWED_ARGUMENT. Where nothing can be found out it returns nil. It may be called concurrently.
	TryOut(ctx context.Context, c Command) error

	// Close gives back what was used.
	io.Closer
}

// Habits are what a command does with its data, as far as its arguments tell.
type Habits struct {
	StopsEarly bool // it may stop reading before its input ends, as head does
	Gathers    bool // it writes nothing before it has read all of its input, as sort does
	Replayable bool // it writes the same whenever it reads the same, as shuf does not
	MapsLines  bool // it makes one line of each line of its input, whatever stands before and behind that
}

// A Command is one program of the allow list with its arguments as the agent wrote them: no shell reads them.
type Command struct {
	Name string
	Args []string

	// Timeout bounds the time in which the command has something to do: it counts only while there is unread input
	// or the input has ended, and the reader of the output is ready.
	Timeout time.Duration

	// Inputs are the names of what the command reads besides its input: "@NAME" in Args. Set tells apart those of
	// different commands of a session; it is above zero where there are any.
	Inputs []string
	Set    int

	// Hasty says that whoever reads the output may stop early, or that somebody behind him may whom each line reaches at
	// once: a line is worth more now than in a block later.
	Hasty bool

	// Each says that the command runs once per item of a for_each: what it needs to start is worth keeping.
	Each bool
}

// A Session is one sandbox worker that serves one run.
type Session interface {
	// Prepare readies a chain of neighbouring commands, each reading what the one before writes, to run as one
	// filter. The filter may be called many times and concurrently, also by more callers than the worker has room
	// for: they wait their turn. After each call used is told of every command that ran, by its index in the chain.
	//
	// The filter's error is an *Error whose Place is the index of the command in the chain, counted from 1, and
	// whose Sample holds the beginning of that command's input where it is known.
	Prepare(chain []Command, used func(i int, u Usage)) (Filter, error)

	// Keep reads in to its end and keeps it as an input of the commands with that set, for as long as the session
	// lives. All inputs of a command are kept before a filter with it is called. It may be called concurrently.
	Keep(ctx context.Context, set int, name string, in io.Reader) error

	// Close ends everything that still runs and gives the worker back. It may be called more than once.
	io.Closer
}

// A Mapper is a [Session] that can run a command on many items without waiting for the end of each.
type Mapper interface {
	// Map readies a command that runs once per item. It returns nil where that is no better than to call what Prepare
	// returns for each. used is told of every item.
	Map(c Command, used func(i int, u Usage)) (MapFilter, error)
}

// A MapFilter is a [Filter] for many inputs: it runs each job that comes, up to atOnce of them side by side, until jobs is
// closed, and returns when all have ended. It takes jobs as soon as they come and never waits for more of them. Errors
// are those of a filter of the session, and [ErrUntried]. When the error of a job has ended ctx, no job behind it was begun.
type MapFilter func(ctx context.Context, jobs <-chan Job, atOnce int)

// ErrUntried is what a [Job] ends with that was not begun when there was a reason for all of them to end.
var ErrUntried = errors.New("not tried")

// A Job is one input of a [MapFilter], which calls one method at a time.
type Job interface {
	// Input returns what is to be read.
	Input() []byte

	// Write takes output. Its error ends the job.
	io.Writer

	// Forget drops what was written: the job is run anew.
	Forget()

	// End is called once, when the job is over.
	End(err error)
}

// Usage is what one command used in one call of its chain.
type Usage struct {
	BytesIn, BytesOut int64
	Elapsed, CPU      time.Duration
}
