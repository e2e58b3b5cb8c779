package rank

import (
	_ "embed"
	"strings"
	"sync"
)

var (
	// alike has a group of synonyms per line, from names and descriptions of tools. A word may be in several groups. Two words
	// written as one, such as "lookfor", match both in a row.
	//
	//go:embed synonyms.txt
	alike string

	//go:embed fillers.txt
	fillerWords string
)

// fillers are words without meaning in a query.
var fillers = sync.OnceValue(func() map[string]bool { return stems(fillerWords) })

// synonyms returns the other stems of the groups of each stem.
var synonyms = sync.OnceValue(func() map[string][]string {
	others := map[string][]string{}
	for line := range strings.Lines(alike) {
		group := stems(line)
		for word := range group {
			for other := range group {
				if other != word {
					others[word] = append(others[word], other)
				}
			}
		}
	}
	return others
})

func stems(text string) map[string]bool {
	set := map[string]bool{}
	for word := range Words(text) {
		set[word] = true
	}
	return set
}
