package schemas

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

// The length of a signature in characters, without the name.
const (
	maxSignature = 400
	maxBrief     = 180
	maxLong      = 360
)

// shownPattern is the longest pattern that a signature shows, in bytes.
const shownPattern = 60

// maxTypes bounds the types read for one signature: references can make them endless.
const maxTypes = 1000

// briefTypes are short names of types in JSON Schema, as in shapes of results.
var briefTypes = map[string]string{"string": "str", "integer": "int", "number": "num", "boolean": "bool"}

// signature writes a tool's name and parameters in one line, required ones first:
//
//	get_issue(owner: string, number: integer ≥ 1, state?: "open"|"closed" = "open", labels?: [string])
//
// To fit into w.most it omits limits, then defaults and shapes of objects, then the types of optional parameters, and at
// last it counts the parameters that do not fit.
func (w signer) signature(name string, o *outliner) string {
	params := parameters(o)
	if len(params) == 0 && !o.in.Closed && w.get(w.root, "type") == nil {
		return unread(name)
	}
	for detail := w.first; ; detail++ {
		if line, fits := w.line(params, detail); fits || detail == names {
			return name + "(" + line + ")"
		}
	}
}

// unread is the signature of a tool with unknown parameters.
func unread(name string) string { return name + "(...)" }

// Levels of detail of a signature.
const (
	limited = iota // types with their limits, formats and the fields of objects; defaults
	full           // types with the fields of objects; defaults
	types          // types
	names          // types of required parameters
)

type param struct {
	name     string
	required bool
	schema   *node
}

// A signer writes the types of a signature, at most left of them.
type signer struct {
	*document
	left  int
	most  int               // characters of all parameters together
	first int               // the most detail
	words map[string]string // names of types that differ from those of JSON Schema
}

// parameters returns the declared parameters, required ones first.
func parameters(o *outliner) []param {
	params := make([]param, 0, len(o.in.Properties))
	for _, required := range []bool{true, false} {
		for _, name := range o.in.Properties {
			if o.required[name] == required {
				params = append(params, param{name, required, o.declared[name]})
			}
		}
		for _, name := range o.in.Required {
			if required && o.declared[name] == nil {
				params = append(params, param{name: name, required: true})
			}
		}
	}
	return params
}

// line writes the parameters, and reports whether they fit. It counts those that do not.
func (w *signer) line(params []param, detail int) (line string, fits bool) {
	for i, p := range params {
		text := w.param(p, detail)
		if detail == names {
			text = texts.Fit(text, w.most)
		}
		if i > 0 && utf8.RuneCountInString(line+text) > w.most {
			return line + ", ... " + strconv.Itoa(len(params)-i) + " more", false
		}
		if i > 0 {
			line += ", "
		}
		line += text
	}
	return line, utf8.RuneCountInString(line) <= w.most
}

func (w *signer) param(p param, detail int) string {
	text := texts.Fit(p.name, maxShown)
	if !p.required {
		text += "?"
		if detail == names {
			return text
		}
	}
	kind := w.typeOf(p.schema, detail, 0)
	value := w.get(p.schema, "default")
	if detail > full || value == nil || string(value.raw) == "null" {
		return text + ": " + kind
	}
	if w.words == nil || !slices.Contains([]string{"str", "int", "num", "bool"}, kind) {
		text += ": " + kind
	}
	return text + " = " + texts.Fit(compact(value.raw), 30) // in brief, the default shows the type
}

