package schemas

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A document is JSON that is read on demand, every value at most once. After the steps are spent, unread values look
// empty.
type document struct {
	root  *node
	steps *Steps
}

// A node is a value of a document.
type node struct {
	raw      json.RawMessage // without white space around it
	read     bool
	members  []entry // of an object, in order, repeated names included
	elements []*node // of an array
}

type entry struct {
	name  string
	value *node
}

// bytesPerStep is the number of bytes scanned in one step.
const bytesPerStep = 64

// newDocument reads a schema. It fails if the schema is invalid JSON, too large or too deep.
func newDocument(raw json.RawMessage, steps *Steps) (*document, error) {
	if err := steps.limits.admit(raw); err != nil {
		return nil, err
	}
	if !steps.Take(1 + len(raw)/bytesPerStep) {
		return nil, steps.Err()
	}
	if !json.Valid(raw) {
		return nil, errors.New("it is not valid JSON")
	}
	return &document{root: &node{raw: trimmed(raw)}, steps: steps}, nil
}

func trimmed(raw []byte) []byte { return bytes.Trim(raw, " \t\r\n") }

// object returns the members of an object, and none of another node.
func (d *document) object(n *node) []entry {
	d.read(n)
	if n == nil {
		return nil
	}
	return n.members
}

// array returns the elements of an array, and none of another node.
func (d *document) array(n *node) []*node {
	d.read(n)
	if n == nil {
		return nil
	}
	return n.elements
}

// read reads one level of a node.
func (d *document) read(n *node) {
	if n == nil || n.read || len(n.raw) == 0 || n.raw[0] != '{' && n.raw[0] != '[' || !d.steps.Take(1+len(n.raw)/bytesPerStep) {
		return
	}
	n.read = true
	raw, isObject := n.raw, n.raw[0] == '{'
	for at := next(raw, 1, ","); raw[at] != '}' && raw[at] != ']'; at = next(raw, at, ",") {
		name := ""
		if isObject {
			end := endOfString(raw, at) + 1
			name = nameOf(raw[at:end])
			at = next(raw, end, ":")
		}
		end := endOfValue(raw, at)
		value := &node{raw: raw[at:end:end]}
		if isObject {
			n.members = append(n.members, entry{name, value})
		} else {
			n.elements = append(n.elements, value)
		}
		at = end
		if !d.steps.Take(1) {
			return
		}
	}
}

// next returns the index of the first byte from raw[i] on that is neither white space nor sign.
func next(raw []byte, i int, sign string) int {
	for raw[i] == ' ' || raw[i] == '\t' || raw[i] == '\r' || raw[i] == '\n' || raw[i] == sign[0] {
		i++
	}
	return i
}

// nameOf decodes a JSON string.
func nameOf(quoted []byte) string {
	inner := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner) {
		return string(inner)
	}
	var name string
	_ = json.Unmarshal(quoted, &name) // it is valid
	return name
}

// endOfValue returns the index after the value at raw[i]. raw is valid JSON and goes on after the value.
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

// get returns the last member with a name, as JSON decoders do, or nil.
func (d *document) get(n *node, name string) *node {
	all := d.object(n)
	if !d.steps.Take(len(all) / 16) {
		return nil
	}
	for _, m := range slices.Backward(all) {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// text returns a member that is a string, or "".
func (d *document) text(n *node, name string) string {
	value := d.get(n, name)
	if value == nil || value.raw[0] != '"' {
		return ""
	}
	return nameOf(value.raw)
}

// strings returns the strings in an array, or a single string.
func (d *document) strings(n *node) []string {
	var all []string
	for _, element := range d.array(n) {
		if element.raw[0] == '"' && d.steps.Take(1+len(element.raw)/bytesPerStep) {
			all = append(all, nameOf(element.raw))
		}
	}
	if n != nil && n.raw[0] == '"' {
		all = append(all, nameOf(n.raw))
	}
	return all
}

// resolve follows a reference within the document, such as "#/$defs/user". It returns nil for other references.
func (d *document) resolve(ref string) *node {
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok || !d.steps.Take(1+len(ref)/bytesPerStep) {
		return nil
	}
	if pointer == "" {
		return d.root
	}
	pointer, err := url.PathUnescape(pointer)
	if err != nil || !strings.HasPrefix(pointer, "/") {
		return nil
	}
	at := d.root
	for token := range strings.SplitSeq(pointer[1:], "/") {
		token = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
		if elements := d.array(at); elements != nil {
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(elements) {
				return nil
			}
			at = elements[i]
		} else if at = d.get(at, token); at == nil {
			return nil
		}
	}
	return at
}

// types returns the types of a schema.
func (d *document) types(schema *node) []string { return d.strings(d.get(schema, "type")) }
