package stages

import (
	"errors"
	"fmt"
	"runtime/debug"
	"unicode/utf8"
)

// located sets place and label on every Error in err that has none yet; other errors become INTERNAL. The Errors are
// copies: whoever made them may keep them and give them to others.
func located(err error, place Place, label string) error {
	var out []error
	for _, e := range flatten(err) {
		c := *e
		if c.Place == "" {
			c.Place, c.Label = place, label
		}
		out = append(out, &c)
	}
	return errors.Join(out...)
}

// flatten returns the Errors that err holds, in order. What is no Error becomes one.
func flatten(err error) []*Error {
	switch err := err.(type) {
	case nil:
		return nil
	case *Error:
		return []*Error{err}
	case interface{ Unwrap() []error }:
		var all []*Error
		for _, e := range err.Unwrap() {
			all = append(all, flatten(e)...)
		}
		return all
	}
	var e *Error
	if errors.As(err, &e) {
		return []*Error{e}
	}
	return []*Error{{Code: Internal, Msg: err.Error(), Err: err}}
}

// fielded says which member of the stage e is about.
func fielded(field string, e *Error) *Error {
	e.Field = field
	return e
}

// recovered turns a panic into an error, so that one run cannot take the process down.
func recovered(err *error) {
	if p := recover(); p != nil {
		e := Errorf(Internal, "this is a bug in the gateway; please report it", "internal error: %v", p)
		e.Err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		*err = e
	}
}

// quoted shows a value in a message, shortened.
func quoted[T ~string | ~[]byte](text T) string {
	return fmt.Sprintf("%q", shortened(string(text), 60))
}

// shortened cuts text at n bytes or a little before, at the border of a character.
func shortened(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + "…"
}

// describe names a JSON value in a message: its type, and the value where it is short.
func describe(raw []byte) string {
	if len(raw) == 0 {
		return "nothing"
	}
	switch raw[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "the string " + shortened(string(raw), 60)
	case 't', 'f', 'n':
		return shortened(string(raw), 60)
	}
	return "the number " + shortened(string(raw), 60)
}
