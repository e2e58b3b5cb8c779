package schemas

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

// Bounds of what [Fields] describes.
const (
	maxFields      = 200  // in all
	maxNesting     = 4    // of objects in objects
	maxHops        = 8    // of references, one after another
	maxFieldTitle  = 200  // characters
	maxFieldText   = 4000 // characters of a description
	shownFieldType = 80   // characters
)

// A Field is what a schema says of a value, for people who write one.
type Field struct {
	Name        string // of a property
	Title       string
	Description string
	Required    bool
	Types       []string // in JSON, without null; none: any
	Items       []string // the types of the elements of an array
	Choices     []string // the only values, as JSON; none: any value of its types
	Default     string   // as JSON; empty: none
	Long        bool     // a text that is not short by its format or its limit
	Fields      []Field  // of an object, required ones first
	Open        bool     // an object says that it takes other members
}

// Fields describes the value that a schema allows. whole is false if the schema cannot be read, or has more than the bounds allow.
func Fields(steps *Steps, schema json.RawMessage) (f Field, whole bool) {
	doc, err := newDocument(schema, steps)
	if err != nil {
		return f, false
	}
	d := &describer{doc, maxFields}
	f = d.field(doc.root, 0)
	return f, d.left >= 0 && steps.Err() == nil
}

// A describer describes at most left fields.
type describer struct {
	*document
	left int
}

func (d *describer) field(s *node, depth int) (f Field) {
	forms := d.forms(s)
	said := func(name string) *node {
		for _, form := range forms {
			if value := d.get(form, name); value != nil {
				return value
			}
		}
		return nil
	}
	f.Title, f.Description = texts.Fit(said("title").text(), maxFieldTitle), texts.Fit(said("description").text(), maxFieldText)
	f.Types, f.Items = d.typesOf(s), d.typesOf(said("items"))
	for _, value := range said("enum").array() {
		if d.steps.Err() != nil { // many fields can refer to one long list
			break
		}
		f.Choices = append(f.Choices, d.inLine(value.value))
	}
	if only := said("const"); only != nil {
		f.Choices = []string{d.inLine(only)}
	}
	if value := said("default"); value != nil && !value.is('n') {
		f.Default = d.inLine(value)
	}
	var most float64
	limit := said("maxLength")
	f.Long = said("format") == nil && (limit == nil || json.Unmarshal(limit.raw, &most) != nil || most > maxFieldTitle)
	if depth <= maxNesting {
		d.members(&f, forms, depth)
	}
	return f
}

// members adds to f the members that its schemas declare, and notes whether it takes others.
func (d *describer) members(f *Field, forms []*node, depth int) {
	for _, p := range parameters(d.outlineOf(forms...)) {
		if d.left--; d.left < 0 {
			return
		}
		one := d.field(p.schema, depth+1)
		one.Name, one.Required = p.name, p.required
		f.Fields = append(f.Fields, one)
	}
	for _, form := range forms {
		more := d.get(form, "additionalProperties")
		f.Open = f.Open || more.is('t') || more.is('{') || len(d.get(form, "patternProperties").object()) > 0
	}
}

// forms returns a schema and, one after another, what each stands for: its $ref, or else its only alternative beside null. Each takes
// precedence over the next.
func (d *document) forms(s *node) (list []*node) {
	for len(list) < maxHops && s != nil {
		list = append(list, s)
		if ref := d.text(s, "$ref"); ref != "" {
			s = d.resolve(ref)
		} else {
			s = d.alternative(s)
		}
	}
	return list
}

// alternative returns the one alternative of a schema that is not null; nil: there are several or none.
func (d *document) alternative(s *node) *node {
	for _, keyword := range []string{"anyOf", "oneOf", "allOf"} {
		list := d.get(s, keyword).array()
		if !d.steps.Take(len(list)) {
			return nil
		}
		list = slices.DeleteFunc(slices.Clone(list), func(p part) bool { return d.text(p.value, "type") == "null" })
		if len(list) == 1 {
			return list[0].value
		}
	}
	return nil
}

// typesOf returns the types of a schema and its alternatives, each once, without null.
func (d *describer) typesOf(s *node) (list []string) {
	o := &outliner{document: d.document, left: maxOutline}
	for _, name := range o.typesWithin(s) {
		if name != "null" && !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}

// Type is the type in words, such as "integer", "string or integer", "array of string", "one of" or "any".
func (f Field) Type() string {
	switch words := texts.Fit(strings.Join(f.Types, " or "), shownFieldType); {
	case words == "array" && len(f.Items) > 0:
		return texts.Fit("array of "+strings.Join(f.Items, " or "), shownFieldType)
	case words != "":
		return words
	case len(f.Choices) > 0:
		return "one of"
	}
	return "any"
}

// inLine writes a value without white space, as long as there are steps.
func (d *describer) inLine(value *node) string {
	if !d.steps.Take(1 + len(value.raw)/bytesPerStep) {
		return ""
	}
	return inLine(value.raw)
}

// inLine writes JSON without white space.
func inLine(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return string(raw)
	}
	return b.String()
}
