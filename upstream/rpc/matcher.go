package rpc

import (
	"cmp"
	"iter"
	"slices"
)

// A char is a byte of a text whose escapes were removed, with its place in the text.
type char struct {
	b        byte
	from, to int
	breaks   int // line breaks removed before it
}

// A span is a part of a text.
type span struct{ from, to int }

// A wordSet finds words in a stream (Aho and Corasick, 1975). Each byte costs a constant number of steps on average.
type wordSet struct {
	nodes []node // the first is the root
	edges map[edge]int
	first [256]bool // bytes that begin a word
	depth int       // of the deepest node
}

// A node is a prefix of words.
type node struct {
	edge        // that leads to it
	depth   int // bytes of the prefix
	fail    int // the longest proper suffix of it that is a prefix of words, too
	longest int // bytes of the longest word that is a suffix of it; 0: none
}

// An edge leads from a node to the node with one more byte.
type edge struct {
	from int
	b    byte
}

func newWordSet(words []string) *wordSet {
	s := &wordSet{nodes: make([]node, 1), edges: map[edge]int{}}
	for _, word := range words {
		at := 0
		for i := range len(word) {
			e := edge{at, word[i]}
			if s.edges[e] == 0 {
				s.edges[e] = len(s.nodes)
				s.nodes = append(s.nodes, node{edge: e, depth: i + 1})
			}
			at = s.edges[e]
			s.first[word[0]] = true
		}
		s.nodes[at].longest = len(word)
		s.depth = max(s.depth, len(word))
	}
	order := make([]*node, len(s.nodes))
	for i := range s.nodes {
		order[i] = &s.nodes[i]
	}
	slices.SortFunc(order, func(a, b *node) int { return cmp.Compare(a.depth, b.depth) })
	for _, n := range order { // what a node falls back to is less deep
		if n.depth > 1 {
			n.fail, _ = s.next(s.nodes[n.from].fail, n.b)
		}
		n.longest = max(n.longest, s.nodes[n.fail].longest)
	}
	return s
}

// next is the node to which a byte leads, and the number of steps.
func (s *wordSet) next(at int, b byte) (to, steps int) {
	for steps = 1; ; steps++ {
		if at == 0 && !s.first[b] {
			return 0, steps
		}
		if to = s.edges[edge{at, b}]; to != 0 || at == 0 {
			return to, steps
		}
		at = s.nodes[at].fail
	}
}

// find returns the places of words in a stream, in order and without overlaps, and the number of steps.
func (s *wordSet) find(stream iter.Seq[char]) (found []span, steps int) {
	recent := make([]char, s.depth+1) // at least as many of the last as the longest word has
	at, read := 0, 0
	for c := range stream {
		var more int
		at, more = s.next(at, c.b)
		steps += more
		recent[read%len(recent)] = c
		read++
		if n := s.nodes[at].longest; n > 0 {
			if first := recent[(read-n)%len(recent)]; n >= minCaseFolded || first.breaks == c.breaks {
				found = joined(found, span{first.from, c.to})
			}
		}
	}
	return found, steps
}

// joined adds a span to sorted spans, and merges those that overlap.
func joined(spans []span, p span) []span {
	for n := len(spans); n > 0 && spans[n-1].to > p.from; n-- {
		p.from = min(p.from, spans[n-1].from)
		p.to = max(p.to, spans[n-1].to)
		spans = spans[:n-1]
	}
	return append(spans, p)
}
