package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/upstream"
)

// readExpose reads whether clients call the tools of the server by names of their own: true for all, or patterns.
func (e *entry) readExpose(value json.RawMessage) (err error) {
	var all bool
	switch {
	case json.Unmarshal(value, &all) == nil && !isNull(value):
		if all {
			e.Expose = []string{"*"}
		}
		return nil
	case value[0] != '[':
		return fmt.Errorf("want true, false or an array of patterns of tools, got %s", kindOf(value))
	}
	e.Expose, err = patterns(value)
	return err
}

// maxToolName bounds the name that the operator gives a tool, in bytes.
const maxToolName = 128

// readOverrides reads what the operator says about tools in place of the server, by the names that the server has for them.
func (e *entry) readOverrides(value json.RawMessage) error {
	all, err := decode[map[string]json.RawMessage](value, `{"TOOL": {"name": string, "description": string, "readOnly": boolean}}`)
	if err != nil {
		return err
	}
	e.Overrides = map[string]upstream.Override{}
	for _, tool := range slices.Sorted(maps.Keys(all)) {
		if e.Overrides[tool], err = decodeStrict[upstream.Override](all[tool], "name", "description", "readOnly"); err != nil {
			return fmt.Errorf("%q: %w", tool, err)
		}
	}
	renamed := map[string]string{} // by the new name
	for _, tool := range slices.Sorted(maps.Keys(e.Overrides)) {
		o := e.Overrides[tool]
		switch {
		case o == (upstream.Override{}):
			return fmt.Errorf("%q: says nothing; want name, description or readOnly", tool)
		case o.Name == nil:
			continue
		case strings.TrimSpace(*o.Name) == "" || len(*o.Name) > maxToolName || strings.ContainsFunc(*o.Name, func(c rune) bool { return c < ' ' || c == '/' }):
			return fmt.Errorf("%q: %q cannot be the name of a tool: want up to %d bytes on one line, without a slash", tool, texts.Cut(*o.Name, maxShown), maxToolName)
		case renamed[*o.Name] != "":
			return fmt.Errorf("%q and %q have the same name, %q: want different ones", renamed[*o.Name], tool, *o.Name)
		}
		renamed[*o.Name] = tool
	}
	return nil
}
