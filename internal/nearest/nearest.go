// Package nearest finds the known name that a wrong name probably means, for messages with "did you mean". It knows
// nothing of the meaning of names.
package nearest

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// maxWord bounds the length of compared words in bytes: nobody mistypes such a long name, and the comparison takes
// quadratic time. maxCells bounds that time over all known names in pairs of characters, to some ten milliseconds. Of the
// names after that, only those that share parts with the word are found.
const (
	maxWord  = 128
	maxCells = 4 << 20
)

// Name returns the known name closest to word, or "" if none is close enough.
func Name(word string, known []string) string {
	if best := List(word, known, 1); len(best) > 0 {
		return best[0]
	}
	return ""
}

// List returns up to n known names that word may mean, the closest first. Equally close names keep their order. A word
// that is known itself comes first.
func List(word string, known []string, n int) []string {
	if word == "" || len(word) > maxWord || n <= 0 {
		return nil
	}
	type candidate struct {
		name  string
		score int
	}
	folded := fold(word)
	var found []candidate
	cells := maxCells
	for _, name := range known {
		if name == word {
			found = append(found, candidate{name, -1})
			continue
		}
		if len(name) > maxWord {
			continue
		}
		if score, ok := compare(folded, fold(name), &cells); ok {
			found = append(found, candidate{name, score})
		}
	}
	slices.SortStableFunc(found, func(a, b candidate) int { return a.score - b.score })
	found = slices.CompactFunc(found, func(a, b candidate) bool { return a.name == b.name })
	names := make([]string, 0, min(n, len(found)))
	for _, c := range found[:min(n, len(found))] {
		names = append(names, c.name)
	}
	return names
}

// compare scores how far apart two folded words are, less being closer, and whether they are close at all: spelled
// nearly alike (score up to 99), made of the same parts in another order (100), or one a part of the other (above).
func compare(word, name string, cells *int) (int, bool) {
	if name == "" || len(name) > maxWord {
		return 0, false
	}
	short, long := utf8.RuneCountInString(word), utf8.RuneCountInString(name)
	if short > long {
		short, long = long, short
	}
	if long-short <= allowed(long) && *cells >= short*long { // otherwise the distance is larger, or no time is left
		*cells -= short * long
		if d := distance(word, name); d <= allowed(long) {
			return d, true
		}
	}
	a, b := parts(word), parts(name)
	if slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))) {
		return 100, true
	}
	if contains(b, a) || contains(a, b) {
		return 101 + max(len(a), len(b)) - min(len(a), len(b)), true
	}
	if short := min(len(word), len(name)); short >= 4 && (strings.HasPrefix(name, word) || strings.HasPrefix(word, name)) {
		return 120 + max(len(word), len(name)) - short, true
	}
	return 0, false
}

// allowed returns the number of typing errors with which a word of n characters is still recognised.
func allowed(n int) int {
	if n <= 3 {
		return n / 2
	}
	return 1 + n/4
}

// fold lowers s and writes every separator, also that of camelCase, as "_".
func fold(s string) string {
	var b strings.Builder
	lower := false
	for _, r := range s {
		switch {
		case r == '-' || r == ' ' || r == '.' || r == '/' || r == '_':
			b.WriteByte('_')
			lower = false
		case r >= 'A' && r <= 'Z':
			if lower {
				b.WriteByte('_')
			}
			b.WriteRune(r - 'A' + 'a')
			lower = false
		default:
			b.WriteRune(r)
			lower = true
		}
	}
	return b.String()
}

func parts(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == '_' })
}

// contains reports whether every part of some is one of all, and some has a part worth comparing.
func contains(all, some []string) bool {
	for _, p := range some {
		if len(p) < 3 || !slices.Contains(all, p) {
			return false
		}
	}
	return len(some) > 0
}

// distance is the number of insertions, deletions, substitutions and swaps of neighbours that turn a into b (optimal
// string alignment).
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	before, last, row := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(x); i++ {
		row[0] = i
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(y)]
}
