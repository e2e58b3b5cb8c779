package upstream

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/mcsh-dev/mcsh/preview/shape"
	"github.com/mcsh-dev/mcsh/schemas"
	"github.com/mcsh-dev/mcsh/stages"
)

// A CatalogTool is one tool of a server as the server describes it. The schemas are the bytes that the server sent.
type CatalogTool struct {
	Name, Title, Description string

	Original string // its name at the server, also where the operator has renamed it

	InputSchema, OutputSchema, Annotations json.RawMessage // nil where the server sent none

	ReadOnly bool   // annotated so, or declared by the operator
	Denied   string // why it cannot be called, or empty
	Doubt    string // why it counts as one that may change something, whatever its annotations say, or empty
	Flaw     string // why its arguments are not checked here, or empty

	Tool stages.Tool

	// Long and Brief are signatures with short names of types, for lists.
	Long, Brief string

	// Result is the shape of the tool's results, from its output schema or learned from calls; nil if neither says it.
	// It must not be changed.
	Result *shape.Result
}

// Example is a stage's args with the tool's required arguments, a JSON object. If ok, the schema accepts it; else it is
// a template.
func (c *CatalogTool) Example(ctx context.Context) (args json.RawMessage, ok bool) {
	return schemas.Example(ctx, c.InputSchema, c.Tool.Input)
}

// Unchecked says why arguments are not checked here, or is empty. It compiles the schema.
func (c *CatalogTool) Unchecked(ctx context.Context) string {
	if c.Flaw != "" {
		return c.Flaw
	}
	_, note := c.Tool.Input.Check(ctx, json.RawMessage("{}"), true)
	return note
}

// tool is a tool of a list, with what calling it needs.
type tool struct {
	wireTool
	original   string          // its name at the server
	raw        json.RawMessage // as listed, without its spacing, to see whether it has changed
	wrapped    bool            // its structured content is a mere wrapper
	readOnly   bool            // annotated so, or declared by the operator
	duplicated bool            // the list has another tool of its name
	refused    string          // why the policy neither lists nor calls it, or empty; see refusal
	asTask     bool            // in the older protocol it can only be called as a task

	schema string        // a hash of its schemas, for which its shape is learned
	pin    func() string // its fingerprint; made once
	from   *reader

	declared func() *shape.Result // the shape in its output schema, or nil; read once
	words    func() map[string]bool
	headers  func() []headerArgument

	mu        sync.Mutex // guards what follows
	described *CatalogTool
	flaw      *string // why clients cannot have it by a name of its own; nil: not known yet
	fixed     fixed   // for every call, once the tool has been described
}

// A reader reads the tools of one list. Its work is bounded for all of them together, in steps of [schemas.Steps].
type reader struct {
	server    string
	policy    policy
	cache     *schemas.Cache
	allowance *schemas.Allowance
	limits    *Options // Tools and ToolList
	pins      *pins
}

// refusal says why the tool may not be called, or is empty.
func (t *tool) refusal() string { return cmp.Or(t.refused, t.from.pins.refusal(t)) }

const (
	maxName        = 1 << 10  // bytes of a tool's name
	maxDescription = 64 << 10 // bytes of its description that are shown
)

func newReader(sc *serverConn) *reader {
	return &reader{sc.server.Name, sc.policy, sc.pool.options.Schemas, sc.pool.options.Schemas.Limits().Allowance(), &sc.pool.options, sc.pins}
}

// steps returns the steps for reading one tool.
func (r *reader) steps(ctx context.Context) *schemas.Steps { return r.allowance.Steps(ctx) }

