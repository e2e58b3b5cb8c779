package stages

import "io"

// Runs keeps what the runs of one caller produce, in named outputs. It is implemented by *runs.Caller. All methods may
// be called concurrently.
type Runs interface {
	// Begin opens a run and returns its id, which nobody can guess. After end nothing is added to the run.
	Begin() (id string, end func())

	// Create adds an output to a run that is under way. Writing to it never fails and takes hardly any time; what
	// cannot be kept is dropped. end says that the output is whole, or why it is incomplete: then it is dropped too,
	// but for its beginning where partial is set, which consists of whole writes.
	Create(run, name string, partial bool) (out io.Writer, end func(incomplete string))

	// Share gives a run that is under way an output of an earlier one, and reports whether it is there.
	Share(run, name, to, as string) bool

	// Claim gives what a name of an earlier run stands for to the run by, until it gives it up with release, and returns
	// the run that has it: by, or the one that was first. With an empty by it only tells; empty: nobody has it.
	Claim(run, name, by string) (holder string, release func())

	// Open returns an output, to be released after use. Without data it was not kept, and incomplete says why;
	// without either the caller has no such run, or that no such output.
	Open(run, name string) (data *io.SectionReader, incomplete string, release func())
}
