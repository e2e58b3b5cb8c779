package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"

	"github.com/mcsh-dev/mcsh/control"
	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/observe"
	"github.com/mcsh-dev/mcsh/pipelines"
	"github.com/mcsh-dev/mcsh/runs"
	"github.com/mcsh-dev/mcsh/ui"
)

// BenchmarkConsole measures the pages of a gateway with 5,000 tools, 1,000 kept runs, one of them of 100,000 items, and 50 saved
// pipelines, after the first look at each.
func BenchmarkConsole(b *testing.B) {
	parts := busyParts(b)
	big := busyRuns(b, parts.gateway)
	pages, err := newConsole(b.Context(), consoleFlags{}, settings{}, new(program).controlled(settings{instance: strings.Repeat("x", 10)}, parts), parts)
	if err != nil {
		b.Fatal(err)
	}
	handler := pages.Handler(ui.Door{})
	for _, path := range []string{
		"", "servers", "servers/server3", "tools", "tools?q=work+number+77", "tools?q=nothing", "tools/server3/tool_3_77", "playground",
		"runs", "runs?q=tool_3", "runs?page=20", "runs/" + big, "runs/" + big + "?stage=2", "runs/" + big + "/result", "pipelines", "pipelines/saved_7",
		"pipelines/saved_7/edit", "resources", "prompts", "protocol", "system",
	} {
		b.Run(cmp.Or(strings.Replace(path, big, "RUN", 1), "start"), func(b *testing.B) {
			look := func() {
				answer := httptest.NewRecorder()
				handler.ServeHTTP(answer, httptest.NewRequest("GET", "/"+path, nil))
				if answer.Code != 200 {
					b.Fatalf("%d: %s", answer.Code, answer.Body)
				}
			}
			look()
			b.ReportAllocs()
			for b.Loop() {
				look()
			}
		})
	}
}

// busyParts are those of a gateway with 5,000 tools and 50 saved pipelines.
func busyParts(b *testing.B) gatewayParts {
	b.Helper()
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
	many := "[" + strings.TrimSuffix(strings.Repeat(`{"owner":"somebody"},`, 100_000), ",") + "]"
	servers["many"] = mcptest.New(mcptest.Tool{Name: "list", ReadOnly: true, Text: many}, mcptest.Tool{Name: "one", ReadOnly: true, Text: `{"name":"x"}`})
	pool := mcptest.Pool(b, servers)
	pool.Catalog(b.Context()) // the first look reads the lists
	store := pipelines.NewStore(b.TempDir())
	for i := range 50 {
		text := fmt.Sprintf(`{"description": "Saved number %d", "pipeline": [{"type": "tool", "server": "server3", "name": "tool_3_%d", "args": {"owner": "o"}}]}`, i, i)
		if _, err := store.Save(b.Context(), fmt.Sprintf("saved_%d", i), []byte(text), 0, pipelines.Author{}); err != nil {
			b.Fatal(err)
		}
	}
	x := &dependencies{upstream: pool, sandbox: new(program).newSandbox(b.Context(), sandboxSettings{})}
	x.saved = pipelines.NewSet(store, x.base(), pool.Generation)
	kept := runs.New(runs.Options{Dir: b.TempDir(), TTL: time.Hour, Head: 1 << 20, Output: 64 << 20, Total: 256 << 20})
	b.Cleanup(func() { kept.Close() })
	return gatewayParts{
		gateway: gateway.New(gateway.Options{Upstream: pool, Kept: kept, Pipelines: x.saved}), parts: x, logins: &signIns{servers: pool}, kept: kept,
		monitor: &monitor{metrics: observe.NewMetrics(observe.Build{}, observe.Probes{})}, log: zap.NewNop(),
	}
}

// busyRuns runs 1,000 pipelines, the last of them with 100,000 items, and returns the name of that one.
func busyRuns(b *testing.B, g *gateway.Gateway) string {
	b.Helper()
	near, far := mcp.NewInMemoryTransports()
	served, err := g.Server().Connect(b.Context(), far, nil)
	if err != nil {
		b.Fatal(err)
	}
	agent, err := mcp.NewClient(&mcp.Implementation{Name: "bench"}, nil).Connect(b.Context(), near, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { agent.Close(); _ = served.Wait() })
	run := func(pipeline string) {
		result, err := agent.CallTool(context.WithoutCancel(b.Context()), &mcp.CallToolParams{Name: "execute_pipeline", Arguments: json.RawMessage(`{"pipeline":` + pipeline + `}`)})
		if err != nil || result.IsError {
			b.Fatal(err, result)
		}
	}
	for i := range 999 {
		run(fmt.Sprintf(`[{"type":"tool","server":"server3","name":"tool_3_%d","args":{"owner":"o"}}]`, i%500))
	}
	run(`[{"type":"tool","server":"many","name":"list"},{"type":"tool","server":"many","name":"one","for_each":true,"concurrency":64}]`)
	return g.History().Runs(context.Background(), control.Viewer{All: true, Results: true}, control.RunFilter{Limit: 1}).Runs[0].Request
}
