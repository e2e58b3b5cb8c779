package schemas

import (
	"encoding/json"
	"math"
	"strings"

	"github.com/mcsh-dev/mcsh/stages"
)

// Example returns arguments as a tool takes them, a JSON object with its required properties: defaults and examples
// where the schema has them, else placeholders of the right type. ok reports that they satisfy the schema as far as it
// can be compiled.
func Example(schema json.RawMessage, in stages.Input) (args json.RawMessage, ok bool) {
	e := exampler{root: schema, left: visits(maxTypes, schema)}
	if bounded(schema, maxSchema) != nil {
		e.left = 0
	}
	o := outliner{root: schema, left: e.left, declared: map[string]json.RawMessage{}}
	if e.left > 0 {
		o = outline(schema)
	}
	members := make([]string, 0, len(in.Required))
	for _, name := range in.Required {
		members = append(members, quoteJSON(name)+":"+e.value(o.declared[name], 0))
	}
	args = json.RawMessage("{" + strings.Join(members, ",") + "}")
	if !json.Valid(args) {
		return json.RawMessage("{}"), false
	}
	return args, in.Check == nil || len(in.Check(args, false)) == 0
}

// An exampler writes values; left is how many more.
type exampler struct {
	root json.RawMessage
	left int
}

// value writes a value that satisfies a schema, where that is easy.
func (e *exampler) value(schema json.RawMessage, depth int) string {
	s := readObject(schema)
	if e.left--; e.left < 0 || depth > 8 || len(s) == 0 {
		return `"..."`
	}
	if ref := s.text("$ref"); ref != "" {
		return e.value(resolve(e.root, ref), depth+1)
	}
	if given := givenValue(s); given != nil && len(given) < 1000 {
		return string(given)
	}
	for _, keyword := range []string{"anyOf", "oneOf", "allOf"} {
		if options := readArray(s.get(keyword)); len(options) > 0 && s.get("type") == nil {
			return e.value(options[0], depth+1)
		}
	}
	return e.typed(s, depth)
}

// givenValue is a value that the schema itself names.
func givenValue(s object) json.RawMessage {
	if value := s.get("const"); value != nil {
		return value
	}
	if value := s.get("default"); value != nil && string(value) != "null" {
		return value
	}
	for _, keyword := range []string{"examples", "enum"} {
		if values := readArray(s.get(keyword)); len(values) > 0 {
			return values[0]
		}
	}
	return nil
}

// typed writes a placeholder of a type.
func (e *exampler) typed(s object, depth int) string {
	name := ""
	if all := readStrings(s.get("type")); len(all) > 0 {
		name = all[0]
	}
	switch {
	case name == "integer" || name == "number":
		return number(s)
	case name == "boolean":
		return "true"
	case name == "null":
		return "null"
	case name == "array":
		return e.list(s, depth)
	case name == "object" || s.get("properties") != nil:
		return e.object(s, depth)
	}
	return placeholder(s)
}

// maxExample bounds the repetitions of one list, in bytes.
const maxExample = 4 << 10

func (e *exampler) list(s object, depth int) string {
	item := e.value(s.get("items"), depth+1)
	n := max(1, min(sizeOf(s.get("minItems")), 8, maxExample/(len(item)+1))) // lists in lists would multiply
	return "[" + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + "]"
}

func (e *exampler) object(s object, depth int) string {
	var members []string
	fields := readObject(s.get("properties"))
	for _, name := range readStrings(s.get("required")) {
		members = append(members, quoteJSON(name)+":"+e.value(fields.get(name), depth+1))
	}
	return "{" + strings.Join(members, ",") + "}"
}

// number is the smallest that is allowed, 1 if there is no smallest.
func number(s object) string {
	limits := []struct {
		keyword string
		more    float64
	}{{"minimum", 0}, {"exclusiveMinimum", 1}}
	value := 1.0
	for _, l := range limits {
		var low float64
		if raw := s.get(l.keyword); raw != nil && json.Unmarshal(raw, &low) == nil && low+l.more > value {
			value = low + l.more
		}
	}
	var high float64
	if raw := s.get("maximum"); raw != nil && json.Unmarshal(raw, &high) == nil && high < value {
		value = high
	}
	if math.Abs(value) > 1<<53 {
		return "1"
	}
	text, err := json.Marshal(value)
	if err != nil {
		return "1"
	}
	return string(text)
}

// formats are examples of formats that servers check.
var formats = map[string]string{
	"uri": "https://example.com/", "url": "https://example.com/", "email": "name@example.com",
	"date": "2026-01-31", "date-time": "2026-01-31T12:00:00Z", "time": "12:00:00Z",
	"uuid": "00000000-0000-4000-8000-000000000000", "ipv4": "192.0.2.1", "hostname": "example.com",
}

func placeholder(s object) string {
	text := "..."
	if known := formats[s.text("format")]; known != "" {
		text = known
	}
	if least := min(sizeOf(s.get("minLength")), 100); len(text) < least {
		text += strings.Repeat(".", least-len(text))
	}
	if raw := s.get("maxLength"); raw != nil && sizeOf(raw) < len(text) {
		text = text[:sizeOf(raw)]
	}
	return quoteJSON(text)
}

// sizeOf reads a number of things, 0 where there is none.
func sizeOf(raw json.RawMessage) int {
	var n float64
	if json.Unmarshal(raw, &n) != nil || n < 0 || n > 1<<20 {
		return 0
	}
	return int(n)
}
