package stages

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"strings"
	"unicode/utf8"
)

// The values of this file are JSON as it was written: numbers keep every digit, strings every byte. Values must be valid;
// functions that take other text begin with read.

var null = json.RawMessage("null")

// kindOfValue is the first byte of a JSON value: 'n' for null, and for nothing.
func kindOfValue(v json.RawMessage) byte {
	if len(v) == 0 {
		return 'n'
	}
	return v[0]
}

// isEmpty reports whether a value is null, false, or a string, array or object without anything in it.
func isEmpty(v json.RawMessage) bool {
	switch kindOfValue(v) {
	case 'n', 'f':
		return true
	case '"':
		return len(v) == 2
	case '[', '{':
		end := trimBlank(v[1:])[0]
		return end == ']' || end == '}'
	}
	return false
}

// wholeJSON reports whether text is one JSON object or array.
func wholeJSON(text []byte) bool {
	return len(text) > 0 && (text[0] == '{' || text[0] == '[') && json.Valid(text)
}

const blanks = " \t\r\n"

func blank(b byte) bool { return strings.IndexByte(blanks, b) >= 0 }

func trimBlank(data []byte) []byte { return bytes.TrimLeft(data, blanks) }

// oneLine returns value without line breaks outside of strings.
func oneLine(value json.RawMessage) []byte {
	return bytes.TrimSuffix(element{data: value}.line(), []byte("\n"))
}

// readValues returns the JSON values that data is made of, and whether it is.
func readValues(data []byte) (list []json.RawMessage, ok bool) {
	for rest := trimBlank(data); len(rest) > 0; {
		var scan valueScanner
		n, done := scan.scan(rest)
		if !done && !scan.scalar || n == 0 || !json.Valid(rest[:n]) {
			return nil, false
		}
		list = append(list, rest[:n:n])
		rest = trimBlank(rest[n:])
	}
	return list, true
}

// valueScanner finds the end of a JSON value by its brackets and quotes. It does not validate.
type valueScanner struct {
	depth             int
	inString, escaped bool
	scalar            bool // a number or word has begun, which also ends with the input
}

// scan reads p and returns how much of it belongs to the value, and whether that ended it.
func (v *valueScanner) scan(p []byte) (n int, done bool) {
	for i, c := range p {
		switch {
		case v.escaped:
			v.escaped = false
		case v.inString:
			v.escaped, v.inString = c == '\\', c != '"'
			if !v.inString && v.depth == 0 {
				return i + 1, true
			}
		case v.depth == 0 && (blank(c) || c == ',' || c == ':' || c == ']' || c == '}'),
			v.scalar && (c == '"' || c == '[' || c == '{'):
			return i, true
		case c == '"':
			v.inString = true
		case c == '{' || c == '[':
			v.depth++
		case c == '}' || c == ']':
			if v.depth--; v.depth == 0 {
				return i + 1, true
			}
		case v.depth == 0:
			v.scalar = true
		}
	}
	return len(p), false
}

// nextValue splits what begins with a value behind it.
func nextValue(data []byte) (value, rest []byte) {
	var scan valueScanner
	n, _ := scan.scan(data)
	return data[:n:n], data[n:]
}

// parts gives the elements of an array, or the members of an object with their names as they are written.
func parts(value json.RawMessage) iter.Seq2[json.RawMessage, json.RawMessage] {
	return func(yield func(name, value json.RawMessage) bool) {
		for rest := trimBlank(value[1:]); rest[0] != ']' && rest[0] != '}'; {
			if rest[0] == ',' {
				rest = trimBlank(rest[1:])
			}
			var name, part []byte
			if value[0] == '{' {
				name, rest = nextValue(rest)
				rest = trimBlank(trimBlank(rest)[1:]) // behind the colon
			}
			part, rest = nextValue(rest)
			rest = trimBlank(rest)
			if !yield(name, part) {
				return
			}
		}
	}
}

// members gives the members of an object.
func members(object json.RawMessage) iter.Seq2[string, json.RawMessage] {
	return func(yield func(string, json.RawMessage) bool) {
		for name, v := range parts(object) {
			if !yield(text(name), v) {
				return
			}
		}
	}
}

