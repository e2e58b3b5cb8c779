package toollist

import (
	"encoding/json"
	"errors"

	"github.com/mcsh-dev/mcsh/internal/exactjson"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

// wireTool is a tool as MCP writes it. Members that are not needed here are not decoded, so they cannot be malformed.
type wireTool struct {
	Name, Title, Description              string
	input, output, annotations, execution json.RawMessage // schemas are of arguments and of results

	hints hints
}

// toolNames are the members of a tool that say which it is and what it does; hintNames are those of its annotations.
var (
	toolNames = exactjson.Names{Known: []string{"name", "annotations"}}
	hintNames = exactjson.Names{Known: []string{"readOnlyHint", "destructiveHint", "idempotentHint"}}
)

// readTool reads a tool. A tool that can be read in two ways counts as one that may change something.
func readTool(raw json.RawMessage) (w wireTool, err error) {
	members, unclear := exactjson.Members(raw, toolNames)
	if members == nil {
		return w, unclear
	}
	if err := json.Unmarshal(members["name"], &w.Name); err != nil || w.Name == "" {
		return w, errors.New("it has no name")
	}
	w.input, w.output, w.execution = members["inputSchema"], members["outputSchema"], members["execution"]
	w.annotations = members["annotations"]
	w.hints, w.Title = readHints(w.annotations)
	if title := text(members["title"]); title != "" {
		w.Title = title
	}
	w.Description = text(members["description"])
	if unclear != nil {
		w.hints = doubt("in the tool " + unclear.Error())
	}
	return w, nil
}

// text is a JSON string, or empty for anything else.
func text(raw json.RawMessage) (s string) {
	_ = json.Unmarshal(raw, &s)
	return s
}

// hints are the annotations that matter here. A hint that is not a boolean does not count.
type hints struct {
	readOnly, idempotent, annotated bool

	additive bool // destructiveHint is false

	doubt string // why they do not count, or empty
}

// doubt returns the hints of a tool that counts as one that may change something, with the reason.
func doubt(why string) hints { return hints{annotated: true, doubt: why} }

// readHints reads annotations. Contradictory ones do not count: readOnlyHint counts if destructiveHint is absent, null
// or false.
func readHints(raw json.RawMessage) (h hints, title string) {
	if rpc.IsNull(raw) {
		return hints{}, ""
	}
	members, err := exactjson.Members(raw, hintNames)
	title = text(members["title"])
	if err != nil {
		return doubt("in its annotations " + err.Error()), title
	}
	for name, field := range map[string]*bool{"readOnlyHint": &h.readOnly, "idempotentHint": &h.idempotent, "destructiveHint": new(bool)} {
		if value := string(members[name]); value == "true" || value == "false" {
			*field, h.annotated = value == "true", true
		}
	}
	h.additive = string(members["destructiveHint"]) == "false"
	if destructive := members["destructiveHint"]; h.readOnly && !rpc.IsNull(destructive) && string(destructive) != "false" {
		return doubt("its annotations readOnlyHint and destructiveHint contradict each other"), title
	}
	return h, title
}
