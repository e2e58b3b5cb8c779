package schemas

import (
	"cmp"
	"encoding/json"
	"slices"

	resultshape "github.com/mcsh-dev/mcsh/preview/shape"
)

// ResultShape returns the shape of the results of a tool with this output schema, and of the wrapped value if the schema
// is marked as a wrapper. It returns nil if the schema has no types, cannot be read, or has only one string, which is
// probably a wrapper of text.
func ResultShape(steps *Steps, schema json.RawMessage) *resultshape.Result {
	doc, err := newDocument(schema, steps)
	if err != nil {
		return nil
	}
	r := shaper{document: doc, left: maxTypes}
	s := resultshape.Bounded(r.shape(doc.root, 0))
	if doc.get(doc.root, "x-fastmcp-wrap-result") != nil && len(s.Fields) == 1 {
		s = s.Fields[0].Shape
	} else if len(s.Fields) == 1 && s.Rest == nil && s.Fields[0].Shape.Kinds == resultshape.Str {
		return nil
	}
	if steps.Err() != nil || s.Kinds == resultshape.Object && len(s.Fields) == 0 && s.Rest == nil || s.Has(resultshape.Unknown) {
		return nil
	}
	return &resultshape.Result{Value: s}
}

// A shaper reads the shapes of at most left schemas.
type shaper struct {
	*document
	left int
}

// typeKinds are the types of JSON Schema.
var typeKinds = map[string]resultshape.Kinds{
	"null": resultshape.Null, "boolean": resultshape.Bool, "integer": resultshape.Int, "number": resultshape.Num, "string": resultshape.Str,
	"array": resultshape.Array, "object": resultshape.Object,
}

// shape reads one schema.
func (r *shaper) shape(s *node, depth int) *resultshape.Shape {
	if r.left--; r.left < 0 || depth > resultshape.MaxDepth || len(s.object()) == 0 || !r.steps.Take(1) {
		return &resultshape.Shape{Kinds: resultshape.Unknown}
	}
	if ref := r.text(s, "$ref"); ref != "" {
		return r.shape(r.resolve(ref), depth+1)
	}
	if options := r.options(s); len(options) > 0 && r.get(s, "properties") == nil {
		return r.either(options, depth+1)
	}
	out := &resultshape.Shape{}
	for _, name := range r.types(s) {
		out.Kinds |= typeKinds[name]
	}
	values := r.get(s, "enum").array()
	if value := r.get(s, "const"); value != nil {
		values = append(slices.Clone(values), part{value: value})
	}
	for _, value := range values {
		if out.Kinds == 0 || r.get(s, "type") == nil {
			out.Kinds |= kindOf(value.value.raw)
		}
	}
	r.fields(out, s, depth)
	for _, sub := range r.get(s, "allOf").array() {
		if r.left < 0 {
			break
		}
		out = both(out, r.shape(sub.value, depth+1))
	}
	out.Kinds = cmp.Or(out.Kinds, resultshape.Unknown)
	return out
}

// fields reads the elements and fields of a schema.
func (r *shaper) fields(out *resultshape.Shape, s *node, depth int) {
	if items := r.get(s, "items"); items != nil {
		out.Kinds |= resultshape.Array
		out.Items = r.shape(items, depth+1)
	}
	properties := r.get(s, "properties").object()
	if len(properties) > 0 {
		out.Kinds |= resultshape.Object
	}
	required := map[string]bool{}
	for _, name := range r.strings(r.get(s, "required")) {
		required[name] = true
	}
	for _, m := range properties {
		out.Fields = append(out.Fields, resultshape.Field{
			Name: m.name, Optional: !required[m.name], Shape: r.shape(m.value, depth+1),
		})
	}
	if more := r.get(s, "additionalProperties"); len(more.object()) > 0 {
		out.Kinds |= resultshape.Object
		out.Rest = r.shape(more, depth+1)
	}
	switch {
	case out.Kinds&resultshape.Array != 0 && out.Items == nil:
		out.Items = &resultshape.Shape{Kinds: resultshape.Unknown}
	case out.Kinds&resultshape.Object != 0 && len(out.Fields) == 0 && out.Rest == nil:
		out.Cut = true // an object with unknown fields
	}
}

// either returns the shape of a value that satisfies one of several schemas.
func (r *shaper) either(options []part, depth int) *resultshape.Shape {
	var out *resultshape.Shape
	for _, option := range options {
		if out != nil && r.left < 0 {
			break
		}
		out = resultshape.Merge(out, r.shape(option.value, depth))
	}
	return out
}

// both returns the shape of a value that satisfies two schemas.
func both(a, b *resultshape.Shape) *resultshape.Shape {
	if b.Has(resultshape.Unknown) {
		return a
	}
	out := *a
	out.Kinds |= b.Kinds
	out.Fields = slices.Concat(a.Fields, b.Fields)
	out.Cut = (a.Cut || b.Cut) && len(out.Fields) == 0
	out.Items, out.Rest = resultshape.Merge(a.Items, b.Items), resultshape.Merge(a.Rest, b.Rest)
	return &out
}

// byteKinds are the types of JSON values by their first bytes; all others begin a number.
var byteKinds = map[byte]resultshape.Kinds{
	'"': resultshape.Str, '{': resultshape.Object, '[': resultshape.Array, 't': resultshape.Bool, 'f': resultshape.Bool, 'n': resultshape.Null,
}

// kindOf returns the type of a JSON value.
func kindOf(value json.RawMessage) resultshape.Kinds {
	return cmp.Or(byteKinds[value[0]], resultshape.Num)
}
