// Package mcptest makes MCP servers for tests: tools that are Go functions, with delays, failures and counters,
// reached in memory, over HTTP or as a child process. It knows nothing of what is tested with them.
package mcptest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/upstream"
)

// A Tool is one tool of an [Upstream]. Its answer is the first of Raw, Do and Text that is set.
type Tool struct {
	Name, Title, Description string

	Schema       string // JSON of the input schema; empty: an object of anything
	OutputSchema string // JSON; empty: none

	ReadOnly, Idempotent, Destructive bool // annotations; with none of them the tool is not annotated

	Latency time.Duration // before it answers, unless the call is cancelled
	Says    []string      // messages of progress before it answers, to a caller that asks for them

	// Do returns a text. Its error becomes a result with isError. Numbers in args are [json.Number].
	Do func(args map[string]any) (string, error)

	// Raw returns the whole result as JSON, sent as it is. Its error becomes a JSON-RPC error.
	Raw func(ctx context.Context, args json.RawMessage) (string, error)

	Text string // the text it always answers

	Extra string // more members of the tool's JSON, such as `"execution":{"taskSupport":"required"}`
}

// An Upstream is an MCP server with counters. All methods may be called concurrently.
type Upstream struct {
	server *mcp.Server
	dial   func(context.Context) (mcp.Transport, error)
	tools  map[string]Tool
	closed chan struct{} // ends the delays of tools
	close  func()        // closes closed

	mu      sync.Mutex // guards the fields below
	calls   map[string]int
	running int
	peak    int
}

// New makes a server with tools.
func New(tools ...Tool) *Upstream {
	u := newUpstream(&mcp.ServerOptions{
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{ListChanged: true}},
	})
	for _, t := range tools {
		u.Add(t)
	}
	return u
}

func newUpstream(o *mcp.ServerOptions) *Upstream {
	u := &Upstream{tools: map[string]Tool{}, calls: map[string]int{}, closed: make(chan struct{})}
	u.close = sync.OnceFunc(func() { close(u.closed) })
	u.server = mcp.NewServer(&mcp.Implementation{Name: "mcptest", Version: "1"}, o)
	u.server.AddReceivingMiddleware(u.intercept)
	u.dial = upstream.InProcess(u.server, nil, nil)
	return u
}

// Add adds a tool, or replaces the one of that name, and notifies connected clients.
func (u *Upstream) Add(t Tool) {
	u.mu.Lock()
	u.tools[t.Name] = t
	u.mu.Unlock()
	listed := &mcp.Tool{Name: t.Name, Title: t.Title, Description: t.Description, InputSchema: json.RawMessage(`{"type":"object"}`)}
	if t.Schema != "" {
		listed.InputSchema = json.RawMessage(t.Schema)
	}
	if t.OutputSchema != "" {
		listed.OutputSchema = json.RawMessage(t.OutputSchema)
	}
	if t.ReadOnly || t.Idempotent || t.Destructive {
		listed.Annotations = &mcp.ToolAnnotations{ReadOnlyHint: t.ReadOnly, IdempotentHint: t.Idempotent}
		if t.Destructive {
			listed.Annotations.DestructiveHint = &t.Destructive
		}
	}
	u.server.AddTool(listed, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, errors.New("calls are answered before they come here")
	})
}

// Remove removes a tool and notifies connected clients.
func (u *Upstream) Remove(name string) {
	u.mu.Lock()
	delete(u.tools, name)
	u.mu.Unlock()
	u.server.RemoveTools(name)
}

// MCP is the server itself, for transports of the test's own.
func (u *Upstream) MCP() *mcp.Server { return u.server }

// Dial reaches the server in memory. It has the form of the field Dial of [upstream.Server].
func (u *Upstream) Dial(ctx context.Context) (mcp.Transport, error) { return u.dial(ctx) }

// Calls counts the calls so far: of the tools named, or of all.
func (u *Upstream) Calls(tools ...string) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	n := 0
	for name, count := range u.calls {
		if len(tools) == 0 || contains(tools, name) {
			n += count
		}
	}
	return n
}

func contains(list []string, name string) bool {
	for _, s := range list {
		if s == name {
			return true
		}
	}
	return false
}

// Peak is the largest number of calls that ran at the same time.
func (u *Upstream) Peak() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.peak
}

// Running is the number of calls that run now.
func (u *Upstream) Running() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.running
}

func (u *Upstream) enter(name string) (Tool, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	t, ok := u.tools[name]
	if ok {
		u.calls[name]++
		u.running++
		u.peak = max(u.peak, u.running)
	}
	return t, ok
}

func (u *Upstream) leave() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.running--
}

// rawResult is a result that is sent as it is.
type rawResult struct {
	mcp.ResultBase
	json json.RawMessage
}

func (r *rawResult) MarshalJSON() ([]byte, error) { return r.json, nil }

// intercept answers calls, so that results can be any JSON, and adds to the list what the SDK does not know.
func (u *Upstream) intercept(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if call, ok := req.(*mcp.CallToolRequest); ok {
			return u.call(ctx, call, next)
		}
		res, err := next(ctx, method, req)
		list, ok := res.(*mcp.ListToolsResult)
		if !ok || err != nil {
			return res, err
		}
		return u.decorate(list)
	}
}

func (u *Upstream) call(ctx context.Context, req *mcp.CallToolRequest, next mcp.MethodHandler) (mcp.Result, error) {
	t, ok := u.enter(req.Params.Name)
	if !ok {
		return next(ctx, "tools/call", req)
	}
	defer u.leave()
	if token := req.Params.GetProgressToken(); token != nil {
		for i, message := range t.Says {
			p := &mcp.ProgressNotificationParams{ProgressToken: token, Progress: float64(i + 1), Total: float64(len(t.Says)), Message: message}
			_ = req.Session.NotifyProgress(ctx, p) // there may be no way but that of the answer
		}
	}
	if t.Latency > 0 {
		timer := time.NewTimer(t.Latency)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-u.closed:
			return nil, errors.New("the server is closing")
		}
	}
	if t.Raw != nil {
		raw, err := t.Raw(ctx, req.Params.Arguments)
		if err != nil {
			return nil, err
		}
		return &rawResult{json: json.RawMessage(raw)}, nil
	}
	text := t.Text
	if t.Do != nil {
		args := map[string]any{}
		dec := json.NewDecoder(bytes.NewReader(req.Params.Arguments))
		dec.UseNumber()
		if err := dec.Decode(&args); err != nil && len(req.Params.Arguments) > 0 {
			return nil, err
		}
		var err error
		if text, err = t.Do(args); err != nil {
			res := &mcp.CallToolResult{}
			res.SetError(err)
			return res, nil
		}
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil
}

// decorate adds the Extra members to a tool list.
func (u *Upstream) decorate(list *mcp.ListToolsResult) (mcp.Result, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	extra := false
	for _, t := range list.Tools {
		extra = extra || u.tools[t.Name].Extra != ""
	}
	if !extra {
		return list, nil
	}
	var tools []json.RawMessage
	for _, t := range list.Tools {
		b, err := json.Marshal(t)
		if err != nil {
			return nil, err
		}
		if more := u.tools[t.Name].Extra; more != "" {
			b = append(append(b[:len(b)-1], ","+more...), '}')
		}
		tools = append(tools, b)
	}
	b, err := json.Marshal(map[string]any{"tools": tools, "resultType": "complete"})
	return &rawResult{json: b}, err
}
