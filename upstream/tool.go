package upstream

import (
	"encoding/json"
	"fmt"
	"sync"

	"github.com/mcsh-dev/mcsh/schemas"
	"github.com/mcsh-dev/mcsh/stages"
)

// A CatalogTool is one tool of a server as the server describes it. The schemas are the bytes that the server sent.
type CatalogTool struct {
	Name, Title, Description string

	InputSchema, OutputSchema, Annotations json.RawMessage // nil where the server sent none

	ReadOnly bool   // annotated so, or declared by the operator
	Denied   string // why it cannot be called, or empty
	Flaw     string // why its arguments are not checked here, or empty

	Tool stages.Tool
}

// tool is a tool of a list, with what calling it needs.
type tool struct {
	raw     json.RawMessage // as listed, to see whether it has changed
	name    string
	wrapped bool   // its structured content is a mere wrapper
	refused string // by policy: neither listed nor called
	denied  string // cannot be called, for another reason

	details func() *CatalogTool // compiles the schema, once
}

// wireTool is a tool as MCP writes it. What is not needed here is not decoded, so that it cannot be malformed.
type wireTool struct {
	Name         string          `json:"name"`
	Title        any             `json:"title"`
	Description  any             `json:"description"`
	InputSchema  json.RawMessage `json:"inputSchema"`
	OutputSchema json.RawMessage `json:"outputSchema"`
	Annotations  json.RawMessage `json:"annotations"`
	Execution    json.RawMessage `json:"execution"`
}

// hints are the annotations that matter here. A hint that is not a boolean says nothing.
type hints struct{ readOnly, destructive, idempotent, annotated bool }

func parseHints(raw json.RawMessage) (h hints, title string) {
	var members map[string]any
	if json.Unmarshal(raw, &members) != nil {
		return hints{}, ""
	}
	for name, field := range map[string]*bool{
		"readOnlyHint": &h.readOnly, "destructiveHint": &h.destructive, "idempotentHint": &h.idempotent,
	} {
		if v, ok := members[name].(bool); ok {
			*field, h.annotated = v, true
		}
	}
	title, _ = members["title"].(string)
	return h, title
}

// parseTool reads one tool of a list.
func parseTool(raw json.RawMessage, server string, p policy) (*tool, error) {
	var w wireTool
	if err := json.Unmarshal(raw, &w); err != nil {
		return nil, fmt.Errorf("reading a tool: %w", err)
	}
	if w.Name == "" {
		return nil, fmt.Errorf("reading a tool: it has no name")
	}
	h, title := parseHints(w.Annotations)
	readOnly := h.readOnly || p.readOnly.match(w.Name)
	t := &tool{raw: raw, name: w.Name, wrapped: wrapsResult(w.OutputSchema), refused: p.refusal(w.Name, readOnly)}
	var execution struct {
		TaskSupport string `json:"taskSupport"`
	}
	if json.Unmarshal(w.Execution, &execution) == nil && execution.TaskSupport == "required" {
		t.denied = "it answers only with MCP tasks, which are not supported"
	}
	if s, ok := w.Title.(string); ok && s != "" {
		title = s
	}
	description, _ := w.Description.(string)
	t.details = sync.OnceValue(func() *CatalogTool {
		input, err := schemas.CompileInput(w.InputSchema)
		c := &CatalogTool{
			Name: w.Name, Title: title, Description: description,
			InputSchema: present(w.InputSchema), OutputSchema: present(w.OutputSchema), Annotations: present(w.Annotations),
			ReadOnly: readOnly, Denied: t.denied,
			Tool: stages.Tool{
				Server: server, Name: w.Name, Annotated: h.annotated || readOnly, ReadOnly: readOnly,
				Idempotent: h.idempotent, Signature: schemas.Signature(w.Name, w.InputSchema), Input: input,
			},
		}
		if err != nil {
			c.Flaw = err.Error()
		}
		return c
	})
	return t, nil
}

func present(raw json.RawMessage) json.RawMessage {
	if isNull(raw) {
		return nil
	}
	return raw
}
