package ui

import (
	"bytes"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/exactjson"
	"github.com/mcsh-dev/mcsh/internal/texts"
)

// Bounds of a form made from a schema, which is a stranger's text. What is beyond them is written as JSON.
const (
	maxFormSchema = 512 << 10 // bytes
	maxFields     = 200       // of a form
	maxNesting    = 4         // of objects in objects
	maxChoices    = 200       // of one field
	maxHops       = 8         // of references, one after another
	maxFieldText  = 4000      // bytes of a description
)

// A Field of a form stands for a value that a schema describes.
type Field struct {
	ID, Path    string // Path is a JSON pointer, and the name of the input
	Name, Title string
	Kind        string // text, long, number, integer, boolean, choice, list, object or json
	Type        string // of the value, for people
	Description string
	Default     string
	Required    bool
	Choices     []string // as JSON
	Items       string   // the kind of the items of a list
	Fields      []*Field // of an object

	Value string // as it was entered
	Wrong string // a mistake in it
}

// former makes fields within its bounds.
type former struct {
	root json.RawMessage
	left int
}

// formOf returns the fields for the arguments that a schema describes. It reports false where a form would be of no use.
func formOf(schema json.RawMessage) (*Field, bool) {
	root := &Field{Kind: "object", Required: true}
	if len(schema) > maxFormSchema {
		return root, false
	}
	f := &former{schema, maxFields}
	f.object(root, f.plain(schema), 0)
	return root, len(root.Fields) > 0 && f.left > 0
}

// members returns the members of a JSON object by name, and the names in their order. Anything else has none.
func members(raw json.RawMessage) (of map[string]json.RawMessage, names []string) {
	list, err := exactjson.List(raw)
	if err != nil {
		return nil, nil
	}
	of = make(map[string]json.RawMessage, len(list))
	for _, m := range list {
		if _, twice := of[m.Name]; !twice {
			names = append(names, m.Name)
		}
		of[m.Name] = m.Value
	}
	return of, names
}

// plain follows references within the schema, and leaves out null where it stands beside one other form.
func (f *former) plain(raw json.RawMessage) map[string]json.RawMessage {
	s, _ := members(raw)
	for range maxHops {
		var next json.RawMessage
		if ref := textOf(s["$ref"]); strings.HasPrefix(ref, "#/") {
			next = at(f.root, ref[2:])
		} else if one := onlyForm(s); one != nil {
			next = one
		}
		if next == nil {
			break
		}
		inner, _ := members(next)
		for _, name := range []string{"title", "description", "default"} { // said where it is used
			if s[name] != nil && inner != nil {
				inner[name] = s[name]
			}
		}
		s = inner
	}
	return s
}

// onlyForm returns the one alternative that is not null, nil if there are several or none.
func onlyForm(s map[string]json.RawMessage) (only json.RawMessage) {
	for _, name := range []string{"anyOf", "oneOf", "allOf"} {
		var list []json.RawMessage
		_ = json.Unmarshal(s[name], &list) // anything else is no list
		list = slices.DeleteFunc(list, func(one json.RawMessage) bool {
			m, _ := members(one)
			return textOf(m["type"]) == "null"
		})
		if len(list) == 1 {
			return list[0]
		}
	}
	return nil
}

// at returns the value at a JSON pointer without its first slash.
func at(raw json.RawMessage, pointer string) json.RawMessage {
	for step := range strings.SplitSeq(pointer, "/") {
		of, _ := members(raw)
		if raw = of[strings.NewReplacer("~1", "/", "~0", "~").Replace(step)]; raw == nil {
			return nil
		}
	}
	return raw
}

// textOf returns the text in a JSON string, "" for anything else.
func textOf(raw json.RawMessage) (text string) {
	_ = json.Unmarshal(raw, &text) // then it is empty
	return text
}

// typeOf returns the type of a schema, without null; "" if there are several or none.
func typeOf(s map[string]json.RawMessage) string {
	var list []string
	if json.Unmarshal(s["type"], &list) != nil {
		return textOf(s["type"])
	}
	list = slices.DeleteFunc(list, func(t string) bool { return t == "null" })
	if len(list) == 1 {
		return list[0]
	}
	return ""
}

// object adds the fields of an object.
func (f *former) object(to *Field, s map[string]json.RawMessage, depth int) {
	var required []string
	_ = json.Unmarshal(s["required"], &required) // anything else requires nothing
	properties, names := members(s["properties"])
	for i, name := range names {
		if f.left--; f.left <= 0 {
			return
		}
		one := &Field{
			ID: to.ID + "-" + strconv.Itoa(i), Path: to.Path + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name), Name: name,
			Required: slices.Contains(required, name),
		}
		f.describe(one, f.plain(properties[name]), depth)
		to.Fields = append(to.Fields, one)
	}
	slices.SortStableFunc(to.Fields, func(a, b *Field) int { return order(a) - order(b) })
}

func order(f *Field) int {
	if f.Required {
		return 0
	}
	return 1
}

// kinds of fields by the type of their values.
var fieldKinds = map[string]string{"string": "text", "number": "number", "integer": "integer", "boolean": "boolean"}

