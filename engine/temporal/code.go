package temporal

import (
	"errors"
	"fmt"
	"regexp"
)

// A Coder is an error with a word of its own that may be written into Temporal's history, where the text of an error may not,
// because it can quote data: up to 32 lower-case letters, digits, _ and -. Of other errors the Go type is written.
type Coder interface {
	error
	JobCode() string
}

var words = regexp.MustCompile(`^[a-z0-9_-]{1,32}$`)

// code returns the safe word for an error: that of a [Coder] it wraps, or the type of the innermost error.
func code(err error) string {
	var coder Coder
	if errors.As(err, &coder) && words.MatchString(coder.JobCode()) {
		return coder.JobCode()
	}
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	return clip(fmt.Sprintf("%T", err))
}

// A word is an error that is nothing but its code.
type word string

func (w word) Error() string { return string(w) }

// JobCode implements [Coder].
func (w word) JobCode() string { return string(w) }
