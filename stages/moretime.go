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
