package gateway

import (
	"fmt"
	"math"
	"strings"

	"github.com/mcsh-dev/mcsh/stages"
)

// DryRunText writes what a dry run has left undone: what would be called, how often and with what, and how to go on.
func DryRunText(r stages.Report) string { return dryRunText(r, math.MaxInt) }

// dryRunText is DryRunText within n characters.
func dryRunText(r stages.Report, n int) string {
	d := r.DryRun
	head := fmt.Sprintf("Dry run: stage %s (%s) may change something, so nothing of it was called. ", d.Place, d.Label)
	switch d.Before {
	case 0:
		head += "No stage stands before it.\n"
	case 1:
		head += "Stage 1 before it only reads and was run.\n"
	default:
		head += fmt.Sprintf("Stages 1 to %d before it only read and were run.\n", d.Before)
	}
	var entries []string
	for _, c := range d.Calls {
		entries = append(entries, dryCallText(c))
	}
	return listed(head, append(entries, dryRunEnd(r)), n, "part")
}

func dryCallText(c stages.DryCall) string {
	var b strings.Builder
	who := fmt.Sprintf("Stage %s (%s)", c.Place, c.Label)
	switch {
	case c.Count == 0:
		return who + " would not be called: nothing came to it.\n"
	case len(c.First) == 0:
		fmt.Fprintf(&b, "%s would be run %s.\n", who, times(c.Count))
	case int64(len(c.First)) == c.Count:
		fmt.Fprintf(&b, "%s would be called %s, with\n", who, times(c.Count))
	default:
		fmt.Fprintf(&b, "%s would be called %s, the first %d times with\n", who, times(c.Count), len(c.First))
	}
	for _, args := range c.First {
		b.WriteString(shorten(valid(args), dryArguments) + "\n")
	}
	if c.Shape != "" {
		b.WriteString("All that it would be called with:\n" + c.Shape)
	}
	if c.Fails != "" {
		fmt.Fprintf(&b, "It would fail: %s.\n", c.Fails)
	}
	return b.String()
}

// dryArguments is how many characters are shown of the arguments of one call.
const dryArguments = 2000

// dryRunEnd says what was not run, and how to make the calls.
func dryRunEnd(r stages.Report) string {
	d, text := r.DryRun, ""
	last := d.Before + 1 + d.After
	switch d.After {
	case 0:
	case 1:
		text = fmt.Sprintf("Stage %d behind it was not run.\n", last)
	default:
		text = fmt.Sprintf("Stages %d to %d behind it were not run.\n", d.Before+2, last)
	}
	if r.Run == "" || d.Kept == 0 {
		return text + "To make the calls, run the pipeline.\n"
	}
	stages := fmt.Sprintf("stage %d", last)
	if last > d.Kept+1 {
		stages = fmt.Sprintf("stages %d to %d", d.Kept+1, last)
	}
	from := fromStage(r.Run, d.Kept)
	if again := readAgain(r.Stages[d.Kept : d.Before+1]); len(again) > 0 {
		return text + fmt.Sprintf("To make the calls, run %s behind %s\nThat reads again: %s.\n", stages, from, strings.Join(again, ", "))
	}
	return text + fmt.Sprintf("To make the calls without reading again, run %s behind %s\n", stages, from)
}

// readAgain names the tools that a dry run has called in stages that the run itself runs again, with their calls.
func readAgain(list []stages.StageReport) (names []string) {
	for _, s := range list {
		if s.Calls > 0 && !s.Changes {
			names = append(names, fmt.Sprintf("%s (%s now)", strings.TrimPrefix(s.Label, "tool "), times(s.Calls)))
		}
		names = append(names, readAgain(s.Stages)...)
	}
	return names
}

// fromStage is the stage that continues from what a stage of a run has produced.
func fromStage(run string, stage int) string {
	return fmt.Sprintf(`{"type": "from", "run": %q, "stage": %d}`, run, stage)
}

func times(n int64) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
