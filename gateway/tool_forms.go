package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
)

const (
	shapeLength = 300 // characters of a tool's result in a line
	fullShape   = 3_000
	noteLength  = 200     // characters of a server's warning
	firstWords  = 1 << 10 // bytes of a description that may hold its first sentences
	firstHead   = 20      // bytes that are no line by themselves
)

// A richness is the detail of a tool's line.
type richness struct {
	long        bool // the signature has the limits of parameters
	description int  // bytes of its description
}

// terse is the least detail.
var terse = richness{description: 66}

// rich has the other levels of detail, the most first.
var rich = []richness{{true, 240}, {true, 140}, {true, 66}}

// richest returns the most detail with which all tools fit n characters.
func richest(tools []ListedTool, flat bool, n int) richness {
	for _, r := range rich {
		left := n
		for _, t := range tools {
			if left -= utf8.RuneCountInString(r.line(t, flat)); left < 0 {
				break
			}
		}
		if left >= 0 {
			return r
		}
	}
	return terse
}

// A toolForm is a way to show tools in list_all_tools.
type toolForm struct {
	write  func(ctx context.Context, t ListedTool, flat bool) string
	shapes bool   // it shows results
	end    string // behind the last tool
	gap    string // between the tools of one server and the head of the next
}

// toolForms are the values of the argument detail.
var toolForms = map[string]toolForm{
	"names": {write: nameForm, end: "\n", gap: "\n"},
	"brief": {write: terse.form, shapes: true},
	"full":  {write: fullForm, shapes: true},
}

// serverHead returns the head of a server, with the first sentence of its instructions.
func serverHead(l *upstream.Listing) string { return plainHead(l) + instructed(l) }

// instructed is the first sentence of what a server says about its use, on a line behind the fence.
func instructed(l *upstream.Listing) string {
	first, _ := firstSentence(belowHeadings(l.Instructions))
	if first = oneLine(first); first == "" {
		return ""
	}
	return Fenced(texts.Plain(shownUpTo(first, instructionLength), false))
}

// belowHeadings returns a text without the Markdown headings before its first words; with nothing else, the last one of them.
func belowHeadings(text string) string {
	text = strings.TrimSpace(text)
	for strings.HasPrefix(text, "#") {
		heading, rest, _ := strings.Cut(text, "\n")
		if rest = strings.TrimSpace(rest); rest == "" {
			return strings.TrimLeft(heading, "# ")
		}
		text = rest
	}
	return text
}

// plainHead returns the line of a server, with its problem if it has one.
func plainHead(l *upstream.Listing) string {
	var b strings.Builder
	fmt.Fprintf(&b, "## %s", texts.Plain(l.Server, false))
	switch {
	case l.Err != nil:
		fmt.Fprintf(&b, " (%s: %s)", l.Status, texts.Plain(l.Err.Error(), false))
	case l.Status != upstream.StatusReady:
		fmt.Fprintf(&b, " (%s)", l.Status)
	case unannotated(l.Tools):
		b.WriteString(" (no annotations: ! is assumed)")
	}
	b.WriteString("\n")
	if e, ok := errors.AsType[*stages.Error](l.Err); ok && l.Status == upstream.StatusStarting {
		fmt.Fprintf(&b, "note: %s\n", texts.Plain(e.Hint, false))
	}
	if l.Err != nil && l.Stderr != "" {
		fmt.Fprintf(&b, "last on standard error: %s\n", texts.Plain(lastLine(l.Stderr), false))
	}
	if l.Note != "" {
		fmt.Fprintf(&b, "note: %s\n", texts.Plain(shownUpTo(l.Note, noteLength), false))
	}
	return b.String()
}

// unannotated reports whether neither the server nor the operator marks any of its tools as read-only.
func unannotated(tools []upstream.CatalogTool) bool {
	return len(tools) > 0 && !slices.ContainsFunc(tools, func(t upstream.CatalogTool) bool { return t.Tool.Annotated })
}

// nameForm shows a tool by its name.
func nameForm(_ context.Context, t ListedTool, flat bool) string {
	name := mark(t.Tool, t.Tool.Name)
	if flat {
		name = t.Server + "/" + name
	}
	return texts.Plain(name, false) + " "
}

func (r richness) form(_ context.Context, t ListedTool, flat bool) string { return r.line(t, flat) }

// line shows the signature of a tool, the first sentences of its description, and its result.
func (r richness) line(t ListedTool, flat bool) string {
	signature := t.Tool.Brief
	if r.long {
		signature = t.Tool.Long
	}
	line := mark(t.Tool, signature) + r.sentences(t.Tool.Description)
	if flat {
		line = t.Server + "/" + line
	}
	if text := t.Tool.Result.Brief(shapeLength); text != "" {
		line += " -> " + text
	}
	return texts.Plain(line, false) + "\n"
}

// fullForm shows all but the schemas.
func fullForm(ctx context.Context, t ListedTool, _ bool) string {
	var b strings.Builder
	writeTool(ctx, &b, t.Server+"/"+t.Tool.Name, t.Tool)
	return b.String() + "\n"
}

// mark puts "!" behind the name of a tool that may have effects.
func mark(t *upstream.CatalogTool, signature string) string {
	rest, ok := strings.CutPrefix(signature, t.Name)
	if t.ReadOnly || !ok {
		return signature
	}
	return t.Name + "!" + rest // a name may contain parentheses
}

// sentences returns the first sentence of a description, cut at a word, and the next ones that fit.
func (r richness) sentences(description string) string {
	first, rest := firstSentence(description)
	text := unpointed(first)
	if text == "" {
		return ""
	}
	if len(text) > r.description {
		at := strings.LastIndexByte(text[:r.description], ' ')
		if at < 0 {
			for at = r.description; !utf8.RuneStart(text[at]); at-- {
			}
		}
		return " - " + strings.TrimRight(text[:at], ",;: ") + " …"
	}
	for r.long && rest != "" {
		first, rest = firstSentence(rest)
		next := unpointed(first)
		if next == "" || len(text)+len(next) > r.description {
			break
		}
		text += ". " + next
	}
	return " - " + text
}

// unpointed returns a sentence on one line without its final point. Points that stand alone, such as jq's .., are a word.
func unpointed(sentence string) string {
	text := oneLine(sentence)
	if at := strings.LastIndexByte(text, ' '); at >= 0 && strings.Trim(text[at+1:], ".") == "" {
		return text
	}
	return strings.TrimRight(text, ".: ")
}

func oneLine(text string) string {
	return strings.Join(strings.Fields(strings.ToValidUTF8(text, "")), " ")
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// firstSentence splits a description after its first sentence or line. A sentence ends with a point behind a word.
func firstSentence(description string) (first, rest string) {
	text := strings.TrimSpace(description)
	line := text[:min(len(text), firstWords)]
	if at := strings.IndexByte(line[min(len(line), firstHead):], '\n'); at >= 0 {
		line = line[:firstHead+at]
	}
	for i := range len(line) - 1 {
		word := strings.TrimRight(line[:i], ".")
		if line[i] == '.' && unicode.IsSpace(rune(line[i+1])) && word != "" && !unicode.IsSpace(rune(word[len(word)-1])) {
			line = line[:i+1]
			break
		}
	}
	return line, text[len(line):]
}
