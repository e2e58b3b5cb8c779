package pipelines

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/mcsh-dev/mcsh/internal/exactjson"
	"github.com/mcsh-dev/mcsh/schemas"
	"github.com/mcsh-dev/mcsh/stages"
)

const maxParameterName = 64 // bytes

// parameters reads the schema of the parameters: an object, each of whose properties is one.
func (r *reader) parameters(d *Definition, key string, v *hujson.Value) {
	object, ok := v.Value.(*hujson.Object)
	if !ok {
		r.fail(v.StartOffset, key, `want a JSON Schema of an object: {"type": "object", "properties": {...}}`)
		return
	}
	for i := range object.Members {
		m := &object.Members[i]
		switch name := nameOf(m); {
		case name == "type" && string(standard(&m.Value)) != `"object"`:
			r.fail(m.Value.StartOffset, within(key, name), `want "object": parameters have names`)
		case name == "properties":
			r.properties(d, within(key, name), &m.Value)
		}
	}
	d.Parameters = standard(v)
	r.schema(key, v, d.Parameters)
}

// properties reads the names of the parameters.
func (r *reader) properties(d *Definition, key string, v *hujson.Value) {
	object, ok := v.Value.(*hujson.Object)
	if !ok || len(object.Members) > maxParameters {
		r.fail(v.StartOffset, key, "want an object with a schema for each parameter, at most %d", maxParameters)
		return
	}
	for i := range object.Members {
		m := &object.Members[i]
		name := nameOf(m)
		if name == "" || len(name) > maxParameterName {
			r.fail(m.Name.StartOffset, within(key, name), "the name of a parameter has 1 to %d bytes", maxParameterName)
		}
		d.names = append(d.names, name)
	}
}

func (r *reader) outputSchema(d *Definition, key string, v *hujson.Value) {
	object, ok := v.Value.(*hujson.Object)
	typed := ok && slices.ContainsFunc(object.Members, func(m hujson.ObjectMember) bool {
		return nameOf(&m) == "type" && string(standard(&m.Value)) == `"object"`
	})
	if !typed { // MCP has no other structured content
		r.fail(v.StartOffset, key, `want a JSON Schema with "type": "object"`)
		return
	}
	d.OutputSchema = standard(v)
	r.schema(key, v, d.OutputSchema)
}

// schema refuses what is no schema, or one that is too costly: no value could be checked against it.
func (r *reader) schema(key string, v *hujson.Value, schema json.RawMessage) {
	if _, note := checkerOf(schema)(context.Background(), json.RawMessage("{}"), true); note != "" {
		r.fail(v.StartOffset, key, "it is no JSON Schema that can be used: %s", strings.TrimPrefix(note, "arguments not checked here: "))
	}
}

// schemaMemory bounds what a compiled schema may take in memory, in bytes.
const schemaMemory = 4 << 20

func checkerOf(schema json.RawMessage) func(ctx context.Context, args json.RawMessage, partial bool) (wrong []string, note string) {
	return schemas.NewCache(schemaMemory, nil, schemas.Limits{}).Check(schema)
}

// InputSchema is the schema of the parameters, as that of a tool: other arguments than the declared ones are refused.
func (d *Definition) InputSchema() json.RawMessage {
	members, _ := exactjson.List(d.Parameters) // none where there are no parameters
	has := func(name string) bool {
		return slices.ContainsFunc(members, func(m exactjson.Member) bool { return m.Name == name })
	}
	for _, more := range []exactjson.Member{
		{Name: "type", Value: json.RawMessage(`"object"`)},
		{Name: "properties", Value: json.RawMessage("{}")},
		{Name: "additionalProperties", Value: json.RawMessage("false")},
	} {
		if !has(more.Name) {
			members = append(members, more)
		}
	}
	return object(members)
}

// object writes members as a JSON object.
func object(members []exactjson.Member) json.RawMessage {
	out := []byte{'{'}
	for i, m := range members {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(append(out, hujson.String(m.Name)...), ':'), m.Value...)
	}
	return append(out, '}')
}

