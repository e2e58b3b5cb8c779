package upstream_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/stages"
)

// BenchmarkCall compares a call through the pool with one of a plain client of the SDK, to the same server in memory.
func BenchmarkCall(b *testing.B) {
	for _, size := range []struct {
		name string
		text string
	}{{"small", "hello"}, {"1MB", strings.Repeat(`{"id": 12345, "name": "x"}`+"\n", 40_000)}} {
		s := mcptest.New(mcptest.Tool{Name: "hi", Text: size.text})
		args := json.RawMessage(`{"a":1}`)
		b.Run("pool/"+size.name, func(b *testing.B) {
			p := mcptest.Pool(b, map[string]*mcptest.Upstream{"s": s})
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.CallTool(b.Context(), stages.Call{Server: "s", Name: "hi", Args: args}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("sdk/"+size.name, func(b *testing.B) {
			far, near := mcp.NewInMemoryTransports()
			if _, err := s.MCP().Connect(b.Context(), far, nil); err != nil {
				b.Fatal(err)
			}
			session, err := mcp.NewClient(&mcp.Implementation{Name: "x", Version: "1"}, nil).Connect(b.Context(), near,
				&mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
			if err != nil {
				b.Fatal(err)
			}
			defer session.Close()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := session.CallTool(b.Context(), &mcp.CallToolParams{Name: "hi", Arguments: args}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
