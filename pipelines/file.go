package pipelines

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tailscale/hujson"

	"github.com/mcsh-dev/mcsh/internal/nearest"
	"github.com/mcsh-dev/mcsh/internal/texts"
)

// Bounds of a file.
const (
	MaxFile        = 256 << 10 // bytes
	maxDescription = 8 << 10   // bytes
	maxExamples    = 50
	maxParameters  = 100
	maxNested      = 64 // brackets within brackets
	maxMistakes    = 20 // reported of one file
)

// A Definition is the content of a file.
type Definition struct {
	Description  string
	Parameters   json.RawMessage // a JSON Schema of an object; nil: there are none
	Pipeline     json.RawMessage // the plan, with its parameters
	Examples     []Example
	OutputSchema json.RawMessage // nil: the output may be anything

	names []string // of the parameters, in their order
	plan  hujson.Value
	check func(ctx context.Context, args json.RawMessage, partial bool) (wrong []string, note string) // arguments of a call

	calls   []string // saved pipelines that the plan calls
	servers []string // that it calls itself
}

// An Example is a call and what must be true of its output.
type Example struct {
	Args   json.RawMessage
	JQ     string // a program that gives true for the right output; empty: any output is right
	Offset int    // of the example in its file
	Wrong  string // why its arguments do not fit the parameters; empty: they do
}

// Parse reads a file. All mistakes come in one error, a line each: path:line: key: message.
func Parse(path string, text []byte) (*Definition, error) {
	r := &reader{path: path, text: text}
	d := &Definition{}
	if root, ok := r.open(); ok {
		r.root(root, d)
	}
	if len(r.errs) > 0 {
		return nil, errors.Join(r.errs...)
	}
	return d, nil
}

// A reader reads one file.
type reader struct {
	path string
	text []byte
	errs []error
}

// fail notes a mistake at an offset of the file; -1: of the whole file.
func (r *reader) fail(offset int, key, format string, args ...any) {
	if len(r.errs) == maxMistakes {
		return
	}
	where := r.path
	if offset >= 0 {
		where += fmt.Sprintf(":%d", 1+bytes.Count(r.text[:min(offset, len(r.text))], []byte("\n")))
	}
	if key != "" {
		where += ": " + texts.Cut(key, 200)
	}
	r.errs = append(r.errs, fmt.Errorf("%s: %s", where, fmt.Sprintf(format, args...)))
}

// open reads the syntax of the file.
func (r *reader) open() (root hujson.Value, ok bool) {
	r.text = bytes.TrimPrefix(r.text, []byte("\xef\xbb\xbf"))
	switch {
	case len(r.text) > MaxFile:
		r.fail(-1, "", "the file has %d bytes, more than %s", len(r.text), texts.Bytes(MaxFile))
	case !utf8.Valid(r.text):
		r.fail(-1, "", "the file is not valid UTF-8")
	case len(bytes.TrimSpace(r.text)) == 0:
		r.fail(-1, "", `the file is empty: write {"description": "...", "pipeline": [...]}`)
	case tooDeep(r.text):
		r.fail(-1, "", "brackets are nested deeper than %d", maxNested)
	default:
		root, err := hujson.Parse(r.text)
		if err != nil {
			r.syntax(err)
		} else if r.walk(&root) {
			return root, true
		}
	}
	return root, false
}

// syntax notes a mistake of the parser, whose text begins with "hujson: line 3, column 7: ".
func (r *reader) syntax(err error) {
	var line, column int
	text := strings.TrimPrefix(err.Error(), "hujson: ")
	if n, _ := fmt.Sscanf(text, "line %d, column %d: ", &line, &column); n == 2 {
		_, text, _ = strings.Cut(text, ": ")
		text = fmt.Sprintf("%d:%d: %s", line, column, texts.Cut(text, 200))
	}
	r.errs = append(r.errs, fmt.Errorf("%s:%s", r.path, text))
}

// walk refuses members that repeat, which other readers read differently.
func (r *reader) walk(v *hujson.Value) bool {
	if object, ok := v.Value.(*hujson.Object); ok {
		seen := map[string]bool{}
		for i := range object.Members {
			m := &object.Members[i]
			if name := nameOf(m); seen[name] {
				r.fail(m.Name.StartOffset, name, "it stands there twice")
				return false
			} else {
				seen[name] = true
			}
			if !r.walk(&m.Value) {
				return false
			}
		}
	}
	if array, ok := v.Value.(*hujson.Array); ok {
		for i := range array.Elements {
			if !r.walk(&array.Elements[i]) {
				return false
			}
		}
	}
	return true
}

func nameOf(m *hujson.ObjectMember) string {
	name, _ := m.Name.Value.(hujson.Literal)
	return name.String()
}

