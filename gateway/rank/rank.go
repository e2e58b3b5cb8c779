// Package rank finds the documents that words speak of, best first: BM25 over fields of different weight. It is made for
// thousands of short documents, such as descriptions of tools, and keeps nothing between searches. It is pure.
package rank

import (
	"math"
	"slices"
	"strings"
	"unicode"
)

// A Field is a part of a document.
type Field struct {
	Text   string
	Weight float64 // how much a word counts here; 1 is that of running text
}

// The usual constants of BM25: how soon more of the same word counts no more, and how much long documents are worth less.
const (
	saturation = 1.2
	length     = 0.75
)

// document is a document's words with their weights.
type document struct {
	words map[string]float64
	size  float64
}

// Search returns the indices of the documents that hold words of the query, best first, at most n. Documents that are
// as good as each other keep their order.
func Search(query string, docs [][]Field, n int) []int {
	wanted := slices.Compact(slices.Sorted(slices.Values(Words(query))))
	all := make([]document, len(docs))
	holders := map[string]float64{}
	total := 0.0
	for i, fields := range docs {
		all[i] = read(fields)
		total += all[i].size
		for _, word := range wanted {
			if all[i].words[word] > 0 {
				holders[word]++
			}
		}
	}
	mean := max(1, total/float64(max(1, len(docs))))
	scores := make([]float64, len(docs))
	var found []int
	for i, d := range all {
		for _, word := range wanted {
			tf := d.words[word]
			rarity := math.Log(1 + (float64(len(docs))-holders[word]+0.5)/(holders[word]+0.5))
			scores[i] += rarity * tf * (saturation + 1) / (tf + saturation*(1-length+length*d.size/mean))
		}
		if scores[i] > 0 {
			found = append(found, i)
		}
	}
	slices.SortStableFunc(found, func(a, b int) int {
		switch {
		case scores[a] > scores[b]:
			return -1
		case scores[a] < scores[b]:
			return 1
		}
		return 0
	})
	return found[:min(len(found), n)]
}

func read(fields []Field) document {
	d := document{words: map[string]float64{}}
	for _, f := range fields {
		for _, word := range Words(f.Text) {
			d.words[word] += f.Weight
			d.size += f.Weight
		}
	}
	return d
}

// Words splits text into words that can be compared: in lower case, names such as "listIssues" and "list_issues" taken
// apart, plurals like singulars.
func Words(text string) []string {
	var all []string
	var word strings.Builder
	flush := func() {
		if word.Len() > 0 {
			all = append(all, stem(word.String()))
			word.Reset()
		}
	}
	lower := false
	for _, c := range text {
		switch {
		case !unicode.IsLetter(c) && !unicode.IsDigit(c):
			flush()
			lower = false
			continue
		case unicode.IsUpper(c) && lower:
			flush()
		}
		lower = unicode.IsLower(c)
		word.WriteRune(unicode.ToLower(c))
	}
	flush()
	return all
}

// stem makes one of a plural and its singular, as far as that is simple.
func stem(word string) string {
	switch {
	case len(word) > 4 && strings.HasSuffix(word, "ies"):
		return word[:len(word)-3] + "y"
	case len(word) > 4 && (strings.HasSuffix(word, "sses") || strings.HasSuffix(word, "ches") || strings.HasSuffix(word, "shes") || strings.HasSuffix(word, "xes")):
		return word[:len(word)-2]
	case len(word) > 3 && strings.HasSuffix(word, "s") && !strings.HasSuffix(word, "ss") && !strings.HasSuffix(word, "us"):
		return word[:len(word)-1]
	}
	return word
}
