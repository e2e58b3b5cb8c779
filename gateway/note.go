package gateway

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
)

const (
	noteMax    = 2000 // characters of a note
	noteFields = 5    // left-out fields that a note names
	noteWords  = 160  // characters of a failure's message
)

// NoteText returns one line about a run for the reader of its output: pages, ignored failures, retries, calls with effects,
// unused input, replaced bytes of the output, and the id of a kept run. It may be empty.
func NoteText(r stages.Report, replaced int64) string { return noteText(r, "", replaced) }

// noteText is NoteText with the name of the run in logs and the number of replaced bytes of the output.
func noteText(r stages.Report, request string, replaced int64) string {
	n := noter{names: map[string]int{}}
	n.count(r.Stages)
	n.stages(r.Stages, true)
	if replaced > 0 {
		n.say("%s of the output that %s not UTF-8 became U+FFFD", texts.Count(replaced, "byte"), choose(replaced == 1, "is", "are"))
	}
	if d := r.DryRun; d != nil && d.Place == "" {
		n.say("dry run: no stage may change anything, so all of them were run")
	}
	switch {
	case r.Run != "" && request != "":
		n.say("run %s (%s in logs)", r.Run, request)
	case r.Run != "":
		n.say("run %s", r.Run)
	}
	if len(n.parts) == 0 {
		return ""
	}
	return prefix(strings.Join(n.parts, "; "), noteMax) + "\n"
}

// noter collects the parts of a note.
type noter struct {
	parts []string
	names map[string]int // stages by the name of their tool
}

func (n *noter) say(format string, args ...any) {
	n.parts = append(n.parts, fmt.Sprintf(format, args...))
}

// name returns the name of a stage in a note: its tool without the server, with the place if several stages have that name,
// and with "!" if it may have effects.
func (n *noter) name(s stages.StageReport) string {
	text := shortName(s.Label)
	if n.names[text] > 1 {
		text = fmt.Sprintf("stage %s %s", s.Place, text)
	}
	if s.Changes {
		text += "!"
	}
	return texts.Plain(text, false)
}

func shortName(label stages.Label) string {
	if kind := stages.KindNamed(label.Kind); kind != nil && kind.Calls {
		return label.Name
	}
	return label.String()
}

func (n *noter) count(list []stages.StageReport) {
	for _, s := range list {
		n.names[shortName(s.Label)]++
		n.count(s.Stages)
	}
}

// stages adds the parts about stages. ok: nothing around them has failed.
func (n *noter) stages(list []stages.StageReport, ok bool) {
	for _, s := range list {
		n.pages(s)
		n.items(s)
		n.change(s, ok)
		if s.Untaken {
			n.say("%s: no field of its input is one of its arguments (%s)", n.name(s), fewNames(s.LeftOut))
		}
		for _, idle := range s.Notes {
			n.say("%s: %s", n.name(s), fewWords(idle))
		}
		n.stages(s.Stages, ok && s.Failed == 0)
	}
}

// change counts the calls with effects of a stage that runs once or in a for_each.
func (n *noter) change(s stages.StageReport, ok bool) {
	if !s.Changes || s.Items > 0 || s.Calls == 0 || len(s.Stages) > 0 {
		return
	}
	n.say("%s: %s%s", strings.TrimSuffix(n.name(s), "!"), texts.Count(s.Calls, "call"), outcome(s, ok))
}

// outcome describes the outcome of a stage's calls. ok: nothing around it has failed.
func outcome(s stages.StageReport, ok bool) string {
	switch {
	case s.Refused+s.Unknown == 0:
		return choose(ok, ", ok", "")
	case s.Refused == s.Calls:
		return ", failed"
	case s.Unknown == s.Calls:
		return ", outcome unknown"
	}
	end := ""
	if s.Refused > 0 {
		end = fmt.Sprintf(", %d failed", s.Refused)
	}
	if s.Unknown > 0 {
		end += fmt.Sprintf(", outcome of %d unknown", s.Unknown)
	}
	return end
}

// pages counts the pages of a stage.
func (n *noter) pages(s stages.StageReport) {
	if s.Pages == 0 && !s.More {
		return
	}
	end := ""
	switch {
	case s.More:
		end = ", and there are more (max reached)"
	case s.Complete:
		end = ", complete"
	}
	n.say("%s: %s, %s%s", n.name(s), texts.Count(s.Pages, "page"), texts.Count(s.Fetched, "item"), end)
}

// items counts the outcomes of a for_each, unless each item simply has a result.
func (n *noter) items(s stages.StageReport) {
	wrote := s.Changes && s.OK+s.Failed > 0 && s.Calls > 0
	switch {
	case s.Failed == 0 && s.Retried == 0 && s.Resumed == 0 && !wrote:
		return
	case s.Resumed > 0 && s.Resumed == s.Items:
		n.say("%s: %s, all answered from the earlier run", n.name(s), texts.Count(s.Resumed, "item"))
		return
	}
	word := "item"
	if s.Label.Server != "" && s.Calls == s.Items-s.Resumed {
		word = "call"
	}
	ok := fmt.Sprintf("%d ok", s.OK)
	if s.Retried > 0 {
		ok += fmt.Sprintf(" (%d after a retry)", s.Retried)
	}
	parts := []string{texts.Count(s.Items-s.Resumed, word)}
	if s.Label.Server != "" && s.Calls == 0 && s.Items > s.Resumed {
		parts = append(parts, "none called")
	}
	parts = append(append(parts, ok), failures(s)...)
	if s.Resumed > 0 {
		parts = append(parts, fmt.Sprintf("%d more answered from the earlier run", s.Resumed))
	}
	n.say("%s: %s", n.name(s), strings.Join(parts, ", "))
}

// failures counts the failed items of a for_each by message.
func failures(s stages.StageReport) (parts []string) {
	messages := slices.Clone(s.Messages)
	slices.SortStableFunc(messages, func(a, b stages.FailureGroup) int { return cmp.Compare(b.Count, a.Count) })
	named := s.OtherMessages
	for _, m := range messages {
		parts = append(parts, fmt.Sprintf("%d %s", m.Count, quoted(m.Text)))
		named += m.Count
	}
	switch {
	case s.OtherMessages > 0:
		parts = append(parts, fmt.Sprintf("and %d more", s.OtherMessages))
	case named < s.Failed:
		parts = append(parts, fmt.Sprintf("%d failed", s.Failed-named))
	}
	return parts
}

// fewWords returns a message on one short line.
func fewWords(text string) string {
	return texts.Fit(strings.Join(strings.Fields(texts.Plain(text, true)), " "), noteWords)
}

// quoted returns words of a server or of data on one short line. Their own quotes are escaped, so that they cannot end the
// quotation and go on as words of ours.
func quoted(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "\uFFFD")), " ")
	for n := noteWords; ; n-- {
		if q := strconv.Quote(texts.Fit(text, n)); utf8.RuneCountInString(q) <= noteWords+len(`""`) {
			return q
		}
	}
}

// fewNames lists the first of many names.
func fewNames(names []string) string {
	rest := ""
	if len(names) > noteFields {
		names, rest = names[:noteFields], fmt.Sprintf(" and %d more", len(names)-noteFields)
	}
	short := make([]string, len(names))
	for i, name := range names {
		short[i] = quoted(name)
	}
	return strings.Join(short, ", ") + rest
}

func choose(first bool, a, b string) string {
	if first {
		return a
	}
	return b
}
