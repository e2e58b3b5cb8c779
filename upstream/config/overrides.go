package config

import (
	"bytes"
	"encoding/json"
	"errors"
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
func (e *entry) readOverrides(value json.RawMessage) (err error) {
	dec := json.NewDecoder(bytes.NewReader(value))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&e.Overrides); err != nil || isNull(value) {
		return fmt.Errorf(`want {"TOOL": {"name": string, "description": string, "readOnly": boolean}}: %s`, overrideMistake(err, value))
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

// overrideMistake says what is wrong, without the value.
func overrideMistake(err error, value json.RawMessage) string {
	if err == nil || value[0] != '{' {
		return "got " + kindOf(value)
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Sprintf("%s is a %s", wrong.Field, wrong.Value)
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}
