package shape

import (
	"slices"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

// MaxLines is how many patterns of lines a [Result] keeps.
const MaxLines = 3

// A Result describes the results of one tool. The zero value describes nothing.
type Result struct {
	Value *Shape   `json:"value,omitempty"` // of the JSON; nil: none was seen
	Many  bool     `json:"many,omitempty"`  // some results were several JSON values, one after another
	Text  bool     `json:"text,omitempty"`  // some results were text
	Lines []string `json:"lines,omitempty"` // patterns of the lines of text, see [Pattern]
	Empty bool     `json:"empty,omitempty"` // some results were empty
	Calls int      `json:"calls,omitempty"` // results that were looked at; 0: it comes from the tool's output schema
}

// Known reports whether a result describes anything.
func (r *Result) Known() bool { return r != nil && (r.Value != nil || r.Text || r.Empty) }

// MergeResults returns a description of the results of both. Either may be nil; neither is changed.
func MergeResults(a, b *Result) *Result {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	out := &Result{
		Value: Bounded(Merge(a.Value, b.Value)), Many: a.Many || b.Many, Text: a.Text || b.Text, Empty: a.Empty || b.Empty,
		Lines: slices.Clone(a.Lines), Calls: a.Calls + b.Calls,
	}
	for _, line := range b.Lines {
		out.Lines = AddLine(out.Lines, line)
	}
	return out
}

// Same reports whether two results are equal but for the number of calls.
func Same(a, b *Result) bool {
	if a == nil || b == nil {
		return a == b
	}
	x, y := *a, *b
	x.Calls, y.Calls = 0, 0
	return texts.JSON(x) == texts.JSON(y)
}

// Writable returns the part of a result that may be written to disk: names of fields of which every word is known. All
// others may be data, such as the ids, names and addresses that are keys of maps; their values are put together.
func (r *Result) Writable(known func(word string) bool) *Result {
	out := *r
	out.Value = Bounded(writable(r.Value, known))
	out.Lines = slices.DeleteFunc(slices.Clone(r.Lines), func(line string) bool { return !isPattern(line, known) })
	out.Lines = out.Lines[:min(len(out.Lines), MaxLines)]
	out.Calls = max(0, r.Calls)
	return &out
}

func writable(s *Shape, known func(string) bool) *Shape {
	if s == nil {
		return nil
	}
	out := &Shape{Kinds: s.Kinds, Cut: s.Cut, Items: writable(s.Items, known), Rest: writable(s.Rest, known)}
	for _, f := range s.Fields {
		below := writable(f.Shape, known)
		if Named(f.Name, known) {
			out.Fields = append(out.Fields, Field{f.Name, f.Optional, below})
		} else {
			out.Rest = Merge(out.Rest, below)
		}
	}
	return out
}

// String is all that is known, on one line.
func (r *Result) String() string { return r.Brief(1 << 20) }

// Brief writes a result on one line of at most n characters, as far as that is possible in a few dozen:
//
//	{items: [{number: int, labels: [str], email?: str, …}], next_page: int|null}
//	text: <time> INFO|ERROR […] …
//
// "?" marks a field that some results lack, "…" what is left out, "<key>" keys that are data.
func (r *Result) Brief(n int) string {
	if !r.Known() {
		return ""
	}
	var all []string
	if r.Value != nil {
		text := r.Value.Brief(n - len(" per line or text"))
		if r.Many {
			text += " per line"
		}
		all = append(all, text)
	}
	if r.Text {
		all = append(all, r.textBrief(n-runes(strings.Join(all, " or "))-len(" or ")))
	}
	if r.Empty && len(all) == 0 {
		return "nothing"
	}
	return strings.Join(all, " or ")
}

// textBrief writes as many patterns as fit.
func (r *Result) textBrief(n int) string {
	text := "text"
	for i, line := range r.Lines {
		sign := " / "
		if i == 0 {
			sign = ": "
		}
		if runes(text+sign+line) > n {
			break
		}
		text += sign + line
	}
	return text
}
