package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/nearest"
	"github.com/mcsh-dev/mcsh/stages"
)

// decode fills the struct that into points to from a call's arguments. An unknown argument is an error with the
// nearest known name.
func decode(req *mcp.CallToolRequest, into any) error {
	raw := bytes.TrimSpace(req.Params.Arguments)
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	var given map[string]json.RawMessage
	if err := json.Unmarshal(raw, &given); err != nil {
		return stages.Errorf(stages.InvalidArguments, "", "the arguments must be one JSON object")
	}
	known := map[string]reflect.Value{}
	var names []string
	v := reflect.ValueOf(into).Elem()
	for i := range v.NumField() {
		name := v.Type().Field(i).Tag.Get("json")
		known[name], names = v.Field(i), append(names, name)
	}
	for name, value := range given {
		field, ok := known[name]
		if !ok {
			hint := "the arguments are " + strings.Join(names, ", ")
			if best := nearest.Name(name, names); best != "" {
				hint = fmt.Sprintf("did you mean %q?", best)
			}
			return stages.Errorf(stages.InvalidArguments, hint, "unknown argument %q", name)
		}
		if err := json.Unmarshal(value, field.Addr().Interface()); err != nil {
			return stages.Errorf(stages.InvalidArguments, "", "argument %q has the wrong type: got %.60s", name, value)
		}
	}
	return nil
}

// names is one string or an array of strings.
type names []string

// UnmarshalJSON accepts both forms.
func (n *names) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		*n = make(names, 1)
		return json.Unmarshal(data, &(*n)[0])
	}
	return json.Unmarshal(data, (*[]string)(n))
}