// Values checks the arguments of a call and returns the value of each parameter that has one: the given ones, and the defaults
// of the others. The error is an *Error of stages.
func (d *Definition) Values(ctx context.Context, args json.RawMessage) (map[string]json.RawMessage, error) {
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	values, err := exactjson.Members(args, exactjson.Names{Unique: true})
	if err != nil {
		return nil, stages.Errorf(stages.InvalidArguments, "give an object with a member for each parameter", "the parameters cannot be read: %w", err)
	}
	var list []exactjson.Member
	for _, p := range d.defaults() {
		if _, given := values[p.Name]; !given {
			values[p.Name] = p.Value
		}
	}
	for name, value := range values {
		list = append(list, exactjson.Member{Name: name, Value: value})
	}
	switch wrong, note := d.check(ctx, object(list), false); {
	case note != "":
		return nil, stages.Errorf(stages.InvalidArguments, "make the values smaller", "the parameters cannot be checked: %s", strings.TrimPrefix(note, "arguments not checked here: "))
	case wrong != nil:
		return nil, stages.Errorf(stages.InvalidArguments, "the parameters are "+d.said(), "%s", strings.Join(wrong, "; "))
	}
	return values, nil
}

// CheckOutput refuses an output that the output schema does not allow. Without such a schema, any output is right.
func (d *Definition) CheckOutput(ctx context.Context, output []byte) error {
	if d.OutputSchema == nil {
		return nil
	}
	wrong, note := checkerOf(d.OutputSchema)(ctx, output, false)
	if note != "" {
		wrong = append(wrong, note)
	}
	if wrong == nil {
		return nil
	}
	return stages.Errorf(stages.ToolError, "the saved pipeline or its outputSchema has to be changed", "the output does not fit the outputSchema: %s", strings.Join(wrong, "; "))
}

// said names the parameters for messages.
func (d *Definition) said() string {
	if len(d.names) == 0 {
		return "none"
	}
	return strings.Join(d.names, ", ")
}

// defaults are the parameters with a default.
func (d *Definition) defaults() (list []exactjson.Member) {
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	_ = json.Unmarshal(d.Parameters, &schema) // none where there are no parameters
	for _, name := range d.names {
		var property struct {
			Default json.RawMessage `json:"default"`
		}
		if json.Unmarshal(schema.Properties[name], &property) == nil && property.Default != nil {
			list = append(list, exactjson.Member{Name: name, Value: property.Default})
		}
	}
	return list
}

// checkDefaults refuses defaults that the schema does not allow, and marks examples that do not fit: they are no part of a call.
func (r *reader) checkDefaults(d *Definition) {
	wrong, _ := d.check(context.Background(), object(d.defaults()), true)
	for _, why := range wrong {
		r.fail(strings.Index(string(r.text), `"parameters"`), "parameters", "a default is not allowed by its own schema: %s", why)
	}
	for i := range d.Examples {
		if _, err := d.Values(context.Background(), d.Examples[i].Args); err != nil {
			d.Examples[i].Wrong = err.(*stages.Error).Msg
		}
	}
}

// WrongExamples has a line for each example that does not fit the parameters: path:line: key: message.
func (p Saved) WrongExamples() (list []string) {
	if p.Definition == nil {
		return nil
	}
	for i, e := range p.Definition.Examples {
		if e.Wrong != "" {
			line := 1 + strings.Count(p.Version.Text[:min(e.Offset, len(p.Version.Text))], "\n")
			list = append(list, fmt.Sprintf("%s:%d: examples[%d].args: %s", p.Path, line, i, e.Wrong))
		}
	}
	return list
}

// Names are the names of the parameters, in the order of the file; none of a file that cannot be used.
func (d *Definition) Names() []string {
	if d == nil {
		return nil
	}
	return slices.Clone(d.names)
}
