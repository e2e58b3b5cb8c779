package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

// OutputSchema is the schema of the tool's results, or nil where there is none that clients can read.
func (e ExposedTool) OutputSchema(ctx context.Context) json.RawMessage {
	t := e.tool
	if rpc.IsNull(t.OutputSchema) || objectSchema(t.OutputSchema) != nil {
		return nil
	}
	if _, note := t.from.cache.Check(t.OutputSchema)(ctx, json.RawMessage("{}"), true); note != "" {
		return nil
	}
	return typed(t.OutputSchema)
}

// InputSchema is the schema of the tool's arguments as clients read it: without those of the operator, and without the wish
// for headers, which go to the server only.
func (e ExposedTool) InputSchema(ctx context.Context) json.RawMessage {
	schema := e.tool.details(ctx).InputSchema
	if len(e.tool.headers()) > 0 {
		schema = withoutHeaders(schema)
	}
	return typed(schema)
}

// objectSchema refuses a schema that strict clients do not read: they then refuse the whole list. Missing ones are fine.
func objectSchema(schema json.RawMessage) error {
	if rpc.IsNull(schema) {
		return nil
	}
	var s struct {
		Type       any                        `json:"type"`
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
	}
	if err := json.Unmarshal(schema, &s); err != nil {
		return errors.New("it is not one that clients can read")
	}
	if s.Type != nil && s.Type != "object" {
		return errors.New(`its type is not "object"`)
	}
	for name, property := range s.Properties {
		if property[0] != '{' {
			return fmt.Errorf("its property %.40q is not an object", name)
		}
	}
	return nil
}

// typed is a schema of objects that says so: clients demand the type, which some servers leave out.
func typed(schema json.RawMessage) json.RawMessage {
	const object = `"type":"object"`
	rest := rpc.Edit(schema, func(name string, value []byte) []byte {
		return choose(strings.EqualFold(name, "type"), nil, value)
	})
	return rpc.Prepend(rest, object)
}

// withoutHeaders takes x-mcp-header out of the properties of a schema.
func withoutHeaders(schema json.RawMessage) json.RawMessage {
	return rpc.EditMember(schema, "properties", func(properties []byte) []byte {
		return rpc.Edit(properties, func(_ string, property []byte) []byte {
			return withoutHeaders(rpc.Edit(property, func(name string, value []byte) []byte {
				return choose(name == "x-mcp-header", nil, value)
			}))
		})
	})
}
