package stages

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strconv"
	"strings"
	"unicode"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

// top is the number of the stage of the pipeline that a place is in, 0 for the whole pipeline.
func (p Place) top() int {
	first, _, _ := strings.Cut(string(p), ".")
	n, err := strconv.Atoi(first)
	if err != nil {
		return 0
	}
	return n
}

// nested reports whether a place is that of a stage within another.
func (p Place) nested() bool { return strings.Contains(string(p), ".") }

// changed returns err with change made to copies of its Errors: whoever made them may keep them and give them to others.
// Other errors become INTERNAL.
func changed(err error, change func(e *Error)) error {
	var out []error
	for _, e := range flatten(err) {
		c := *e
		change(&c)
		out = append(out, &c)
	}
	return errors.Join(out...)
}

// located sets place and label on every Error in err that has none yet.
func located(err error, place Place, label Label) error {
	return changed(err, func(e *Error) {
		if e.Place == "" {
			e.Place, e.Label = place, label.String()
		}
	})
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
	if e, ok := errors.AsType[*Error](err); ok {
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

// shown is a name as labels have it: not long, and nothing in it that is a command for terminals or cannot be seen.
func shown(name string) string { return visible(texts.Cut(name, 60)) }

// visible escapes the characters of text that do not print.
func visible(text string) string {
	var b strings.Builder
	for _, c := range text {
		if unicode.IsPrint(c) {
			b.WriteRune(c)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRune(c), "'"))
		}
	}
	return b.String()
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
		return "the string " + texts.Cut(string(raw), 60)
	case 't', 'f', 'n':
		return texts.Cut(string(raw), 60)
	}
	return "the number " + texts.Cut(string(raw), 60)
}

// A Label names a stage in messages, reports and logs: "tool github/get_issue", "command jq", "for_each".
type Label struct {
	Kind   string // the type of the stage
	Server string // of a tool
	Name   string // of a tool, a program or a file
}

// Called is the tool as SERVER/NAME, and of other stages the whole label.
func (l Label) Called() string {
	if l.Server == "" {
		return l.String()
	}
	return l.Server + "/" + l.Name
}

// String writes the label for people and agents.
func (l Label) String() string {
	switch {
	case l.Server != "":
		return l.Kind + " " + l.Called()
	case l.Name != "":
		return l.Kind + " " + l.Name
	}
	return l.Kind
}

// MarshalText writes a label in JSON as people read it.
func (l Label) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// labelOf names a stage of a kind, as far as it could be decoded.
func labelOf(kind *Kind, stage Stage) Label {
	var l Label
	if s, ok := stage.(interface{ label() Label }); ok {
		l = s.label()
	}
	l.Kind = kind.Name
	return l
}