// keys are the members of a file.
var keys = map[string]func(r *reader, d *Definition, key string, v *hujson.Value){
	"description":  (*reader).description,
	"parameters":   (*reader).parameters,
	"pipeline":     (*reader).pipeline,
	"examples":     (*reader).examples,
	"outputSchema": (*reader).outputSchema,
}

// root reads the whole file.
func (r *reader) root(root hujson.Value, d *Definition) {
	found := r.members(&root, "", func(key string) func(*hujson.Value) {
		if read := keys[key]; read != nil {
			return func(v *hujson.Value) { read(r, d, key, v) }
		}
		return nil
	}, "description", "parameters", "pipeline", "examples", "outputSchema")
	for _, key := range []string{"description", "pipeline"} {
		if found != nil && !slices.Contains(found, key) {
			r.fail(root.StartOffset, key, "it is missing")
		}
	}
	if len(r.errs) == 0 {
		d.check = checkerOf(d.InputSchema())
		r.uses(d)
	}
}

// members reads an object whose members are known, and returns the names of those that it has.
func (r *reader) members(v *hujson.Value, at string, read func(key string) func(*hujson.Value), known ...string) (found []string) {
	object, ok := v.Value.(*hujson.Object)
	if !ok {
		r.fail(v.StartOffset, at, "want an object with %s", strings.Join(known, ", "))
		return nil
	}
	found = []string{}
	for i := range object.Members {
		m := &object.Members[i]
		key := nameOf(m)
		found = append(found, key)
		if f := read(key); f != nil {
			f(&m.Value)
			continue
		}
		near := ""
		if name := nearest.Name(key, known); name != "" {
			near = fmt.Sprintf("; did you mean %q?", name)
		}
		r.fail(m.Name.StartOffset, within(at, key), "unknown key, want one of %s%s", strings.Join(known, ", "), near)
	}
	return found
}

// within is the path of a member of an object.
func within(at, key string) string {
	if at == "" {
		return key
	}
	return at + "." + key
}

func (r *reader) description(d *Definition, key string, v *hujson.Value) {
	text, ok := r.text1(key, v)
	switch {
	case !ok:
	case strings.TrimSpace(text) == "":
		r.fail(v.StartOffset, key, "it is empty: say in a sentence what the pipeline is for")
	case len(text) > maxDescription:
		r.fail(v.StartOffset, key, "it has %d bytes, more than %s", len(text), texts.Bytes(maxDescription))
	}
	d.Description = text
}

// text1 reads a string.
func (r *reader) text1(key string, v *hujson.Value) (string, bool) {
	literal, ok := v.Value.(hujson.Literal)
	if !ok || literal.Kind() != '"' {
		r.fail(v.StartOffset, key, "want a string")
		return "", false
	}
	return literal.String(), true
}

func (r *reader) pipeline(d *Definition, key string, v *hujson.Value) {
	array, ok := v.Value.(*hujson.Array)
	switch {
	case !ok:
		r.fail(v.StartOffset, key, `want an array of stages: [{"type": "tool", "server": "...", "name": "..."}, ...]`)
	case len(array.Elements) == 0:
		r.fail(v.StartOffset, key, "it has no stages")
	default:
		d.plan, d.Pipeline = *v, standard(v)
	}
}

// standard is a value as JSON without comments.
func standard(v *hujson.Value) json.RawMessage {
	own := v.Clone()
	own.Minimize()
	return own.Pack()
}

func (r *reader) examples(d *Definition, key string, v *hujson.Value) {
	array, ok := v.Value.(*hujson.Array)
	if !ok || len(array.Elements) > maxExamples {
		r.fail(v.StartOffset, key, `want an array of at most %d examples: {"args": {...}, "expect": {"jq": "..."}}`, maxExamples)
		return
	}
	for i := range array.Elements {
		element, at := &array.Elements[i], fmt.Sprintf("%s[%d]", key, i)
		e := Example{Args: json.RawMessage("{}"), Offset: element.StartOffset}
		r.members(element, at, func(name string) func(*hujson.Value) {
			switch name {
			case "args":
				return func(v *hujson.Value) {
					if _, ok := v.Value.(*hujson.Object); !ok {
						r.fail(v.StartOffset, at+".args", "want an object of parameters")
					}
					e.Args = standard(v)
				}
			case "expect":
				return func(v *hujson.Value) {
					r.members(v, at+".expect", func(name string) func(*hujson.Value) {
						if name != "jq" {
							return nil
						}
						return func(v *hujson.Value) { e.JQ, _ = r.text1(at+".expect.jq", v) }
					}, "jq")
				}
			}
			return nil
		}, "args", "expect")
		d.Examples = append(d.Examples, e)
	}
}
