// Package rank finds the best documents for a query: BM25 over weighted fields of stemmed words and their synonyms. It suits
// thousands of short documents, such as descriptions of tools. Each is prepared once for many searches; nothing else is kept.
package rank

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

// A Field is a part of a document. All documents have the same fields in the same order.
type Field struct {
	Text   string
	Weight float64 // of a word here; 1 in running text
}

// A Document is ready for searches: its fields have the stems of their words, each with a space behind it. It does not change.
type Document []Field

// Prepare makes a document of the beginning of a text in fields. It takes about as much memory as that.
func Prepare(fields ...Field) Document {
	var all strings.Builder
	ends, left := make([]int, len(fields)), mostOf
	for i, field := range fields {
		text := field.Text[:min(len(field.Text), left)]
		left -= len(text)
		for word := range Words(text) {
			all.WriteString(word)
			all.WriteByte(' ')
		}
		ends[i] = all.Len()
	}
	d, begin, stems := make(Document, len(fields)), 0, strings.Clone(all.String())
	for i, end := range ends {
		d[i], begin = Field{stems[begin:end], fields[i].Weight}, end
	}
	return d
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
	leastOf  = 256     // of each document
	mostOf   = 16 << 10
)

// Search returns the indices of the documents that hold words of the query or their synonyms, best first, at most n.
// Documents that are equally good keep their order. Only the beginnings of long documents are read.
func Search(query string, docs []Document, n int) []int {
	wanted := queryTerms(query[:min(len(query), maxQuery)])
	scores := count(docs, wanted).scores(wanted)
	var found []int
	for i, score := range scores {
		if score > 0 {
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

// A corpus holds the counts of a search.
type corpus struct {
	docs   []Document
	sizes  [][]float64            // by document and field, in words
	mean   []float64              // of sizes, by field
	sought map[string]*sought     // by stem
	pairs  map[[2]*sought]*sought // two words in a row that count as one
	begins [1 << 16]bool          // the first letters of sought words: others need no look into a map
}

// A sought word has the documents that hold it.
type sought struct{ holders []holder }

// A holder is a document that holds a word.
type holder struct {
	doc int
	by  []float64 // occurrences, by field
}

// seek adds a word to the sought ones.
func (c *corpus) seek(word string) *sought {
	if c.sought[word] == nil {
		c.sought[word] = &sought{}
		c.begins[beginning(word)] = true
	}
	return c.sought[word]
}

// beginning is a number for the first two bytes of a word.
func beginning(word string) int { return int(word[0])<<8 | int(word[min(1, len(word)-1)]) }

// held counts an occurrence of the word in a field of a document. The documents come in order.
func (s *sought) held(doc, field, fields int) {
	if s == nil {
		return
	}
	if n := len(s.holders); n == 0 || s.holders[n-1].doc != doc {
		s.holders = append(s.holders, holder{doc, make([]float64, fields)})
	}
	s.holders[len(s.holders)-1].by[field]++
}

func count(docs []Document, wanted []term) *corpus {
	c := &corpus{docs: docs, sought: map[string]*sought{}, pairs: map[[2]*sought]*sought{}}
	for _, t := range wanted {
		for _, word := range slices.Concat([]string{t.word}, t.joined, t.alike) {
			c.seek(word)
		}
		if t.pair[0] != "" {
			c.pairs[[2]*sought{c.seek(t.pair[0]), c.seek(t.pair[1])}] = c.seek(t.word)
		}
	}
	share := min(mostOf, max(leastOf, maxRead/max(1, len(docs))))
	for i, fields := range docs {
		sizes, left := make([]float64, len(fields)), share
		for f, field := range fields {
			text := field.Text[:min(len(field.Text), left)]
			left -= len(text)
			sizes[f] = c.read(text, i, f)
			if f == len(c.mean) {
				c.mean = append(c.mean, 0)
			}
			c.mean[f] += sizes[f] / float64(len(docs))
		}
		c.sizes = append(c.sizes, sizes)
	}
	return c
}

// read counts the sought words in the text of a field, and returns the number of all words.
func (c *corpus) read(text string, doc, field int) (size float64) {
	var prior *sought
	for word := range strings.FieldsSeq(text) {
		size++
		var now *sought
		if c.begins[beginning(word)] {
			now = c.sought[word]
		}
		now.held(doc, field, len(c.docs[doc]))
		if prior != nil && now != nil {
			c.pairs[[2]*sought{prior, now}].held(doc, field, len(c.docs[doc]))
		}
		prior = now
	}
	return size
}

// scores sums the terms of the query in each document, each by its best equivalent. A synonym counts at most as rare as the word
// itself if that occurs. A document with only some of the terms counts less.
func (c *corpus) scores(wanted []term) []float64 {
	sums, reached, best, all := make([]float64, len(c.docs)), make([]float64, len(c.docs)), make([]float64, len(c.docs)), 0.0
	for _, t := range wanted {
		rarity := c.rarity(t.word)
		c.improve(best, t.word, 1, rarity)
		for _, word := range t.joined {
			c.improve(best, word, 1, c.rarity(word))
		}
		for _, word := range t.alike {
			synonym := c.rarity(word)
			if len(c.sought[t.word].holders) > 0 {
				synonym = min(synonym, rarity)
			}
			c.improve(best, word, likeness, synonym)
		}
		all += rarity
		for i, one := range best {
			if one > 0 {
				sums[i], reached[i] = sums[i]+one, reached[i]+rarity
			}
		}
		clear(best)
	}
	for i := range sums {
		sums[i] = sums[i] * reached[i] / max(all, 1e-9)
	}
	return sums
}

// improve raises the best scores of documents to those for a word.
func (c *corpus) improve(best []float64, word string, weight, rarity float64) {
	for _, h := range c.sought[word].holders {
		best[h.doc] = max(best[h.doc], weight*c.frequency(h)*rarity)
	}
}

func (c *corpus) rarity(word string) float64 {
	n, holders := float64(len(c.docs)), float64(len(c.sought[word].holders))
	return math.Log(1 + (n-holders+0.5)/(holders+0.5))
}

// frequency returns the weighted, length-normalised and saturated frequency of a word in a document that holds it.
func (c *corpus) frequency(h holder) float64 {
	tf := 0.0
	for f, n := range h.by {
		if n > 0 {
			tf += c.docs[h.doc][f].Weight * n / (1 - length + length*c.sizes[h.doc][f]/c.mean[f])
		}
	}
	return tf * (saturation + 1) / (tf + saturation)
}
