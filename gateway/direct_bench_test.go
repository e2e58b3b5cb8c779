package gateway_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/upstream"
)

// BenchmarkExposed is one small call of a server's tool by its own name, without any network.
func BenchmarkExposed(b *testing.B) {
	handler := exposing(b, upstream.Static{{Name: "shop", Dial: mcptest.New(shopTools()...).Dial}}, nil).Handler()
	benchmarkPost(b, handler, "shop__get_item", `{}`, `{"id":1}`)
}

// BenchmarkCall is one small call through execute_pipeline, without any network, of a client that cannot or can be asked.
func BenchmarkCall(b *testing.B) {
	b.Run("mute", func(b *testing.B) { benchmarkCall(b, `{}`) })
	b.Run("asked", func(b *testing.B) { benchmarkCall(b, `{"elicitation":{}}`) })
}

func benchmarkCall(b *testing.B, capabilities string) {
	pool := mcptest.Pool(b, map[string]*mcptest.Upstream{"shop": mcptest.New(shopTools()...)})
	handler := gateway.New(gateway.Options{Upstream: pool}).Handler()
	benchmarkPost(b, handler, "execute_pipeline", capabilities, `{"pipeline":[{"type":"tool","server":"shop","name":"get_item","args":{"id":1}}]}`)
}

func benchmarkPost(b *testing.B, handler http.Handler, tool, capabilities, args string) {
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientCapabilities":` + capabilities + `},"name":"` + tool + `","arguments":` + args + `}}`
	b.ReportAllocs()
	for b.Loop() {
		r := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(call))
		for name, value := range map[string]string{
			"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
			"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": tool,
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
