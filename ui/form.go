package ui

import (
	"bytes"
	"context"
	"encoding/json"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/exactjson"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/schemas"
)

// Bounds of a form made from a schema, which is a stranger's text. Values beyond them are written as JSON.
const (
	maxFormSteps = schemas.DefaultSteps / 8
	maxChoices   = 200 // of one field
)

// A Field of a form stands for a value that a schema describes.
type Field struct {
	schemas.Field
	ID, Path string   // Path is a JSON pointer, and the name of the input
	Kind     string   // text, long, number, integer, boolean, choice, list, object or json
	Each     string   // the kind of the elements of a list
	Fields   []*Field // of an object

	Value string // as it was entered
	Wrong string // a mistake in it
}

// formOf returns the fields for the arguments that a schema describes. It reports false where a form would be of no use.
func formOf(schema json.RawMessage) (*Field, bool) {
	said, whole := fieldsOf(schema)
	root := &Field{Field: said, Kind: "object"}
	root.Required = true
	root.add()
	return root, whole && (len(said.Fields) > 0 || !said.Open)
}

// fieldsOf describes the arguments of a schema. No schema takes none.
func fieldsOf(schema json.RawMessage) (schemas.Field, bool) {
	if len(bytes.TrimSpace(schema)) == 0 {
		return schemas.Field{}, true
	}
	return schemas.Fields(schemas.NewSteps(context.Background(), maxFormSteps), schema)
}

// add makes the fields of an object.
func (f *Field) add() {
	for i, said := range f.Field.Fields {
		one := &Field{Field: said, ID: f.ID + "-" + strconv.Itoa(i), Path: f.Path + "/" + escaped(said.Name)}
		one.Kind, one.Each = kindOf(said)
		if one.Kind == "object" {
			one.add()
		}
		f.Fields = append(f.Fields, one)
	}
}

// fieldKinds are the kinds of fields by the types of their values.
var fieldKinds = map[string]string{"string": "text", "number": "number", "integer": "integer", "boolean": "boolean"}

// kindOf returns the kind of a field, and that of the elements of a list.
func kindOf(said schemas.Field) (kind, each string) {
	only := func(types []string) string {
		if len(types) == 1 {
			return types[0]
		}
		return ""
	}
	kind, each = fieldKinds[only(said.Types)], fieldKinds[only(said.Items)]
	switch {
	case len(said.Choices) > 0 && len(said.Choices) <= maxChoices:
		return "choice", ""
	case kind == "text" && said.Long && wordy(said):
		return "long", ""
	case kind != "":
		return kind, ""
	case only(said.Types) == "array" && each != "":
		return "list", each
	case only(said.Types) == "object" && len(said.Fields) > 0:
		return "object", ""
	}
	return "json", ""
}

// wordy reports whether a text may well have several lines.
func wordy(said schemas.Field) bool {
	about := strings.ToLower(said.Title + " " + said.Description)
	return slices.ContainsFunc([]string{"markdown", "content", "body", "multi-line"}, func(word string) bool { return strings.Contains(about, word) })
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

func compact(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return string(raw)
	}
	return b.String()
}

// textOf returns the text in a JSON string, "" for anything else.
func textOf(raw json.RawMessage) (text string) {
	_ = json.Unmarshal(raw, &text) // then it is empty
	return text
}

// enter takes what somebody has entered.
func (f *Field) enter(form url.Values) {
	f.Value = form.Get("a" + f.Path)
	for _, one := range f.Fields {
		one.enter(form)
	}
}

// json returns the value that was entered, nil if there is none. It notes mistakes that no JSON can have.
func (f *Field) json() json.RawMessage {
	text := strings.TrimSpace(f.Value)
	switch {
	case f.Kind == "object":
		return f.object()
	case text == "":
		return nil
	case f.Kind == "text", f.Kind == "long":
		return json.RawMessage(texts.JSON(strings.ReplaceAll(f.Value, "\r\n", "\n")))
	case f.Kind == "list":
		return f.list(text)
	}
	return f.literal(text, f.Kind)
}

// literal returns a value that is written as JSON. Its check says what is wrong with a value of another type.
func (f *Field) literal(text, kind string) json.RawMessage {
	if json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	noun := map[string]string{"number": "a number", "integer": "a whole number", "boolean": "true or false"}[kind]
	if f.Wrong = "This is not valid JSON."; noun != "" {
		f.Wrong = texts.Fit(texts.Quote(text), 60) + " is not " + noun + "."
	}
	return json.RawMessage(texts.JSON(text))
}

// list reads a value from each line.
func (f *Field) list(text string) json.RawMessage {
	list := []json.RawMessage{}
	for line := range strings.SplitSeq(text, "\n") {
		if line = strings.TrimSpace(line); line == "" {
			continue
		} else if f.Each == "text" {
			list = append(list, json.RawMessage(texts.JSON(line)))
		} else {
			list = append(list, f.literal(line, f.Each))
		}
	}
	return json.RawMessage(texts.JSON(list))
}

// object reads the fields of an object. One that may be missing is, if nothing of it was entered.
func (f *Field) object() json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	for _, one := range f.Fields {
		value := one.json()
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

// fill shows values that a tool's arguments have. It reports false if the form reads others then.
func (f *Field) fill(args json.RawMessage) bool {
	f.show(args)
	return reflect.DeepEqual(exactValue(args), exactValue(f.json()))
}

// exactValue reads JSON with its numbers as they are written.
func exactValue(raw json.RawMessage) (value any) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	_ = d.Decode(&value) // nil, then
	return value
}

func (f *Field) show(args json.RawMessage) {
	of, _ := members(args)
	for _, one := range f.Fields {
		value := of[one.Name]
		var list []json.RawMessage
		switch {
		case value == nil:
		case one.Kind == "object":
			one.show(value)
		case one.Kind == "list" && json.Unmarshal(value, &list) == nil:
			lines := make([]string, len(list))
			for i, item := range list {
				lines[i] = plainText(item)
			}
			one.Value = strings.Join(lines, "\n")
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
