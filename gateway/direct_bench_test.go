package gateway_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/internal/mcptest"
)

// BenchmarkCall is one small call through execute_pipeline, without any network, of a client that cannot or can be asked.
func BenchmarkCall(b *testing.B) {
	b.Run("mute", func(b *testing.B) { benchmarkCall(b, `{}`) })
	b.Run("asked", func(b *testing.B) { benchmarkCall(b, `{"elicitation":{}}`) })
}

func benchmarkCall(b *testing.B, capabilities string) {
	pool := mcptest.Pool(b, map[string]*mcptest.Upstream{"shop": mcptest.New(shopTools()...)})
	handler := gateway.New(gateway.Options{Upstream: pool}).Handler()
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientCapabilities":` + capabilities + `},"name":"execute_pipeline","arguments":{"pipeline":[` +
		`{"type":"tool","server":"shop","name":"get_item","args":{"id":1}}]}}}`
	b.ReportAllocs()
	for b.Loop() {
		r := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(call))
		for name, value := range map[string]string{
			"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
			"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "execute_pipeline",
		} {
			r.Header.Set(name, value)
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "item 1") {
			b.Fatal(w.Code, w.Body)
		}
	}
}
