package schemas

import (
	"bytes"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// An object is a JSON object in the order in which it was written, repeated names included.
type object []entry

type entry struct {
	name  string
	value json.RawMessage
}

// readObject reads the members of a JSON object, or nothing if raw is something else.
func readObject(raw json.RawMessage) object {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if token, err := dec.Token(); err != nil || token != json.Delim('{') {
		return nil
	}
	var o object
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil
		}
		o = append(o, entry{name.(string), value})
	}
	return o
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
