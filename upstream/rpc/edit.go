package rpc

import (
	"bytes"
	"slices"
	"strings"
)

// Edit returns a JSON object with changed values; nil leaves a member out. Anything else stays as it is.
func Edit(object []byte, change func(name string, value []byte) []byte) []byte {
	out := append(make([]byte, 0, len(object)+128), '{')
	if !Members(object, func(name, value []byte) {
		if value = change(Name(name), value); value == nil {
			return
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(append(out, '"'), name...), `":`...), value...)
	}) {
		return object
	}
	return append(out, '}')
}

// EditMember returns a JSON object with another value of a member. Other spellings of the name, which some readers take for it,
// and repetitions are left out. An object without any of them stays as it is.
func EditMember(object []byte, member string, change func(value []byte) []byte) []byte {
	has, found := false, false
	Members(object, func(name, _ []byte) { has = has || strings.EqualFold(Name(name), member) })
	if !has {
		return object
	}
	return Edit(object, func(name string, value []byte) []byte {
		switch {
		case !strings.EqualFold(name, member):
			return value
		case found || name != member:
			return nil
		}
		found = true
		return change(value)
	})
}

// EditElements returns a JSON array with changed elements. Anything else stays as it is.
func EditElements(array []byte, change func(one []byte) []byte) []byte {
	out := append(make([]byte, 0, len(array)+128), '[')
	if !Elements(array, func(one []byte) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, change(one)...)
	}) {
		return array
	}
	return append(out, ']')
}

// Prepend returns a JSON object with a member, as it is written, before the others. Nothing counts as an object without members.
func Prepend(object []byte, member string) []byte {
	rest := []byte("}")
	if object = bytes.TrimSpace(object); len(object) > 0 {
		rest = bytes.TrimSpace(object[1:])
	}
	if rest[0] != '}' {
		member += ","
	}
	return slices.Concat([]byte("{"+member), rest)
}

// HasList reports whether a member of a JSON object, which must be there, is an array of objects.
func HasList(object []byte, member string) bool {
	found, other := false, false
	Members(object, func(name, value []byte) {
		if Name(name) != member {
			return
		}
		found = true
		if !Elements(value, func(one []byte) { other = other || one[0] != '{' }) {
			other = true
		}
	})
	return found && !other
}
