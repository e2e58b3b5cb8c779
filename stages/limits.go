package stages

import (
	"cmp"
	"fmt"
	"time"
)

// Limits bound what one run may use (docs/pipeline.md, Limits). Reaching one is an error that names it. The zero value of a
// field means its default.
type Limits struct {
	Stages    int           // stages in a plan, nested ones included
	Nesting   int           // stages within stages, counted without the pipeline itself
	Items     int           // items in one for_each
	Calls     int           // tool calls in a run
	Run       time.Duration // the whole run
	Call      time.Duration // one tool call
	Command   time.Duration // one command, see [Command.Timeout]
	Input     int64         // bytes of input that one tool call takes
	Item      int64         // bytes of one item
	Waiting   int64         // bytes of results that wait behind a slower item, per for_each
	Attempt   int64         // bytes of the result of one item that may be tried again
	Shared    int64         // bytes of results kept for equal calls, of one run
	Held      int64         // bytes held in memory by one run
	Spool     int64         // bytes that wait on disk for a later stage, of one run
	SpoolHead int64         // of those, bytes kept in memory before one spool goes to disk
	SpoolDir  string        // where spools go, the system's temporary directory if empty

	Durable bool // Items, Calls and Run are those of a durable run, which have names of their own

	Workspace      int64 // bytes that one run writes to the workspace, copies included
	WorkspaceTotal int64 // bytes that all runs have written to it since it exists, copies included
}

// WithDefaults returns l with every zero field set to its default.
func (l Limits) WithDefaults() Limits {
	l.Stages = cmp.Or(l.Stages, 64)
	l.Nesting = cmp.Or(l.Nesting, 3)
	l.Items = cmp.Or(l.Items, 100_000)
	l.Calls = cmp.Or(l.Calls, 100_000)
	l.Run = cmp.Or(l.Run, 300*time.Second)
	l.Call = cmp.Or(l.Call, 60*time.Second)
	l.Command = cmp.Or(l.Command, 30*time.Second)
	l.Input = cmp.Or(l.Input, 16<<20)
	l.Item = cmp.Or(l.Item, 16<<20)
	l.Waiting = cmp.Or(l.Waiting, 16<<20)
	l.Attempt = cmp.Or(l.Attempt, 16<<20)
	l.Shared = cmp.Or(l.Shared, 16<<20)
	l.Held = cmp.Or(l.Held, 256<<20)
	l.Spool = cmp.Or(l.Spool, 2<<30)
	l.SpoolHead = cmp.Or(l.SpoolHead, 1<<20)
	l.Workspace = cmp.Or(l.Workspace, 100<<20)
	l.WorkspaceTotal = cmp.Or(l.WorkspaceTotal, 1<<30)
	l.Shared = min(l.Shared, l.Held/8) // kept results do not hold back running items, see crowded
	return l
}

// name returns how the operator sets a limit.
func (l Limits) name(limit string) string {
	if l.Durable {
		return "durable-" + limit
	}
	return limit
}

// A clock is a time that somebody was given: how much, of how much at most, and under which names.
type clock struct {
	given time.Duration
	limit time.Duration
	name  string // of the limit, as the operator sets it
	field string // where less was asked for; empty: nowhere
}

// reached is the name of the limit that was reached, or empty where less was asked for.
func (c clock) reached() string {
	if c.given < c.limit && c.field != "" {
		return ""
	}
	return c.name
}

// words name what was reached.
func (c clock) words() string {
	if limit := c.reached(); limit != "" {
		return "limit " + limit
	}
	return c.field
}

// late makes an Error of time that was up.
func (c clock) late(hint, format string, args ...any) *Error {
	e := Errorf(Timeout, hint, format, args...)
	e.Limit = c.reached()
	return e
}

// more says how to get more time: from where less than the limit was asked for, else from the operator.
func (c clock) more() string {
	if c.reached() == "" {
		return fmt.Sprintf("raise %s, at most to %g (limit %s)", c.field, c.limit.Seconds(), c.name)
	}
	return fmt.Sprintf("ask the operator for more time: --limit %s=%s", c.name, shortTime(2*c.limit))
}

// shortTime writes a duration as a person would: 2m, not 2m0s.
func shortTime(d time.Duration) string {
	if d >= time.Second && d%time.Second == 0 && d%time.Minute != 0 {
		return fmt.Sprintf("%ds", d/time.Second)
	}
	if d >= time.Minute && d%time.Minute == 0 {
		return fmt.Sprintf("%dm", d/time.Minute)
	}
	return d.String()
}
