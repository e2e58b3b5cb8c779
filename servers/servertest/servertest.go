// Package servertest calls the built-in servers in tests like any client: over MCP, in memory. It checks every result
// against the output schema of its tool.
package servertest

import (
	"context"
	"encoding/json"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A Client is a session with one server, for the length of a test.
type Client struct {
	Session *mcp.ClientSession
	Tools   map[string]*mcp.Tool
	outputs map[string]*jsonschema.Resolved
}

// A Server is a server of the SDK.
type Server interface {
	Connect(context.Context, mcp.Transport, *mcp.ServerSessionOptions) (*mcp.ServerSession, error)
}

// Connect connects to server and checks the descriptions of its tools.
func Connect(t testing.TB, server Server, err error) *Client {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	here, there := mcp.NewInMemoryTransports()
	ctx := context.Background()
	ss, err := server.Connect(ctx, there, nil)
	if err != nil {
		t.Fatal(err)
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{}})
	cs, err := client.Connect(ctx, here, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cs.Close()
		ss.Wait()
	})
	return New(t, cs)
}

// New takes a session and checks the descriptions of the server's tools.
func New(t testing.TB, session *mcp.ClientSession) *Client {
	t.Helper()
	c := &Client{Session: session, Tools: map[string]*mcp.Tool{}, outputs: map[string]*jsonschema.Resolved{}}
	list, err := session.ListTools(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range list.Tools {
		c.Tools[tool.Name] = tool
		c.check(t, tool)
	}
	return c
}

// check checks the description of a tool.
func (c *Client) check(t testing.TB, tool *mcp.Tool) {
	t.Helper()
	in := schema(t, tool.InputSchema)
	if in.Type != "object" {
		t.Errorf("tool %s: the input schema is of type %q", tool.Name, in.Type)
	}
	if in.AdditionalProperties == nil || in.AdditionalProperties.Not == nil {
		t.Errorf("tool %s: the input schema is open", tool.Name)
	}
	for name, p := range in.Properties {
		if p.Description == "" {
			t.Errorf("tool %s: the argument %s has no description", tool.Name, name)
		}
	}
	if tool.Description == "" || tool.Annotations == nil || tool.Annotations.OpenWorldHint == nil {
		t.Errorf("tool %s: want a description and annotations", tool.Name)
	}
	if _, err := in.Resolve(nil); err != nil {
		t.Errorf("tool %s: input schema: %v", tool.Name, err)
	}
	if tool.OutputSchema == nil {
		return
	}
	out, err := schema(t, tool.OutputSchema).Resolve(nil)
	if err != nil {
		t.Fatalf("tool %s: output schema: %v", tool.Name, err)
	}
	c.outputs[tool.Name] = out
}

func schema(t testing.TB, v any) *jsonschema.Schema {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	s := new(jsonschema.Schema)
	if err := json.Unmarshal(data, s); err != nil {
		t.Fatalf("schema %s: %v", data, err)
	}
	return s
}

// A Result is a call's result: the joined text blocks, and the rest.
type Result struct {
	Text  string
	Error bool
	*mcp.CallToolResult
}

// Call calls a tool with a JSON object of arguments. An error of the protocol fails the test.
func (c *Client) Call(t testing.TB, tool, args string) Result {
	t.Helper()
	return c.CallContext(t.Context(), t, tool, args)
}

// CallContext is Call with a context.
func (c *Client) CallContext(ctx context.Context, t testing.TB, tool, args string) Result {
	t.Helper()
	res, err := c.Session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(args)})
	if err != nil {
		t.Errorf("%s %s: %v", tool, args, err)
		return Result{Error: true, CallToolResult: &mcp.CallToolResult{}}
	}
	r := Result{Error: res.IsError, CallToolResult: res}
	var texts []string
	for _, block := range res.Content {
		if text, ok := block.(*mcp.TextContent); ok {
			texts = append(texts, text.Text)
		}
	}
	r.Text = strings.Join(texts, "\n")
	if out := c.outputs[tool]; out != nil && !res.IsError {
		if err := out.Validate(res.StructuredContent); err != nil {
			t.Errorf("%s %s: the result does not match the output schema: %v", tool, args, err)
		}
	}
	return r
}

// CheckGoroutines returns a function that fails the test if, after some patience, there are more goroutines than at
// the time of CheckGoroutines.
func CheckGoroutines(t testing.TB) func() {
	t.Helper()
	before := runtime.NumGoroutine()
	return func() {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); runtime.NumGoroutine() > before; {
			if time.Now().After(deadline) {
				stacks := make([]byte, 1<<20)
				t.Errorf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
				return
			}
			time.Sleep(5 * time.Millisecond) // polls, since no event announces the end of a goroutine
		}
	}
}
