package schemas

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The length of a signature in characters, its name not counted.
const (
	maxSignature = 400
	maxBrief     = 180
)

// maxTypes is how many types one signature looks at: references can make them endless.
const maxTypes = 1000

// Signature writes a tool's name and parameters in one line, required ones first:
//
//	get_issue(owner: string, number: integer, state?: "open"|"closed" = "open", labels?: [string])
//
// Where that would be longer than about 400 characters it says less: no defaults and no shapes of objects, then no
// types of optional parameters, then only how many more there are.
func Signature(name string, schema json.RawMessage) string {
	return signer{most: maxSignature}.signature(name, schema)
}

// BriefSignature is a signature for long lists: of about 180 characters, with short names of types:
//
//	get_issue(owner: str, number: int, page? = 1, labels?: [str])
func BriefSignature(name string, schema json.RawMessage) string {
	return signer{most: maxBrief, words: briefTypes}.signature(name, schema)
}

// briefTypes are short names of the types of JSON Schema, those that shapes of results have too.
var briefTypes = map[string]string{"string": "str", "integer": "int", "number": "num", "boolean": "bool"}

func (w signer) signature(name string, schema json.RawMessage) string {
	if bounded(schema, maxSchema) != nil {
		return name + "(...)"
	}
	o := outline(schema)
	w.root, w.left = schema, visits(maxTypes, schema)
	params := parameters(o)
	if len(params) == 0 && !o.in.Closed && readObject(schema).get("type") == nil {
		return name + "(...)"
	}
	for _, detail := range []int{full, types, names} {
		line := w.line(params, detail)
		if utf8.RuneCountInString(line) <= w.most {
			return name + "(" + line + ")"
		}
	}
	return name + "(" + w.shortest(params) + ")"
}

// How much a signature says of its parameters.
const (
	full  = iota // types with the fields of objects, and defaults
	types        // types
	names        // types of required parameters
)

type param struct {
	name     string
	required bool
	schema   json.RawMessage
}

// A signer writes types; left is how many more.
type signer struct {
	root  json.RawMessage
	left  int
	most  int               // characters of all parameters together
	words map[string]string // names of types, where they are others than those of JSON Schema
}

// parameters returns what a schema declares, required ones first.
func parameters(o outliner) []param {
	var params []param
	for _, name := range o.in.Properties {
		params = append(params, param{name, slices.Contains(o.in.Required, name), o.declared[name]})
	}
	for _, name := range o.in.Required {
		if !slices.Contains(o.in.Properties, name) {
			params = append(params, param{name: name, required: true})
		}
	}
	slices.SortStableFunc(params, func(a, b param) int {
		if a.required == b.required {
			return 0
		}
		if a.required {
			return -1
		}
		return 1
	})
	return params
}

func (w *signer) line(params []param, detail int) string {
	var b strings.Builder
	for i, p := range params {
		if b.Len() > 4*w.most {
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(w.param(p, detail))
	}
	return b.String()
}

func (w *signer) param(p param, detail int) string {
	text := cut(p.name, maxShown)
	if !p.required {
		text += "?"
		if detail == names {
			return text
		}
	}
	kind := w.typeOf(p.schema, detail, 0)
	value := readObject(p.schema).get("default")
	if detail != full || value == nil || string(value) == "null" {
		return text + ": " + kind
	}
	if w.words == nil || !slices.Contains([]string{"str", "int", "num", "bool"}, kind) {
		text += ": " + kind
	}
	return text + " = " + cut(compact(value), 30) // which tells the type, in brief
}

// shortest fits as many parameters as it can, and counts the others.
func (w *signer) shortest(params []param) string {
	var b strings.Builder
	for i, p := range params {
		text := w.param(p, names)
		if i > 0 && utf8.RuneCountInString(b.String()+text) > w.most {
			b.WriteString(", ... " + strconv.Itoa(len(params)-i) + " more")
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(cut(text, w.most))
	}
	return b.String()
}

// typeOf writes the type that a schema describes.
func (w *signer) typeOf(schema json.RawMessage, detail, depth int) string {
	if w.left--; w.left < 0 || depth > 4 {
		return "any"
	}
	s := readObject(schema)
	if ref := s.text("$ref"); ref != "" {
		return w.typeOf(resolve(w.root, ref), detail, depth+1)
	}
	if value := s.get("const"); value != nil {
		return cut(compact(value), 30)
	}
	if values := readArray(s.get("enum")); len(values) > 0 {
		return w.enumeration(values)
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		if options := readArray(s.get(keyword)); len(options) > 0 {
			return w.union(options, detail, depth)
		}
	}
	if parts := readArray(s.get("allOf")); len(parts) > 0 && s.get("type") == nil {
		return w.typeOf(parts[0], detail, depth+1)
	}
	var all []string
	for _, name := range readStrings(s.get("type")) {
		all = append(all, w.named(name, s, detail, depth))
	}
	if len(all) == 0 && s.get("properties") != nil {
		all = append(all, w.named("object", s, detail, depth))
	}
	return either(all)
}

// named writes one type by its name in JSON Schema.
func (w *signer) named(name string, s object, detail, depth int) string {
	switch name {
	case "array":
		items := w.typeOf(s.get("items"), detail, depth+1)
		return "[" + items + "]"
	case "object":
		fields := readObject(s.get("properties"))
		if detail != full || len(fields) == 0 || len(fields) > 8 || depth > 2 {
			return "object"
		}
		required := readStrings(s.get("required"))
		texts := make([]string, len(fields))
		for i, e := range fields {
			texts[i] = cut(e.name, maxShown)
			if !slices.Contains(required, e.name) {
				texts[i] += "?"
			}
			texts[i] += ": " + w.typeOf(e.value, detail, depth+1)
		}
		return "{" + strings.Join(texts, ", ") + "}"
	}
	if word, ok := w.words[name]; ok {
		return word
	}
	return cut(name, maxShown)
}

func (w *signer) union(options []json.RawMessage, detail, depth int) string {
	var all []string
	for _, option := range options[:min(len(options), 6)] {
		if text := w.typeOf(option, detail, depth+1); !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	if len(options) > 6 {
		all = append(all, "...")
	}
	return either(all)
}

// enumeration lists values: ten, or six in brief.
func (w *signer) enumeration(values []json.RawMessage) string {
	most := 10
	if w.words != nil {
		most = 6
	}
	var all []string
	for _, value := range values[:min(len(values), most)] {
		all = append(all, cut(compact(value), 30))
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

// compact writes JSON in one line.
func compact(raw json.RawMessage) string {
	var b bytes.Buffer
	if len(raw) > 1000 || json.Compact(&b, raw) != nil {
		return "..."
	}
	return b.String()
}
