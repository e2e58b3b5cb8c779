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
	Ready:   readySleep,
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
		n, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			return 0, refuse(w.at, hint, "%s: %s is not a time", p.Name, texts.Quote(w.value))
		}
		total += n * float64(units[m[2]])
	}
	if total > float64(maxSleep) {
		return 0, refuse(-1, "wait at most one hour", "%s: %s is longer than a pipeline may take", p.Name,
			time.Duration(min(total, float64(365*24*time.Hour))))
	}
	return max(time.Duration(total), 1), nil
}

// readySleep is sleep for a worker that prefers a process to a timer, and for --version.
func readySleep(args []string, _ Inputs) (Runner, Verdict) {
	p, err := canonical("sleep", nil, args)
	var d time.Duration
	if err == nil && !p.has("version") {
		d, err = sleepTime(p)
	}
	if err != nil {
		return failing(1, err.Msg), Verdict{}
	}
	return func(ctx context.Context, files IO) int {
		if d == 0 {
			fmt.Fprintln(files.Out, "sleep (mcsh)")
			return 0
		}
		select {
		case <-time.After(d):
			return 0
		case <-ctx.Done():
			return 1
		}
	}, Verdict{}
}
