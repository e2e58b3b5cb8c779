package programs

import (
	"slices"
	"strconv"
	"time"

	"github.com/mcsh-dev/mcsh/internal/lazy"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
)

// maxSleep bounds what sleep waits. A stage's timeout is usually far below.
const maxSleep = time.Hour

var sleep = Program{
	Name: "sleep", Summary: "wait, then end with empty output",
	Example: []string{"0.5"},
	Notes:   "Units: s, m, h, d. At most one hour, and within the stage's timeout.",
	Ready: func(args []string, _ Inputs) (Runner, Verdict) { // for --version: else a timer is all
		if !slices.Equal(args, []string{"--version"}) {
			return failing(1, "sleep: it is a timer of the worker"), Verdict{}
		}
		return saying("sleep (mcsh)"), Verdict{}
	},
	arrange: func(p *parsed, inv *Invocation) (err *stages.Error) {
		inv.Timer, err = sleepTime(p)
		return err
	},
}

var duration = lazy.Regexp(`^([0-9]{1,9}(?:\.[0-9]{0,9})?|\.[0-9]{1,9})([smhd]?)$`)

func sleepTime(p *parsed) (time.Duration, *stages.Error) {
	units := map[string]time.Duration{"": time.Second, "s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour}
	const hint = `give seconds, such as 0.5, or a number with s, m, h or d`
	ops := p.operands()
	if len(ops) == 0 {
		return 0, refuse(-1, hint, "%s: the time is missing", p.Name)
	}
	total := 0.0
	for _, w := range ops {
		m := duration().FindStringSubmatch(w.value)
		if m == nil {
			return 0, refuse(w.at, hint, "%s: %s is not a time", p.Name, texts.Quote(w.value))
		}
		n, _ := strconv.ParseFloat(m[1], 64) // which takes all that the expression does
		total += n * float64(units[m[2]])
	}
	if total > float64(maxSleep) {
		return 0, refuse(-1, "wait at most one hour", "%s: %s is longer than a pipeline may take", p.Name,
			time.Duration(min(total, float64(365*24*time.Hour))))
	}
	return max(time.Duration(total), 1), nil
}
