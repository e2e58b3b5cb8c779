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

	"github.com/mcsh-dev/mcsh/internal/exactjson"
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

	names    []string           // of the parameters, in their order
	defaults []exactjson.Member // of the parameters that have one
	plan     hujson.Value
	check    func(ctx context.Context, args json.RawMessage, partial bool) (wrong []string, note string) // arguments of a call

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
	r := &reader{path: path, text: text, d: &Definition{}}
	if root, ok := r.open(); ok {
		r.root(&root)
	}
	if len(r.errs) > 0 {
		return nil, errors.Join(r.errs...)
	}
	return r.d, nil
}

// A reader reads one file.
type reader struct {
	path string
	text []byte
	d    *Definition
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
		} else if twice := repeated(&root); twice != nil { // other readers read it differently
			r.fail(twice.Name.StartOffset, nameOf(twice), "it is given twice")
		} else {
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

// A field is a known member of an object, and what reads it.
type field struct {
	name string
	read func(key string, v *hujson.Value)
}

// root reads the whole file.
func (r *reader) root(root *hujson.Value) {
	found := r.members(root, "", field{"description", r.description}, field{"parameters", r.parameters}, field{"pipeline", r.pipeline},
		field{"examples", r.examples}, field{"outputSchema", r.outputSchema})
	for _, key := range []string{"description", "pipeline"} {
		if found != nil && !slices.Contains(found, key) {
			r.fail(root.StartOffset, key, "it is missing")
		}
	}
	if len(r.errs) == 0 {
		r.d.check = checkerOf(r.d.InputSchema())
		r.uses()
	}
}

// members reads an object whose members are known, and returns the names of those that it has.
func (r *reader) members(v *hujson.Value, at string, fields ...field) (found []string) {
	known := make([]string, len(fields))
	for i, f := range fields {
		known[i] = f.name
	}
	object, ok := v.Value.(*hujson.Object)
	if !ok {
		r.fail(v.StartOffset, at, "want an object with %s", strings.Join(known, ", "))
		return nil
	}
	found = []string{}
	for i := range object.Members {
		m := &object.Members[i]
		name := nameOf(m)
		found = append(found, name)
		if at := within(at, name); slices.Contains(known, name) {
			fields[slices.Index(known, name)].read(at, &m.Value)
		} else {
			r.fail(m.Name.StartOffset, at, "unknown key, want one of %s%s", strings.Join(known, ", "), meant(name, known))
		}
	}
	return found
}

// meant asks for the known name that is nearest to a wrong one.
func meant(wrong string, known []string) string {
	if name := nearest.Name(wrong, known); name != "" {
		return fmt.Sprintf("; did you mean %q?", name)
	}
	return ""
}

func (r *reader) description(key string, v *hujson.Value) {
	text, ok := r.readString(key, v)
	switch {
	case !ok:
	case strings.TrimSpace(text) == "":
		r.fail(v.StartOffset, key, "it is empty: say in a sentence what the pipeline is for")
	case len(text) > maxDescription:
		r.fail(v.StartOffset, key, "it has %d bytes, more than %s", len(text), texts.Bytes(maxDescription))
	}
	r.d.Description = text
}

// readString reads a string.
func (r *reader) readString(key string, v *hujson.Value) (string, bool) {
	if literal, ok := v.Value.(hujson.Literal); !ok || literal.Kind() != '"' {
		r.fail(v.StartOffset, key, "want a string")
		return "", false
	}
	return textOf(v), true
}

func (r *reader) pipeline(key string, v *hujson.Value) {
	array, ok := v.Value.(*hujson.Array)
	switch {
	case !ok:
		r.fail(v.StartOffset, key, `want an array of stages: [{"type": "tool", "server": "...", "name": "..."}, ...]`)
	case len(array.Elements) == 0:
		r.fail(v.StartOffset, key, "it has no stages")
	default:
		r.d.plan, r.d.Pipeline = *v, standard(v)
	}
}

func (r *reader) examples(key string, v *hujson.Value) {
	array, ok := v.Value.(*hujson.Array)
	if !ok || len(array.Elements) > maxExamples {
		r.fail(v.StartOffset, key, `want an array of at most %d examples: {"args": {...}, "expect": {"jq": "..."}}`, maxExamples)
		return
	}
	for i := range array.Elements {
		element := &array.Elements[i]
		e := Example{Args: json.RawMessage("{}"), Offset: element.StartOffset}
		r.members(element, fmt.Sprintf("%s[%d]", key, i),
			field{"args", func(key string, v *hujson.Value) {
				if _, ok := v.Value.(*hujson.Object); !ok {
					r.fail(v.StartOffset, key, "want an object of parameters")
				}
				e.Args = standard(v)
			}},
			field{"expect", func(key string, v *hujson.Value) {
				r.members(v, key, field{"jq", func(key string, v *hujson.Value) { e.JQ, _ = r.readString(key, v) }})
			}})
		r.d.Examples = append(r.d.Examples, e)
	}
}
