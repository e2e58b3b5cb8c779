package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// Kind is a machine word for why the workspace refused or failed.
type Kind string

// The kinds. They never change their meaning.
const (
	PathEscape      Kind = "PathEscape"      // the path leads out of the root
	NotFound        Kind = "NotFound"        // nothing is there
	AlreadyExists   Kind = "AlreadyExists"   // something is there that would have to be overwritten
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

// KindOf returns the kind of err, or IoError where err carries none.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return IoError
}

// escapes is what os.Root says of a path that leads out of it. The os package exports no value to compare with; the
// tests of this package fail if the words change.
const escapes = "path escapes from parent"

// classify turns an error of os.Root for the path rel into an *Error that shows no path outside of the root.
func classify(rel string, err error) error {
	cause := err
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		cause = p.Err
	}
	switch {
	case cause.Error() == escapes:
		return &Error{
			PathEscape, fmt.Sprintf("%s leads out of the root through a symbolic link", quote(rel)),
			"only links that are relative and stay inside the root are followed", cause,
		}
	case errors.Is(cause, fs.ErrNotExist):
		return &Error{NotFound, fmt.Sprintf("%s does not exist", quote(rel)), "list its directory to see what does", cause}
	case errors.Is(cause, fs.ErrExist):
		return &Error{AlreadyExists, fmt.Sprintf("%s exists", quote(rel)), "", cause}
	case errors.Is(cause, syscall.ENOTDIR):
		return &Error{
			NotFound, fmt.Sprintf("a part of %s is not a directory", quote(rel)),
			"list its directory to see what is there", cause,
		}
	case errors.Is(cause, syscall.ELOOP):
		return &Error{InvalidArgument, fmt.Sprintf("%s goes through too many symbolic links", quote(rel)), "", cause}
	case errors.Is(cause, syscall.ENAMETOOLONG):
		return &Error{InvalidArgument, fmt.Sprintf("%s has a name that is too long", quote(rel)), "", cause}
	}
	return &Error{IoError, fmt.Sprintf("%s: %v", quote(rel), cause), "", cause}
}

// quote shows a path in a message: quoted, and shortened in the middle where it is long.
func quote(path string) string {
	const longest = 200
	if len(path) > longest {
		path = path[:longest/2] + "..." + path[len(path)-longest/2:]
	}
	return fmt.Sprintf("%q", path)
}

// ErrorKind returns the kind as a plain string, for those who report errors of several packages.
func (e *Error) ErrorKind() string { return string(e.Kind) }
