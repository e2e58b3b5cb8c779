package programs

import (
	"context"
	"fmt"
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
	Applet:  runSleep,
	grammar: sleepGrammar,
}

var sleepGrammar = later(func() grammar {
	return grammar{
		arrange: func(p *parsed, inv *Invocation) *stages.Error {
			d, err := sleepTime(p)
			inv.Timer = d
			return err
		},
		options: shared(),
	}
})

var duration = lazy.Regexp(`^([0-9]{1,9}(?:\.[0-9]{0,9})?|\.[0-9]{1,9})([smhd]?)$`)

func sleepTime(p *parsed) (time.Duration, *stages.Error) {
	units := map[string]time.Duration{"": time.Second, "s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour}
	const hint = `give seconds, such as 0.5, or a number with s, m, h or d`
	ops := p.operands()
	if len(ops) == 0 {
		return 0, refuse(-1, hint, "%s: the time is missing", p.name)
	}
	total := 0.0
	for _, w := range ops {
		m := duration().FindStringSubmatch(w.value)
		if m == nil {
			return 0, refuse(w.at, hint, "%s: %s is not a time", p.name, texts.Quote(w.value))
		}
		n, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			return 0, refuse(w.at, hint, "%s: %s is not a time", p.name, texts.Quote(w.value))
		}
		total += n * float64(units[m[2]])
	}
	if total > float64(maxSleep) {
		return 0, refuse(-1, "wait at most one hour", "%s: %s is longer than a pipeline may take", p.name,
			time.Duration(min(total, float64(365*24*time.Hour))))
	}
	return max(time.Duration(total), 1), nil
}

// runSleep is sleep for a worker that prefers a process to a timer, and for --version.
func runSleep(ctx context.Context, args []string, io IO) int {
	inv, err := (Program{Name: "sleep", grammar: sleepGrammar}).parse(args, Given{})
	if err != nil {
		fmt.Fprintln(io.Err, err.Msg)
		return 1
	}
	if inv.Timer == 0 {
		fmt.Fprintln(io.Out, "sleep (mcsh)")
		return 0
	}
	timer := time.NewTimer(inv.Timer)
	defer timer.Stop()
	select {
	case <-timer.C:
		return 0
	case <-ctx.Done():
		return 1
	}
}
