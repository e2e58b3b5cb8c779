package rpc

import (
	"bytes"
	"encoding/json"
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

// Without returns a JSON object without some members. Anything else stays as it is.
func Without(object []byte, drop func(name string) bool) []byte {
	return Edit(object, func(name string, value []byte) []byte {
		if drop(name) {
			return nil
		}
		return value
	})
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

// Compact is valid JSON without white space and with the escapes of encoding/json, so that a saved list and the
// server's own compare as equal, however the server writes its JSON.
func Compact(raw json.RawMessage) json.RawMessage {
	b, err := json.Marshal(raw)
	if err != nil {
		return raw // not valid JSON: cannot be, since the tool was read
	}
	return b
}

// Prepend returns a JSON object with a member, as it is written, before the others. Nothing counts as an object without members;
// anything else stays as it is.
func Prepend(object []byte, member string) []byte {
	if object = bytes.TrimSpace(object); len(object) == 0 {
		object = []byte("{}")
	}
	if object[0] != '{' {
		return object
	}
	rest := bytes.TrimSpace(object[1:])
	if !bytes.HasPrefix(rest, []byte("}")) {
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
