package stages

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Code is a machine word for a kind of failure. Codes never change their meaning (pipeline.md §6).
type Code string

// The codes of pipeline.md §6.
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
	Own  string // what Msg ends with behind the words of others: it is ours

	Place Place  // the stage
	Label string // what runs there, such as "tool github/get_issue" or "command jq"
	Field string // the member of the stage's JSON that is wrong, such as "args.url" or "concurrency", if one is

	Item    int // the failed item of a for_each, counted from 1; 0 where there is none
	Items   int // how many items there were, when the input had ended
	Started int // how many items had been started when everything stopped, the failed one included
	Done    int // how many items had succeeded when everything stopped
	Failed  int // how many items had failed, this one included; those started and neither done nor failed were cancelled

	// OfRun marks a failure that no item of a for_each is to blame for, such as a limit of the whole run: on_error does
	// not let it pass, whatever its code.
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

	// Fix is what the stage should be instead, as JSON, where that can be derived. Whoever finds the mistake gives the
	// members that change; where the stage is known, it is the whole stage.
	Fix json.RawMessage

	Sample []byte // what the failed stage was given, if known, or the beginning of it
	Cut    bool   // whether there was more than Sample
	Err    error  // the cause, if there is one worth unwrapping

	queue   *queue // the for_each that Item belongs to
	call    bool   // it is the failure of a tool call
	repeats bool   // it refuses to repeat an effect of an earlier run
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
