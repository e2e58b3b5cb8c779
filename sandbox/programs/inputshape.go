package programs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
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
	kind   string // object, array, string, number, boolean or null
	names  []string
	fields map[string]*shape
	items  []*shape
	cut    bool // the beginning ends within it
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
	switch v := token.(type) {
	case json.Delim:
		if depth == shapeDepth {
			return nil, errDeep
		}
		s := &shape{kind: map[json.Delim]string{'[': "array", '{': "object"}[v], fields: map[string]*shape{}, cut: true}
		return s, s.read(d, depth)
	case string:
		return &shape{kind: "string"}, nil
	case json.Number:
		return &shape{kind: "number"}, nil
	case bool:
		return &shape{kind: "boolean"}, nil
	}
	return &shape{kind: "null"}, nil
}

// read reads what is in an object or array to its end.
func (s *shape) read(d *json.Decoder, depth int) error {
	for d.More() {
		name := ""
		if s.kind == "object" {
			token, err := d.Token()
			if err != nil {
				return err
			}
			name, _ = token.(string)
		}
		value, err := readShape(d, depth+1)
		switch {
		case value == nil:
		case s.kind == "array":
			s.items = append(s.items, value)
		default:
			if s.fields[name] == nil {
				s.names = append(s.names, name)
			}
			s.fields[name] = value
		}
		if err != nil {
			return err
		}
	}
	_, err := d.Token()
	s.cut = err != nil
	return err
}

// wrappers are names of the member in which APIs return their lists.
var wrappers = []string{"items", "results", "result", "data", "records", "rows", "entries", "list", "values", "hits", "nodes", "edges", "content"}

// wrapped returns the one member of an object that is a list, by its usual names first.
func (s *shape) wrapped() string {
	for _, name := range wrappers {
		if f := s.fields[name]; f != nil && f.kind == "array" {
			return name
		}
	}
	found := ""
	for _, name := range s.names {
		if s.fields[name].kind == "array" {
			if found != "" {
				return ""
			}
			found = name
		}
	}
	return found
}

// describe says in a few words what a value is.
func (s *shape) describe() string {
	switch s.kind {
	case "object":
		return s.object()
	case "array":
		text := s.brief()
		if len(s.items) > 0 && s.items[0].kind == "object" {
			text += " (" + s.items[0].list(func(name string) string { return shownName(name) }) + ")"
		}
		return text
	}
	return s.brief()
}

func (s *shape) object() string {
	if len(s.names) == 0 && !s.cut {
		return "an empty object"
	}
	return "an object with " + s.list(func(name string) string {
		if f := s.fields[name]; f.kind == "array" || f.kind == "object" {
			return shownName(name) + ": " + f.brief()
		}
		return shownName(name)
	})
}

// list names the first members.
func (s *shape) list(show func(name string) string) string {
	var parts []string
	for i, name := range s.names {
		if i == namesShown {
			break
		}
		parts = append(parts, show(name))
	}
	if len(s.names) > namesShown || s.cut {
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
	case len(s.items) == 0 && !s.cut:
		return "an empty array"
	}
	count, word := fmt.Sprint(len(s.items)), s.itemKind()
	if s.cut {
		count += " or more"
	}
	if len(s.items) != 1 || s.cut {
		word += "s"
	}
	return "an array of " + count + " " + word
}

// itemKind is what all items of an array are.
func (s *shape) itemKind() string {
	kind := ""
	for _, item := range s.items {
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

// shownName is a name as a filter writes it, cut to what a hint has room for.
func shownName(name string) string {
	name = texts.Cut(strings.ToValidUTF8(name, ""), nameShown)
	if jq.IsName(name) {
		return name
	}
	return texts.JSON(name)
}
