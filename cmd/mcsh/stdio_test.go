package main

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	handshake = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
`
	echoCall = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{}}}` + "\n"
	hangCall = `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"hang","arguments":{}}}` + "\n"
	cancel   = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}` + "\n"
)

// twoTools is a server with a tool that answers and one that only ends when it is cancelled.
func twoTools() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "two", Version: "1"}, nil)
	schema := map[string]any{"type": "object"}
	server.AddTool(&mcp.Tool{Name: "echo", InputSchema: schema}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "here"}}}, nil
	})
	server.AddTool(&mcp.Tool{Name: "hang", InputSchema: schema}, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	return server
}

// What was asked before the input ended is answered, whatever else the input holds, and nothing waits for ever.
func TestStdioEnd(t *testing.T) {
	for name, tt := range map[string]struct{ input, want string }{
		"nothing":             {"", ""},
		"a session":           {handshake + echoCall, "here"},
		"one shot":            {echoCall, "here"},
		"many shots":          {echoCall + strings.Replace(echoCall, `"id":2`, `"id":"b"`, 1), `"id":"b"`},
		"an unknown tool":     {strings.Replace(echoCall, "echo", "ohce", 1), "ohce"},
		"a cancelled call":    {handshake + hangCall + cancel + echoCall, "here"},
		"a call without end":  {handshake + echoCall + hangCall, "here"},
		"a notification only": {cancel, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				p := &program{stdin: strings.NewReader(tt.input), stdout: &out, stderr: io.Discard}
				if err := p.serveStdio(t.Context(), twoTools()); err != nil {
					t.Error(err)
				}
				if got := out.String(); !strings.Contains(got, tt.want) || tt.want == "" && got != "" {
					t.Errorf("got %q, want %q in it", got, tt.want)
				}
				if strings.Contains(out.String(), handshakeID) {
					t.Errorf("the client gets an answer that it has not asked for: %s", &out)
				}
			})
		})
	}
}

// Whatever comes, the server ends with its input and does not panic.
func FuzzStdio(f *testing.F) {
	f.Add([]byte(handshake + echoCall + hangCall + cancel))
	f.Add([]byte(echoCall))
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"result":{}}` + "\n[" + strings.TrimSpace(echoCall) + "]\n"))
	f.Add([]byte(`{"jsonrpc":"2.0","id":{},"method":"tools/call","params":[]}` + "\n{"))
	f.Fuzz(func(t *testing.T, input []byte) {
		synctest.Test(t, func(t *testing.T) {
			p := &program{stdin: bytes.NewReader(input), stdout: io.Discard, stderr: io.Discard}
			_ = p.serveStdio(t.Context(), twoTools()) // that it ends is what counts
		})
	})
}
