package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcsh-dev/mcsh/control"
	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
)

// runTable lists runs as columns, with their gateways if there are several.
func runTable(list []knownRun, gateways bool, now time.Time, width int) string {
	rows := [][]string{{"request", "state", "started", "for", "caller", "tools", "items", "calls", "seen", "returned"}}
	for _, r := range list {
		failed := ""
		if r.Failed > 0 {
			failed = fmt.Sprintf(" (%d failed)", r.Failed)
		}
		rows = append(rows, []string{
			r.Request, runStates[r.State], startText(r.Started, now), lastedRun(r.Run, now), texts.Fit(cmp.Or(r.Caller, r.Client), labelWidth/2),
			texts.Fit(cmp.Or(strings.Join(r.Tools, " "), "-"), labelWidth), count(r.Items) + failed, count(r.Calls), size(r.Seen), size(r.Returned),
		})
	}
	if gateways {
		rows[0] = slices.Insert(rows[0], 1, "gateway")
		for i, r := range list {
			rows[i+1] = slices.Insert(rows[i+1], 1, r.Gateway)
		}
	}
	return tableText(rows, len(rows[0])-4, width)
}

// startText says when a run began: the time, and before today the date.
func startText(at, now time.Time) string {
	at, now = at.Local(), now.Local()
	if at.Format(time.DateOnly) == now.Format(time.DateOnly) {
		return at.Format(time.TimeOnly)
	}
	return at.Format("2006-01-02 15:04")
}

// lastedRun says how long a run has taken.
func lastedRun(r control.Run, now time.Time) string {
	if r.Ended != nil {
		now = *r.Ended
	}
	d := max(0, now.Sub(r.Started))
	if d < 10*time.Second {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// runWords describe a run in a line: request, state, time, figures.
func runWords(r control.Run, now time.Time) []string {
	words := []string{r.Request, strings.TrimSpace(runStates[r.State] + " " + r.Code), "for " + lastedRun(r, now), texts.Count(r.Stages, "stage")}
	if r.Items > 0 {
		words = append(words, texts.Count(r.Items, "item"))
	}
	if r.Failed > 0 {
		words[len(words)-1] += fmt.Sprintf(" (%d failed)", r.Failed)
	}
	words = append(words, texts.Count(r.Calls, "call"))
	if r.Returned > 0 || r.Seen > 0 {
		words = append(words, fmt.Sprintf("%s returned of %s seen", size(r.Returned), size(r.Seen)))
	}
	if r.DryRun {
		words = append(words, "(a dry run)")
	}
	return words
}

// runText describes a run: what is known of it, its stages as a tree, windows, failures and error.
func runText(d runDetail, now time.Time, width int) string {
	var b strings.Builder
	line := func(name, text string) {
		if text != "" {
			fmt.Fprintf(&b, "  %-10s %s\n", name, texts.Plain(text, false))
		}
	}
	fmt.Fprintf(&b, "run %s\n", strings.Join(runWords(d.Run, now), "  "))
	line("started", startText(d.Started, now))
	line("caller", d.Caller)
	line("client", strings.Trim(d.Client+" over "+d.Transport, " "))
	line("tool", d.Tool)
	line("gateway", d.Gateway)
	line("run id", d.ID)
	line("continues", d.Continues)
	if line("pipeline", string(d.Plan)); d.Plan == nil && d.PlanSize > 0 {
		line("pipeline", fmt.Sprintf("%s, too long to be kept", texts.Bytes(int64(d.PlanSize))))
	}
	if len(d.Stages) > 0 {
		b.WriteString(stageTable(reportsOf(d.Stages), width))
	}
	failureLines(&b, d.Stages)
	if d.Cut {
		b.WriteString("There was more than is kept of a run.\n")
	}
	for _, w := range d.Windows {
		b.WriteString(gateway.WindowText(stages.Window{Place: stages.Place(w.Place), Text: w.Text}))
	}
	if d.Error != nil {
		b.WriteString(errorText(fmt.Errorf("%s", failureWords(d.Error)), d.Error.Hint))
		if d.Error.Sample != "" {
			b.WriteString("The stage was given:\n" + gateway.Fenced(d.Error.Sample))
		}
	}
	return b.String()
}

// failureLines writes the failures of items, grouped.
func failureLines(b *strings.Builder, list []control.RunStage) {
	for _, s := range list {
		for _, m := range s.Messages {
			fmt.Fprintf(b, "stage %s: %s failed: %s\n", texts.Plain(s.Place, false), texts.Count(m.Count, "item"), texts.Fit(texts.Plain(m.Text, false), 200))
		}
		if s.Others > 0 {
			fmt.Fprintf(b, "stage %s: %s failed with other messages\n", texts.Plain(s.Place, false), texts.Count(s.Others, "item"))
		}
		failureLines(b, s.Stages)
	}
}

// failureWords describe the error of a run.
func failureWords(e *control.RunError) string {
	text := e.Code
	if e.Place != "" {
		text = "stage " + e.Place
		if e.Label != "" {
			text += " (" + e.Label + ")"
		}
		if e.Item > 0 {
			text += fmt.Sprintf(" item %d", e.Item)
		}
		text += ": " + e.Code
	}
	if e.Message != "" {
		text += ": " + e.Message
	}
	return text
}

// reportsOf returns stages in the form of a report.
func reportsOf(list []control.RunStage) []stages.StageReport {
	return convert(list, func(s control.RunStage) stages.StageReport {
		return stages.StageReport{
			Place: stages.Place(s.Place), Label: stages.Label{Kind: s.Label}, Branch: s.Branch, Input: s.Input,
			Items: s.Items, Total: s.Total, OK: s.OK, Failed: s.Failed, Resumed: s.Resumed, Calls: s.Calls, BytesIn: s.BytesIn, BytesOut: s.BytesOut,
			Busy: s.Busy, Tool: stages.ToolProgress{Done: s.ToolDone, Total: s.ToolTotal, Message: s.ToolSays}, Stages: reportsOf(s.Stages),
		}
	})
}
