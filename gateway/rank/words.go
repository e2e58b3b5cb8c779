package rank

import (
	_ "embed"
	"iter"
	"strings"
	"sync"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

// Words returns the stems of the words of a text.
func Words(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for word := range texts.Words(text) {
			if !yield(stem(word)) {
				return
			}
		}
	}
}

// endings of nouns, verbs and adverbs that stem removes, with the least length of the rest.
var endings = []struct {
	text  string
	least int
}{{"ing", 3}, {"ed", 3}, {"ion", 3}, {"ment", 6}, {"ly", 5}}

// stem removes the endings of English plurals, verbs and verbal nouns, so that "execute", "executes" and "execution" are
// equal. A stem need not be a word.
func stem(word string) string {
	if base, ok := strings.CutSuffix(word, "ie"+word[len(word)-1:]); ok && len(base) > 1 && strings.ContainsAny(word[len(word)-1:], "sd") {
		return base + "y" // queries, copied
	}
	if len(word) > 3 && strings.HasSuffix(word, "s") && !strings.HasSuffix(word, "ss") && !strings.HasSuffix(word, "us") && !strings.HasSuffix(word, "is") {
		word = word[:len(word)-1]
	}
	for _, ending := range endings {
		if base, ok := strings.CutSuffix(word, ending.text); ok && len(base) >= ending.least && strings.ContainsAny(base, "aeiouy") {
			if last := base[len(base)-1]; last == base[len(base)-2] && !strings.ContainsRune("lsz", rune(last)) {
				base = base[:len(base)-1] // running, committed
			}
			word = base
			break
		}
	}
	if len(word) > 3 {
		word = strings.TrimSuffix(word, "e")
	}
	if len(word) > 6 {
		word = strings.TrimSuffix(word, "at") // configuration, configure; annotate
	}
	return word
}

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
