package gateway

import (
	"fmt"
	"math"
	"strings"

	"github.com/mcsh-dev/mcsh/stages"
)

// PlanText writes what a pipeline would do.
func PlanText(p stages.Plan) string { return planText(p, math.MaxInt) }

// planText is PlanText within n characters.
func planText(p stages.Plan, n int) string {
	lines := planLines(p.Stages, "")
	if p.Most.Calls > 0 {
		lines = append(lines, fmt.Sprintf("In all at most %s and %s.\n", counted(p.Most.Calls, "tool call"), p.Most.Time))
	}
	return listed("The plan is right. Nothing was called.\n", lines, n, "stage")
}

// mostText says what a stage does at most.
func mostText(m stages.Most) string {
	var parts []string
	if m.Items > 0 {
		parts = append(parts, counted(m.Items, "item"))
	}
	if m.Calls > 0 {
		parts = append(parts, counted(m.Calls, "call"))
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
		lines = append(lines, fmt.Sprintf("%sStage %s (%s): %s; %s; expects %s%s\n", indent, s.Place, s.Label, s.Does, effect, s.Expects, mostText(s.Most)))
		lines = append(lines, planLines(s.Stages, indent+"  ")...)
	}
	return lines
}

// PlanErrorText writes everything that is wrong with a plan.
func PlanErrorText(errs []*stages.Error) string {
	return mistakesText(pipelineSubject, pipelineSubject, errs, math.MaxInt)
}

// mistakesText writes why subject was not run at all, within n characters. Mistakes that name no stage are those of whole.
func mistakesText(subject, whole string, errs []*stages.Error, n int) string {
	head := fmt.Sprintf("%s was not run: %d %s. Nothing was called.\n", subject, len(errs), plural(len(errs), "mistake"))
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
	text := fmt.Sprintf("%s: %s\n   %s%s\n", where(subject, e, "is wrong"), e.Code, field, strings.ReplaceAll(e.Msg, "\n", "\n   "))
	if try := tryText(e); try != "" {
		text += "   " + try
	}
	return text
}
