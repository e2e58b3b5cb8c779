package gateway

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
)

// PlanText describes the effect of a checked pipeline.
func PlanText(p stages.Plan) string { return planText(p, math.MaxInt) }

// planText is PlanText within n characters.
func planText(p stages.Plan, n int) string {
	lines := planLines(p.Stages, "")
	if p.Most.Calls > 0 {
		lines = append(lines, fmt.Sprintf("In all at most %s and %s.\n", texts.Count(p.Most.Calls, "tool call"), p.Most.Time))
	}
	return listed("The plan is right. Nothing was called.\n", lines, n, "stage")
}

// mostText describes the bounds of a stage.
func mostText(m stages.Most) string {
	var parts []string
	if m.Items > 0 {
		parts = append(parts, texts.Count(m.Items, "item"))
	}
	if m.Calls > 0 {
		parts = append(parts, texts.Count(m.Calls, "call"))
	}
	switch {
	case m.Time == 0:
	case m.Items > 0:
		parts = append(parts, fmt.Sprintf("%s for all items", m.Time))
	case m.Calls > 0:
		parts = append(parts, fmt.Sprintf("%s a call", m.Time))
	default:
		parts = append(parts, fmt.Sprintf("%s of work", m.Time))
	}
	if len(parts) == 0 {
		return ""
	}
	return "; at most " + strings.Join(parts, ", ")
}

func planLines(list []stages.PlanStage, indent string) []string {
	var lines []string
	for _, s := range list {
		effect := "only reads"
		if s.Changes {
			effect = "MAY CHANGE THINGS: runs only after every stage before it has succeeded"
		}
		lines = append(lines, indent+texts.Plain(fmt.Sprintf("Stage %s (%s): %s; %s; expects %s%s", s.Place, s.Label, s.Does, effect, s.Expects, mostText(s.Most)), false)+"\n")
		lines = append(lines, planLines(s.Stages, indent+"  ")...)
	}
	return lines
}

// WindowText shows a preview in the middle of a pipeline.
func WindowText(w stages.Window) string {
	return fmt.Sprintf("Stage %s sees:\n%s", texts.Plain(string(w.Place), false), Fenced(strings.TrimRight(w.Text, "\n")))
}

// PlanErrorText lists all mistakes of a plan.
func PlanErrorText(errs []*stages.Error) string {
	return mistakesText(pipelineSubject, pipelineSubject, errs, math.MaxInt)
}

// mistakesText lists the mistakes that kept subject from running, within n characters. A mistake without a stage names whole.
func mistakesText(subject, whole string, errs []*stages.Error, n int) string {
	head := fmt.Sprintf("%s was not run: %s. Nothing was called.\n", subject, texts.Count(len(errs), "mistake"))
	entries := make([]string, len(errs))
	for i, e := range errs {
		entries[i] = fmt.Sprintf("%d. %s", i+1, mistakeText(whole, e))
	}
	return listed(head, entries, n, "mistake")
}

func mistakeText(subject string, e *stages.Error) string {
	field := ""
	if e.Field != "" && !strings.Contains(e.Msg, e.Field) {
		field = e.Field + ": "
	}
	text := fmt.Sprintf("%s: %s\n   %s", where(subject, e, "is wrong"), e.Code, strings.TrimPrefix(messageText(texts.Plain(field, false), e), "  "))
	if try := tryText(e); try != "" {
		text += "   " + try
	}
	return text
}

// DryRunText lists the calls that a dry run did not send, with their number and arguments, and says how to continue.
func DryRunText(r stages.Report) string { return dryRunText(r, math.MaxInt) }

// dryRunText is DryRunText within n characters.
func dryRunText(r stages.Report, n int) string {
	d := r.DryRun
	head := fmt.Sprintf("Dry run: stage %s (%s) may change something, so nothing of it was called. ", texts.Plain(string(d.Place), false), texts.Plain(d.Label, false))
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
	who := fmt.Sprintf("Stage %s (%s)", texts.Plain(string(c.Place), false), texts.Plain(c.Label, false))
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
		b.WriteString(Fenced(strings.TrimRight(shorten(valid(args), dryArguments), "\n")))
	}
	if c.Shape != "" {
		b.WriteString("All that it would be called with:\n" + Fenced(strings.TrimRight(c.Shape, "\n")))
	}
	if c.Fails != "" {
		b.WriteString(fencedRest("It would fail: " + c.Fails + "."))
	}
	return b.String()
}

// dryArguments bounds the characters shown of the arguments of one call.
const dryArguments = 2000

// dryRunEnd names the stages that did not run, and says how to make the calls.
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
	if r.Run == "" || !d.Resume {
		return text + "To make the calls, run the pipeline.\n"
	}
	resume := stages.ResumeStage(r.Run)
	ended := slices.DeleteFunc(slices.Clone(r.Stages), func(s stages.StageReport) bool { return s.Place != d.Place })
	if again := readAgain(ended); len(again) > 0 {
		return text + fmt.Sprintf("To make the calls, run %s\nThat reads again: %s.\n", resume, strings.Join(again, ", "))
	}
	return text + fmt.Sprintf("To make the calls without reading again, run %s\n", resume)
}

// readAgain counts the calls of the dry run that the run itself will repeat, by tool.
func readAgain(list []stages.StageReport) (names []string) {
	for _, s := range list {
		if s.Calls > 0 && !s.Changes {
			names = append(names, fmt.Sprintf("%s (%s now)", texts.Plain(s.Label.Called(), false), times(s.Calls)))
		}
		names = append(names, readAgain(s.Stages)...)
	}
	return names
}

// fromStage returns the stage that continues from the output of a stage of a run.
func fromStage(run string, stage int) string {
	return fmt.Sprintf(`{"type": "from", "run": %q, "stage": %d}`, run, stage)
}

func times(n int64) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
