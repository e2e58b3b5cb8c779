package upstream

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/mcsh-dev/mcsh/schemas"
	"github.com/mcsh-dev/mcsh/stages"
)

// fixed are the arguments that the operator gives with every call of a tool.
type fixed map[string]json.RawMessage

// in returns those that a tool takes, and its input schema without them. A tool that takes no undeclared arguments is
// not given any: it would refuse every call.
func (f fixed) in(schema json.RawMessage) (fixed, json.RawMessage) {
	if len(f) == 0 {
		return nil, schema
	}
	input, _ := schemas.CompileInput(schema) // what can be read of it is enough
	takes := fixed{}
	for name, value := range f {
		if !input.Closed || slices.Contains(input.Properties, name) {
			takes[name] = value
		}
	}
	return takes, schemas.Without(schema, takes.names())
}

func (f fixed) names() []string { return slices.Sorted(maps.Keys(f)) }

// apply makes a tool check calls against the schema that the server sent, as they are with the fixed arguments. Where
// those are wrong by themselves, every call would be, and the tool cannot be called.
func (f fixed) apply(c *CatalogTool, schema json.RawMessage) {
	if len(f) == 0 {
		return
	}
	input, err := schemas.CompileInput(schema)
	check := input.Check
	if err != nil {
		check = func(json.RawMessage, bool) []string { return nil } // the server is left to judge
	}
	c.Tool.Input.Fixed = f.names()
	c.Tool.Input.Check = func(args json.RawMessage, partial bool) []string {
		whole, err := f.into(args)
		if err != nil {
			return []string{err.Msg}
		}
		return check(whole, partial)
	}
	if wrong := check(f.object(), true); len(wrong) > 0 && c.Denied == "" {
		c.Denied = "the operator's fixed arguments (with) are wrong: " + strings.Join(wrong, "; ")
	}
}

// object is all of them as JSON.
func (f fixed) object() json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, name := range f.names() {
		if i > 0 {
			b.WriteByte(',')
		}
		key, _ := json.Marshal(name) // a string can always be encoded
		b.Write(key)
		b.WriteByte(':')
		b.Write(f[name])
	}
	b.WriteByte('}')
	return b.Bytes()
}

// has reports whether arguments hold a name, whatever its case: many servers take ROOT for root.
func has(given map[string]json.RawMessage, name string) bool {
	for other := range given {
		if strings.EqualFold(other, name) {
			return true
		}
	}
	return false
}

// into adds them to the arguments of a call, whose bytes stay as they are. Arguments that hold one of them are refused.
func (f fixed) into(args json.RawMessage) (json.RawMessage, *stages.Error) {
	if len(f) == 0 {
		return args, nil
	}
	var given map[string]json.RawMessage
	if err := json.Unmarshal(args, &given); err != nil || given == nil {
		return args, nil // told by whoever checks or calls
	}
	for _, name := range f.names() {
		if has(given, name) {
			return nil, stages.Errorf(stages.InvalidArguments, "leave it out", "the argument %q is fixed by the operator and cannot be given", name)
		}
	}
	whole := f.object()
	if len(given) > 0 {
		whole = append(whole[:len(whole)-1], ',')
		whole = append(whole, bytes.TrimSpace(args)[1:]...)
	}
	return whole, nil
}