// memberOf returns a member of an object, the last one of that name, or nil.
func memberOf(object json.RawMessage, key string) (found json.RawMessage) {
	for k, v := range members(object) {
		if k == key {
			found = v
		}
	}
	return found
}

// elementOf returns an element of an array, counted from the end if i is below zero, or nil.
func elementOf(array json.RawMessage, i int) json.RawMessage {
	if i < 0 {
		for range parts(array) {
			i++
		}
	}
	if i < 0 {
		return nil
	}
	for _, v := range parts(array) {
		if i == 0 {
			return v
		}
		i--
	}
	return nil
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

// appendString appends text as a JSON string. Bytes that are not UTF-8 stay as they are, so that they pass between
// stages untouched (docs/pipeline.md, How stages run); only what JSON demands is escaped.
func appendString(b, text []byte) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for _, c := range text {
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c == '\n':
			b = append(b, '\\', 'n')
		case c == '\t':
			b = append(b, '\\', 't')
		case c == '\r':
			b = append(b, '\\', 'r')
		case c < 0x20:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}

// member is one key of a JSON object with its value.
type member struct {
	key   string
	value json.RawMessage
}

var errNotObject = errors.New("not one JSON object")

// readObject returns the members of data, which must be exactly one JSON object, in their order.
func readObject(data []byte) ([]member, error) {
	if rest := trimBlank(data); len(rest) == 0 || rest[0] != '{' || !json.Valid(data) {
		return nil, errNotObject
	}
	list := []member{}
	for key, value := range members(trimBlank(data)) {
		list = append(list, member{key, value})
	}
	return list, nil
}

func given(list []member, name string) bool {
	return slices.ContainsFunc(list, func(m member) bool { return m.key == name })
}

// merge makes one list of members of several: a later value of a key replaces the earlier one, in its place.
func merge(lists ...[]member) (all []member) {
	at := map[string]int{}
	for _, list := range lists {
		for _, m := range list {
			if i, ok := at[m.key]; ok {
				all[i].value = m.value
				continue
			}
			at[m.key] = len(all)
			all = append(all, m)
		}
	}
	return all
}

// encodeObject writes members as a JSON object, values as they are.
func encodeObject(members []member) json.RawMessage {
	n := 2
	for _, m := range members {
		n += len(m.key) + len(m.value) + len(`"":,`)
	}
	b := append(make([]byte, 0, n), '{')
	for i, m := range members {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendString(b, []byte(m.key)), ':')
		b = append(b, m.value...)
	}
	return append(b, '}')
}

// encodeArray writes values as a JSON array, as they are.
func encodeArray(list []json.RawMessage) json.RawMessage {
	b := []byte{'['}
	for i, v := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, v...)
	}
	return append(b, ']')
}

// callKey stands for the arguments of a call.
type callKey [sha256.Size]byte

// keyOf returns the key of arguments. The order of members and blanks do not matter to it.
func keyOf(args json.RawMessage) callKey {
	if bytes.ContainsAny(args, ", \t\r\n") {
		args = canonical(nil, args, maxCanonical)
	}
	return sha256.Sum256(args)
}

// maxCanonical is how deep the order of members is looked at: each level is read once more. Below it, calls that differ
// only in that order are different calls.
const maxCanonical = 8

// canonical appends a JSON value with the members of objects in the order of their names, and without blanks.
func canonical(b []byte, value json.RawMessage, depth int) []byte {
	value = bytes.TrimSpace(value)
	if c := kindOfValue(value); depth == 0 || c != '{' && c != '[' {
		return append(b, value...)
	}
	type part struct{ name, value json.RawMessage }
	var list []part
	sortable := true
	for name, v := range parts(value) {
		list = append(list, part{name, v})
		sortable = sortable && bytes.IndexByte(name, '\\') < 0
	}
	if sortable { // a name can be written in several ways, and twice: then the order may matter
		slices.SortStableFunc(list, func(x, y part) int { return bytes.Compare(x.name, y.name) })
	}
	b = append(b, value[0])
	for i, p := range list {
		if i > 0 {
			b = append(b, ',')
		}
		if p.name != nil {
			b = append(append(b, p.name...), ':')
		}
		b = canonical(b, p.value, depth-1)
	}
	return append(b, value[len(value)-1])
}
