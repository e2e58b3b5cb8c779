package schemas

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mcsh-dev/mcsh/stages"
)

const (
	maxSentences = 12       // sentences that one check returns
	maxArguments = 64 << 20 // bytes of arguments that are looked at
	maxOutline   = 256      // schemas visited while looking for declared properties
	maxScanned   = 8 << 20  // bytes of JSON read on such visits, when each reads the whole document
)

// CompileInput reads a tool's inputSchema. The dialect is the one that the schema declares, else the first of 2020-12,
// draft-07 and draft-04 that takes it. References to other documents are never fetched, and formats are not judged.
//
// When nothing can compile the schema, the error says why, and the Input holds what can be read of it with a nil
// Check, which leaves the server to judge. An empty schema takes anything.
func CompileInput(schema json.RawMessage) (stages.Input, error) {
	if len(bytes.TrimSpace(schema)) == 0 {
		schema = json.RawMessage("{}")
	}
	if err := bounded(schema, maxSchema); err != nil {
		return stages.Input{}, fmt.Errorf("reading the input schema: %w", err)
	}
	if !json.Valid(schema) {
		return stages.Input{}, errors.New("reading the input schema: it is not valid JSON")
	}
	o := outline(schema)
	in := o.input()
	v, err := compile(schema)
	if err != nil {
		return in, fmt.Errorf("compiling the input schema: %w", err)
	}
	in.Check = v.checkArguments
	return in, nil
}

// checkArguments is the Check of a stages.Input.
func (v *validator) checkArguments(args json.RawMessage, partial bool) []string {
	if err := bounded(args, maxArguments); err != nil {
		return []string{"the arguments cannot be checked: " + err.Error()}
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(args))
	if err != nil {
		return []string{"the arguments are not valid JSON: " + err.Error()}
	}
	if _, ok := value.(map[string]any); !ok {
		return []string{"the arguments must be an object, got " + show(value)}
	}
	return sentences(v.check(value, partial), "the arguments", value)
}

// sentences writes flaws out, up to maxSentences of them.
func sentences(flaws []flaw, root string, value any) []string {
	var said []string
	for i, fl := range flaws {
		if i == maxSentences {
			return append(said, fmt.Sprintf("and %s more", count(len(flaws)-i, "mistake")))
		}
		said = append(said, fl.sentence(root, value))
	}
	return said
}

// outline reads what a schema declares, whether it compiles or not.
func outline(schema json.RawMessage) outliner {
	o := outliner{root: schema, left: visits(maxOutline, schema), declared: map[string]json.RawMessage{}}
	o.read(schema, true)
	return o
}

// visits is how many parts of a document may be looked at: at most n, and fewer of a large one, since following a
// reference reads the document again.
func visits(n int, document json.RawMessage) int { return min(n, 8+maxScanned/(len(document)+1)) }

// An outliner collects the properties that a schema declares for one and the same object: its own, and those of what
// it refers to or combines.
type outliner struct {
	root     json.RawMessage
	left     int                        // schemas that may still be visited
	declared map[string]json.RawMessage // the schemas of in.Properties
	in       stages.Input
}

// read adds what one schema declares. Its required properties count if it must hold, not if it is an alternative.
func (o *outliner) read(schema json.RawMessage, must bool) {
	s := readObject(schema)
	if o.left--; o.left < 0 || len(s) == 0 {
		return
	}
	for _, e := range readObject(s.get("properties")) {
		if _, ok := o.declared[e.name]; !ok {
			o.declared[e.name] = e.value
			o.in.Properties = append(o.in.Properties, e.name)
		}
	}
	if must {
		for _, name := range readStrings(s.get("required")) {
			optional := readObject(o.declared[name]).get("default") != nil
			if !optional && !slices.Contains(o.in.Required, name) {
				o.in.Required = append(o.in.Required, name)
			}
		}
		// Where a pattern admits names, not being declared does not mean being refused.
		if string(s.get("additionalProperties")) == "false" && len(readObject(s.get("patternProperties"))) == 0 {
			o.in.Closed = true
		}
	}
	if ref := s.text("$ref"); ref != "" {
		o.read(resolve(o.root, ref), must)
	}
	for _, sub := range readArray(s.get("allOf")) {
		o.read(sub, must)
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		for _, sub := range readArray(s.get(keyword)) {
			o.read(sub, false)
		}
	}
	for _, keyword := range []string{"then", "else"} {
		o.read(s.get(keyword), false)
	}
}

// input returns what was read, with what is known of each property.
func (o *outliner) input() stages.Input {
	in := o.in
	in.Declared = map[string]stages.Property{}
	o.left = visits(4*maxOutline, o.root)
	for _, name := range in.Properties {
		schema := o.declared[name]
		p := stages.Property{Types: o.types(schema)}
		if def := readObject(schema).get("default"); len(def) > 0 {
			p.Default = def
		}
		in.Declared[name] = p
	}
	return in
}

// types returns the JSON types that the schema of a property names, itself, by reference or in its alternatives.
func (o *outliner) types(schema json.RawMessage) []string {
	s := readObject(schema)
	if o.left--; o.left < 0 || len(s) == 0 {
		return nil
	}
	types := readStrings(s.get("type"))
	if ref := s.text("$ref"); ref != "" {
		types = append(types, o.types(resolve(o.root, ref))...)
	}
	for _, keyword := range []string{"anyOf", "oneOf", "allOf"} {
		for _, sub := range readArray(s.get(keyword)) {
			types = append(types, o.types(sub)...)
		}
	}
	return types
}
