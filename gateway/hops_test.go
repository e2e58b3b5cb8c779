package gateway_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/upstream"
)

// TestHops: gateways that call each other in a circle stop, and say so; servers that are no gateways see no count.
func TestHops(t *testing.T) {
	seen := make(chan mcp.Meta, 100)
	plain := mcp.NewServer(&mcp.Implementation{Name: "plain", Version: "1"}, nil)
	mcp.AddTool(plain, &mcp.Tool{Name: "look"}, func(_ context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		seen <- req.Params.Meta
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "seen"}}}, nil, nil
	})
	gateways := make([]*gateway.Gateway, 2)
	for i, name := range []string{"one", "two"} {
		behind := upstream.InProcess(plain, nil, nil)
		other := func(ctx context.Context) (mcp.Transport, error) {
			return upstream.InProcess(gateways[1-i].Server(), nil, nil)(ctx)
		}
		pool := upstream.NewPool(upstream.Options{Instance: name, Sources: []upstream.Source{upstream.Static{
			{Name: "other", Dial: other}, {Name: "plain", Dial: behind},
		}}})
		t.Cleanup(func() { pool.Close() })
		gateways[i] = gateway.New(gateway.Options{Upstream: pool, Instance: name})
	}
	agent := connect(t, gateways[0], newClient())
	args := `{"pipeline":[{"type":"tool","server":"plain","name":"look","args":{}}]}`
	for rounds := range 10 {
		result, err := agent.CallTool(t.Context(), &mcp.CallToolParams{Name: "execute_pipeline", Arguments: json.RawMessage(args)})
		if err != nil {
			t.Fatal(err)
		}
		text := result.Content[len(result.Content)-1].(*mcp.TextContent).Text // behind the note
		if rounds < 8 {
			if result.IsError || !strings.Contains(text, "seen") {
				t.Errorf("through %d gateways: %s", rounds+1, text)
			}
			for name := range <-seen {
				if strings.Contains(name, "hops") {
					t.Errorf("a server that is no gateway gets %s", name)
				}
			}
		} else if !result.IsError || !strings.Contains(text, "8 gateways, which may call each other in a circle (limit hops)") {
			t.Errorf("through %d gateways: %s", rounds+1, text)
		}
		args = `{"pipeline":[{"type":"tool","server":"other","name":"execute_pipeline","args":` + args + `}]}`
	}
}
