// Package rank finds the best documents for a query: BM25 over weighted fields of stemmed words and their synonyms. It suits
// thousands of short documents, such as descriptions of tools, and keeps nothing between searches.
package rank

import (
	"cmp"
	"math"
	"slices"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

// A Field is a part of a document. All documents have the same fields in the same order.
type Field struct {
	Text   string
	Weight float64 // of a word here; 1 in running text
}

const (
	// saturation is BM25's k1: a smaller one makes repeated words count less.
	saturation = 1.2
	// length is BM25's b: a larger one makes words in long fields count less.
	length = 0.6
	// likeness is the weight of a synonym; the word itself has 1.
	likeness = 0.7
)

// Bounds of one search, in bytes: hostile descriptions can have megabytes.
const (
	maxQuery = 1 << 10 // read of the query
	maxWords = 32      // compared of the query
	maxRead  = 8 << 20 // of all documents, in equal parts
	leastOf  = 256     // read of each document
	mostOf   = 16 << 10
)

// A corpus holds the counts of a search.
type corpus struct {
	docs    []map[string][]float64 // by document: occurrences of sought words, by field
	sizes   [][]float64            // by document and field, in words
	mean    []float64              // of sizes, by field
	holders map[string]float64     // documents that hold a word
}

// Search returns the indices of the documents that hold words of the query or their synonyms, best first, at most n.
// Documents that are equally good keep their order. Only the beginnings of long documents are read.
func Search(query string, docs [][]Field, n int) []int {
	wanted := queryTerms(query[:min(len(query), maxQuery)])
	c := count(docs, wanted)
	scores := make([]float64, len(docs))
	var found []int
	for i, fields := range docs {
		if scores[i] = c.score(i, fields, wanted); scores[i] > 0 {
			found = append(found, i)
		}
	}
	slices.SortStableFunc(found, func(a, b int) int { return cmp.Compare(scores[b], scores[a]) })
	return found[:min(len(found), n)]
}

// A term is a word of the query with its equivalents.
type term struct {
	word   string
	pair   [2]string // the two words that it joins, if any
	joined []string  // the word and a neighbour as one word, a common form of names: "oncall"
	alike  []string  // its synonyms
}

// queryTerms returns the significant words of a query. Two words with synonyms of their own, such as "set up", are one term.
func queryTerms(query string) []term {
	var plain, all []term
	prior, at := "", -1 // the word before, and where it is in plain
	for word := range texts.Words(query) {
		both := stem(prior + word)
		if others := synonyms()[both]; prior != "" && others != nil {
			if at >= 0 {
				plain = plain[:at]
			}
			plain = append(plain, term{word: both, pair: [2]string{stem(prior), stem(word)}, alike: others})
			prior, at = "", -1
			continue
		}
		t := term{word: stem(word)}
		t.alike = synonyms()[t.word]
		if prior != "" {
			t.joined = append(t.joined, both)
		}
		if at >= 0 {
			plain[at].joined = append(plain[at].joined, both)
		}
		all, prior, at = append(all, t), word, -1
		if !fillers()[t.word] {
			at, plain = len(plain), append(plain, t)
		}
	}
	if plain == nil {
		plain = all
	}
	var wanted []term
	for _, t := range plain {
		if len(wanted) < maxWords && !slices.ContainsFunc(wanted, func(w term) bool { return w.word == t.word }) {
			wanted = append(wanted, t)
		}
	}
	return wanted
}

func count(docs [][]Field, wanted []term) corpus {
	sought, pairs := map[string]bool{}, map[[2]string]string{}
	for _, t := range wanted {
		pairs[t.pair] = t.word
		for _, word := range slices.Concat([]string{t.word}, t.joined, t.alike) {
			sought[word] = true
		}
	}
	c := corpus{holders: map[string]float64{}}
	share := min(mostOf, max(leastOf, maxRead/max(1, len(docs))))
	for _, fields := range docs {
		left, words, sizes := share, map[string][]float64{}, make([]float64, len(fields))
		for f, field := range fields {
			text := field.Text[:min(len(field.Text), left)]
			left -= len(text)
			prior := ""
			for word := range Words(text) {
				sizes[f]++
				for _, held := range []string{word, pairs[[2]string{prior, word}]} {
					if !sought[held] {
						continue
					}
					if words[held] == nil {
						words[held] = make([]float64, len(fields))
						c.holders[held]++
					}
					words[held][f]++
				}
				prior = word
			}
		}
		c.docs, c.sizes = append(c.docs, words), append(c.sizes, sizes)
		for f, size := range sizes {
			if f == len(c.mean) {
				c.mean = append(c.mean, 0)
			}
			c.mean[f] += size / float64(len(docs))
		}
	}
	return c
}

// score sums the terms of the query, each by its best equivalent. A synonym counts at most as rare as the word itself if that
// occurs. A document with only some of the terms counts less.
func (c *corpus) score(i int, fields []Field, wanted []term) float64 {
	sum, reached, all := 0.0, 0.0, 0.0
	for _, t := range wanted {
		rarity := c.rarity(t.word)
		best := c.frequency(i, fields, t.word) * rarity
		for _, word := range t.joined {
			best = max(best, c.frequency(i, fields, word)*c.rarity(word))
		}
		for _, word := range t.alike {
			if tf := c.frequency(i, fields, word); tf > 0 {
				synonym := c.rarity(word)
				if c.holders[t.word] > 0 {
					synonym = min(synonym, rarity)
				}
				best = max(best, likeness*tf*synonym)
			}
		}
		if all += rarity; best > 0 {
			sum, reached = sum+best, reached+rarity
		}
	}
	return sum * reached / max(all, 1e-9)
}

func (c *corpus) rarity(word string) float64 {
	n, holders := float64(len(c.docs)), c.holders[word]
	return math.Log(1 + (n-holders+0.5)/(holders+0.5))
}

// frequency returns the weighted, length-normalised and saturated frequency of a word in a document.
func (c *corpus) frequency(i int, fields []Field, word string) float64 {
	tf := 0.0
	for f, n := range c.docs[i][word] {
		if n > 0 {
			tf += fields[f].Weight * n / (1 - length + length*c.sizes[i][f]/c.mean[f])
		}
	}
	return tf * (saturation + 1) / (tf + saturation)
}
