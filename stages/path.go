package stages

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"
)

// A path is a jq expression that only goes to places of a value: .a, .a.b, ."a-b", .["a"], .[0], .[-1], .[], each
// with or without "?". It gives the bytes that stand there, and needs no program. The empty path is ".".
type path []pathStep

type pathStep struct {
	key   string
	index int
	goes  stepKind
	try   bool // written with "?": a value that it does not fit gives nothing
}

type stepKind int

const (
	toMember stepKind = iota
	toElement
	toAll
)

// maxPathSteps bounds a path; what is longer is left to jq.
const maxPathSteps = 32

// parsePath reads a jq expression that is a path, and reports whether it is one.
func parsePath(text string) (path, bool) {
	text = string(trimBlank([]byte(text)))
	for text != "" && blank(text[len(text)-1]) {
		text = text[:len(text)-1]
	}
	if text == "" || text[0] != '.' {
		return nil, false
	}
	p := path{}
	rest := text[1:]
	dot := true // a name may follow
	for rest != "" {
		var s pathStep
		n := 0
		switch {
		case rest[0] == '[':
			s, n = readBracket(rest)
		case rest[0] == '.' && !dot && len(rest) > 1 && rest[1] != '[':
			rest = rest[1:]
			s, n = readName(rest)
		case dot:
			s, n = readName(rest)
		}
		if n == 0 || len(p) == maxPathSteps {
			return nil, false
		}
		rest, dot = rest[n:], false
		if rest != "" && rest[0] == '?' {
			s.try, rest = true, rest[1:]
		}
		p = append(p, s)
	}
	return p, true
}

// readName reads an identifier or a quoted string, and says how long it is.
func readName(text string) (pathStep, int) {
	if text[0] == '"' {
		key, n := quotedKey(text)
		return pathStep{key: key}, n
	}
	n := 0
	for n < len(text) && identifier(text[:n+1]) {
		n++
	}
	return pathStep{key: text[:n]}, n
}

// quotedKey reads a JSON string. One with an interpolation is no mere name.
func quotedKey(text string) (key string, n int) {
	raw, _ := nextValue([]byte(text))
	if json.Unmarshal(raw, &key) != nil {
		return "", 0
	}
	return key, len(raw)
}

// readBracket reads [], [0], [-1] or ["a"].
func readBracket(text string) (pathStep, int) {
	end := 1
	var s pathStep
	switch {
	case len(text) > 1 && text[1] == ']':
		s.goes = toAll
	case len(text) > 1 && text[1] == '"':
		key, n := quotedKey(text[1:])
		if n == 0 {
			return s, 0
		}
		s.key, end = key, 1+n
	default:
		for end < len(text) && text[end] != ']' {
			end++
		}
		i, err := strconv.Atoi(text[1:end])
		if err != nil || text[1] == '+' {
			return s, 0
		}
		s.index, s.goes = i, toElement
	}
	if end >= len(text) || text[end] != ']' {
		return s, 0
	}
	return s, end + 1
}

// each gives all that stands at the path in value, which is valid JSON, to yield. What is missing is null, as in jq.
func (p path) each(value json.RawMessage, yield func(json.RawMessage) error) error {
	if len(p) == 0 {
		return yield(value)
	}
	s := p[0]
	next := func(v json.RawMessage) error { return p[1:].each(v, yield) }
	switch c := value[0]; {
	case c == 'n' && s.goes != toAll:
		return next(null)
	case s.goes == toMember && c == '{':
		return next(memberOf(value, s.key))
	case s.goes == toElement && c == '[':
		return next(elementOf(value, s.index))
	case s.goes == toAll && c == '[':
		for v := range elements(value) {
			if err := next(v); err != nil {
				return err
			}
		}
		return nil
	case s.goes == toAll && c == '{':
		return eachMember(value, next)
	case s.try:
		return nil
	}
	return fmt.Errorf("cannot go to %s of %s", s, describe(value))
}

// maxIterated is how many members an object may have whose values are iterated: they are sorted before.
const maxIterated = 100_000

