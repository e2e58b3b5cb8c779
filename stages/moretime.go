package stages

import (
	"fmt"
	"time"
)

// A clock is a time that somebody was given: how much, of how much at most, and under which names.
type clock struct {
	given time.Duration
	limit time.Duration
	name  string // of the limit, as the operator sets it
	field string // where less was asked for; empty: nowhere
}

// words name the limit that was reached.
func (c clock) words() string {
	if c.given < c.limit && c.field != "" {
		return c.field
	}
	return "limit " + c.name
}

// more says how to get more time: from where less than the limit was asked for, else from the operator.
func (c clock) more() string {
	if c.given < c.limit && c.field != "" {
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
