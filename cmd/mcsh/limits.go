package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/stages"
)

// limits are what an operator allows: of a run, and of the process.
type limits struct {
	stages.Limits
	result           int64 // bytes of one tool result
	runs, callerRuns int   // at once
}

// withDefaults returns l with every zero field set to its default.
func (l limits) withDefaults() limits {
	l.Limits = l.Limits.WithDefaults()
	for _, d := range []struct {
		field *int
		value int
	}{{&l.runs, gateway.DefaultRuns}, {&l.callerRuns, gateway.DefaultCallerRuns}} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	if l.result == 0 {
		l.result = defaultResult
	}
	return l
}

// defaultResult is how large one tool result may be.
const defaultResult = 64 << 20

// A limit is a row of the table: the name by which errors call it, and where it is kept.
type limit struct {
	name, meaning string
	at            func(*limits) any // *int: a number, *int64: bytes, *time.Duration
}

// limitTable is the table of what can be set with --limit.
var limitTable = []limit{
	{"stages", "stages of a pipeline, nested ones included", func(l *limits) any { return &l.Stages }},
	{"nesting", "stages within stages", func(l *limits) any { return &l.Nesting }},
	{"items", "items of one for_each", func(l *limits) any { return &l.Items }},
	{"calls", "tool calls of a run", func(l *limits) any { return &l.Calls }},
	{"run", "time of a run, and the most that one may ask for", func(l *limits) any { return &l.Run }},
	{"call", "time of one tool call", func(l *limits) any { return &l.Call }},
	{"command", "time in which one command has work to do", func(l *limits) any { return &l.Command }},
	{"input", "data that one tool call is given", func(l *limits) any { return &l.Input }},
	{"result", "result of one tool call, such as a page", func(l *limits) any { return &l.result }},
	{"item", "one item of a for_each", func(l *limits) any { return &l.Item }},
	{"attempt", "result of one item that may be tried again", func(l *limits) any { return &l.Attempt }},
	{"waiting", "results that wait behind a slower item; then no further item begins", func(l *limits) any { return &l.Waiting }},
	{"shared", "results that a run keeps for equal calls; older ones are forgotten", func(l *limits) any { return &l.Shared }},
	{"held", "memory that a run holds", func(l *limits) any { return &l.Held }},
	{"spool", "data of a run that waits on the disk for a later stage", func(l *limits) any { return &l.Spool }},
	{"runs", "runs of the process at once", func(l *limits) any { return &l.runs }},
	{"caller-runs", "runs of one caller at once: a session, or the client on standard input", func(l *limits) any { return &l.callerRuns }},
}

// add adds the flag that sets limits.
func (l *limits) add(cmd *cobra.Command) {
	names := make([]string, len(limitTable))
	for i, row := range limitTable {
		names[i] = row.name + "="
	}
	cmd.Flags().Var(limitFlag{l}, "limit", "a limit, such as items=5000, call=2m or result=128MiB (repeatable): "+strings.ReplaceAll(strings.Join(names, ", "), "=", ""))
	_ = cmd.RegisterFlagCompletionFunc("limit", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoSpace|cobra.ShellCompDirectiveNoFileComp)) // the flag exists
}

// limitFlag reads NAME=VALUE, several with commas between.
type limitFlag struct{ *limits }

func (f limitFlag) String() string { return "" }
func (f limitFlag) Type() string   { return "NAME=VALUE" }

// Set implements [pflag.Value].
func (f limitFlag) Set(text string) error {
	for part := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(part, "=")
		if !ok {
			return fmt.Errorf("%q is not NAME=VALUE", part)
		}
		if err := f.set(name, value); err != nil {
			return err
		}
	}
	return nil
}

func (l *limits) set(name, value string) error {
	var names []string
	for _, row := range limitTable {
		if row.name == name {
			return assign(row.at(l), name, value)
		}
		names = append(names, row.name)
	}
	return fmt.Errorf("there is no limit %q; they are %s", name, strings.Join(names, ", "))
}

// assign sets a limit, which must be above zero.
func assign(field any, name, value string) error {
	bad := func(form string) error { return fmt.Errorf("limit %s: %q is not %s", name, value, form) }
	switch field := field.(type) {
	case *int:
		n, err := strconv.ParseInt(value, 10, 32)
		if err != nil || n < 1 {
			return bad("a number above zero")
		}
		*field = int(n)
	case *int64:
		var n byteSize
		if n.Set(value) != nil || n < 1 {
			return bad("a size such as 500KiB, 64MiB or 2GiB")
		}
		*field = int64(n)
	case *time.Duration:
		d, err := time.ParseDuration(value)
		if err != nil || d <= 0 {
			return bad("a time such as 90s or 10m")
		}
		*field = d
	}
	return nil
}
