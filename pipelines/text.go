package pipelines

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/mcsh-dev/mcsh/internal/exactjson"
	"github.com/mcsh-dev/mcsh/schemas"
)

// FromText returns the value of a parameter that a person has typed: as JSON where the schema takes that, else as a string. A
// string needs no quotes. Text that fits in neither way is a string only where the schema wants one, so that the mistake is the
// person's.
func (d *Definition) FromText(ctx context.Context, name, text string) json.RawMessage {
	fits := func(value json.RawMessage) bool {
		wrong, note := d.check(ctx, object([]exactjson.Member{{Name: name, Value: value}}), true)
		return wrong == nil && note == ""
	}
	value, words := json.RawMessage(strings.TrimSpace(text)), json.RawMessage(hujson.String(text))
	if !json.Valid(value) || value[0] == '"' {
		return words
	}
	if fits(value) || !fits(words) && !slices.Equal(d.field(ctx, name).Types, []string{"string"}) {
		return value
	}
	return words
}

// field describes a parameter.
func (d *Definition) field(ctx context.Context, name string) schemas.Field {
	all, _ := schemas.Fields(schemas.NewSteps(ctx, schemas.DefaultSteps), d.InputSchema())
	for _, f := range all.Fields {
		if f.Name == name {
			return f
		}
	}
	return schemas.Field{}
}

// Choices returns the values of a parameter that takes only some.
func (d *Definition) Choices(ctx context.Context, name string) (list []string) {
	f := d.field(ctx, name)
	if len(f.Choices) == 0 && slices.Equal(f.Types, []string{"boolean"}) {
		return []string{"false", "true"}
	}
	for _, value := range f.Choices {
		text := value
		_ = json.Unmarshal([]byte(value), &text) // what is no string stays JSON
		list = append(list, text)
	}
	return list
}

// ExampleArgs are arguments of a call: the defaults, and a gap for each other parameter.
func (d *Definition) ExampleArgs() json.RawMessage {
	list := slices.Clone(d.defaults)
	for _, name := range d.names {
		if !slices.ContainsFunc(list, func(m exactjson.Member) bool { return m.Name == name }) {
			list = append(list, exactjson.Member{Name: name, Value: json.RawMessage(`"..."`)})
		}
	}
	return object(list)
}

// Args are the arguments of a call.
func Args(values map[string]json.RawMessage) json.RawMessage {
	var list []exactjson.Member
	for _, name := range slices.Sorted(maps.Keys(values)) {
		list = append(list, exactjson.Member{Name: name, Value: values[name]})
	}
	return object(list)
}
