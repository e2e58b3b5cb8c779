package strictjson

import (
	"fmt"
	"strings"
)

// suggest ends the message about an unknown name: the nearest known one, or all of them.
func suggest(name string, known []string) string {
	if len(known) == 0 {
		return "; there are none"
	}
	all := "; known: " + strings.Join(known, ", ")
	if near := Nearest(name, known); near != "" {
		return fmt.Sprintf(", did you mean %q%s", near, all)
	}
	return all
}

// Nearest returns the one of known that name was probably meant to be, or "". Case, "-" and "_" do not matter.
func Nearest(name string, known []string) string {
	const longest = 64 // nobody mistypes more, and the distance takes quadratic time
	if len(name) > longest {
		return ""
	}
	best, least := "", max(1, len(name)/3)+1
	for _, k := range known {
		if d := distance(fold(name), fold(k)); d < least && d < len(k) {
			best, least = k, d
		}
	}
	return best
}

func fold(s string) string {
	return strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(s))
}

// distance is the Levenshtein distance of a and b in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
