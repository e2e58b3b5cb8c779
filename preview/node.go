package preview

import (
	"bytes"
	"unicode/utf8"
)

const (
	maxNodes = 8192 // nodes of one profile, wherever they are made
	maxKeys  = 160  // keys of one node, beyond it is a map whose keys are data
)

// valueKind is one of jq's types.
type valueKind uint8

const (
	kindNull valueKind = iota
	kindBool
	kindNumber
	kindString
	kindArray
	kindObject
	numKinds
)

// node is what is known of all values at one path.
type node struct {
	kinds  [numKinds]int64
	secret bool // no value is kept

	trues  int64
	floats int64 // numbers with fraction or exponent
	huge   int64 // numbers too long to be kept
	odd    int64 // NaN and Infinity
	lo, hi extreme
	ints   tally // numbers by their text

	classes  [numClasses]int64
	maxLen   int64 // bytes of the longest string
	example  string
	dateLo   []byte
	dateHi   []byte
	strs     tally
	patterns tally

	elem           *node
	lenMin, lenMax int64

	keys             []edge
	index            map[string]int32
	keysMin, keysMax int64
	mapv             *node // all values, once the keys are data
	mapKeys          []string
	texts            *texts
	inner            *node // the documents in strings
	badInner         bool  // some strings that look like documents are none, or too long to be read
	recursive        []recursion
	again            bool  // the object above comes again here
	taken            int64 // objects of n that are counted there
	lost             bool  // some values below are not profiled: the cap of nodes, or of depth
	longKeys         int64 // keys too long to be kept
	broken           int64 // objects that were not complete
}

// edge leads from an object to one of its keys.
type edge struct {
	name    string
	n       *node
	present int64 // objects that have it
	seen    int64 // the object that had it last, to find duplicates
	first   int64 // the object that had it first, from 1; 0: unknown
}

func (n *node) total() (sum int64) {
	for _, k := range n.kinds {
		sum += k
	}
	return sum
}

func (n *node) addBool(v bool) {
	n.kinds[kindBool]++
	if v {
		n.trues++
	}
}

func (n *node) addNumber(t *token) {
	n.kinds[kindNumber]++
	if t.float {
		n.floats++
	}
	if n.secret {
		return
	}
	if t.cut() || t.odd {
		n.ints.drop()
		if t.odd {
			n.odd++
		} else {
			n.huge++
		}
		return
	}
	v := parseNumber(t.raw, t.float)
	n.lo.keep(&v, -1)
	n.hi.keep(&v, 1)
	n.ints.add(t.raw, 1)
}

// addString takes a string without escapes, of which b may be only the beginning, and says what it looks like.
func (n *node) addString(b []byte, size int64, last byte) class {
	n.kinds[kindString]++
	n.maxLen = max(n.maxLen, size)
	if n.secret {
		n.classes[classText]++
		return classText
	}
	c := classify(b, size, last)
	n.classes[c]++
	if n.example == "" && size > 0 {
		n.example = string(cutRunes(b, maxTallyText))
	}
	if c == classDateTime || c == classDate {
		n.addDate(b)
	}
	if size > maxTallyText {
		n.strs.drop()
		n.patterns.drop()
		return c
	}
	n.addText(b, 1)
	return c
}

// addText counts a short string: among the values while they are few, then among the patterns.
func (n *node) addText(b []byte, times int64) {
	if !n.strs.over {
		few := n.strs.values
		n.strs.add(b, times)
		if !n.strs.over {
			return
		}
		n.addPatterns(few)
	}
	n.addPattern(b, times)
}

func (n *node) addPatterns(values []tallied) {
	for _, v := range values {
		n.addPattern([]byte(v.text), v.n)
	}
}

func (n *node) addPattern(b []byte, times int64) {
	if n.patterns.over || len(b) == 0 { // what is empty is counted elsewhere
		return
	}
	var buf [maxPattern]byte
	if p, ok := pattern(buf[:0], b); ok && bytes.IndexByte(b, digitRun) < 0 {
		n.patterns.add(p, times)
	} else {
		n.patterns.drop()
	}
}

// mergeTexts adds the short strings of o.
func (n *node) mergeTexts(o *node) {
	if !o.strs.over {
		for _, v := range o.strs.values {
			n.addText([]byte(v.text), v.n)
		}
		return
	}
	n.addPatterns(n.strs.values)
	n.strs.drop()
	n.patterns.merge(&o.patterns)
}

// stringPatterns are the patterns of all strings of n.
func (n *node) stringPatterns() *tally {
	if n.strs.over {
		return &n.patterns
	}
	var all node
	all.addPatterns(n.strs.values)
	return &all.patterns
}

func (n *node) addDate(b []byte) {
	if len(n.dateLo) == 0 || string(b) < string(n.dateLo) {
		n.dateLo = append(n.dateLo[:0], b...)
	}
	if string(b) > string(n.dateHi) {
		n.dateHi = append(n.dateHi[:0], b...)
	}
}

func (n *node) addLength(v int64) {
	if n.kinds[kindArray] == 1 {
		n.lenMin, n.lenMax = v, v
	}
	n.lenMin, n.lenMax = min(n.lenMin, v), max(n.lenMax, v)
}

func (n *node) addKeys(v int64) {
	if n.kinds[kindObject] == 1 {
		n.keysMin, n.keysMax = v, v
	}
	n.keysMin, n.keysMax = min(n.keysMin, v), max(n.keysMax, v)
}

// find returns the position of a key; guess is where it is when the object's keys have the usual order.
func (n *node) find(name []byte, guess int) int {
	if guess < len(n.keys) && n.keys[guess].name == string(name) {
		return guess
	}
	if n.index != nil {
		if i, ok := n.index[string(name)]; ok {
			return int(i)
		}
		return -1
	}
	for i := range n.keys {
		if n.keys[i].name == string(name) {
			return i
		}
	}
	return -1
}

// addEdge appends a key, which must be new.
func (n *node) addEdge(name string, child *node) *edge {
	n.keys = append(n.keys, edge{name: name, n: child})
	if n.index == nil && len(n.keys) > 8 {
		n.index = make(map[string]int32, 16)
		for i := range n.keys {
			n.index[n.keys[i].name] = int32(i)
		}
	} else if n.index != nil {
		n.index[name] = int32(len(n.keys) - 1)
	}
	return &n.keys[len(n.keys)-1]
}

// cutRunes shortens b to at most size bytes without cutting a rune.
func cutRunes(b []byte, size int) []byte {
	if len(b) <= size {
		return b
	}
	for size > 0 && !utf8.RuneStart(b[size]) {
		size--
	}
	return b[:size]
}
