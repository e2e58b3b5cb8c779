package programs

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/sandbox/programs/jq"
)

// inShape fills in what a hint says of the input of jq.
func (c Complaint) inShape(hint string) string {
	jq, _ := Find("jq")
	p, err := jq.read(c.Args)
	if err != nil {
		p = &parsed{}
	}
	docs := readShapes(c.Sample[:min(len(c.Sample), shapeBytes)])
	input, list := "the input is not JSON", "."
	switch {
	case p.has("null-input"):
		input = "with -n the input is not read and . is null"
	case p.has("raw-input"):
		input = "with -R the input is text, a string for every line (leave -R out for JSON)"
	case len(docs) == 0:
	case p.has("slurp"):
		input = "with -s the input is an array of the documents, the first of which is " + docs[0].describe()
	case len(docs) > 1:
		input = "the input is several JSON documents (-s has them in one array), the first is " + docs[0].describe()
	default:
		input = "the input is " + docs[0].describe()
		if w := docs[0].wrapped(); w != "" {
			list = "." + shownName(w)
		}
	}
	if p.has("slurpfile") {
		input += "; what --slurpfile gives is an array of values, of which $b[0] is the first"
	}
	input = strings.ReplaceAll(input, "$", "$$") // what is filled in is no group
	return strings.NewReplacer("{input}", input, "{list}", strings.ReplaceAll(list, "$", "$$")).Replace(hint)
}

// The bounds of looking at the beginning of an input.
const (
	shapeBytes = 64 << 10
	shapeDepth = 4
	namesShown = 5
	nameShown  = 40
)

// A shape is a JSON value as far as a hint needs to know it.
type shape struct {
	kind   string   // object, array, string, number, boolean or null
	values []*shape // of the members of an object, or the elements of an array
	names  []string // of these; empty for elements
	cut    bool     // the beginning ends within it
}

// readShapes reads the documents that data begins with.
func readShapes(data []byte) (docs []*shape) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	for {
		s, err := readShape(d, 0)
		if s != nil {
			docs = append(docs, s)
		}
		if err != nil {
			return docs
		}
	}
}

var errDeep = errors.New("nested deeper than a hint looks")

// readShape reads one value. At an error it returns what there is of it.
func readShape(d *json.Decoder, depth int) (*shape, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch token.(type) {
	case string:
		return &shape{kind: "string"}, nil
	case json.Number:
		return &shape{kind: "number"}, nil
	case bool:
		return &shape{kind: "boolean"}, nil
	case nil:
		return &shape{kind: "null"}, nil
	}
	if depth == shapeDepth {
		return nil, errDeep
	}
	s := &shape{kind: "array", cut: true}
	if token == json.Delim('{') {
		s.kind = "object"
	}
	for d.More() {
		name := "" // of an element
		if s.kind == "object" {
			if token, err = d.Token(); err != nil {
				return s, err
			}
			name, _ = token.(string)
		}
		value, err := readShape(d, depth+1)
		if value != nil {
			s.names, s.values = append(s.names, name), append(s.values, value)
		}
		if err != nil {
			return s, err
		}
	}
	_, err = d.Token()
	s.cut = err != nil
	return s, err
}

// wrappers are names of the member in which APIs return their lists.
var wrappers = []string{"items", "results", "result", "data", "records", "rows", "entries", "list", "values", "hits", "nodes", "edges", "content"}

// wrapped returns the one member of an object that is a list, by its usual names first.
func (s *shape) wrapped() string {
	var lists []string
	for i, value := range s.values {
		if s.kind == "object" && value.kind == "array" {
			lists = append(lists, s.names[i])
		}
	}
	for _, name := range wrappers {
		if slices.Contains(lists, name) {
			return name
		}
	}
	if len(lists) == 1 {
		return lists[0]
	}
	return ""
}

// describe says in a few words what a value is.
func (s *shape) describe() string {
	switch {
	case s.kind == "object" && len(s.values) == 0 && !s.cut:
		return "an empty object"
	case s.kind == "object":
		return "an object with " + s.members(true)
	case s.kind == "array" && len(s.values) > 0 && s.values[0].kind == "object":
		return s.brief() + " (" + s.values[0].members(false) + ")"
	}
	return s.brief()
}

// members names the first members of an object, and says what those are that hold others.
func (s *shape) members(describe bool) string {
	var parts []string
	for i, value := range s.values[:min(len(s.values), namesShown)] {
		part := shownName(s.names[i])
		if describe && (value.kind == "array" || value.kind == "object") {
			part += ": " + value.brief()
		}
		parts = append(parts, part)
	}
	if len(s.values) > namesShown || s.cut {
		parts = append(parts, "…")
	}
	return strings.Join(parts, ", ")
}

// brief is describe without what is within.
func (s *shape) brief() string {
	switch {
	case s.kind == "null":
		return "null"
	case s.kind == "object":
		return "an object"
	case s.kind != "array":
		return "a " + s.kind
	case len(s.values) == 0 && !s.cut:
		return "an empty array"
	}
	count, kind := strconv.Itoa(len(s.values)), "value"
	if len(s.values) > 0 && s.values[0].kind != "null" &&
		!slices.ContainsFunc(s.values, func(v *shape) bool { return v.kind != s.values[0].kind }) {
		kind = s.values[0].kind
	}
	if s.cut {
		count += " or more"
	}
	if len(s.values) != 1 || s.cut {
		kind += "s"
	}
	return "an array of " + count + " " + kind
}

// shownName is a name as a filter writes it, cut to what a hint has room for.
func shownName(name string) string {
	name = texts.Cut(name, nameShown)
	if jq.IsName(name) {
		return name
	}
	return texts.JSON(name)
}
