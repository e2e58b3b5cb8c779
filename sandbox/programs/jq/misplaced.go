package jq

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/itchyny/gojq"

	"github.com/mcsh-dev/mcsh/internal/nearest"
)

// Steps that are applied to another kind of value than they are for.

// nullInput knows a filter for the input that runs without it.
func nullInput(c *complaint) (string, bool) {
	if !c.o.NullInput || len(c.given) == 0 || !c.atRoot() {
		return "", false
	}
	c.o.NullInput = false
	return "with -n the input is not read and . is null: leave -n out", true
}

// namedOnArray knows .name where an array is.
func namedOnArray(c *complaint) (string, bool) {
	f := c.fault
	if f == nil || f.term == nil {
		if hint, ok := c.slurpedInput(); ok {
			return hint, true
		}
		return c.input() + ": use .[] for its elements", false
	}
	name := f.name()
	v := f.in.n
	switch {
	case counting[name] && !hasKey(v, name):
		if !atEnd(f) {
			return c.there() + ": write | " + counting1(name), false
		}
		drop(f.term, f.at)
		tail(f.term, counting1(name))
		return c.there() + ": " + name + " is a function, not a field: write | " + counting1(name), true
	case c.o.Slurp && c.atRoot() && len(v.items) > 0 && hasField(v.items[0], name):
		hint := c.input() + ": leave -s out"
		c.o.Slurp = false
		return hint, true
	case f.in.from != nil && f.in.from.name == "":
		return c.unwrap(f.in.from)
	case v.group && hasKey(v, name):
		firstOf(f.term, f.at)
		return "each group of group_by is an array: use .[0]." + name + " or map(." + name + ")", true
	case hasKey(v, name):
		insertSuffix(f.term, f.at, f.in.scope, everyItem())
		return c.there() + ": use .[] for its elements, or map(…)", true
	case isWrapper(name):
		drop(f.term, f.at)
		return c.there() + ": there is nothing around it, use .[] without ." + name, true
	}
	return c.there() + ": use .[] for its elements, or map(…)", false
}

// slurpedInput knows $b.name where $b holds the values of a named input.
func (c *complaint) slurpedInput() (hint string, mended bool) {
	for _, v := range c.o.Named {
		if !v.Input || !v.JSON {
			continue
		}
		terms(c.query, func(t *gojq.Term) {
			if t.Type != gojq.TermTypeFunc || t.Func.Name != "$"+v.Name || len(t.SuffixList) == 0 || t.SuffixList[0].Index == nil {
				return
			}
			if _, named := indexName(t.SuffixList[0].Index); named {
				firstOf(t, 0)
				hint, mended = fmt.Sprintf("$%s of --slurpfile is an array of the values of its input: use $%s[0]", v.Name, v.Name), true
			}
		})
	}
	return hint, mended
}

// name is the name of the step that fails.
func (f *fault) name() string {
	x := f.term.Index
	if f.at >= 0 {
		x = f.term.SuffixList[f.at].Index
	}
	if x == nil {
		return ""
	}
	name, _ := indexName(x)
	return name
}

func atEnd(f *fault) bool { return f.at == len(f.term.SuffixList)-1 }

// firstOf puts .[0] before the name of the step at a term.
func firstOf(t *gojq.Term, at int) {
	first := &gojq.Index{Start: parsed("0")}
	if at >= 0 {
		t.SuffixList = slices.Insert(slices.Clone(t.SuffixList), at, &gojq.Suffix{Index: first})
		return
	}
	t.SuffixList = slices.Insert(slices.Clone(t.SuffixList), 0, &gojq.Suffix{Index: t.Index})
	t.Index = first
}

// tail applies a function to the result of a term.
func tail(t *gojq.Term, function string) {
	if t.Type == gojq.TermTypeIdentity && len(t.SuffixList) == 0 {
		*t = gojq.Term{Type: gojq.TermTypeFunc, Func: &gojq.Func{Name: function}}
		return
	}
	inner := *t
	*t = gojq.Term{Type: gojq.TermTypeQuery, Query: &gojq.Query{Left: &gojq.Query{Term: &inner}, Op: gojq.OpPipe, Right: parsed(function)}}
}

// counting are functions that people write like fields.
var counting = map[string]bool{
	"length": true, "count": true, "size": true, "keys": true, "first": true, "last": true, "add": true, "sort": true,
	"unique": true, "reverse": true, "min": true, "max": true, "type": true,
}

func counting1(name string) string {
	if name == "count" || name == "size" {
		return "length"
	}
	return name
}

// hasKey reports whether one of the first elements of an array has a member of that name.
func hasKey(n *node, name string) bool {
	for i, item := range n.items {
		if i < 20 && hasField(item, name) {
			return true
		}
	}
	return false
}

func hasField(n *node, name string) bool { return n != nil && n.fields[name] != nil }

func isWrapper(name string) bool {
	for _, w := range wrappers {
		if w == name {
			return true
		}
	}
	return false
}

// slurped has all documents in one array.
func (c *complaint) slurped() (string, bool) {
	hint := c.input() + ": add -s to have them in one array"
	c.o.Slurp = true
	return hint, true
}

