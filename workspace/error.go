package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

// Kind is the machine-readable kind of an [Error].
type Kind string

// The kinds. They never change their meaning.
const (
	PathEscape      Kind = "PathEscape"      // the path leads out of the root
	NotFound        Kind = "NotFound"        // nothing is there
	AlreadyExists   Kind = "AlreadyExists"   // the operation would overwrite something
	IoError         Kind = "IoError"         // the operating system failed
	InvalidArgument Kind = "InvalidArgument" // the call makes no sense for this path
)

// An Error is a failure of the workspace that its caller can act on.
type Error struct {
	Kind Kind
	Msg  string // lower case, no final period; names the path
	Hint string // what to do next, or empty
	Err  error  // the cause, if there is one
}

// Error returns the message and the hint, without the kind.
func (e *Error) Error() string {
	if e.Hint == "" {
		return e.Msg
	}
	return e.Msg + "; " + e.Hint
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errorf makes an Error with a kind, a hint (which may be empty) and a formatted message.
func Errorf(kind Kind, hint, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Kind: kind, Msg: err.Error(), Hint: hint, Err: errors.Unwrap(err)}
}

// ErrPrivate is in errors of paths that lead to a directory that is not for callers.
var ErrPrivate = errors.New("a directory that is not for callers")

// KindOf returns the kind of err, or IoError if it has none.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return IoError
}

// escapes is the error text of os.Root for a path that leads out of it. Package os exports no value to compare with; the
// tests of this package fail if the text changes.
const escapes = "path escapes from parent"

// causes are errors of the operating system, as they are explained for a path.
var causes = []struct {
	err  error
	kind Kind
	msg  string
	hint string
}{
	{fs.ErrNotExist, NotFound, "%s does not exist", "list its directory to see what does"},
	{fs.ErrExist, AlreadyExists, "%s exists", ""},
	{syscall.ENOTDIR, NotFound, "a part of %s is not a directory", "list its directory to see what is there"},
	{syscall.ELOOP, InvalidArgument, "%s goes through too many symbolic links", ""},
	{syscall.ENAMETOOLONG, InvalidArgument, "%s has a name that is too long", ""},
}

// classify turns an error of os.Root for the path rel into an *Error that shows no path outside the root.
func classify(rel string, err error) error {
	cause := withoutPath(err)
	if cause.Error() == escapes {
		return &Error{
			PathEscape, fmt.Sprintf("%s leads out of the root through a symbolic link", quote(rel)),
			"only links that are relative and stay inside the root are followed", cause,
		}
	}
	for _, c := range causes {
		if errors.Is(cause, c.err) {
			return &Error{c.kind, fmt.Sprintf(c.msg, quote(rel)), c.hint, cause}
		}
	}
	return &Error{IoError, fmt.Sprintf("%s: %v", quote(rel), cause), "", cause}
}

func withoutPath(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

// quote quotes a path for a message.
func quote(path string) string { return texts.QuotePath(path) }

// ErrorKind returns the kind as a string, for code that reports errors of several packages.
func (e *Error) ErrorKind() string { return string(e.Kind) }
