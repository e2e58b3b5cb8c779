package jq

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// A node is a JSON value as far as the beginning of an input shows it.
type node struct {
	kind   string // object, array, string, number, boolean or null
	keys   []string
	fields map[string]*node
	items  []*node
	text   string // of a string or a number
	cut    bool   // the beginning ends within it
	group  bool   // one of the arrays that group_by makes
}

// maxSampleDepth bounds how deeply nested a sample is looked at.
const maxSampleDepth = 100

// readSample reads the documents that data begins with. whole is false where it is no JSON from some point on, which is
// only to be expected where the input was cut.
func readSample(data []byte) (docs []*node, whole bool) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	for {
		n, err := readNode(d, 0)
		if n != nil {
			docs = append(docs, n)
		}
		if err != nil {
			return docs, errors.Is(err, io.EOF) && (n == nil || !n.cut)
		}
	}
}

// readNode reads one value. At an error it returns what there is of it.
func readNode(d *json.Decoder, depth int) (*node, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	if depth > maxSampleDepth {
		return nil, errors.New("nested too deeply")
	}
	switch v := token.(type) {
	case json.Delim:
		if v == '[' {
			return readItems(d, depth)
		}
		return readFields(d, depth)
	case string:
		return &node{kind: "string", text: v}, nil
	case json.Number:
		return &node{kind: "number", text: v.String()}, nil
	case bool:
		return &node{kind: "boolean", text: fmt.Sprint(v)}, nil
	}
	return &node{kind: "null"}, nil
}

func readItems(d *json.Decoder, depth int) (*node, error) {
	n := &node{kind: "array", cut: true}
	for d.More() {
		item, err := readNode(d, depth+1)
		if item != nil {
			n.items = append(n.items, item)
		}
		if err != nil {
			return n, err
		}
	}
	_, err := d.Token()
	n.cut = err != nil
	return n, err
}

func readFields(d *json.Decoder, depth int) (*node, error) {
	n := &node{kind: "object", fields: map[string]*node{}, cut: true}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return n, err
		}
		key, _ := token.(string)
		value, err := readNode(d, depth+1)
		if value != nil {
			if n.fields[key] == nil {
				n.keys = append(n.keys, key)
			}
			n.fields[key] = value
		}
		if err != nil {
			return n, err
		}
	}
	_, err := d.Token()
	n.cut = err != nil
	return n, err
}

// wrapped returns the one member of an object that holds what is wanted: an array, by its usual names first.
func (n *node) wrapped() string {
	if n == nil || n.kind != "object" {
		return ""
	}
	for _, key := range wrappers {
		if f := n.fields[key]; f != nil && f.kind == "array" {
			return key
		}
	}
	found := ""
	for _, key := range n.keys {
		if n.fields[key].kind == "array" {
			if found != "" {
				return ""
			}
			found = key
		}
	}
	return found
}

// wrappers are names of the member in which APIs return their lists.
var wrappers = []string{"items", "results", "result", "data", "records", "rows", "entries", "list", "values", "hits", "nodes", "edges", "content"}

// Described names are few and short.
const (
	namesShown = 5
	nameShown  = 40
)

// describe says in a few words what n is.
func (n *node) describe() string {
	switch n.kind {
	case "object":
		return n.describeObject()
	case "array":
		return n.describeArray()
	case "null":
		return "null"
	case "string":
		return "the string " + compact(cutText(n.text))
	case "boolean":
		return n.text
	}
	return "the number " + cutText(n.text)
}

func (n *node) describeObject() string {
	if len(n.keys) == 0 && !n.cut {
		return "an empty object"
	}
	var parts []string
	for i, key := range n.first() {
		text := shownName(key)
		if f := n.fields[key]; f.kind == "array" || f.kind == "object" && i == 0 {
			text += ": " + f.brief()
		}
		parts = append(parts, text)
	}
	if len(n.keys) > namesShown || n.cut {
		parts = append(parts, "…")
	}
	return "an object with " + strings.Join(parts, ", ")
}

// first returns the keys that are worth naming, the one with the list first.
func (n *node) first() []string {
	keys := make([]string, 0, namesShown)
	w := n.wrapped()
	if w != "" {
		keys = append(keys, w)
	}
	for _, key := range n.keys {
		if key != w && len(keys) < namesShown {
			keys = append(keys, key)
		}
	}
	return keys
}

func (n *node) describeArray() string {
	text := n.brief()
	if len(n.items) > 0 && n.items[0].kind == "object" {
		var names []string
		for _, key := range n.items[0].keys {
			if names = append(names, shownName(key)); len(names) == namesShown {
				break
			}
		}
		text += " (" + strings.Join(names, ", ") + ")"
	}
	return text
}

// brief is describe without what is within.
func (n *node) brief() string {
	if n.kind != "array" {
		return article(n.kind)
	}
	if len(n.items) == 0 && !n.cut {
		return "an empty array"
	}
	count := fmt.Sprint(len(n.items))
	if n.cut {
		count += " or more"
	}
	word := n.itemKind()
	if len(n.items) != 1 || n.cut {
		word += "s"
	}
	return "an array of " + count + " " + word
}

// itemKind is what all items of an array are.
func (n *node) itemKind() string {
	kind := ""
	for _, item := range n.items {
		if kind != "" && kind != item.kind {
			return "value"
		}
		kind = item.kind
	}
	if kind == "" || kind == "null" {
		return "value"
	}
	return kind
}

func article(kind string) string {
	switch kind {
	case "object", "array":
		return "an " + kind
	case "null":
		return kind
	}
	return "a " + kind
}

func shownName(key string) string {
	key = printable(key)
	if len(key) > nameShown {
		key = cutText(key)
	}
	if IsName(key) {
		return key
	}
	return compact(key)
}

// shownMember is how a filter takes a key, or what a hint has room for where the key is long.
func shownMember(key string) string {
	if len(key) > nameShown {
		return "." + shownName(key)
	}
	return member(key).String()
}
