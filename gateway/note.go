package gateway

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mcsh-dev/mcsh/stages"
)

const (
	noteMax    = 2000 // the longest note in characters; a part of a call's budget that is smaller is less
	noteFields = 5    // left-out fields that a note names
	noteWords  = 100  // of what a failure said
)

// NoteText writes in one line what somebody has to know of a run beside its output: pages, failures that were let pass,
// retries, changes, fields left out; and the run's id, where there is reason to continue from it. There is often
// nothing to say.
func NoteText(r stages.Report) string { return noteText(r, 0) }

// noteText is NoteText for an output of which bytes that are no UTF-8 were replaced.
func noteText(r stages.Report, replaced int64) string {
	n := noter{names: map[string]int{}}
	n.count(r.Stages)
	n.stages(r.Stages)
	if replaced > 0 {
		n.say("%d %s of the output that %s not UTF-8 became U+FFFD", replaced, plural(int(replaced), "byte"), choose(replaced == 1, "is", "are"))
	}
	if d := r.DryRun; d != nil && d.Place == "" {
		n.say("dry run: no stage may change anything, so all of them were run")
	}
	if r.Run != "" && (len(r.Windows) > 0 || n.failed || r.DryRun != nil) {
		n.say("run %s", r.Run)
	}
	if len(n.parts) == 0 {
		return ""
	}
	return prefix(strings.Join(n.parts, "; "), noteMax) + "\n"
}

// noter collects the parts of a note.
type noter struct {
	parts  []string
	failed bool           // an item failed and was let pass
	names  map[string]int // how many stages call a tool of that name
}

func (n *noter) say(format string, args ...any) {
	n.parts = append(n.parts, fmt.Sprintf(format, args...))
}

// name is a stage in a note: its tool without the server, with its place where several are called the same, and with a
// "!" where it may change something.
func (n *noter) name(s stages.StageReport) string {
	text := shortName(s.Label)
	if n.names[text] > 1 {
		text = fmt.Sprintf("stage %s %s", s.Place, text)
	}
	if s.Changes {
		text += "!"
	}
	return Plain(text, false)
}

func shortName(label string) string {
	name := strings.TrimPrefix(strings.TrimPrefix(label, "tool "), "command ")
	if strings.HasPrefix(label, "tool ") {
		if _, tool, ok := strings.Cut(name, "/"); ok {
			return tool
		}
	}
	return name
}

func (n *noter) count(list []stages.StageReport) {
	for _, s := range list {
		n.names[shortName(s.Label)]++
		n.count(s.Stages)
	}
}

func (n *noter) stages(list []stages.StageReport) {
	for _, s := range list {
		n.pages(s)
		n.items(s)
		if len(s.LeftOut) > 0 {
			n.say("%s: left out %s, which it does not take", n.name(s), fewNames(s.LeftOut))
		}
		for _, idle := range s.Notes {
			n.say("%s: %s", n.name(s), fewWords(idle))
		}
		n.stages(s.Stages)
	}
}

// pages says what a stage that fetches all pages has fetched.
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
	n.say("%s: %s, %s%s", n.name(s), counted(s.Pages, "page"), counted(s.Fetched, "item"), end)
}

// items says what became of the items of a for_each, where that is not simply a result for each.
func (n *noter) items(s stages.StageReport) {
	wrote := s.Changes && s.OK+s.Failed > 0 && s.Calls > 0
	if s.Failed == 0 && s.Retried == 0 && s.Resumed == 0 && !wrote {
		return
	}
	n.failed = n.failed || s.Failed > 0
	word := "item"
	if strings.HasPrefix(s.Label, "tool ") && s.Shared == 0 {
		word = "call"
	}
	ok := fmt.Sprintf("%d ok", s.OK)
	if s.Retried > 0 {
		ok += fmt.Sprintf(" (%d after a retry)", s.Retried)
	}
	parts := append([]string{counted(s.Items-s.Resumed, word), ok}, failures(s)...)
	if s.Resumed > 0 {
		parts = append(parts, fmt.Sprintf("%d more answered from the earlier run", s.Resumed))
	}
	n.say("%s: %s", n.name(s), strings.Join(parts, ", "))
}

// failures says what the failed items of a for_each said.
func failures(s stages.StageReport) (parts []string) {
	messages := slices.Clone(s.Messages)
	slices.SortStableFunc(messages, func(a, b stages.Messages) int { return cmp.Compare(b.Count, a.Count) })
	told := s.OtherMessages
	for _, m := range messages {
		parts = append(parts, fmt.Sprintf(`%d "%s"`, m.Count, fewWords(m.Text)))
		told += m.Count
	}
	switch {
	case s.OtherMessages > 0:
		parts = append(parts, fmt.Sprintf("and %d more", s.OtherMessages))
	case told < s.Failed:
		parts = append(parts, fmt.Sprintf("%d failed", s.Failed-told))
	}
	return parts
}

// fewWords is what a failure said, on one line and short.
func fewWords(text string) string {
	text = strings.Join(strings.Fields(Plain(text, true)), " ")
	if utf8.RuneCountInString(text) > noteWords {
		text = prefix(text, noteWords-1) + "…"
	}
	return text
}

// fewNames lists the first of many names.
func fewNames(names []string) string {
	rest := ""
	if len(names) > noteFields {
		names, rest = names[:noteFields], fmt.Sprintf(" and %d more", len(names)-noteFields)
	}
	short := make([]string, len(names))
	for i, name := range names {
		short[i] = fewWords(name)
	}
	return strings.Join(short, ", ") + rest
}

func counted(n int64, word string) string { return fmt.Sprintf("%d %s", n, plural(int(n), word)) }

func choose(first bool, a, b string) string {
	if first {
		return a
	}
	return b
}
