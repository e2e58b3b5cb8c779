package pipe

import (
	"context"
	"io"

	"github.com/mcsh-dev/mcsh/workspace"
)

// A Start makes the engine of a workspace. With backup, what is saved becomes a version in the history of its file.
type Start func(dir *workspace.Dir, backup bool) Engine

// An Engine runs lines in a workspace. It may be called concurrently.
type Engine interface {
	// Run runs the commands of a line side by side, each on the output of the one before and the first on in, which may be
	// nil, and writes the output of the last one to out. Nothing runs before the arguments of all commands are accepted,
	// and nothing is saved unless all commands before have succeeded. Its error is a *Failure.
	Run(ctx context.Context, l Line, in io.Reader, out io.Writer) (Report, error)

	// Begin is [tool.Opened.Begin] of the server.
	Begin() (end func() error)
}

// A Line is a pipeline that the guard has accepted.
type Line struct {
	Dir      string // in which the commands run, relative to the root
	Commands []Command
}

// A Command is one command of a line.
type Command struct {
	Text string // as it was written
	Name string
	Args []string
	Save *Save // of tee, which is no program: the file; else nil
}

// A Save says how tee saves what flows through it.
type Save struct {
	Path     string // relative to the root
	Append   bool
	Oversize bool // more than the threshold may be saved
}

// A Report says what a line did.
type Report struct {
	Steps []Step // by command
	Saved *Saved // by tee; nil: nothing
}

// A Step says what one command did.
type Step struct {
	Size   int64 // bytes of its output
	Millis float64
}

// Saved is what was saved.
type Saved struct {
	Path   string `json:"path"`
	Mirror string `json:"mirror"`
	Bytes  int64  `json:"bytes"`
	Append bool   `json:"append"`
	Record int64  `json:"record_id"`
}

// A Failure becomes the error of a call.
type Failure struct {
	Code   string `json:"code"`
	Reason Reason `json:"reason,omitempty"` // with the code [Violation]
	Detail string `json:"detail"`
	Use    string `json:"suggestion"`
	Saved  *Saved `json:"tee,omitempty"` // before the line failed
}

func (f *Failure) Error() string { return f.Code + ": " + f.Detail }

// Codes of failures besides those of the engine.
const (
	Violation   = "GUARD_VIOLATION"     // the line is not allowed, and nothing is saved
	Unavailable = "SANDBOX_UNAVAILABLE" // no command can run here
)

// A Reason says why a line is not allowed.
type Reason string

// The reasons.
const (
	DisallowedCommand  Reason = "DISALLOWED_CMD"
	DisallowedArgument Reason = "DISALLOWED_ARG"
	Redirect           Reason = "REDIRECT"
	NavInPipe          Reason = "NAV_IN_PIPE"
	PathEscape         Reason = "PATH_ESCAPE"
	Oversize           Reason = "OVERSIZE"
	Unparsed           Reason = "PARSE"
)
