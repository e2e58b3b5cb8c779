package schemas

import (
	"encoding/json"
	"slices"

	resultshape "github.com/mcsh-dev/mcsh/preview/shape"
)

// ResultShape is the shape of the data that a tool with this output schema gives to a pipeline, or nil where the schema
// does not tell: it says nothing, or has one property that is a string, which is a mere wrapper of some text. Of a
// schema that is marked as a wrapper it is the shape of what is wrapped.
func ResultShape(schema json.RawMessage) *resultshape.Result {
	if bounded(schema, maxSchema) != nil {
		return nil
	}
	r := shaper{root: schema, left: visits(maxTypes, schema)}
	s := resultshape.Bounded(r.shape(schema, 0))
	if readObject(schema).get("x-fastmcp-wrap-result") != nil && len(s.Fields) == 1 {
		s = s.Fields[0].Shape
	} else if len(s.Fields) == 1 && s.Rest == nil && s.Fields[0].Shape.Kinds == resultshape.Str {
		return nil
	}
	if s.Kinds == resultshape.Object && len(s.Fields) == 0 && s.Rest == nil || s.Has(resultshape.Unknown) {
		return nil
	}
	return &resultshape.Result{Value: s}
}

// A shaper reads shapes from schemas; left is how many more.
type shaper struct {
	root json.RawMessage
	left int
}

// typeKinds are the types of JSON Schema.
var typeKinds = map[string]resultshape.Kinds{
	"null": resultshape.Null, "boolean": resultshape.Bool, "integer": resultshape.Int, "number": resultshape.Num, "string": resultshape.Str,
	"array": resultshape.Array, "object": resultshape.Object,
}

// shape reads one schema.
func (r *shaper) shape(schema json.RawMessage, depth int) *resultshape.Shape {
	s := readObject(schema)
	if r.left--; r.left < 0 || depth > resultshape.MaxDepth || len(s) == 0 {
		return &resultshape.Shape{Kinds: resultshape.Unknown}
	}
	if ref := s.text("$ref"); ref != "" {
		return r.shape(resolve(r.root, ref), depth+1)
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		if options := readArray(s.get(keyword)); len(options) > 0 && s.get("properties") == nil {
			return r.either(options, depth+1)
		}
	}
	out := &resultshape.Shape{}
	for _, name := range readStrings(s.get("type")) {
		out.Kinds |= typeKinds[name]
	}
	values := readArray(s.get("enum"))
	if value := s.get("const"); value != nil {
		values = append(values, value)
	}
	for _, value := range values {
		if out.Kinds == 0 || s.get("type") == nil {
			out.Kinds |= kindOf(value)
		}
	}
	r.members(out, s, depth)
	for _, part := range readArray(s.get("allOf")) {
		out = both(out, r.shape(part, depth+1))
	}
	if out.Kinds == 0 {
		out.Kinds = resultshape.Unknown
	}
	return out
}

// members reads what a schema says of elements and fields.
func (r *shaper) members(out *resultshape.Shape, s object, depth int) {
	if items := s.get("items"); items != nil {
		out.Kinds |= resultshape.Array
		out.Items = r.shape(items, depth+1)
	}
	fields := readObject(s.get("properties"))
	if len(fields) > 0 {
		out.Kinds |= resultshape.Object
	}
	required := readStrings(s.get("required"))
	for _, e := range fields {
		out.Fields = append(out.Fields, resultshape.Field{
			Name: e.name, Optional: !slices.Contains(required, e.name), Shape: r.shape(e.value, depth+1),
		})
	}
	if more := s.get("additionalProperties"); len(readObject(more)) > 0 {
		out.Kinds |= resultshape.Object
		out.Rest = r.shape(more, depth+1)
	}
	switch {
	case out.Kinds&resultshape.Array != 0 && out.Items == nil:
		out.Items = &resultshape.Shape{Kinds: resultshape.Unknown}
	case out.Kinds&resultshape.Object != 0 && len(out.Fields) == 0 && out.Rest == nil:
		out.Cut = true // fields that nobody names
	}
}

// either is a value that one of several schemas describes.
func (r *shaper) either(options []json.RawMessage, depth int) *resultshape.Shape {
	var out *resultshape.Shape
	for _, option := range options {
		out = resultshape.Merge(out, r.shape(option, depth))
	}
	return out
}

// both is a value that two schemas describe together.
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

// kindOf is the type of a value.
func kindOf(value json.RawMessage) resultshape.Kinds {
	switch value[0] {
	case '"':
		return resultshape.Str
	case '{':
		return resultshape.Object
	case '[':
		return resultshape.Array
	case 't', 'f':
		return resultshape.Bool
	case 'n':
		return resultshape.Null
	}
	return resultshape.Num
}
