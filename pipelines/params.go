package pipelines

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/mcsh-dev/mcsh/internal/exactjson"
	"github.com/mcsh-dev/mcsh/internal/lazy"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/schemas"
	"github.com/mcsh-dev/mcsh/stages"
)

// parameterName matches the names of parameters. The APIs of models refuse a request if a parameter of one of its tools has another name.
var parameterName = lazy.Regexp(`^[A-Za-z0-9_.-]{1,64}$`)

// parameters reads the schema of the parameters: an object, each of whose properties is one.
func (r *reader) parameters(key string, v *hujson.Value) {
	if _, ok := v.Value.(*hujson.Object); !ok {
		r.fail(v.StartOffset, key, `want a JSON Schema of an object: {"type": "object", "properties": {...}}`)
		return
	}
	if kind := member(v, "type"); kind != nil && textOf(kind) != "object" {
		r.fail(kind.StartOffset, within(key, "type"), `want "object": parameters have names`)
	}
	switch properties := member(v, "properties"); {
	case properties != nil:
		r.properties(within(key, "properties"), properties)
	case member(v, "type") == nil && len(v.Value.(*hujson.Object).Members) > 0:
		r.fail(v.StartOffset, key, `the parameters stand in "properties": {"type": "object", "properties": {...}}`)
		return
	}
	r.d.Parameters = r.schema(key, v)
}

// properties reads the names of the parameters.
func (r *reader) properties(key string, v *hujson.Value) {
	object, ok := v.Value.(*hujson.Object)
	if !ok || len(object.Members) > maxParameters {
		r.fail(v.StartOffset, key, "want an object with a schema for each parameter, at most %d", maxParameters)
		return
	}
	for i := range object.Members {
		m := &object.Members[i]
		name := nameOf(m)
		if !parameterName().MatchString(name) {
			r.fail(m.Name.StartOffset, within(key, texts.Quote(name)), "the name of a parameter has 1 to 64 of A-Z, a-z, 0-9, _, . and -")
		}
		r.d.names = append(r.d.names, name)
		if value := member(&m.Value, "default"); value != nil {
			r.d.defaults = append(r.d.defaults, exactjson.Member{Name: name, Value: standard(value)})
		}
	}
}

func (r *reader) outputSchema(key string, v *hujson.Value) {
	if textOf(member(v, "type")) != "object" { // MCP has no other structured content
		r.fail(v.StartOffset, key, `want a JSON Schema with "type": "object"`)
		return
	}
	r.d.OutputSchema = r.schema(key, v)
}

// schema refuses what is no schema, or one that is too costly: no value could be checked against it.
func (r *reader) schema(key string, v *hujson.Value) json.RawMessage {
	schema := json.RawMessage(standard(v))
	if _, note := checkerOf(schema)(context.Background(), json.RawMessage("{}"), true); note != "" {
		r.fail(v.StartOffset, key, "it is no JSON Schema that can be used: %s", strings.TrimPrefix(note, "arguments not checked here: "))
	}
	return schema
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
	values, err := exactjson.Members(args, exactjson.Names{})
	if tree, wrong := hujson.Parse(args); err == nil && wrong == nil {
		if twice := repeated(&tree); twice != nil {
			err = fmt.Errorf("%s is given twice", texts.Quote(nameOf(twice)))
		}
	}
	if err != nil {
		return nil, stages.Errorf(stages.InvalidArguments, "give an object with a member for each parameter", "the parameters cannot be read: %w", err)
	}
	var list []exactjson.Member
	for _, p := range d.defaults {
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
		return nil, stages.Errorf(stages.InvalidArguments, "the parameters are "+d.ParameterList(), "%s", strings.Join(wrong, "; "))
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

// ParameterList lists the names of the parameters, for messages.
func (d *Definition) ParameterList() string {
	if len(d.names) == 0 {
		return "none"
	}
	return strings.Join(d.names, ", ")
}

// checkDefaults refuses defaults that the schema does not allow, and marks examples that do not fit: they are no part of a call.
func (r *reader) checkDefaults() {
	d := r.d
	wrong, _ := d.check(context.Background(), object(d.defaults), true)
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
