package main

import (
	"fmt"
	"net/http/httptest"
	"testing"

	"github.com/mcsh-dev/mcsh/control"
	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/observe"
	"github.com/mcsh-dev/mcsh/ui"
)

// BenchmarkConsole measures the pages of a gateway with 5,000 tools, after the first look.
func BenchmarkConsole(b *testing.B) {
	servers := map[string]*mcptest.Upstream{}
	for i := range 10 {
		var tools []mcptest.Tool
		for j := range 500 {
			tools = append(tools, mcptest.Tool{
				Name: fmt.Sprintf("tool_%d_%d", i, j), Description: fmt.Sprintf("Does the work number %d of the project %d. It takes a while.", j, i), Text: "x",
				Schema: `{"type":"object","properties":{"owner":{"type":"string"},"number":{"type":"integer"}},"required":["owner"]}`,
			})
		}
		servers[fmt.Sprintf("server%d", i)] = mcptest.New(tools...)
	}
	pool := mcptest.Pool(b, servers)
	pool.Catalog(b.Context())
	shown := &shown{parts: gatewayParts{
		gateway: gateway.New(gateway.Options{Upstream: pool}), parts: &dependencies{upstream: pool}, monitor: &monitor{metrics: observe.NewMetrics(observe.Build{}, observe.Probes{})},
	}}
	console, err := ui.New(ui.Options{About: func() control.Gateway { return control.Gateway{} }, Servers: consoleServers{shown}, Tools: shown, Offers: shown})
	if err != nil {
		b.Fatal(err)
	}
	pages := console.Handler(ui.Door{})
	for _, path := range []string{"/tools", "/tools?q=work+number+77", "/tools/server3/tool_3_77", "/servers", "/resources"} {
		b.Run(path, func(b *testing.B) {
			for b.Loop() {
				answer := httptest.NewRecorder()
				pages.ServeHTTP(answer, httptest.NewRequest("GET", path, nil))
				if answer.Code != 200 {
					b.Fatalf("%d: %s", answer.Code, answer.Body)
				}
			}
		})
	}
}
