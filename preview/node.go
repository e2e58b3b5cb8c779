package preview

import (
	"bytes"
	"unicode/utf8"
)

const (
	maxNodes = 8192 // nodes of one profile, wherever they are made
	maxKeys  = 160  // keys of one node; a node with more is a map, whose keys are data
)

// node describes all values at one path.
type node struct {
	kinds  [numKinds]int64
	secret bool // no value is kept

	trues     int64
	floats    int64 // numbers with fraction or exponent
	huge      int64 // numbers too long to be kept
	nonFinite int64 // NaN and Infinity
	lo, hi    number
	ints      tally // numbers by their text

	classes  [numClasses]int64
	maxLen   int64 // bytes of the longest string
	example  string
	dateLo   []byte
	dateHi   []byte
	strs     tally
	patterns tally

	elem    *node
	lengths span // of arrays

	keys        []edge
	sizes       span  // numbers of keys
	mapValue    *node // all values, if the keys are data
	mapKeys     []string
	texts       *longTexts
	embedded    *node // the documents in strings
	badEmbedded bool  // some strings look like documents, but are invalid or too long
	recursive   []recursion
	recurses    bool  // objects like the one above lie here
	movedOut    int64 // objects of n that are counted there instead
	incomplete  bool  // some values below are not profiled: there are too many nodes, or they lie too deep
	longKeys    int64 // keys too long to be kept
	broken      int64 // objects that do not end
}

// edge leads from an object to one of its keys.
type edge struct {
	name    string
	n       *node
	present int64 // objects that have it
	last    int64 // the last object that has it, to find duplicates
	first   int64 // the first object that has it, from 1; 0: unknown
}

// total is the number of values, 0 for nil.
func (n *node) total() (sum int64) {
	if n == nil {
		return 0
	}
	for _, k := range n.kinds {
		sum += k
	}
	return sum
}

func (n *node) addNumber(t *token, times int64) {
	n.kinds[kindNumber] += times
	if t.float {
		n.floats += times
	}
	switch {
	case n.secret:
	case t.odd[oddNumber]:
		n.ints.drop()
		n.nonFinite += times
	case t.cut():
		n.ints.drop()
		n.huge += times
	default:
		v := parseNumber(t.text, t.float)
		n.lo.keep(&v, -1)
		n.hi.keep(&v, 1)
		n.ints.add(t.text, times)
	}
}

// addString counts a string and returns its class; b is the string without escapes, or its beginning.
func (n *node) addString(b []byte, size int64, last byte, times int64) class {
	n.kinds[kindString] += times
	n.maxLen = max(n.maxLen, size)
	if n.secret {
		n.classes[classText] += times
		return classText
	}
	c := classify(b, size, last)
	n.classes[c] += times
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
	n.strs.add(b, times)
	n.addPattern(b, times)
	return c
}

// addWord counts a word of text or a field of a row, as a number or a string. Its size is that of all of it.
func (n *node) addWord(text []byte, size, times int64) {
	last := byte(0)
	if whole := size == int64(len(text)); whole && size > 0 {
		if size <= maxNumber && isJSONNumber(text) {
			n.addNumber(&token{text: text, size: size, float: !isInteger(text)}, times)
			return
		}
		last = text[size-1]
	}
	n.addString(text[:min(len(text), maxToken)], size, last, times)
}

// addPattern counts a short string by its pattern.
func (n *node) addPattern(b []byte, times int64) {
	if n.patterns.over || len(b) == 0 { // classes counts empty strings
		return
	}
	var buf [maxPattern]byte
	if p, ok := pattern(buf[:0], b); ok && bytes.IndexByte(b, digitRun) < 0 {
		n.patterns.add(p, times)
	} else {
		n.patterns.drop()
	}
}

func (n *node) addDate(b []byte) {
	if len(n.dateLo) == 0 || string(b) < string(n.dateLo) {
		n.dateLo = append(n.dateLo[:0], b...)
	}
	if string(b) > string(n.dateHi) {
		n.dateHi = append(n.dateHi[:0], b...)
	}
}

// find returns the position of a key, or -1. It looks first where the next key of the object is expected, then behind that.
func (n *node) find(name []byte, expected int) int {
	if expected < len(n.keys) && n.keys[expected].name == string(name) {
		return expected
	}
	for i := range n.keys {
		if at := (expected + i) % len(n.keys); n.keys[at].name == string(name) {
			return at
		}
	}
	return -1
}

// cutRunes shortens b to at most size bytes and keeps runes whole.
func cutRunes(b []byte, size int) []byte {
	if len(b) <= size {
		return b
	}
	for size > 0 && !utf8.RuneStart(b[size]) {
		size--
	}
	return b[:size]
}
