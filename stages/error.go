package stages

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

// Code is a machine word for a kind of failure. Codes never change their meaning (docs/pipeline.md, Errors).
type Code string

// The codes of docs/pipeline.md, Errors.
const (
	InvalidPipeline    Code = "INVALID_PIPELINE"
	UnknownServer      Code = "UNKNOWN_SERVER"
	UnknownTool        Code = "UNKNOWN_TOOL"
	UnknownRun         Code = "UNKNOWN_RUN"
	InvalidArguments   Code = "INVALID_ARGUMENTS"
	DisallowedCommand  Code = "DISALLOWED_COMMAND"
	DisallowedArgument Code = "DISALLOWED_ARGUMENT"
	ToolError          Code = "TOOL_ERROR"
	ServerUnavailable  Code = "SERVER_UNAVAILABLE"
	CommandFailed      Code = "COMMAND_FAILED"
	Timeout            Code = "TIMEOUT"
	LimitExceeded      Code = "LIMIT_EXCEEDED"
	SandboxUnavailable Code = "SANDBOX_UNAVAILABLE"
	Denied             Code = "DENIED"
	Cancelled          Code = "CANCELLED"
	Internal           Code = "INTERNAL"
)

// Place says which stage of a pipeline something belongs to, counted from 1 as people do: "3" is the third stage,
// "3.1" the first stage inside of it, "3.users.1" the first stage of its branch "users". Empty: the whole pipeline.
type Place string

// In returns the place p as seen from outside of the stage at outer.
func (p Place) In(outer Place) Place {
	switch {
	case outer == "":
		return p
	case p == "":
		return outer
	}
	return outer + "." + p
}

// An Error is a failure that someone can act on: what went wrong (Code, Msg), where (Place, Label, Field, Item) and
// what to do next (Hint).
type Error struct {
	Code Code
	Msg  string // lower case, no final period; names the wrong value
	Hint string // one concrete next step, or empty

	// Foreign marks a Msg that begins with the words of a tool, a server or a command: they may look like ours.
	Foreign bool

	Said string // the words of a command that Msg ends with, before Own
	Own  string // our end of Msg, behind foreign words

	Place Place  // the stage
	Label string // what runs there, such as "tool github/get_issue" or "command jq"
	Field string // the member of the stage's JSON that is wrong, such as "args.url" or "concurrency", if one is

	Item    int // the failed item of a for_each, counted from 1; 0 where there is none
	Items   int // how many items there were, when the input had ended
	Started int // how many items had been started when everything stopped, the failed one included
	Done    int // how many items had succeeded when everything stopped
	Failed  int // how many items had failed, this one included; those started and neither done nor failed were cancelled

	// OfRun marks a failure that no item of a for_each is to blame for, such as a limit of the whole run: on_error does
	// not tolerate it, with any code.
	OfRun bool

	// Limit is the name of the limit of docs/limits.md that was reached, or empty: another one, or none.
	Limit string

	// Answered marks the answer of a tool that says that it failed. With any other error of a call that was sent,
	// nobody knows whether it has taken effect.
	Answered bool

	// RetryAfter is how long the server asks to wait before another try; 0: it does not say.
	RetryAfter time.Duration

	// Backoff is how long we leave a server alone that did not answer, before its next try.
	Backoff time.Duration

	// Run is the id of the run, where it is kept. With Resume the cause may pass, and the run can be continued as it is;
	// else Continue is the last stage before the failure whose output is there for another plan, 0 if there is none.
	Run      string
	Resume   bool
	Continue int

	// Changed names the tools that may have changed something in this run, with their calls: "demo/add_note: 3".
	Changed []string

	// Fix is what the stage should be instead, as JSON, where that can be derived. The finder of the mistake gives the
	// members that change; where the stage is known, it is the whole stage.
	Fix json.RawMessage

	Sample []byte // what the failed stage was given, if known, or the beginning of it
	Cut    bool   // whether there was more than Sample
	Err    error  // the cause, if there is one worth unwrapping

	each    any  // the [*each] that Item belongs to; its type would link the engine into every program that has errors of this package
	call    bool // it is the failure of a tool call
	repeats bool // it refuses to repeat an effect of an earlier run
}

// Errorf makes an Error with a code, a hint (which may be empty) and a formatted message. A %w operand becomes Err.
func Errorf(code Code, hint, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, Msg: err.Error(), Hint: hint, Err: errors.Unwrap(err)}
}

// OverLimit makes the Error of a limit that was reached, whose name the message ends with.
func OverLimit(limit, hint, format string, args ...any) *Error {
	e := Errorf(LimitExceeded, hint, format+" (limit "+limit+")", args...)
	e.Limit = limit
	return e
}

// Bare returns the error for another process: without its cause, and with at most bareSample of its sample.
func (e *Error) Bare() *Error {
	own := *e
	own.Err, own.each = nil, nil
	if len(own.Sample) > bareSample {
		own.Sample, own.Cut = own.Sample[:bareSample], true
	}
	return &own
}

const bareSample = 1 << 20 // bytes

// adds ends the message with words of ours.
func (e *Error) adds(words string) {
	e.Msg += words
	e.Own += words
}

// Error returns one line: place, label, code and message.
func (e *Error) Error() string {
	var b strings.Builder
	if e.Place != "" {
		fmt.Fprintf(&b, "stage %s", e.Place)
		if e.Label != "" {
			fmt.Fprintf(&b, " (%s)", e.Label)
		}
		if e.Item > 0 {
			fmt.Fprintf(&b, " item %d", e.Item)
		}
		b.WriteString(": ")
	}
	if e.Field != "" && !strings.Contains(e.Msg, e.Field) {
		b.WriteString(e.Field + ": ")
	}
	b.WriteString(e.Msg)
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// top is the number of the stage of the pipeline that a place is in, 0 for the whole pipeline.
func (p Place) top() int {
	first, _, _ := strings.Cut(string(p), ".")
	n, err := strconv.Atoi(first)
	if err != nil {
		return 0
	}
	return n
}

// Numbers returns the place with "*" for the names of branches, which agents write.
func (p Place) Numbers() string {
	parts := strings.Split(string(p), ".")
	for i, part := range parts {
		if strings.Trim(part, "0123456789") != "" {
			parts[i] = "*"
		}
	}
	return strings.Join(parts, ".")
}

// nested reports whether a place is that of a stage within another.
func (p Place) nested() bool { return strings.Contains(string(p), ".") }

// changed returns err with change made to copies of its Errors: their makers may keep and share them.
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

// flatten returns the Errors that err holds, in order. Other errors become Errors.
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
	return []*Error{AsError(err)}
}

// AsError returns the Error that err is or wraps. Any other error becomes INTERNAL.
func AsError(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Code: Internal, Msg: err.Error(), Err: err}
}

// Join makes one error of several, nil of none.
func Join(all []*Error) error {
	errs := make([]error, len(all))
	for i, e := range all {
		errs[i] = e
	}
	return errors.Join(errs...)
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

// BranchPlace is the place of a branch or an input within its stage.
func BranchPlace(name string) Place { return Place(shown(name)) }
