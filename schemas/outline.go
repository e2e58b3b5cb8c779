package schemas

import (
	"encoding/json"
	"fmt"

	"github.com/mcsh-dev/mcsh/stages"
)

const (
	maxOutline = 256 // schemas visited while looking for declared properties

	stepsPerProperty = 24 // a property takes more memory than other values
)

// A Description describes a tool by its input schema, which is read but not compiled.
type Description struct {
	Input     stages.Input // without Check
	Signature string       // of about 400 characters
	Long      string       // a signature for short lists, of about 360 characters and with short names of types
	Brief     string       // the same for long lists, of about 180 characters and without limits
}

// Describe reads the input schema of a tool. An empty schema accepts anything. It returns an error if the schema cannot be
// read within the steps, or arguments cannot be checked against it; the description then holds the part that was read.
func Describe(steps *Steps, name string, schema json.RawMessage) (Description, error) {
	d := Description{Signature: unread(name), Long: unread(name), Brief: unread(name)}
	if skipSpace(schema, 0) == len(schema) {
		return d, nil
	}
	doc, err := newDocument(schema, steps)
	if err != nil {
		return d, fmt.Errorf("reading the input schema: %w", err)
	}
	o := doc.outline()
	in := o.input()
	whole := signer{document: doc, left: maxTypes, most: maxSignature}.signature(name, o)
	long := signer{document: doc, left: maxTypes, most: maxLong, words: briefTypes}.signature(name, o)
	brief := signer{document: doc, left: maxTypes, most: maxBrief, words: briefTypes, first: full}.signature(name, o)
	if err := steps.Err(); err != nil {
		return d, fmt.Errorf("reading the input schema: %w", err)
	}
	d = Description{in, whole, long, brief}
	if _, err := weigh(doc); err != nil {
		return d, fmt.Errorf("compiling the input schema: %w", err)
	}
	return d, nil
}

// An outliner collects the properties that a schema declares for one object: its own, and those of the schemas that it
// refers to or combines.
type outliner struct {
	*document
	left     int              // schemas that may still be visited
	declared map[string]*node // the schemas of in.Properties
	required map[string]bool  // in.Required
	in       stages.Input
}

// outline reads the declarations of a schema, whether it compiles or not.
func (d *document) outline() *outliner {
	return d.outlineOf(d.root)
}

// outlineOf reads the declarations of schemas that must all hold.
func (d *document) outlineOf(all ...*node) *outliner {
	o := &outliner{document: d, left: maxOutline, declared: map[string]*node{}, required: map[string]bool{}}
	for _, s := range all {
		o.visit(s, true)
	}
	return o
}

// visit adds the declarations of one schema. must is false for an alternative, whose properties are all optional.
func (o *outliner) visit(s *node, must bool) {
	if o.left--; o.left < 0 || len(s.object()) == 0 || !o.steps.Take(1) {
		return
	}
	for _, m := range o.get(s, "properties").object() {
		if _, ok := o.declared[m.name]; !ok && o.steps.Take(stepsPerProperty) {
			o.declared[m.name] = m.value
			o.in.Properties = append(o.in.Properties, m.name)
		}
	}
	if must {
		o.require(s)
	}
	for sub := range o.each(s, "$ref", "allOf") {
		o.visit(sub, must)
	}
	for sub := range o.each(s, "anyOf", "oneOf", "then", "else") {
		o.visit(sub, false)
	}
}

// require adds the requirements of one schema that must hold.
func (o *outliner) require(s *node) {
	for _, name := range o.strings(o.get(s, "required")) {
		optional := o.get(o.declared[name], "default") != nil
		if !optional && !o.required[name] {
			o.required[name] = true
			o.in.Required = append(o.in.Required, name)
		}
	}
	// With patternProperties, an undeclared name may still be allowed.
	more := o.get(s, "additionalProperties")
	if more != nil && string(more.raw) == "false" && len(o.get(s, "patternProperties").object()) == 0 {
		o.in.Closed = true
	}
}

// input returns the declarations, with the types and default of each property.
func (o *outliner) input() stages.Input {
	in := o.in
	in.Declared = map[string]stages.Property{}
	o.left = 4 * maxOutline
	for _, name := range in.Properties {
		schema := o.declared[name]
		p := stages.Property{Types: o.typesWithin(schema)}
		if def := o.get(schema, "default"); def != nil {
			p.Default = def.raw
		}
		in.Declared[name] = p
	}
	return in
}

// typesWithin returns the JSON types in the schema of a property, in its references and its alternatives.
func (o *outliner) typesWithin(s *node) []string {
	if o.left--; o.left < 0 || len(s.object()) == 0 || !o.steps.Take(1) {
		return nil
	}
	types := o.types(s)
	for sub := range o.each(s, "$ref", "anyOf", "oneOf", "allOf") {
		types = append(types, o.typesWithin(sub)...)
	}
	return types
}
