package gateway_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
)

// limited runs a pipeline behind a gateway with limits, in the time of a synctest bubble.
func limited(t *testing.T, limits stages.Limits, pipeline string, tools ...mcptest.Tool) (string, *mcp.CallToolResult) {
	t.Helper()
	shop := mcptest.New(tools...)
	pool := mcptest.NewPool(t, upstream.Options{Sources: []upstream.Source{upstream.Static{{Name: "shop", Dial: shop.Dial}}}})
	g := gateway.New(gateway.Options{Upstream: pool, Version: "test", Limits: limits})
	defer g.Close(t.Context())
	agent := connect(t, g, newClient())
	result, err := agent.CallTool(t.Context(), &mcp.CallToolParams{Name: "execute_pipeline", Arguments: map[string]any{"pipeline": pipeline}})
	if err != nil {
		t.Fatal(err)
	}
	return result.Content[len(result.Content)-1].(*mcp.TextContent).Text, result
}

// numbered gives a list of ids.
func numbered(ids ...int) mcptest.Tool {
	return mcptest.Tool{Name: "list", ReadOnly: true, Text: strings.ReplaceAll(fmt.Sprint(ids), " ", ",")}
}

const idSchema = `{"type":"object","properties":{"id":{"type":"integer"}},"required":["id"],"additionalProperties":false}`

// TestLimitWaiting: while results wait behind a slower item, no more items begin than the limit has room for; all are
// there in the end, in order.
func TestLimitWaiting(t *testing.T) {
	const items = 60
	for _, tt := range []struct {
		waiting     int64
		least, most int64 // calls while the first item runs
	}{
		{0, items, items},
		{1000, 5, 1 + 4 + 8}, // 4 results, and what runs beside
		{1, 2, 1 + 1 + 8},
	} {
		synctest.Test(t, func(t *testing.T) {
			var begun, beside atomic.Int64
			get := mcptest.Tool{Name: "get", ReadOnly: true, Schema: idSchema, Do: func(args map[string]any) (string, error) {
				begun.Add(1)
				if fmt.Sprint(args["id"]) == "1" {
					time.Sleep(20 * time.Second)
					beside.Store(begun.Load())
				}
				return fmt.Sprintf(`{"id":%v,"text":%q}`, args["id"], strings.Repeat("x", 250)), nil
			}}
			var ids []int
			for i := range items {
				ids = append(ids, i+1)
			}
			text, result := limited(t, stages.Limits{Waiting: tt.waiting}, `[{"type":"tool","server":"shop","name":"list"},
				{"type":"tool","server":"shop","name":"get","for_each":true,"concurrency":8}]`, numbered(ids...), get)
			if n := beside.Load(); n < tt.least || n > tt.most {
				t.Errorf("waiting %d: %d calls while the first one ran, want %d to %d", tt.waiting, n, tt.least, tt.most)
			}
			if result.IsError || strings.Count(text, `"id"`) != items || strings.Index(text, `"id":60`) < strings.Index(text, `"id":59`) {
				t.Errorf("waiting %d: got %.200s", tt.waiting, text)
			}
		})
	}
}

// TestLimitShared: results for equal calls are kept up to the limit. Of a tool that reads the oldest are forgotten, and its
// call is made again; a tool that changes something is not called again, and too many results are an error.
func TestLimitShared(t *testing.T) {
	for _, tt := range []struct {
		name   string
		shared int64
		reads  bool
		field  string
		calls  int64
		says   string // of an error
	}{
		{"room for all", 0, true, "", 6, ""},
		{"room for some", 2000, true, "", 12, ""},
		{"changes, room for all", 0, false, `,"distinct":true`, 6, ""},
		{"changes, room for some", 2000, false, `,"distinct":true`, 0, "LIMIT_EXCEEDED\nthe results of calls that are to be made once take more than 2000 bytes (limit shared)"},
		{"changes, not shared", 2000, false, "", 12, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			var calls atomic.Int64
			get := mcptest.Tool{Name: "get", ReadOnly: tt.reads, Destructive: !tt.reads, Schema: idSchema, Do: func(args map[string]any) (string, error) {
				calls.Add(1)
				return fmt.Sprintf(`{"id":%v,"text":%q}`, args["id"], strings.Repeat("x", 250)), nil
			}}
			text, result := limited(t, stages.Limits{Shared: tt.shared}, `[{"type":"tool","server":"shop","name":"list"},
				{"type":"tool","server":"shop","name":"get","for_each":true,"concurrency":1`+tt.field+`}]`, numbered(1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6), get)
			if tt.says != "" {
				if !result.IsError || !strings.Contains(text, tt.says) || calls.Load() > 6 {
					t.Errorf("%s: %d calls, got %s", tt.name, calls.Load(), text)
				}
				return
			}
			if result.IsError || strings.Count(text, `"id"`) != 12 || calls.Load() != tt.calls {
				t.Errorf("%s: %d calls, want %d; got %.200s", tt.name, calls.Load(), tt.calls, text)
			}
		})
	}
}
