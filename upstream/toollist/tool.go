package toollist

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/mcsh-dev/mcsh/preview/shape"
	"github.com/mcsh-dev/mcsh/schemas"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream/results"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

// A CatalogTool is one tool of a server as the server describes it. The schemas are the bytes that the server sent.
type CatalogTool struct {
	Name, Title, Description string

	Original string // its name at the server, also where the operator has renamed it

	InputSchema, OutputSchema, Annotations json.RawMessage // nil where the server sent none

	ReadOnly bool   // annotated so, or declared by the operator
	Denied   string // why it cannot be called, or empty
	Doubt    string // why it counts as one that may change something, against its annotations; or empty
	Flaw     string // why its arguments are not checked here, or empty

	Tool stages.Tool

	// Long and Brief are signatures with short names of types, for lists.
	Long, Brief string

	// Result is the shape of the tool's results, from its output schema or learned from calls; nil if neither says it.
	// It must not be changed.
	Result *shape.Result

	Memo *Memo
}

// A Memo keeps what somebody has made of a tool, for all who list the tool, until it changes. A nil Memo keeps nothing.
type Memo struct{ made atomic.Value }

// Get returns what is kept, or else makes it. All callers make the same type.
func (m *Memo) Get(make func() any) any {
	if m == nil {
		return make()
	}
	if m.made.Load() == nil {
		m.made.Store(make())
	}
	return m.made.Load()
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

// Tool is a tool of a list, with what calling it needs.
type Tool struct {
	wireTool
	Original   string          // its name at the server
	raw        json.RawMessage // as listed, without its spacing, to see whether it has changed
	Wrapped    bool            // its structured content is a mere wrapper
	ReadOnly   bool            // annotated so, or declared by the operator
	duplicated bool            // the list has another tool of its name
	Refused    string          // why the policy neither lists nor calls it, or empty; see Refusal
	AsTask     bool            // in the older protocol it can only be called as a task

	Schema string        // a hash of its schemas, for which its shape is learned
	Pin    func() string // its fingerprint; made once
	from   *Reader

	Declared func() *shape.Result // the shape in its output schema, or nil; read once
	words    func() map[string]bool
	headers  func() []headerArgument

	mu        sync.Mutex // guards the fields below
	described *CatalogTool
	flaw      *string // why clients cannot have it by a name of its own; nil: not known yet
	fixed     fixed   // for every call, once the tool has been described
}

// A Reader reads the tools of one list. Its work is bounded for all of them together, in steps of [schemas.Steps].
type Reader struct {
	Server    string
	Policy    Policy
	Cache     *schemas.Cache
	Allowance *schemas.Allowance // of the cache's limits
	Tools     int                // that are read
	Bytes     int64              // of the list that are read
	Trust     trust
}

// A trust says which tools are trusted.
type trust interface {
	// Refusal says why a tool is held back, or is empty. It may be called concurrently.
	Refusal(*Tool) string
}

// Refusal says why the tool may not be called, or is empty.
func (t *Tool) Refusal() string { return cmp.Or(t.Refused, t.from.Trust.Refusal(t)) }

const (
	maxName        = 1 << 10  // bytes of a tool's name
	maxDescription = 64 << 10 // bytes of its description that are shown

	MaxListed = 128 << 10 // bytes of what a list for clients says about one thing
)

// Same reports whether two tools are the same for everybody.
func (t *Tool) Same(other *Tool) bool {
	return t == other || bytes.Equal(t.raw, other.raw) && t.duplicated == other.duplicated
}

// Definition is what counts of the tool where it is compared with another time.
func (t *Tool) Definition() json.RawMessage { return definitionOf(t.raw) }

// Raw is the tool as its server lists it.
func (t *Tool) Raw() json.RawMessage { return t.raw }

// steps returns the steps for reading one tool.
func (r *Reader) steps(ctx context.Context) *schemas.Steps { return r.Allowance.Steps(ctx) }

// Parse reads one tool of a list; duplicated says that another tool of the list has its name.
func (r *Reader) Parse(raw json.RawMessage, duplicated bool) (*Tool, error) {
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
	override := r.Policy.Overrides[w.Name]
	original := override.apply(&w)
	readOnly := w.hints.readOnly || override.ReadOnly == nil && r.Policy.ReadOnly.Match(original)
	if readOnly {
		w.hints.doubt = "" // the operator knows the tool
	}
	raw = rpc.Compact(raw)
	t := &Tool{
		wireTool: w, Original: original, raw: raw, ReadOnly: readOnly, duplicated: duplicated, from: r,
		Wrapped: results.WrapsResult(w.output), Refused: r.Policy.refusal(original, readOnly, w.hints.doubt),
	}
	var execution struct {
		TaskSupport string `json:"taskSupport"`
	}
	t.AsTask = json.Unmarshal(w.execution, &execution) == nil && execution.TaskSupport == "required"
	t.Schema = hashOf(w.input, w.output)
	t.Pin = sync.OnceValue(func() string { return fingerprint(raw, duplicated) })
	t.Declared = sync.OnceValue(func() *shape.Result {
		steps := r.steps(context.Background())
		defer r.Allowance.Charge(steps)
		return schemas.ResultShape(steps, w.output)
	})
	t.words = sync.OnceValue(func() map[string]bool { return wordsOf(raw) })
	t.headers = sync.OnceValue(t.headerArguments)
	return t, nil
}

// Details describes the tool, once. When ctx ends first, the description is incomplete, and the next call makes it
// again.
func (t *Tool) Details(ctx context.Context) *CatalogTool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.described != nil {
		return t.described
	}
	f, shown, hidden := t.from.Policy.Fixed.in(ctx, t.from, t.input)
	steps := t.from.steps(ctx)
	defer t.from.Allowance.Charge(steps)
	said, err := schemas.Describe(steps, t.Name, shown)
	err = cmp.Or(hidden, err)
	c := &CatalogTool{
		Name: t.Name, Original: t.Original, Title: t.Title, Description: t.description(),
		InputSchema: orNil(shown), OutputSchema: orNil(t.output), Annotations: orNil(t.annotations),
		ReadOnly: t.ReadOnly, Doubt: t.hints.doubt, Long: said.Long, Brief: said.Brief, Memo: new(Memo),
		Tool: stages.Tool{
			Server: t.from.Server, Name: t.Name, Annotated: t.hints.annotated || t.ReadOnly, ReadOnly: t.ReadOnly,
			Idempotent: t.hints.idempotent, Additive: t.hints.additive, Sticky: t.from.Policy.Sticky, Signature: said.Signature, Input: said.Input,
		},
	}
	if err != nil {
		c.Flaw = err.Error()
		c.Tool.Input.Check = func(context.Context, json.RawMessage, bool) ([]string, string) {
			return nil, "arguments not checked here: " + c.Flaw
		}
	} else {
		c.Tool.Input.Check = t.from.Cache.Check(shown)
	}
	f.apply(ctx, c, t.from.Cache.Check(t.input))
	if ctx.Err() == nil {
		t.described, t.fixed = c, f
	}
	return c
}

// FixedArguments returns the fixed arguments of every call. It fails only if ctx ends before the tool is described.
func (t *Tool) FixedArguments(ctx context.Context) (fixed, error) {
	t.Details(ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.described == nil {
		return fixed{}, context.Cause(ctx)
	}
	return t.fixed, nil
}

// description is the server's description of the tool, cut to its limit.
func (t *Tool) description() string {
	text := t.Description
	if len(text) <= maxDescription {
		return text
	}
	return strings.ToValidUTF8(text[:maxDescription], "") + fmt.Sprintf(" [cut: %d bytes in all]", len(text))
}

// hashOf is a hash of some JSON that ignores its spacing.
func hashOf(parts ...json.RawMessage) string {
	h := sha256.New()
	for _, part := range parts {
		_, _ = h.Write(rpc.Compact(part)) // never fails
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

// Vocabulary reports which words may be names of fields in the tool's results: common ones and those of the tool.
func (t *Tool) Vocabulary(common func(word string) bool) func(word string) bool {
	return func(word string) bool { return common(word) || t.words()[word] }
}

func orNil(raw json.RawMessage) json.RawMessage {
	if rpc.IsNull(raw) {
		return nil
	}
	return raw
}
