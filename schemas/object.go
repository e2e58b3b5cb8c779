package schemas

import (
	"bytes"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// An object is a JSON object in the order in which it was written, repeated names included.
type object []entry

type entry struct {
	name  string
	value json.RawMessage
}

// readObject reads the members of a JSON object, or nothing if raw is something else. They share its memory.
func readObject(raw json.RawMessage) object {
	raw = bytes.Trim(raw, " \t\r\n")
	if len(raw) == 0 || raw[0] != '{' || !json.Valid(raw) {
		return nil
	}
	var o object
	for at := next(raw, 1, ","); raw[at] != '}'; at = next(raw, at, ",") {
		end := endOfString(raw, at) + 1
		name := nameOf(raw[at:end])
		at = next(raw, end, ":")
		end = endOfValue(raw, at)
		o = append(o, entry{name, raw[at:end:end]})
		at = end
	}
	return o
}

// next returns the index of what stands behind blanks, and behind a sign, from raw[i] on.
func next(raw []byte, i int, sign string) int {
	return len(raw) - len(bytes.TrimLeft(raw[i:], " \t\r\n"+sign))
}

// nameOf is a JSON string as text.
func nameOf(quoted []byte) string {
	inner := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner) {
		return string(inner)
	}
	var name string
	_ = json.Unmarshal(quoted, &name) // it is valid
	return name
}

// endOfValue returns the index behind the value that begins at raw[i] in valid JSON, which goes on behind it.
func endOfValue(raw []byte, i int) int {
	if raw[i] != '"' && raw[i] != '{' && raw[i] != '[' {
		return i + bytes.IndexAny(raw[i:], ",]} \t\r\n")
	}
	for depth := 0; ; i++ {
		switch raw[i] {
		case '"':
			i = endOfString(raw, i)
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		if depth == 0 {
			return i + 1
		}
	}
}

// get returns the last member of that name, as JSON decoders do, or nil.
func (o object) get(name string) json.RawMessage {
	for _, e := range slices.Backward(o) {
		if e.name == name {
			return e.value
		}
	}
	return nil
}

// text returns the member if it is a string.
func (o object) text(name string) string {
	var s string
	_ = json.Unmarshal(o.get(name), &s) // anything but a string is as good as none
	return s
}

// readArray reads the elements of a JSON array, or nothing if raw is something else.
func readArray(raw json.RawMessage) []json.RawMessage {
	var elements []json.RawMessage
	if json.Unmarshal(raw, &elements) != nil {
		return nil
	}
	return elements
}

// readStrings reads the strings of a JSON array, leaving out what is none, or a single string.
func readStrings(raw json.RawMessage) []string {
	var all []string
	for _, element := range append(readArray(raw), raw) {
		var s string
		if json.Unmarshal(element, &s) == nil && len(element) > 0 && element[0] == '"' {
			all = append(all, s)
		}
	}
	return all
}

// resolve follows a reference inside of a document, such as "#/$defs/user". It returns nil for any other.
func resolve(root json.RawMessage, ref string) json.RawMessage {
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil
	}
	if pointer == "" {
		return root
	}
	pointer, err := url.PathUnescape(pointer)
	if err != nil || !strings.HasPrefix(pointer, "/") {
		return nil
	}
	at := root
	for token := range strings.SplitSeq(pointer[1:], "/") {
		token = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
		if elements := readArray(at); elements != nil {
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(elements) {
				return nil
			}
			at = elements[i]
		} else if at = readObject(at).get(token); at == nil {
			return nil
		}
	}
	return at
}
