// Package shape describes the form of a tool's results without their values: paths, types, fields that may be missing or
// null, and for text the patterns of its lines. It is pure.
//
// # Decisions
//
//   - The name of a field goes to disk only if each of its words is common or occurs in the tool's own texts: keys of
//     maps are values.
package shape

import (
	"slices"
)

// Bounds of one shape. [Shape.Cut] marks a shape that exceeds them.
const (
	MaxDepth  = 10  // levels of containers
	MaxNodes  = 400 // places
	MaxFields = 60  // fields of one object; with more, its keys are taken for data
	MaxName   = 60  // bytes of a field's name
)

// Kinds is the set of types at a place.
type Kinds uint16

// The types, as jq has them; Int is a number without fraction and exponent. Unknown stands for any of them.
const (
	Null Kinds = 1 << iota
	Bool
	Int
	Num
	Str
	Array
	Object
	Unknown
)

const allKinds = Unknown<<1 - 1

// A Shape describes the values at one place.
type Shape struct {
	Kinds  Kinds   `json:"k"`
	Items  *Shape  `json:"i,omitempty"` // the elements of arrays; nil: none was seen
	Fields []Field `json:"f,omitempty"` // of objects, in the order in which they were seen
	Rest   *Shape  `json:"r,omitempty"` // the values of objects under keys that are not named here
	Cut    bool    `json:"c,omitempty"` // there is more below than is described
}

// A Field is a member that objects have.
type Field struct {
	Name     string `json:"n"`
	Optional bool   `json:"o,omitempty"` // some objects lack it
	Shape    *Shape `json:"s"`
}

// Has reports whether any of the kinds was seen.
func (s *Shape) Has(k Kinds) bool { return s != nil && s.Kinds&k != 0 }

// field finds a field by its name, or returns -1.
func (s *Shape) field(name string) int {
	return slices.IndexFunc(s.Fields, func(f Field) bool { return f.Name == name })
}

// Merge returns the shape of all values that have one of the two shapes. Either may be nil; neither is changed.
func Merge(a, b *Shape) *Shape {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	out := &Shape{
		Kinds: a.Kinds | b.Kinds, Cut: a.Cut || b.Cut,
		Items: Merge(a.Items, b.Items), Rest: Merge(a.Rest, b.Rest), Fields: mergeFields(a, b),
	}
	if len(out.Fields) > MaxFields {
		out.fold()
	}
	return out
}

// mergeFields puts the fields of a before those that only b has. A field that only one of two kinds of objects has is
// optional.
func mergeFields(a, b *Shape) []Field {
	fields := make([]Field, 0, max(len(a.Fields), len(b.Fields)))
	for _, f := range a.Fields {
		if at := b.field(f.Name); at >= 0 {
			other := b.Fields[at]
			f = Field{f.Name, f.Optional || other.Optional, Merge(f.Shape, other.Shape)}
		} else {
			f.Optional = f.Optional || b.Has(Object)
		}
		fields = append(fields, f)
	}
	for _, f := range b.Fields {
		if a.field(f.Name) < 0 {
			f.Optional = f.Optional || a.Has(Object)
			fields = append(fields, f)
		}
	}
	return fields
}

// fold takes all keys of the objects for data.
func (s *Shape) fold() {
	for _, f := range s.Fields {
		s.Rest = Merge(s.Rest, f.Shape)
	}
	s.Fields = nil
}

// Bounded returns a copy of a shape within the bounds. It also corrects a shape from an altered file: unknown kinds, fields
// without a shape, names that are too long.
func Bounded(s *Shape) *Shape {
	left := MaxNodes
	return bounded(s, MaxDepth, &left)
}

func bounded(s *Shape, depth int, left *int) *Shape {
	if s == nil {
		return nil
	}
	*left--
	out := &Shape{Kinds: s.Kinds & allKinds, Cut: s.Cut}
	if depth == 0 || *left <= 0 {
		out.Cut = out.Cut || s.Items != nil || s.Rest != nil || len(s.Fields) > 0
		return out
	}
	out.Items = bounded(s.Items, depth-1, left)
	for _, f := range s.Fields {
		switch {
		case *left <= 0 || len(out.Fields) == MaxFields:
			out.Cut = true
		case f.Shape == nil || len(f.Name) > MaxName || out.field(f.Name) >= 0:
			out.Rest = Merge(out.Rest, bounded(f.Shape, depth-1, left))
		default:
			out.Fields = append(out.Fields, Field{f.Name, f.Optional, bounded(f.Shape, depth-1, left)})
		}
	}
	out.Rest = Merge(out.Rest, bounded(s.Rest, depth-1, left))
	return out
}
