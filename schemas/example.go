package schemas

import (
	"context"
	"encoding/json"
	"math"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
)

// Example returns a tool's arguments, a JSON object with the required properties: their defaults or examples from the
// schema, and otherwise placeholders of the right type. ok reports that no check has found a mistake in them.
func Example(ctx context.Context, schema json.RawMessage, in stages.Input) (args json.RawMessage, ok bool) {
	e := exampler{left: maxTypes}
	read := Limits{Schema: int64(len(schema))} // Describe has checked its size, or in has no properties
	declared := map[string]*node{}
	if doc, err := newDocument(schema, read.steps(ctx, DefaultSteps/toolPart)); err == nil {
		e.document, declared = doc, doc.outline().declared
	}
	members := make([]string, 0, len(in.Required))
	for _, name := range in.Required {
		members = append(members, texts.JSON(name)+":"+e.value(declared[name], 0))
	}
	args = json.RawMessage("{" + strings.Join(members, ",") + "}")
	if !json.Valid(args) {
		return json.RawMessage("{}"), false
	}
	if in.Check == nil {
		return args, true
	}
	wrong, _ := in.Check(ctx, args, false)
	return args, len(wrong) == 0
}

// An exampler writes at most left values.
type exampler struct {
	*document // nil: nothing is known
	left      int
}

// value writes a value that satisfies a schema, in simple cases.
func (e *exampler) value(s *node, depth int) string {
	if e.left--; e.left < 0 || depth > 8 || e.document == nil || len(s.object()) == 0 || !e.steps.Take(1) {
		return `"..."`
	}
	if ref := e.text(s, "$ref"); ref != "" {
		return e.value(e.resolve(ref), depth+1)
	}
	if given := e.given(s); given != nil && len(given.raw) < 1000 {
		return string(given.raw)
	}
	for _, keyword := range []string{"anyOf", "oneOf", "allOf"} {
		if options := e.get(s, keyword).array(); len(options) > 0 && e.get(s, "type") == nil {
			return e.value(options[0].value, depth+1)
		}
	}
	return e.typed(s, depth)
}

// given returns a value from the schema itself, or nil.
func (e *exampler) given(s *node) *node {
	if value := e.get(s, "const"); value != nil {
		return value
	}
	if value := e.get(s, "default"); value != nil && string(value.raw) != "null" {
		return value
	}
	for _, keyword := range []string{"examples", "enum"} {
		if values := e.get(s, keyword).array(); len(values) > 0 {
			return values[0].value
		}
	}
	return nil
}

// typed writes a placeholder of a type.
func (e *exampler) typed(s *node, depth int) string {
	name := ""
	if all := e.types(s); len(all) > 0 {
		name = all[0]
	}
	switch {
	case name == "integer" || name == "number":
		return e.number(s)
	case name == "boolean":
		return "true"
	case name == "null":
		return "null"
	case name == "array":
		return e.list(s, depth)
	case name == "object" || e.get(s, "properties") != nil:
		return e.filled(s, depth)
	}
	return e.placeholder(s)
}

// maxExample bounds the repetitions of one list, in bytes.
const maxExample = 4 << 10

func (e *exampler) list(s *node, depth int) string {
	item := e.value(e.get(s, "items"), depth+1)
	n := max(1, min(e.size(s, "minItems"), 8, maxExample/(len(item)+1))) // lists in lists would multiply
	return "[" + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + "]"
}

func (e *exampler) filled(s *node, depth int) string {
	var members []string
	fields := e.get(s, "properties")
	for _, name := range e.strings(e.get(s, "required")) {
		members = append(members, texts.JSON(name)+":"+e.value(e.get(fields, name), depth+1))
	}
	return "{" + strings.Join(members, ",") + "}"
}

// number writes the smallest allowed number, or 1 if the schema has no minimum.
func (e *exampler) number(s *node) string {
	value := 1.0
	if low, ok := e.float(s, "minimum"); ok {
		value = max(value, low)
	}
	if low, ok := e.float(s, "exclusiveMinimum"); ok {
		value = max(value, low+1)
	}
	if high, ok := e.float(s, "maximum"); ok {
		value = min(value, high)
	}
	if math.Abs(value) > 1<<53 {
		return "1"
	}
	return texts.JSON(value)
}

// float reads a member that is a number.
func (e *exampler) float(s *node, name string) (float64, bool) {
	var f float64
	value := e.get(s, name)
	ok := value != nil && json.Unmarshal(value.raw, &f) == nil
	return f, ok
}

// formats has an example for each format that servers check.
var formats = map[string]string{
	"uri": "https://example.com/", "url": "https://example.com/", "email": "name@example.com",
	"date": "2026-01-31", "date-time": "2026-01-31T12:00:00Z", "time": "12:00:00Z",
	"uuid": "00000000-0000-4000-8000-000000000000", "ipv4": "192.0.2.1", "hostname": "example.com",
}

func (e *exampler) placeholder(s *node) string {
	text := "..."
	if known := formats[e.text(s, "format")]; known != "" {
		text = known
	}
	if least := min(e.size(s, "minLength"), 100); len(text) < least {
		text += strings.Repeat(".", least-len(text))
	}
	if e.get(s, "maxLength") != nil {
		text = text[:min(len(text), e.size(s, "maxLength"))]
	}
	return texts.JSON(text)
}

// size reads a member that is a length, 0 if there is none.
func (e *exampler) size(s *node, name string) int {
	n, _ := e.float(s, name)
	if n < 0 || n > 1<<20 {
		return 0
	}
	return int(n)
}
