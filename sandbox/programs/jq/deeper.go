package jq

import (
	"fmt"
	"slices"

	"github.com/itchyny/gojq"
)

// deeperNodes bounds the search for a list that stands deeper than it was looked for.
const deeperNodes = 1000

// deeper mends a step to a list that is missing, or null, where the only list of that name stands deeper.
func (c *complaint) deeper(s *step) (string, bool) {
	if s == nil || s.term == nil || s.name == "" {
		return "", false
	}
	name, above := s.name, s.obj.above(s.name)
	if above == nil {
		return "", false
	}
	insertPath(s.term, s.at, s.scope, above)
	return fmt.Sprintf("there is no list at %s, but one at %s%s; %s", shownMember(name), shownPath(above), shownMember(name), c.input()), true
}

// above returns where in n, below n itself, the only object nearest to n stands that has a list of that name; nil if there
// is none.
func (n *node) above(name string) []string {
	type place struct {
		n  *node
		at []string
	}
	if n == nil {
		return nil
	}
	level := []place{{n: n}}
	for seen := 0; len(level) > 0 && seen < deeperNodes; {
		var next []place
		var found [][]string
		for _, p := range level {
			for _, key := range p.n.keys {
				inner := p.n.fields[key]
				if seen++; inner == nil || inner.kind != "object" {
					continue
				}
				at := append(slices.Clone(p.at), key)
				if list := inner.fields[name]; list != nil && list.kind == "array" {
					found = append(found, at)
				}
				next = append(next, place{inner, at})
			}
		}
		if len(found) == 1 {
			return found[0]
		}
		if len(found) > 1 {
			return nil
		}
		level = next
	}
	return nil
}

// pathOf writes names as a path.
func pathOf(names []string) (path string) {
	for _, name := range names {
		path += member(name).String()
	}
	return path
}

// shownPath is a path, or what a hint has room for.
func shownPath(names []string) (path string) {
	for _, name := range names {
		path += shownMember(name)
	}
	return cutText(path)
}

// insertPath puts a path before the step at a term.
func insertPath(t *gojq.Term, at int, scope *gojq.Query, names []string) {
	if at < 0 {
		before(scope, pathOf(names))
		return
	}
	for _, name := range slices.Backward(names) {
		insertSuffix(t, at, scope, member(name))
	}
}
