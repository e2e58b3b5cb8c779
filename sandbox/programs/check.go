package programs

import (
	"slices"
	"strconv"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/lazy"
)

// A check looks at an option's value and returns nil if it is fine.
type check func(value string) *problem

// A problem says what is wrong with a value and what to write instead.
type problem struct{ why, use string }

// maxCount bounds counts of lines, columns and bytes. It is above what any input of a stage can need, and far below
// where the tools' own arithmetic gets into trouble.
const maxCount = 1_000_000_000_000

// maxWidth bounds widths and paddings: the tools write that many bytes for every line.
const maxWidth = 100_000

func number(low, high int64) check {
	return func(v string) *problem {
		if n, err := strconv.ParseInt(v, 10, 64); err == nil && low <= n && n <= high {
			return nil
		}
		return &problem{"it is not a number that is allowed here", "give a whole number from " +
			strconv.FormatInt(low, 10) + " to " + strconv.FormatInt(high, 10)}
	}
}

// count is a number of lines, bytes or fields.
var count = number(0, maxCount)

var width = number(0, maxWidth)

func oneOf(words ...string) check {
	return func(v string) *problem {
		if slices.Contains(words, v) {
			return nil
		}
		return &problem{"it is not one of the words that are allowed", "use one of " + strings.Join(words, ", ")}
	}
}

// like accepts what the whole of a regular expression matches. It is compiled when it is first needed: every command
// starts as a process of the worker's binary, and those of the table together take longer than the rest of its start.
func like(expr, use string) check {
	re := lazy.Regexp(`\A(?:` + expr + `)\z`)
	return func(v string) *problem {
		if re().MatchString(v) {
			return nil
		}
		return &problem{"it does not have the form that is needed", use}
	}
}

// oneByte accepts a separator of one byte, which is what the tools take.
func oneByte(use string) check {
	return func(v string) *problem {
		switch {
		case len(v) == 1:
			return nil
		case v == `\t`:
			return &problem{"no shell reads it", "write a tab character: \"\\t\" in JSON"}
		}
		return &problem{"the separator must be a single byte", use}
	}
}

// amount is a count with an optional sign and a multiplier, as head and tail take it.
var amount = like(`[-+]?[0-9]{1,12}([bkKMG]|[kKMG]B|[KMG]iB)?`, "give a number such as 10, -10 or 2K")

// ranges is a list of positions, as cut and numfmt take it.
var ranges = like(`[0-9]{0,12}(-[0-9]{0,12})?([, \t][0-9]{0,12}(-[0-9]{0,12})?)*`, "give positions such as 1,3-5,7-")

// atMost accepts text up to a length.
func atMost(n int) check {
	return func(v string) *problem {
		if len(v) <= n {
			return nil
		}
		return &problem{"it is too long", "at most " + strconv.Itoa(n) + " bytes are allowed"}
	}
}
