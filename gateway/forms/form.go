// Package forms bounds and checks the forms that servers ask people to fill in. It is pure.
//
// # Decisions
//
//   - A form is written anew from the keywords that the specification allows: flat fields of strings, numbers, booleans and
//     choices. Other keywords are left out; a field of another kind makes the form wrong.
//   - Our own check of the answers covers these few keywords, exactly for integers. A library of JSON Schema would take patterns
//     and references, which are what the specification leaves out.
package forms

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

// Bounds of a form.
const (
	mostBytes   = 64 << 10
	mostFields  = 32
	mostOptions = 200
	mostName    = 100 // bytes of the name of a field, and of an option
)

// A Form is the form of one question.
type Form struct {
	Schema json.RawMessage // for the client

	fields []field
}

// A field is a field of a form.
type field struct {
	name     string
	required bool
	schema   *schema
}

// schema is the schema of a field.
type schema struct {
	Type        string          `json:"type"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	MinLength   *int            `json:"minLength,omitempty"`
	MaxLength   *int            `json:"maxLength,omitempty"`
	Format      string          `json:"format,omitempty"`
	Enum        []string        `json:"enum,omitempty"`
	EnumNames   []string        `json:"enumNames,omitempty"`
	OneOf       []option        `json:"oneOf,omitempty"`
	Minimum     *json.Number    `json:"minimum,omitempty"`
	Maximum     *json.Number    `json:"maximum,omitempty"`
	Items       *choices        `json:"items,omitempty"`
	MinItems    *int            `json:"minItems,omitempty"`
	MaxItems    *int            `json:"maxItems,omitempty"`
	Default     json.RawMessage `json:"default,omitempty"`
}

// choices are what several can be chosen of.
type choices struct {
	Type  string   `json:"type,omitempty"`
	Enum  []string `json:"enum,omitempty"`
	AnyOf []option `json:"anyOf,omitempty"`
}

// option is a choice with a title.
type option struct {
	Const string `json:"const"`
	Title string `json:"title"`
}

// Read reads a form. clean makes a text of the server fit to be shown. A text that names a value must be so already.
func Read(raw json.RawMessage, clean func(string) string) (*Form, error) {
	var top struct {
		Type       string          `json:"type"`
		Properties json.RawMessage `json:"properties"`
		Required   []string        `json:"required"`
	}
	switch {
	case len(raw) > mostBytes:
		return nil, fmt.Errorf("the form has %d bytes, more than %d", len(raw), mostBytes)
	case json.Unmarshal(raw, &top) != nil || top.Type != "object":
		return nil, errors.New("the form is not a schema of an object")
	}
	f := &Form{}
	var wrong error
	rpc.Members(top.Properties, func(name, value []byte) {
		if wrong != nil {
			return
		}
		switch n := rpc.Name(name); {
		case len(f.fields) == mostFields:
			wrong = fmt.Errorf("the form has more than %d fields", mostFields)
		case f.has(n):
			wrong = fmt.Errorf("the form has the field %.100q twice", n)
		default:
			fd := field{name: n, required: slices.Contains(top.Required, n), schema: new(schema)}
			f.fields, wrong = append(f.fields, fd), fd.read(value, clean)
		}
	})
	for _, name := range top.Required {
		if wrong == nil && !f.has(name) {
			wrong = fmt.Errorf("the form requires a field %.100q that it does not have", name)
		}
	}
	if wrong != nil {
		return nil, wrong
	}
	f.Schema = f.encode()
	return f, nil
}

func (f *Form) has(name string) bool {
	return slices.ContainsFunc(f.fields, func(fd field) bool { return fd.name == name })
}

// read reads the schema of a field.
func (f *field) read(raw []byte, clean func(string) string) error {
	if len(f.name) > mostName || clean(f.name) != f.name {
		return fmt.Errorf("the name of a field is too long, or has other characters than a name: %.100q", f.name)
	}
	s := f.schema
	if err := json.Unmarshal(raw, s); err != nil {
		return fmt.Errorf("the schema of the field %q is none of a form: %w", f.name, err)
	}
	rule, known := rules[s.Type]
	if !known {
		return fmt.Errorf("the field %q has the type %.100q; a form has strings, numbers, integers, booleans and arrays of choices", f.name, s.Type)
	}
	s.Title, s.Description = clean(s.Title), clean(s.Description)
	for i := range s.EnumNames {
		s.EnumNames[i] = clean(s.EnumNames[i])
	}
	if s.EnumNames != nil && len(s.EnumNames) != len(s.Enum) {
		return fmt.Errorf("the field %q has %d enumNames for %d choices", f.name, len(s.EnumNames), len(s.Enum))
	}
	for _, list := range [][]option{s.OneOf, s.choices().AnyOf} {
		for i := range list {
			list[i].Title = clean(list[i].Title)
		}
	}
	if err := rule.form(s); err != nil {
		return fmt.Errorf("the field %q: %w", f.name, err)
	}
	for _, o := range slices.Concat(s.options(), s.choices().options()) {
		if len(o) > mostName || clean(o) != o {
			return fmt.Errorf("the field %q has a choice that is too long, or has other characters than a text: %.100q", f.name, o)
		}
	}
	return f.defaults()
}

// defaults checks the default of a field. One that is no answer is an error.
func (f *field) defaults() error {
	if f.schema.Default == nil {
		return nil
	}
	value, err := decode(f.schema.Default)
	if err == nil {
		err = rules[f.schema.Type].answer(f.schema, value)
	}
	if err != nil {
		return fmt.Errorf("the default of the field %q: %w", f.name, err)
	}
	return nil
}

func (s *schema) choices() *choices {
	if s.Items == nil {
		return &choices{}
	}
	return s.Items
}

// options returns the values that a string may have; nil: any.
func (s *schema) options() []string { return (&choices{Enum: s.Enum, AnyOf: s.OneOf}).options() }

func (c *choices) options() []string {
	list := c.Enum
	for _, o := range c.AnyOf {
		list = append(list[:len(list):len(list)], o.Const)
	}
	return list
}

// encode writes the form, with its fields in their order.
func (f *Form) encode() json.RawMessage {
	var b bytes.Buffer
	b.WriteString(`{"type":"object","properties":{`)
	required := []string{}
	for i, fd := range f.fields {
		name, _ := json.Marshal(fd.name)
		value, _ := json.Marshal(fd.schema) // read from JSON
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(append(append(name, ':'), value...))
		if fd.required {
			required = append(required, fd.name)
		}
	}
	b.WriteString(`},"required":`)
	list, _ := json.Marshal(required)
	b.Write(append(list, '}'))
	return b.Bytes()
}

// decode decodes a value with exact numbers.
func decode(raw json.RawMessage) (value any, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return value, d.Decode(&value)
}

// A Field is a field of a form, for a person at a terminal.
type Field struct {
	Name     string
	About    string   // its title and description; empty: it has none
	Type     string   // string, number, integer, boolean or array
	Options  []string // that can be chosen; nil: any value
	Required bool

	schema *schema
}

// Fields returns the fields of a form, in their order.
func (f *Form) Fields() (list []Field) {
	for _, fd := range f.fields {
		about := fd.schema.Title
		if d := fd.schema.Description; d != "" && about != "" {
			about += ": " + d
		} else if d != "" {
			about = d
		}
		options := slices.Concat(fd.schema.options(), fd.schema.choices().options())
		list = append(list, Field{fd.name, about, fd.schema.Type, options, fd.required, fd.schema})
	}
	return list
}

// Parse reads an answer that a person has typed. Several choices have commas between them.
func (f Field) Parse(text string) (json.RawMessage, error) {
	var value any = text
	switch f.Type {
	case "number", "integer":
		value = json.Number(text)
	case "boolean":
		yes, known := map[string]bool{"y": true, "yes": true, "true": true, "n": false, "no": false, "false": false}[strings.ToLower(text)]
		if !known {
			return nil, errors.New("type yes or no")
		}
		value = yes
	case "array":
		var list []any
		for part := range strings.SplitSeq(text, ",") {
			list = append(list, strings.TrimSpace(part))
		}
		value = list
	}
	if err := rules[f.Type].answer(f.schema, value); err != nil {
		return nil, err
	}
	return json.Marshal(value)
}
