package ui

import (
	"bytes"
	"encoding/json"
	"net/url"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

const (
	maxArgsText = 1 << 20 // bytes of arguments that are written as JSON
	maxIndents  = 1 << 20 // of the lines of a JSON text, together
)

// An argsForm is a form for the arguments that a schema describes, or a text of JSON in its place. The template "arguments" shows it.
type argsForm struct {
	At     string // address of what is called; AT/form switches between form and text
	Form   *Field
	Formed bool   // there is a form
	Mode   string // form or json
	JSON   string // the arguments, in that mode
	Wrong  []string
	Note   string
}

// newArgsForm returns an empty form, or a text with an example of arguments.
func newArgsForm(at string, schema, example json.RawMessage) argsForm {
	a := argsForm{At: at, Mode: "form"}
	if a.Form, a.Formed = formOf(schema); !a.Formed {
		a.write(example)
	}
	return a
}

// write shows arguments as a text.
func (a *argsForm) write(args json.RawMessage) { a.Mode, a.JSON = "json", indented(args) }

// link shows the arguments of a link to a call.
func (a *argsForm) link(args string) {
	if json.Valid([]byte(args)) {
		a.show(json.RawMessage(args))
	}
}

// show shows arguments in the form, or as a text where the form would lose some.
func (a *argsForm) show(args json.RawMessage) {
	if a.Formed && a.Form.fill(args) {
		a.Mode = "form"
		return
	}
	a.write(args)
	if a.Formed {
		a.Wrong = []string{"The form cannot show these arguments as they are."}
	}
}

// turn shows what was entered in the other mode.
func (a *argsForm) turn(entered url.Values) {
	args := a.read(entered)
	switch {
	case args == nil:
	case a.Mode == "form":
		a.write(args)
	default:
		a.show(args)
	}
}

// read returns the arguments that were entered. It returns nil after noting what is wrong.
func (a *argsForm) read(entered url.Values) json.RawMessage {
	if entered.Get("mode") != "json" {
		a.Mode = "form"
		a.Form.enter(entered)
		args := a.Form.json()
		if a.Form.Any() {
			a.Wrong = []string{"Some values cannot be sent."}
			return nil
		}
		return args
	}
	a.Mode, a.JSON = "json", entered.Get("json")
	text := strings.TrimSpace(a.JSON)
	if text == "" {
		return json.RawMessage("{}")
	}
	var v json.RawMessage
	switch err := json.Unmarshal([]byte(text), &v); {
	case len(text) > maxArgsText:
		a.Wrong = []string{"The arguments have more than " + texts.Bytes(maxArgsText) + "."}
	case err != nil:
		a.Wrong = []string{"This is not valid JSON: " + err.Error()}
	default:
		return v
	}
	return nil
}

// refuse shows what a check has found, at the fields where that is possible. It reports whether there are mistakes.
func (a *argsForm) refuse(wrong []string, note string) bool {
	a.Wrong, a.Note = wrong, note
	if a.Mode == "form" {
		if a.Wrong = a.Form.blame(wrong); len(wrong) > len(a.Wrong) {
			a.Wrong = append([]string{"Some values do not fit."}, a.Wrong...)
		}
	}
	return len(wrong) > 0
}

// indented writes JSON in lines, but for one whose brackets stand so deep in each other that spaces would make it huge.
func indented(raw json.RawMessage) string {
	if len(raw) == 0 {
		return "{}"
	}
	var b bytes.Buffer
	if indents(raw) > maxIndents || json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	return b.String()
}

// indents counts the steps by which the lines of some JSON are indented.
func indents(raw []byte) (n int) {
	depth, quoted := 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
			n += depth
		case c == '}' || c == ']':
			depth--
			n += depth
		case c == ',':
			n += depth
		}
	}
	return n
}
