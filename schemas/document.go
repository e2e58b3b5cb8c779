package schemas

import (
	"bytes"
	"encoding/json"
	"errors"
	"iter"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A document is a schema that is read, whether it compiles or not. Looking into it takes steps; after they are spent,
// members look missing.
type document struct {
	root  *node
	steps *Steps
}

// A node is a value of a document.
type node struct {
	raw   json.RawMessage // the text that was read, without white space around it
	parts []part          // of an object or an array, in order, repeated names included
}

// A part is a member of an object or an element of an array.
type part struct {
	before []byte // white space, and the name of a member with its colon
	name   string
	value  *node
	after  []byte // white space
}

// bytesPerStep is the number of bytes scanned in one step.
const bytesPerStep = 64

// newDocument reads a schema. It fails if the schema is invalid JSON, too large or too deep.
func newDocument(text []byte, steps *Steps) (*document, error) {
	values, err := steps.limits.admit(text)
	if err != nil {
		return nil, err
	}
	if !steps.Take(values + len(text)/bytesPerStep) {
		return nil, steps.Err()
	}
	if !json.Valid(text) {
		return nil, errors.New("it is not valid JSON")
	}
	return &document{readNode(text), steps}, nil
}

// readNode reads valid JSON with few values.
func readNode(text []byte) *node {
	n, _ := nodeAt(text, skipSpace(text, 0))
	return n
}

// nodeAt returns the value at text[i] of valid JSON, and the index after it.
func nodeAt(text []byte, i int) (*node, int) {
	begin, n := i, &node{}
	switch text[i] {
	case '"':
		i = endOfString(text, i) + 1
	case '{', '[':
		for i++; text[skipSpace(text, i)] != text[begin]+2; { // the closing bracket
			if text[i] == ',' {
				i++
			}
			p, at := part{}, skipSpace(text, i)
			if text[begin] == '{' {
				end := endOfString(text, at) + 1
				p.name = unquoted(text[at:end])
				at = skipSpace(text, skipSpace(text, end)+1)
			}
			p.before = text[i:at]
			p.value, at = nodeAt(text, at)
			i = skipSpace(text, at)
			p.after = text[at:i]
			n.parts = append(n.parts, p)
		}
		i = skipSpace(text, i) + 1
	default:
		for i < len(text) && bytes.IndexByte([]byte(",]} \t\r\n"), text[i]) < 0 {
			i++
		}
	}
	n.raw = text[begin:i:i]
	return n, i
}

// skipSpace returns the index of the first byte from text[i] on that is not white space.
func skipSpace(text []byte, i int) int {
	for i < len(text) && (text[i] == ' ' || text[i] == '\t' || text[i] == '\r' || text[i] == '\n') {
		i++
	}
	return i
}

// unquoted decodes a JSON string.
func unquoted(quoted []byte) string {
	inner := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner) {
		return string(inner)
	}
	var text string
	_ = json.Unmarshal(quoted, &text) // it is valid
	return text
}

// is reports whether a value begins with a byte, which tells its type.
func (n *node) is(first byte) bool { return n != nil && n.raw[0] == first }

// object returns the members of an object, and none of another node.
func (n *node) object() []part {
	if !n.is('{') {
		return nil
	}
	return n.parts
}

// array returns the elements of an array, and none of another node.
func (n *node) array() []part {
	if !n.is('[') {
		return nil
	}
	return n.parts
}

// text returns a value that is a string, or "".
func (n *node) text() string {
	if !n.is('"') {
		return ""
	}
	return unquoted(n.raw)
}

// get returns the last member with a name, as JSON decoders do, or nil.
func (d *document) get(n *node, name string) *node {
	all := n.object()
	if !d.steps.Take(len(all) / 16) {
		return nil
	}
	for _, p := range slices.Backward(all) {
		if p.name == name {
			return p.value
		}
	}
	return nil
}

// text returns a member that is a string, or "".
func (d *document) text(n *node, name string) string { return d.get(n, name).text() }

// strings returns the strings in an array, or a single string.
func (d *document) strings(n *node) []string {
	elements := n.array()
	if elements == nil {
		elements = []part{{value: n}}
	}
	var all []string
	for _, p := range elements {
		if p.value.is('"') && d.steps.Take(1+len(p.value.raw)/bytesPerStep) {
			all = append(all, p.value.text())
		}
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
		elements := at.array()
		if i, err := strconv.Atoi(token); err == nil && i >= 0 && i < len(elements) {
			at = elements[i].value
		} else if at = d.get(at, token); at == nil {
			return nil
		}
	}
	return at
}

// each returns the schemas in some keywords of a schema, in single ones, in lists and behind "$ref".
func (d *document) each(s *node, keywords ...string) iter.Seq[*node] {
	return func(yield func(*node) bool) {
		for _, keyword := range keywords {
			list := []part{{value: d.get(s, keyword)}}
			if list[0].value.is('[') {
				list = list[0].value.parts
			} else if keyword == "$ref" {
				list[0].value = d.resolve(list[0].value.text())
			}
			for _, p := range list {
				if p.value != nil && !yield(p.value) {
					return
				}
			}
		}
	}
}

// options returns the alternatives of a schema.
func (d *document) options(s *node) []part {
	if any := d.get(s, "anyOf").array(); len(any) > 0 {
		return any
	}
	return d.get(s, "oneOf").array()
}

// types returns the types of a schema.
func (d *document) types(schema *node) []string { return d.strings(d.get(schema, "type")) }