// unwrap mends what takes the members of an object for the elements of the list in it.
func (c *complaint) unwrap(s *step) (string, bool) {
	what := "what .[] is applied to is " + s.obj.describe()
	key := s.obj.wrapped()
	lines := c.several() && s.at < 0 && slices.Contains(c.docs, s.obj)
	if key != "" && (isWrapper(key) || !lines) {
		insertSuffix(s.term, s.at, s.scope, member(key))
		return fmt.Sprintf("%s: use %s[] for the elements", what, shownMember(key)), true
	}
	if lines {
		return c.slurped()
	}
	if s.at >= 0 && s.at < len(s.term.SuffixList) {
		drop(s.term, s.at)
		return what + ", and .[] gives the values of its members: leave [] out", true
	}
	insert(s.term, s.at, s.scope, "[.]")
	return what + ", not an array: leave " + functionOf(s.term) + " out, or make an array of it: [.]", true
}

func functionOf(t *gojq.Term) string {
	if t.Func != nil {
		return t.Func.Name
	}
	return "[]"
}

// namedOnString knows .name where a string is.
func namedOnString(c *complaint) (string, bool) {
	f := c.fault
	if f == nil {
		return c.input(), false
	}
	if f.in.from != nil && f.in.from.name == "" {
		return c.unwrap(f.in.from)
	}
	if c.o.RawInput && !c.o.Slurp && c.atRoot() && c.json {
		c.o.RawInput = false
		return "with -R every line is a string: leave -R out, the input is JSON", true
	}
	return onText(c)
}

// onText knows steps that want JSON where a string is.
func onText(c *complaint) (string, bool) {
	f := c.fault
	if f == nil || f.in.n == nil || f.term == nil {
		return c.input(), false
	}
	if f.in.from != nil && f.in.from.name == "" {
		return c.unwrap(f.in.from)
	}
	text := strings.TrimSpace(f.in.n.text)
	if json.Valid([]byte(text)) && text != "" && strings.Contains("[{", text[:1]) {
		insert(f.term, f.at, f.in.scope, "fromjson")
		return c.there() + ": it is JSON within a string, use fromjson", true
	}
	if c.several() && c.atRoot() {
		return c.slurped()
	}
	if f.in.n.kind != "string" {
		return c.there(), false
	}
	return c.there() + ": a string has no fields and no elements; split(…), test(…) and capture(…) take it apart", false
}

// namedOnScalar knows .name or .[] where a number or a boolean is.
func namedOnScalar(c *complaint) (string, bool) {
	f := c.fault
	switch {
	case f == nil || f.in.n == nil || f.term == nil:
		return c.input(), false
	case f.in.from != nil && f.in.from.name == "":
		return c.unwrap(f.in.from)
	case c.several() && c.atRoot():
		return c.slurped()
	}
	return c.there() + ": it has no fields and no elements, leave that step out", false
}

// numberedOnObject knows .[0] and .[1:2] where an object is.
func numberedOnObject(c *complaint) (string, bool) {
	f := c.fault
	if f == nil || f.term == nil {
		return c.input(), false
	}
	if key := f.in.n.wrapped(); key != "" {
		insertSuffix(f.term, f.at, f.in.scope, member(key))
		return fmt.Sprintf("%s: use %s", c.there(), shownMember(key)), true
	}
	if c.several() && c.atRoot() {
		return c.slurped()
	}
	return c.there() + ": name its members, or use to_entries", false
}

// listWanted knows functions of arrays that are given an object.
func listWanted(c *complaint) (string, bool) {
	f := c.fault
	if f == nil || f.term == nil {
		return c.input() + ": an array is wanted", false
	}
	if key := f.in.n.wrapped(); key != "" {
		insertSuffix(f.term, f.at, f.in.scope, member(key))
		return fmt.Sprintf("%s: use %s | %s", c.there(), shownMember(key), functionOf(f.term)), true
	}
	if c.several() && c.atRoot() {
		return c.slurped()
	}
	return c.there() + ": an array is wanted; use to_entries, or [.[]] for its values", false
}

// iteratedNull knows .[] where nothing is.
func iteratedNull(c *complaint) (string, bool) {
	f := c.fault
	if f == nil || f.term == nil {
		return c.input() + ": .[]? passes over null", false
	}
	if hint, ok := c.deeper(f.in.from); ok {
		return hint, true
	}
	if from := f.in.from; from != nil && from.name != "" && from.term != nil && !hasField(from.obj, from.name) {
		if near := nearest.Name(from.name, from.obj.keys); near != "" {
			rename(from.term, from.at, near)
			return fmt.Sprintf("there is no .%s, did you mean %s? %s", shownName(from.name), shownMember(near), c.input()), true
		}
		if key := from.obj.wrapped(); key != "" && isWrapper(from.name) {
			rename(from.term, from.at, key)
			return fmt.Sprintf("there is no .%s: use %s; %s", shownName(from.name), shownMember(key), c.input()), true
		}
	}
	if f.at >= 0 {
		insertSuffix(f.term, f.at+1, nil, &gojq.Suffix{Optional: true})
		return c.input() + "; where it fails there is null: .[]? passes over it", true
	}
	insert(f.term, f.at, f.in.scope, ". // []")
	return c.input() + "; where it fails there is null: // [] gives it a default", true
}
