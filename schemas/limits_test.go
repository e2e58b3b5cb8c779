//go:build !race

package schemas_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/schemas"
)

// TestSchemaLimits: a schema is read and checked within the limits that are set. A note names the one that was reached.
func TestSchemaLimits(t *testing.T) {
	long := json.RawMessage(`{"description":"` + strings.Repeat("x", 2<<20) + `","properties":{"a":{"type":"string"}},"required":["a"]}`)
	const short = `{"properties":{"l":{"uniqueItems":true}}}`
	items := json.RawMessage(`{"l":[` + repeat(2000, `[[[#N]]]`) + `]}`)
	for _, c := range []struct {
		name   string
		limits schemas.Limits
		schema json.RawMessage
		args   json.RawMessage
		note   string // of describing the tool or of the check; empty: it is checked
	}{
		{"a long schema", schemas.Limits{}, long, json.RawMessage(`{"a":"b"}`), "more than 1048576 (limit schema; raise it with --limit schema=SIZE)"},
		{"a long schema that is allowed", schemas.Limits{Schema: 4 << 20}, long, json.RawMessage(`{"a":"b"}`), ""},
		{"a schema longer than is allowed", schemas.Limits{Schema: 40}, json.RawMessage(short), items, "41 bytes are more than 40 (limit schema;"},
		{"a check", schemas.Limits{}, json.RawMessage(short), items, ""},
		{"a check of too many steps", schemas.Limits{Steps: 1000}, json.RawMessage(short), items, "it takes more than 1000 steps (limit schema-steps: 1000; raise it with --limit schema-steps=VALUE)"},
		{"a schema of too many steps", schemas.Limits{Schema: 4 << 20, Steps: 1000}, long, items, "it takes more than 125 steps (limit schema-steps: 1000;"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cache := schemas.NewCache(64<<20, nil, c.limits)
			d, err := schemas.Describe(cache.Limits().Allowance().Steps(t.Context()), "tool", c.schema)
			_, note := cache.Check(c.schema)(t.Context(), c.args, false)
			if err != nil {
				note = err.Error() + note
			}
			if !strings.Contains(note, c.note) || c.note == "" && note != "" {
				t.Errorf("the note is %.300q, want %q", note, c.note)
			}
			if d.Input.Check = cache.Check(c.schema); c.note == "" {
				if _, ok := schemas.Example(t.Context(), c.schema, d.Input); !ok {
					t.Error("the example is not valid")
				}
			}
			pruned, _ := schemas.Without(cache.Limits().Allowance().Steps(t.Context()), c.schema, d.Input.Required)
			if len(d.Input.Required) > 0 && strings.Contains(string(pruned), `"a"`) {
				t.Error("the schema still has its property")
			}
		})
	}
}
