package programs

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

// A Page describes a program to people. All of it but the words of the table's row comes from the grammar.
type Page struct {
	Name    string       `json:"name"`
	Summary string       `json:"summary"`
	Notes   string       `json:"notes,omitempty"`
	Example string       `json:"example,omitempty"` // a stage
	Options []PageOption `json:"options"`
	Number  string       `json:"number,omitempty"` // the option that -5 means
	Inputs  string       `json:"inputs,omitempty"` // a stage that reads a second input
	Always  []string     `json:"always,omitempty"` // given in every stage
	Ignored []string     `json:"ignored,omitempty"`
	Refused []PageOption `json:"refused,omitempty"`
	Differs []string     `json:"differs,omitempty"`
}

// A PageOption is an option of a [Page].
type PageOption struct {
	Spelling string `json:"spelling"`          // all names of it and what it takes: "-n, --lines VALUE"
	Says     string `json:"says,omitempty"`    // which values are allowed, or why it is refused
	Instead  string `json:"instead,omitempty"` // of one that is refused
}

// Page returns the page of the program.
func (p Program) Page() Page {
	page := Page{Name: p.Name, Summary: p.Summary, Notes: p.Notes, Options: []PageOption{}, Always: p.inject, Differs: p.Differs}
	page.Example = p.stage(p.Example)
	if p.number != "" {
		page.Number = "--" + p.number
	}
	if p.atInput != "" && !slices.Contains(p.Example, "@b") {
		var args []string
		_ = json.Unmarshal([]byte(strings.ReplaceAll(strings.ReplaceAll(p.atInput, "%[1]s", "b"), "%s", "b")), &args) // the table's own
		page.Inputs = p.stage(args)
	}
	for o := range p.each {
		if o.as != "" {
			continue
		}
		line := PageOption{Spelling: p.spellings(o)}
		switch o.fate {
		case ignored:
			page.Ignored = append(page.Ignored, line.Spelling)
		case refused:
			line.Says, line.Instead = o.why, o.use
			page.Refused = append(page.Refused, line)
		default:
			line.Says = o.allows()
			page.Options = append(page.Options, line)
		}
	}
	return page
}

// stage is a stage with these arguments, as JSON, and with the input that they name.
func (p Program) stage(args []string) string {
	text := `{"type":"command","command":"` + p.Name + `"`
	if len(args) > 0 {
		text += `,"args":` + texts.JSON(args)
	}
	if slices.Contains(args, "@b") {
		text += `,"inputs":{"b":[STAGES]}`
	}
	return text + "}"
}

// spellings are all names of an option, and what it takes.
func (p *Program) spellings(o *option) string {
	var names []string
	for same := range p.each {
		if same == o || same.as == o.long && same.as != "" {
			names = append(names, same.names()...)
		}
	}
	values := map[takes]string{one: " VALUE", maybe: "[=VALUE]", two: " NAME VALUE"}[o.takes]
	if o.input {
		values = strings.ReplaceAll(values, "VALUE", "@INPUT")
	}
	return strings.Join(names, ", ") + values
}

// allows says which values an option takes: what its check asks for when it is given one that no option takes.
func (o *option) allows() string {
	if o.check == nil {
		return ""
	}
	if wrong := o.check(strings.Repeat("\x00", maxArgBytes)); wrong != nil {
		return wrong.use
	}
	return ""
}

// text is the option in one line.
func (o PageOption) text() string {
	return strings.TrimSuffix(o.Spelling+": "+strings.TrimSuffix(o.Says+"; "+o.Instead, "; "), ": ")
}

// String writes the page as text of about 100 columns.
func (p Page) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", p.Name, p.Summary)
	if p.Notes != "" {
		fmt.Fprintf(&b, "\n%s\n", wrapped(p.Notes, ""))
	}
	fmt.Fprintf(&b, "\nA stage:\n  %s\n", p.Example)
	if p.Inputs != "" {
		fmt.Fprintf(&b, "\nWith a second input:\n  %s\n", p.Inputs)
	}
	title := "Options"
	line := func(text string) {
		if title != "" {
			b.WriteString("\n" + title + ":\n")
		}
		title = ""
		b.WriteString(wrapped(text, "  ") + "\n")
	}
	for _, o := range p.Options {
		line(o.text())
	}
	if p.Number != "" {
		line("-5 means " + p.Number + "=5")
	}
	if len(p.Always) > 0 {
		fmt.Fprintf(&b, "\nAlways given: %s\n", strings.Join(p.Always, " "))
	}
	if title = "Accepted, without effect"; len(p.Ignored) > 0 {
		line(strings.Join(p.Ignored, "; "))
	}
	title = "Refused"
	for _, o := range p.Refused {
		line(o.text())
	}
	title = "Differs"
	for _, d := range p.Differs {
		line("- " + d)
	}
	return b.String()
}

// wrapped breaks a text into lines that begin with indent, those after the first with more.
func wrapped(text, indent string) string {
	const columns = 100
	var b strings.Builder
	width := 0
	for _, word := range strings.Fields(text) {
		n := len([]rune(word))
		switch {
		case width == 0:
			b.WriteString(indent)
			width = len(indent)
		case width+1+n > columns:
			b.WriteString("\n" + indent)
			width = len(indent)
			if indent != "" {
				b.WriteString("  ")
				width += 2
			}
		default:
			b.WriteByte(' ')
			width++
		}
		b.WriteString(word)
		width += n
	}
	return b.String()
}
