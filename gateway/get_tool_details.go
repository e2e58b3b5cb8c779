package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
)

func (g *Gateway) getToolDetails(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var call struct {
		Server string `json:"server"`
		Name   string `json:"tool_name"`
		Tools  names  `json:"tools"`
	}
	if err := decode(req, &call); err != nil {
		return nil, err
	}
	wanted := call.Tools
	if call.Server != "" || call.Name != "" {
		wanted = append(wanted, call.Server+"/"+call.Name)
	}
	if len(wanted) == 0 {
		return nil, stages.Errorf(stages.InvalidArguments, `give server and tool_name, or tools: ["server/tool", ...]`, "no tool is named")
	}
	if g.o.Upstream == nil {
		return nil, stages.Errorf(stages.UnknownServer, "", "there are no MCP servers here")
	}
	ctx, cancel := context.WithTimeout(ctx, checkWait)
	defer cancel()
	var b strings.Builder
	for _, name := range wanted {
		t, err := g.find(ctx, name)
		if err != nil {
			return nil, err
		}
		writeDetails(&b, name, t)
	}
	return textResult(b.String()), nil
}

// find returns the catalog's entry of a tool named "server/tool".
func (g *Gateway) find(ctx context.Context, name string) (*upstream.CatalogTool, error) {
	server, toolName, ok := strings.Cut(name, "/")
	if !ok {
		return nil, stages.Errorf(stages.InvalidArguments, `write "server/tool"`, "%q does not name a server and a tool", name)
	}
	if _, err := g.o.Upstream.Tool(ctx, server, toolName); err != nil {
		return nil, err
	}
	for _, l := range g.o.Upstream.Catalog(ctx, server) {
		for i := range l.Tools {
			if l.Tools[i].Name == toolName {
				return &l.Tools[i], nil
			}
		}
	}
	return nil, stages.Errorf(stages.UnknownTool, "", "no tool %q on %q", toolName, server)
}

func writeDetails(b *strings.Builder, name string, t *upstream.CatalogTool) {
	fmt.Fprintf(b, "## %s\n%s\n", name, strings.TrimSpace(t.Description))
	effect := "may change things"
	if t.ReadOnly {
		effect = "only reads"
	}
	fmt.Fprintf(b, "Effect: %s. Annotations: %s\n", effect, orNone(t.Annotations))
	fmt.Fprintf(b, "Signature: %s\n", t.Tool.Signature)
	if t.Tool.Input.Check == nil {
		b.WriteString("Its input schema cannot be compiled here: arguments are checked by the server only.\n")
	}
	fmt.Fprintf(b, "Input schema: %s\n", orNone(t.InputSchema))
	fmt.Fprintf(b, "Output schema: %s\n", orNone(t.OutputSchema))
	fmt.Fprintf(b, "Stage: %s\n\n", exampleStage(name, t))
}

func orNone(raw json.RawMessage) string {
	if len(bytes.TrimSpace(raw)) == 0 {
		return "none"
	}
	return string(raw)
}

// exampleStage is a stage that calls the tool, with its required arguments to be filled in.
func exampleStage(name string, t *upstream.CatalogTool) string {
	server, _, _ := strings.Cut(name, "/")
	args := map[string]string{}
	for _, r := range t.Tool.Input.Required {
		args[r] = "..."
	}
	stage, err := json.Marshal(map[string]any{"type": "tool", "server": server, "name": t.Name, "args": args})
	if err != nil {
		return ""
	}
	return string(stage)
}