// typeOf writes the type that a schema describes.
func (w *signer) typeOf(s *node, detail, depth int) string {
	if w.left--; w.left < 0 || depth > 4 || !w.steps.Take(1) {
		return "any"
	}
	if ref := w.text(s, "$ref"); ref != "" {
		return w.typeOf(w.resolve(ref), detail, depth+1)
	}
	if value := w.get(s, "const"); value != nil {
		return texts.Fit(compact(value.raw), 30)
	}
	if values := w.get(s, "enum").array(); len(values) > 0 {
		return w.enumeration(values)
	}
	if options := w.options(s); len(options) > 0 {
		return w.union(options, detail, depth)
	}
	if parts := w.get(s, "allOf").array(); len(parts) > 0 && w.get(s, "type") == nil {
		return w.typeOf(parts[0].value, detail, depth+1)
	}
	var all []string
	for _, name := range w.types(s) {
		all = append(all, w.named(name, s, detail, depth))
	}
	if len(all) == 0 && w.get(s, "properties") != nil {
		all = append(all, w.named("object", s, detail, depth))
	}
	return either(all)
}

// named writes one type by its name in JSON Schema.
func (w *signer) named(name string, s *node, detail, depth int) string {
	switch name {
	case "array":
		items := w.typeOf(w.get(s, "items"), detail, depth+1)
		return "[" + items + "]"
	case "object":
		fields := w.get(s, "properties").object()
		if detail > full || len(fields) == 0 || len(fields) > 8 || depth > 2 {
			return "object"
		}
		required := w.strings(w.get(s, "required"))
		parts := make([]string, len(fields))
		for i, m := range fields {
			parts[i] = texts.Fit(m.name, maxShown)
			if !slices.Contains(required, m.name) {
				parts[i] += "?"
			}
			parts[i] += ": " + w.typeOf(m.value, detail, depth+1)
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	word := texts.Fit(name, maxShown)
	if short, ok := w.words[name]; ok {
		word = short
	}
	if detail == limited {
		word += w.limits(name, s)
	}
	return word
}

// limits writes the limits of a type: " 1..50", " ≤ 50", " > 0", " /^[a-z]+$/", " date-time".
func (w *signer) limits(name string, s *node) string {
	if name == "string" {
		if pattern := w.text(s, "pattern"); pattern != "" && len(pattern) <= shownPattern {
			return " /" + pattern + "/"
		}
		if format := w.text(s, "format"); format != "" {
			return " " + texts.Fit(format, maxShown)
		}
	}
	if name != "integer" && name != "number" {
		return ""
	}
	least, most := w.bound(s, "minimum"), w.bound(s, "maximum")
	if least != "" && most != "" {
		return " " + least + ".." + most
	}
	for _, b := range []struct{ sign, value string }{
		{"≥", least}, {"≤", most}, {">", w.bound(s, "exclusiveMinimum")}, {"<", w.bound(s, "exclusiveMaximum")},
	} {
		if b.value != "" {
			return " " + b.sign + " " + b.value
		}
	}
	return ""
}

// bound returns the number of a keyword, but "" for the bounds of a machine type such as int32.
func (w *signer) bound(s *node, keyword string) string {
	value := w.get(s, keyword)
	if value == nil {
		return ""
	}
	if n, err := strconv.ParseFloat(string(value.raw), 64); err != nil || math.Abs(n) >= 1<<31-1 {
		return ""
	}
	return texts.Fit(compact(value.raw), maxShown)
}

func (w *signer) union(options []part, detail, depth int) string {
	var all []string
	for _, option := range options[:min(len(options), 6)] {
		if text := w.typeOf(option.value, detail, depth+1); !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	if len(options) > 6 {
		all = append(all, "...")
	}
	return either(all)
}

// enumeration lists values: ten, or six in brief.
func (w *signer) enumeration(values []part) string {
	most := 10
	if w.words != nil {
		most = 6
	}
	var all []string
	for _, value := range values[:min(len(values), most)] {
		all = append(all, texts.Fit(compact(value.value.raw), 30))
	}
	if len(values) > most {
		all = append(all, "...")
	}
	return strings.Join(all, "|")
}

func either(all []string) string {
	if len(all) == 0 || slices.Contains(all, "any") {
		return "any"
	}
	return strings.Join(all, "|")
}

// compact writes JSON in one line, unless it is long.
func compact(raw json.RawMessage) string {
	if len(raw) > 1000 {
		return "..."
	}
	return inLine(raw)
}