// describe fills in what a schema says of a field.
func (f *former) describe(to *Field, s map[string]json.RawMessage, depth int) {
	to.Title, to.Description = texts.Fit(textOf(s["title"]), 200), texts.Fit(textOf(s["description"]), maxFieldText)
	if d := s["default"]; d != nil {
		to.Default = texts.Fit(compact(d), 200)
	}
	to.Type = typeOf(s)
	var choices []json.RawMessage
	if json.Unmarshal(s["enum"], &choices); s["const"] != nil {
		choices = []json.RawMessage{s["const"]}
	}
	items := f.plain(s["items"])
	switch kind := fieldKinds[to.Type]; {
	case len(choices) > 0 && len(choices) <= maxChoices:
		to.Kind = "choice"
		if to.Type == "" {
			to.Type = "one of"
		}
		for _, one := range choices {
			to.Choices = append(to.Choices, compact(one))
		}
	case kind != "":
		if to.Kind = kind; longText(s) {
			to.Kind = "long"
		}
	case to.Type == "array" && fieldKinds[typeOf(items)] != "":
		to.Kind, to.Items, to.Type = "list", fieldKinds[typeOf(items)], "array of "+typeOf(items)
	case to.Type == "object" && s["properties"] != nil && depth < maxNesting:
		to.Kind = "object"
		f.object(to, s, depth+1)
	default:
		to.Kind = "json"
	}
	if to.Type == "" {
		to.Type = "any"
	}
}

// longText reports whether a text may have several lines.
func longText(s map[string]json.RawMessage) bool {
	n, err := strconv.Atoi(string(s["maxLength"]))
	name := strings.ToLower(textOf(s["title"]) + " " + textOf(s["description"]))
	return typeOf(s) == "string" && s["format"] == nil && (err != nil || n > 200) && (strings.Contains(name, "markdown") || strings.Contains(name, "content") || strings.Contains(name, "body") || strings.Contains(name, "multi-line"))
}

func compact(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return string(raw)
	}
	return b.String()
}

// read returns the value that was entered, nil if there is none. It notes mistakes that no JSON can have.
func (f *Field) read(form url.Values) json.RawMessage {
	if f.Kind == "object" {
		return f.readObject(form)
	}
	f.Value = form.Get("a" + f.Path)
	text := strings.TrimSpace(f.Value)
	switch {
	case text == "":
		return nil
	case f.Kind == "text", f.Kind == "long":
		return json.RawMessage(texts.JSON(strings.ReplaceAll(f.Value, "\r\n", "\n")))
	case f.Kind == "list":
		return f.readList(text)
	}
	return f.literal(text)
}

// literal returns a value that is written as JSON. Its check says what is wrong with a value of another type.
func (f *Field) literal(text string) json.RawMessage {
	if json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	if f.Kind == "json" {
		f.Wrong = "This is not valid JSON."
	} else {
		f.Wrong = texts.Fit(texts.Quote(text), 60) + " is not a " + fitting(f.Kind, f.Items) + "."
	}
	return json.RawMessage(texts.JSON(text))
}

func fitting(kind, items string) string {
	if kind == "list" {
		kind = items
	}
	return map[string]string{"number": "number", "integer": "whole number", "boolean": "true or false"}[kind]
}

// readList reads a value from each line.
func (f *Field) readList(text string) json.RawMessage {
	list := []json.RawMessage{}
	for line := range strings.SplitSeq(text, "\n") {
		if line = strings.TrimSpace(line); line == "" {
			continue
		} else if f.Items == "text" {
			list = append(list, json.RawMessage(texts.JSON(line)))
		} else {
			list = append(list, f.literal(line))
		}
	}
	return json.RawMessage(texts.JSON(list))
}

// readObject reads the fields of an object. One that may be missing is, if nothing of it was entered.
func (f *Field) readObject(form url.Values) json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	for _, one := range f.Fields {
		value := one.read(form)
		if value == nil {
			continue
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		b.WriteString(texts.JSON(one.Name))
		b.WriteByte(':')
		b.Write(value)
	}
	if b.Len() == 1 && !f.Required {
		return nil
	}
	b.WriteByte('}')
	return b.Bytes()
}

// fill shows values that a tool's arguments have.
func (f *Field) fill(args json.RawMessage) {
	of, _ := members(args)
	for _, one := range f.Fields {
		value := of[one.Name]
		var list []json.RawMessage
		switch {
		case value == nil:
		case one.Kind == "object":
			one.fill(value)
		case one.Kind == "list" && json.Unmarshal(value, &list) == nil:
			for _, item := range list {
				one.Value += plainText(item) + "\n"
			}
		case one.Kind == "text", one.Kind == "long":
			one.Value = plainText(value)
		default:
			one.Value = compact(value)
		}
	}
}

func plainText(raw json.RawMessage) string {
	if text := textOf(raw); text != "" {
		return text
	}
	return compact(raw)
}

// blame puts the sentences of a check at the fields that they are about, and returns the others.
func (f *Field) blame(sentences []string) (rest []string) {
	for _, said := range sentences {
		if one := f.about(said, ""); one != nil && one != f {
			one.Wrong = strings.TrimSpace(one.Wrong + " " + said)
			continue
		}
		rest = append(rest, said)
	}
	return rest
}

// about returns the innermost field whose place a sentence begins with, or names as missing.
func (f *Field) about(said, place string) *Field {
	for _, one := range f.Fields {
		at := one.Name
		if place != "" {
			at = place + "." + at
		}
		rest, missing := strings.CutPrefix(said, "missing field "+texts.JSON(at))
		if !missing {
			rest = strings.TrimPrefix(said, at)
		}
		switch {
		case missing && (rest == "" || rest[0] == ','), rest != said && strings.HasPrefix(rest, " "), rest != said && strings.HasPrefix(rest, "["):
			return one
		case one.Kind == "object":
			if inner := one.about(said, at); inner != nil {
				return inner
			}
		}
	}
	return nil
}

// Any reports whether a field has a mistake.
func (f *Field) Any() bool {
	return f.Wrong != "" || slices.ContainsFunc(f.Fields, (*Field).Any)
}
