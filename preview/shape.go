package preview

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"github.com/mcsh-dev/mcsh/preview/shape"
)

// shapeLines is the number of lines of text that a shape describes.
const shapeLines = 200

// ResultShape describes data without its values. cut means that data is only the beginning; text means that data counts
// as JSON only if it is one whole object or array. known reports whether a word may be part of a field's name. A key with
// other words may belong to a map: it is named only if another key of its object is known and it does not look like data.
func ResultShape(data []byte, cut, text bool, known func(word string) bool) (*shape.Result, error) {
	out := &shape.Result{Calls: 1}
	if len(bytes.TrimSpace(data)) == 0 {
		out.Empty = true
		return out, nil
	}
	if binaryName(data) != "" {
		out.Text = true
		return out, nil
	}
	first := bytes.TrimSpace(data)[0]
	if _, lines, ok := sniffJSON(data, !cut); ok && lines == 0 && (!text || first == '{' || first == '[') {
		in := &source{ctx: context.Background(), r: bytes.NewReader(data)}
		j, err := readJSON(in, 0, false)
		if err != nil {
			return nil, err
		}
		if j.others == 0 && (j.broken == nil || cut) && (!text || j.p.docs <= 1) {
			j.p.foldMaps(j.p.root)
			out.Value = shape.Bounded(j.p.root.shape(known))
			out.Many = j.p.docs > 1
			return out, nil
		}
	}
	textShape(out, string(data), cut, known)
	return out, nil
}

// textShape keeps the most frequent patterns of lines.
func textShape(out *shape.Result, text string, cut bool, known func(string) bool) {
	out.Text = true
	counts := map[string]int{}
	var patterns []string
	n := 0
	for line := range strings.Lines(text) {
		if n++; n > shapeLines || cut && !strings.HasSuffix(line, "\n") {
			break
		}
		if strings.TrimSpace(line) == "" {
			continue
		}
		pattern := shape.Pattern(line, known)
		if counts[pattern]++; counts[pattern] == 1 {
			patterns = append(patterns, pattern)
		}
	}
	slices.SortStableFunc(patterns, func(a, b string) int { return counts[b] - counts[a] })
	for _, pattern := range patterns {
		out.Lines = shape.AddLine(out.Lines, pattern)
	}
}

// shape returns the types at and below a node.
func (n *node) shape(known func(string) bool) *shape.Shape {
	s := &shape.Shape{Cut: n.incomplete || n.longKeys > 0}
	for kind, as := range [numKinds]shape.Kinds{
		kindNull: shape.Null, kindBool: shape.Bool, kindNumber: shape.Int, kindString: shape.Str, kindArray: shape.Array, kindObject: shape.Object,
	} {
		if n.kinds[kind] > 0 {
			s.Kinds |= as
		}
	}
	if n.floats > 0 {
		s.Kinds = s.Kinds&^shape.Int | shape.Num
	}
	if n.elem.total() > 0 {
		s.Items = n.elem.shape(known)
	}
	if n.mapValue != nil {
		s.Rest = n.mapValue.shape(known)
	}
	isRecord := n.isRecord(known)
	for _, e := range n.keys {
		child := e.n.shape(known)
		if shape.Named(e.name, known) || isRecord && !looksLikeData(e.name) && len(e.name) <= shape.MaxName {
			s.Fields = append(s.Fields, shape.Field{Name: e.name, Optional: e.present < n.kinds[kindObject]-n.broken, Shape: child})
		} else {
			s.Rest = shape.Merge(s.Rest, child)
		}
	}
	return s
}

// isRecord reports whether an object has a known field, so its other keys are probably fields too.
func (n *node) isRecord(known func(string) bool) bool {
	return slices.ContainsFunc(n.keys, func(e edge) bool { return shape.Named(e.name, known) })
}
