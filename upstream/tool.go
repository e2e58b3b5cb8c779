package upstream

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/mcsh-dev/mcsh/preview/shape"
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

	// Brief is a shorter signature, for long lists.
	Brief string

	// Result is the shape of what the tool returns, from its output schema or learned from its calls; nil where
	// neither tells. It is not to be changed.
	Result *shape.Result
}

// Example is a stage's args with the tool's required arguments, a JSON object. The schema takes it where ok says so;
// else it is there to be filled in.
func (c *CatalogTool) Example() (args json.RawMessage, ok bool) {
	return schemas.Example(c.InputSchema, c.Tool.Input)
}

// tool is a tool of a list, with what calling it needs.
type tool struct {
	raw      json.RawMessage // as listed but for its spacing, to see whether it has changed
	name     string
	wrapped  bool   // its structured content is a mere wrapper
	readOnly bool   // annotated so, or declared by the operator
	refused  string // by policy: neither listed nor called
	denied   string // cannot be called, for another reason

	schema string // a hash of its schemas: what was learned under another one is forgotten

	details  func() *CatalogTool  // compiles the schema, once
	declared func() *shape.Result // what its output schema says, nil if nothing; read once
	words    func() map[string]bool
	fixed    fixed // what every call gets, once details has been called
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
	raw = spaceless(raw)
	t := &tool{raw: raw, name: w.Name, readOnly: readOnly, wrapped: wrapsResult(w.OutputSchema), refused: p.refusal(w.Name, readOnly)}
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
	t.schema = hashOf(w.InputSchema, w.OutputSchema)
	t.declared = sync.OnceValue(func() *shape.Result { return schemas.ResultShape(w.OutputSchema) })
	t.words = sync.OnceValue(func() map[string]bool { return wordsOf(raw) })
	t.details = sync.OnceValue(func() *CatalogTool {
		f, shown := p.fixed.in(w.InputSchema)
		input, err := schemas.CompileInput(shown)
		t.fixed = f
		c := &CatalogTool{
			Name: w.Name, Title: title, Description: description,
			InputSchema: present(shown), OutputSchema: present(w.OutputSchema), Annotations: present(w.Annotations),
			ReadOnly: readOnly, Denied: t.denied, Brief: schemas.BriefSignature(w.Name, shown),
			Tool: stages.Tool{
				Server: server, Name: w.Name, Annotated: h.annotated || readOnly, ReadOnly: readOnly,
				Idempotent: h.idempotent, Signature: schemas.Signature(w.Name, shown), Input: input,
			},
		}
		if err != nil {
			c.Flaw = err.Error()
		}
		f.apply(c, w.InputSchema)
		return c
	})
	return t, nil
}

// spaceless is valid JSON as it looks in a file of ours: without white space, and with the escapes of encoding/json. A list
// that was kept on disk and the one that the server sends then compare as equal, however the server writes its JSON.
func spaceless(raw json.RawMessage) json.RawMessage {
	b, err := json.Marshal(raw)
	if err != nil {
		return raw // cut short, which a tool that has been read is not
	}
	return b
}

// hashOf is a hash of some JSON, whatever its spacing.
func hashOf(parts ...json.RawMessage) string {
	h := sha256.New()
	for _, part := range parts {
		_, _ = h.Write(spaceless(part)) // never fails
		_, _ = h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// maxWordsRead is how much of a tool's own words is read for its vocabulary, in bytes.
const maxWordsRead = 64 << 10

func wordsOf(raw json.RawMessage) map[string]bool {
	words := map[string]bool{}
	for _, word := range shape.Words(string(raw[:min(len(raw), maxWordsRead)])) {
		words[word] = true
	}
	return words
}

// vocabulary tells the words that fields of the tool's results may be named with: common ones and its own.
func (t *tool) vocabulary(common func(word string) bool) func(word string) bool {
	return func(word string) bool { return common(word) || t.words()[word] }
}

func present(raw json.RawMessage) json.RawMessage {
	if isNull(raw) {
		return nil
	}
	return raw
}
