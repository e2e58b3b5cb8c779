package pipelines

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/mcsh-dev/mcsh/internal/exactjson"
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
	if fits(value) || !fits(words) && string(d.parameter(name).Type) != `"string"` {
		return value
	}
	return words
}

// Choices returns the values of a parameter that takes only some.
func (d *Definition) Choices(name string) (list []string) {
	p := d.parameter(name)
	if string(p.Type) == `"boolean"` {
		return []string{"false", "true"}
	}
	for _, value := range p.Enum {
		var text string
		if json.Unmarshal(value, &text) != nil {
			text = string(value)
		}
		list = append(list, text)
	}
	return list
}

// ExampleArgs are arguments of a call: the defaults, and a gap for each other parameter.
func (d *Definition) ExampleArgs() json.RawMessage {
	list := d.defaults()
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
