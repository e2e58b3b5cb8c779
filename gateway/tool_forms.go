package gateway

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/mcsh-dev/mcsh/upstream"
)

const (
	briefLength = 66  // how much of a description a line shows, in bytes
	shapeLength = 300 // how much of what a tool returns a line shows, in characters
	fullShape   = 3_000
	noteLength  = 200 // of what is odd about a server
)

// A toolForm is how much list_all_tools says of a tool.
type toolForm struct {
	write  func(t listedTool, flat bool) string
	shapes bool   // it says what tools return
	end    string // behind the last tool
	gap    string // between the tools of one server and the head of the next
}

// toolForms are the values of the argument detail.
var toolForms = map[string]toolForm{
	"names": {write: nameForm, end: "\n", gap: "\n"},
	"brief": {write: briefForm, shapes: true},
	"full":  {write: fullForm, shapes: true},
}

// separate is what stands before the head of a server.
func (f toolForm) separate(behind bool) string {
	if behind {
		return f.gap
	}
	return ""
}

// serverHead is the line of a server, and what a person would want to know where it is in trouble.
func serverHead(l *upstream.Listing) string {
	var b strings.Builder
	fmt.Fprintf(&b, "## %s", Plain(l.Server, false))
	switch {
	case l.Err != nil:
		fmt.Fprintf(&b, " (%s: %s)", l.Status, Plain(l.Err.Error(), false))
	case l.Status != upstream.StatusReady:
		fmt.Fprintf(&b, " (%s)", l.Status)
	}
	b.WriteString("\n")
	if l.Err != nil && l.Stderr != "" {
		fmt.Fprintf(&b, "last words: %s\n", Plain(lastLine(l.Stderr), false))
	}
	if l.Note != "" {
		fmt.Fprintf(&b, "note: %s\n", Plain(shownUpTo(l.Note, noteLength), false))
	}
	return b.String()
}

// nameForm is a word of a line.
func nameForm(t listedTool, flat bool) string {
	name := markedName(t.tool)
	if flat {
		name = t.server.Server + "/" + name
	}
	return Plain(name, false) + " "
}

func markedName(t *upstream.CatalogTool) string {
	if t.ReadOnly {
		return t.Name
	}
	return t.Name + "!"
}

// briefForm is a line: signature, first sentence, what it returns.
func briefForm(t listedTool, flat bool) string {
	line := mark(t.tool) + brief(t.tool.Description)
	if flat {
		line = t.server.Server + "/" + line
	}
	if text := t.tool.Result.Brief(shapeLength); text != "" {
		line += " -> " + text
	}
	return Plain(line, false) + "\n"
}

// fullForm is all but the schemas.
func fullForm(t listedTool, _ bool) string {
	var b strings.Builder
	writeTool(&b, t.server.Server+"/"+t.tool.Name, t.tool)
	return b.String() + "\n"
}

// mark returns the brief signature of a tool, with ! behind the name of one that may change things.
func mark(t *upstream.CatalogTool) string {
	rest, ok := strings.CutPrefix(t.Brief, t.Name)
	if t.ReadOnly || !ok {
		return t.Brief
	}
	return t.Name + "!" + rest // a name may hold parentheses of its own
}

// brief is the first sentence of a description, cut at a word.
func brief(description string) string {
	text := firstLine(strings.TrimSpace(description))
	text = strings.Join(strings.Fields(text), " ")
	if i := strings.Index(text, ". "); i >= 0 {
		text = text[:i]
	}
	text = strings.TrimRight(text, ".:")
	if text == "" {
		return ""
	}
	if len(text) > briefLength {
		at := strings.LastIndexByte(text[:briefLength], ' ')
		if at < 0 {
			for at = briefLength; !utf8.RuneStart(text[at]); at-- {
			}
		}
		text = strings.TrimRight(text[:at], ",;: ") + " …"
	}
	return " - " + text
}

// firstLine is the part of a text that comes before a line break, unless that is only a few words: then the next line
// belongs to it.
func firstLine(text string) string {
	const few = 20
	for at, c := range text {
		if c == '\n' && at >= few {
			return text[:at]
		}
	}
	return text
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
