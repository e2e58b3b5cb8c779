package shape

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mcsh-dev/mcsh/internal/lazy"
)

// Brief writes a shape in at most n characters, as far as that is possible in a few dozen: it gives up depth and the
// later fields first.
func (s *Shape) Brief(n int) string {
	text := ""
	for _, d := range details {
		if text = d.text(s, 0); runes(text) <= n {
			return text
		}
	}
	return text
}

// detail is how much of a shape is written.
type detail struct{ depth, fields int }

// details are tried in order, from the largest. They cut the fields before the depth, since a list of records says most when
// its records show.
var details = []detail{
	{MaxDepth + 1, MaxFields},
	{4, MaxFields},
	{4, 24},
	{3, 24},
	{4, 16},
	{3, 16},
	{3, 12},
	{3, 9},
	{2, 12},
	{3, 7},
	{2, 9},
	{3, 5},
	{2, 6},
	{2, 4},
	{1, 6},
	{1, 3},
	{0, 0},
}

// text writes the types of one place.
func (d detail) text(s *Shape, level int) string {
	if s == nil || s.Kinds == 0 || s.Has(Unknown) {
		return "any"
	}
	kinds := s.Kinds
	if kinds&Num != 0 {
		kinds &^= Int
	}
	var all []string
	for _, k := range []struct {
		kind  Kinds
		write func() string
	}{
		{Object, func() string { return d.object(s, level) }},
		{Array, func() string { return d.array(s, level) }},
		{Str, func() string { return "str" }},
		{Int, func() string { return "int" }},
		{Num, func() string { return "num" }},
		{Bool, func() string { return "bool" }},
		{Null, func() string { return "null" }},
	} {
		if kinds&k.kind != 0 {
			all = append(all, k.write())
		}
	}
	return strings.Join(all, "|")
}

// array does not count as a level: its elements are what is asked for. Scalars in it are always written.
func (d detail) array(s *Shape, level int) string {
	if s.Items == nil {
		if s.Cut {
			return "[…]"
		}
		return "[]"
	}
	return "[" + d.text(s.Items, level) + "]"
}

func (d detail) object(s *Shape, level int) string {
	empty := len(s.Fields) == 0 && s.Rest == nil
	switch {
	case empty && !s.Cut:
		return "{}"
	case empty || level >= d.depth:
		return "{…}"
	}
	var all []string
	for _, f := range s.Fields[:min(len(s.Fields), d.fields)] {
		all = append(all, nameText(f.Name, f.Optional)+": "+d.text(f.Shape, level+1))
	}
	if s.Rest != nil {
		all = append(all, "<key>: "+d.text(s.Rest, level+1))
	}
	if len(s.Fields) > d.fields || s.Cut {
		all = append(all, "…")
	}
	return "{" + strings.Join(all, ", ") + "}"
}

// bare are names that need no quotes.
var bare = lazy.Regexp(`^[\pL_$@][\pL\pN_$.@-]*$`)

func nameText(name string, optional bool) string {
	if !bare().MatchString(name) {
		name = strconv.Quote(name)
	}
	if optional {
		name += "?"
	}
	return name
}

func runes(s string) int { return utf8.RuneCountInString(s) }