// eachMember gives the values of an object as jq does: in the order of their keys, the last one of each key.
func eachMember(object json.RawMessage, yield func(json.RawMessage) error) error {
	last := map[string]json.RawMessage{}
	for key, v := range members(object) {
		if last[key] = v; len(last) > maxIterated {
			return fmt.Errorf("cannot go to .[] of an object of more than %d members", maxIterated)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(last)) {
		if err := yield(last[key]); err != nil {
			return err
		}
	}
	return nil
}

// one returns what stands at a path that has no iteration, null if it is missing.
func (p path) one(value json.RawMessage) (found json.RawMessage, err error) {
	found = null
	err = p.each(value, func(v json.RawMessage) error { found = v; return nil })
	return found, err
}

// holds reports whether something stands at a path that has no iteration, be it null.
func (p path) holds(value json.RawMessage) bool {
	if len(p) == 0 {
		return true
	}
	last := p[len(p)-1]
	around, err := p[:len(p)-1].one(value)
	switch {
	case err != nil:
	case last.goes == toMember && around[0] == '{':
		for key := range members(around) {
			if key == last.key {
				return true
			}
		}
	case last.goes == toElement && around[0] == '[':
		n := 0
		for range elements(around) {
			n++
		}
		return last.index < n && last.index >= -n
	}
	return false
}

// fixed returns the path up to its first iteration, and whether that passes over what it cannot iterate.
func (p path) fixed() (base path, try bool) {
	i := slices.IndexFunc(p, func(s pathStep) bool { return s.goes == toAll })
	if i < 0 {
		return p, false
	}
	return p[:i], p[i].try
}

// iterates reports whether the path may give several values.
func (p path) iterates() bool {
	return slices.ContainsFunc(p, func(s pathStep) bool { return s.goes == toAll })
}

// with returns the path with one more member.
func (p path) with(key string) path { return append(p[:len(p):len(p)], pathStep{key: key}) }

// String writes the path as jq does.
func (p path) String() string {
	text := ""
	for i, s := range p {
		step := s.String()
		if i > 0 && s.goes != toMember {
			step = step[1:]
		}
		text += step
	}
	if text == "" {
		return "."
	}
	return text
}

func (s pathStep) String() string {
	switch {
	case s.goes == toAll:
		return ".[]"
	case s.goes == toElement:
		return fmt.Sprintf(".[%d]", s.index)
	case identifier(s.key):
		return "." + s.key
	}
	return "." + string(appendString(nil, []byte(s.key)))
}

var null = json.RawMessage("null")

// elements gives the elements of an array, which is valid JSON.
func elements(array json.RawMessage) iter.Seq[json.RawMessage] {
	return func(yield func(json.RawMessage) bool) {
		for rest := trimBlank(array[1:]); rest[0] != ']'; {
			if rest[0] == ',' {
				rest = trimBlank(rest[1:])
			}
			var v []byte
			v, rest = nextValue(rest)
			rest = trimBlank(rest)
			if !yield(v) {
				return
			}
		}
	}
}

// members gives the members of an object, which is valid JSON.
func members(object json.RawMessage) iter.Seq2[string, json.RawMessage] {
	return func(yield func(string, json.RawMessage) bool) {
		for rest := trimBlank(object[1:]); rest[0] != '}'; {
			if rest[0] == ',' {
				rest = trimBlank(rest[1:])
			}
			var key, value []byte
			key, rest = nextValue(rest)
			value, rest = nextValue(trimBlank(trimBlank(rest)[1:])) // behind the colon
			rest = trimBlank(rest)
			if !yield(text(key), value) {
				return
			}
		}
	}
}

// text is a JSON string decoded.
func text(raw json.RawMessage) string {
	plain := raw[1 : len(raw)-1]
	for _, c := range plain {
		if c == '\\' || c >= utf8.RuneSelf {
			var s string
			_ = json.Unmarshal(raw, &s) // it is a valid string
			return s
		}
	}
	return string(plain)
}

// memberOf returns a member of an object, the last one of that name, or null.
func memberOf(object json.RawMessage, key string) json.RawMessage {
	found := null
	for k, v := range members(object) {
		if k == key {
			found = v
		}
	}
	return found
}

// elementOf returns an element of an array, counted from the end if i is below zero, or null.
func elementOf(array json.RawMessage, i int) json.RawMessage {
	if i < 0 {
		for range elements(array) {
			i++
		}
	}
	if i < 0 {
		return null
	}
	for v := range elements(array) {
		if i == 0 {
			return v
		}
		i--
	}
	return null
}
