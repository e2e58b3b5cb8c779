package toollist

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

// OutputSchema is the schema of the tool's results, or nil where there is none that clients can read.
func (t *Tool) OutputSchema(ctx context.Context) json.RawMessage {
	if rpc.IsNull(t.output) || objectSchema(t.output) != nil {
		return nil
	}
	if _, note := t.from.Cache.Check(t.output)(ctx, json.RawMessage("{}"), true); note != "" {
		return nil
	}
	return typed(t.output)
}

// InputSchema is the schema of the tool's arguments as clients read it: without those of the operator, and without the wish
// for headers, which go to the server only.
func (t *Tool) InputSchema(ctx context.Context) json.RawMessage {
	schema := t.Details(ctx).InputSchema
	if len(t.headers()) > 0 {
		schema = withoutHeaders(schema)
	}
	return typed(schema)
}

// Flaw says why clients cannot have the tool by a name of its own, or is empty. It is found once. When ctx ends first, the next call
// looks again.
func (t *Tool) Flaw(ctx context.Context) string {
	t.mu.Lock()
	known := t.flaw
	t.mu.Unlock()
	if known != nil {
		return *known
	}
	flaw := t.findFlaw(ctx)
	if ctx.Err() == nil {
		t.mu.Lock()
		t.flaw = &flaw
		t.mu.Unlock()
	}
	return flaw
}

func (t *Tool) findFlaw(ctx context.Context) string {
	d := t.Details(ctx)
	if size := len(t.raw); size > MaxListed {
		return fmt.Sprintf("it takes %d bytes, more than the %d that a list for clients may have for one tool", size, MaxListed)
	}
	if d.Denied != "" {
		return "it cannot be called: " + d.Denied
	}
	if why := d.Unchecked(ctx); why != "" {
		return "its input schema: " + why
	}
	if err := objectSchema(d.InputSchema); err != nil {
		return "its input schema: " + err.Error()
	}
	return ""
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
	return rpc.Prepend(rpc.Without(schema, func(name string) bool { return strings.EqualFold(name, "type") }), `"type":"object"`)
}

// withoutHeaders takes x-mcp-header out of the properties of a schema.
func withoutHeaders(schema json.RawMessage) json.RawMessage {
	return rpc.EditMember(schema, "properties", func(properties []byte) []byte {
		return rpc.Edit(properties, func(_ string, property []byte) []byte {
			return withoutHeaders(rpc.Without(property, func(name string) bool { return name == "x-mcp-header" }))
		})
	})
}
