package quality

import (
	"slices"
	"strings"
)

// A Score says how much of the truth claims hold, each a part of 1. A part is below 0 where there is nothing to know.
type Score struct {
	Paths      float64 // paths that are known
	Types      float64 // paths whose types are exactly those
	Optional   float64 // optional keys known as such
	Enums      float64 // sets of values that are shown whole
	Answerable float64 // leaves for which a filter can be written that fails on no record
	False      []string
}

// Measure compares claims with the truth about a set.
func Measure(set Set, truth, claims Facts) Score {
	var s Score
	claims = set.fold(claims)
	s.False = falsehoods(truth, claims)
	var paths, types, optional, enums, leaves ratio
	for path, want := range truth {
		got := claims[path]
		paths.count(got != nil)
		types.count(got != nil && got.Types == want.Types)
		if want.Optional {
			optional.count(got != nil && got.Optional)
		}
		if want.Values != nil {
			enums.count(got != nil && hasAll(got.Values, want.Values))
		}
		if isLeaf(truth, path) {
			leaves.count(answerable(truth, claims, path))
		}
	}
	s.Paths, s.Types, s.Optional, s.Enums, s.Answerable = paths.part(), types.part(), optional.part(), enums.part(), leaves.part()
	return s
}

type ratio struct{ hits, all int }

func (r *ratio) count(hit bool) {
	r.all++
	if hit {
		r.hits++
	}
}

func (r *ratio) part() float64 {
	if r.all == 0 {
		return -1
	}
	return float64(r.hits) / float64(r.all)
}

func hasAll(got, want map[string]bool) bool {
	for v := range want {
		if !got[v] {
			return false
		}
	}
	return true
}

// fold spells claims about single keys of maps as claims about the map, and those deep in a recursion as those where it
// begins, which is generous to those who know of neither.
func (set Set) fold(claims Facts) Facts {
	folded := Facts{}
	for path, f := range claims {
		at, last := "", ""
		for _, last = range segments(path) {
			if last == "{}" && slices.Contains(set.Maps, at) {
				last = ".key"
			}
			at = set.below(at, last)
		}
		clone := *f
		clone.Optional = f.Optional && !strings.HasSuffix(at, "{}")
		folded.add(at, &clone)
	}
	return folded
}

// add joins a fact with what is known of the path.
func (all Facts) add(path string, f *Fact) {
	known := all[path]
	if known == nil {
		known = &Fact{}
		all[path] = known
	}
	known.Types |= f.Types
	known.Optional = known.Optional || f.Optional
	for v := range f.Values {
		known.addValue(v)
	}
}

// falsehoods are the claims that are not true: paths that there are not, and types.
func falsehoods(truth, claims Facts) (list []string) {
	for path, got := range claims {
		want := truth[path]
		switch {
		case want == nil && !strings.Contains(path, "{}"): // what is shown as a map need not be one in the truth
			list = append(list, path+" does not exist")
		case want != nil && got.Types&^want.Types != 0:
			list = append(list, path+" has other types")
		}
	}
	return list
}

// isLeaf reports whether nothing lies below a path.
func isLeaf(truth Facts, path string) bool {
	if truth[path].Types&(Array|Object) == 0 {
		return true
	}
	for other := range truth {
		if len(other) > len(path) && strings.HasPrefix(other, path) {
			return false
		}
	}
	return true
}

// answerable reports whether all is known that a total filter for path must know, of the path and of all above it.
func answerable(truth, claims Facts, path string) bool {
	at, unsure := "", false
	for _, seg := range append([]string{""}, segments(path)...) {
		at += seg
		want, got := truth[at], claims[at]
		if got == nil || got.Types != want.Types {
			return false
		}
		// A question mark too many does no harm where something above may be missing.
		if want.Optional != got.Optional && (want.Optional || !unsure) {
			return false
		}
		unsure = unsure || want.Optional || want.Types&(want.Types-1) != 0
	}
	return true
}