// parse reads one tool of a list; duplicated says that another tool of the list has its name.
func (r *reader) parse(raw json.RawMessage, duplicated bool) (*tool, error) {
	w, err := readTool(raw)
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading a tool: %w", err)
	case len(w.Name) > maxName:
		return nil, fmt.Errorf("reading a tool: its name has %d bytes, more than %d: it begins with %.40q", len(w.Name), maxName, w.Name)
	}
	if duplicated {
		w.hints = doubt("the server lists two tools of this name")
	}
	override := r.policy.overrides[w.Name]
	original := override.apply(&w)
	readOnly := w.hints.readOnly || override.ReadOnly == nil && r.policy.readOnly.match(original)
	if readOnly {
		w.hints.doubt = "" // the operator knows the tool
	}
	raw = compacted(raw)
	t := &tool{
		wireTool: w, original: original, raw: raw, readOnly: readOnly, duplicated: duplicated, from: r,
		wrapped: wrapsResult(w.OutputSchema), refused: r.policy.refusal(original, readOnly, w.hints.doubt),
	}
	var execution struct {
		TaskSupport string `json:"taskSupport"`
	}
	t.asTask = json.Unmarshal(w.Execution, &execution) == nil && execution.TaskSupport == "required"
	t.schema = hashOf(w.InputSchema, w.OutputSchema)
	t.pin = sync.OnceValue(func() string { return fingerprint(raw, duplicated) })
	t.declared = sync.OnceValue(func() *shape.Result {
		steps := r.steps(context.Background())
		defer r.allowance.Charge(steps)
		return schemas.ResultShape(steps, w.OutputSchema)
	})
	t.words = sync.OnceValue(func() map[string]bool { return wordsOf(raw) })
	t.headers = sync.OnceValue(t.headerArguments)
	return t, nil
}

// details describes the tool, once. When ctx ends first, the description is incomplete, and the next call makes it
// again.
func (t *tool) details(ctx context.Context) *CatalogTool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.described != nil {
		return t.described
	}
	f, shown, hidden := t.from.policy.fixed.in(ctx, t.from, t.InputSchema)
	steps := t.from.steps(ctx)
	defer t.from.allowance.Charge(steps)
	said, err := schemas.Describe(steps, t.Name, shown)
	err = cmp.Or(hidden, err)
	c := &CatalogTool{
		Name: t.Name, Original: t.original, Title: t.Title, Description: t.description(),
		InputSchema: orNil(shown), OutputSchema: orNil(t.OutputSchema), Annotations: orNil(t.Annotations),
		ReadOnly: t.readOnly, Doubt: t.hints.doubt, Long: said.Long, Brief: said.Brief,
		Tool: stages.Tool{
			Server: t.from.server, Name: t.Name, Annotated: t.hints.annotated || t.readOnly, ReadOnly: t.readOnly,
			Idempotent: t.hints.idempotent, Additive: t.hints.additive, Signature: said.Signature, Input: said.Input,
		},
	}
	if err != nil {
		c.Flaw = err.Error()
		c.Tool.Input.Check = func(context.Context, json.RawMessage, bool) ([]string, string) {
			return nil, "arguments not checked here: " + c.Flaw
		}
	} else {
		c.Tool.Input.Check = t.from.cache.Check(shown)
	}
	f.apply(ctx, c, t.from.cache.Check(t.InputSchema))
	if ctx.Err() == nil {
		t.described, t.fixed = c, f
	}
	return c
}

// fixedArguments returns the fixed arguments of every call. It fails only if ctx ends before the tool is described.
func (t *tool) fixedArguments(ctx context.Context) (fixed, error) {
	t.details(ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.described == nil {
		return fixed{}, context.Cause(ctx)
	}
	return t.fixed, nil
}

// description is the server's description of the tool, cut to its limit.
func (t *tool) description() string {
	text := t.Description
	if len(text) <= maxDescription {
		return text
	}
	return strings.ToValidUTF8(text[:maxDescription], "") + fmt.Sprintf(" [cut: %d bytes in all]", len(text))
}

// compacted is valid JSON without white space and with the escapes of encoding/json, so that a saved list and the
// server's own compare as equal, however the server writes its JSON.
func compacted(raw json.RawMessage) json.RawMessage {
	b, err := json.Marshal(raw)
	if err != nil {
		return raw // not valid JSON: cannot be, since the tool was read
	}
	return b
}

// hashOf is a hash of some JSON, whatever its spacing.
func hashOf(parts ...json.RawMessage) string {
	h := sha256.New()
	for _, part := range parts {
		_, _ = h.Write(compacted(part)) // never fails
		_, _ = h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// maxWordsRead is how much of a tool's JSON is read for its vocabulary, in bytes.
const maxWordsRead = 64 << 10

func wordsOf(raw json.RawMessage) map[string]bool {
	words := map[string]bool{}
	for _, word := range shape.Words(string(raw[:min(len(raw), maxWordsRead)])) {
		words[word] = true
	}
	return words
}

// vocabulary reports which words may be names of fields in the tool's results: common ones and those of the tool.
func (t *tool) vocabulary(common func(word string) bool) func(word string) bool {
	return func(word string) bool { return common(word) || t.words()[word] }
}

func orNil(raw json.RawMessage) json.RawMessage {
	if isNull(raw) {
		return nil
	}
	return raw
}
