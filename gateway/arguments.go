package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/exactjson"
	"github.com/mcsh-dev/mcsh/internal/nearest"
	"github.com/mcsh-dev/mcsh/stages"
)

// wrongCall lists all mistakes in the arguments of a call.
type wrongCall []*stages.Error

func (w wrongCall) Error() string { return strings.ReplaceAll(w.Unwrap().Error(), "\n", "; ") }

// Unwrap returns the mistakes.
func (w wrongCall) Unwrap() error { return stages.Join(w) }

// decode fills the struct that into points to with the valid arguments of a call, of which hidden ones are unknown. The error for an
// unknown argument names the nearest known one.
func decode(req *mcp.CallToolRequest, into any, hidden ...string) wrongCall {
	raw := bytes.TrimSpace(req.Params.Arguments)
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	list, err := exactjson.List(raw)
	if err != nil {
		return wrongCall{stages.Errorf(stages.InvalidArguments, "", "the arguments must be one JSON object")} // argumentsFault comes first
	}
	known := map[string]reflect.Value{}
	var names []string
	v := reflect.ValueOf(into).Elem()
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if !slices.Contains(hidden, name) {
			known[name], names = v.Field(i), append(names, name)
		}
	}
	given, times, wrong := map[string]json.RawMessage{}, map[string]int{}, wrongCall(nil)
	for _, m := range list { // readers differ in which one of repeated arguments counts
		given[m.Name] = m.Value
		if times[m.Name]++; times[m.Name] == 2 {
			wrong = append(wrong, stages.Errorf(stages.InvalidArguments, "give it once", "argument %q is given more than once", shown(m.Name)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if field, ok := known[name]; !ok {
			wrong = append(wrong, unknownArgument(name, names))
		} else if err := json.Unmarshal(given[name], field.Addr().Interface()); err != nil {
			wrong = append(wrong, stages.Errorf(stages.InvalidArguments, "see the input schema of this tool",
				"argument %q has the wrong type: got %s", name, shown(string(given[name]))))
		}
	}
	return wrong
}

// argumentsFault returns the protocol's error for arguments that are not one JSON object.
func argumentsFault(raw json.RawMessage) error {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || raw[0] == '{' || string(raw) == "null" {
		return nil
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the arguments must be one JSON object, got " + shown(string(raw))}
}

func unknownArgument(name string, names []string) *stages.Error {
	hint := "there are no arguments"
	if best := nearest.Name(name, names); best != "" {
		hint = fmt.Sprintf("did you mean %q?", best)
	} else if len(names) > 0 {
		hint = "the arguments are " + strings.Join(names, ", ")
	}
	return stages.Errorf(stages.InvalidArguments, hint, "unknown argument %q", shown(name))
}

// shown cuts a value for a message.
func shown(value string) string { return shownUpTo(value, 60) }

// shownUpTo cuts a value to so many characters.
func shownUpTo(value string, most int) string {
	if begin := prefix(value, most); begin != value {
		return begin + "..."
	}
	return value
}

// names is one string or an array of strings.
type names = stages.Args
