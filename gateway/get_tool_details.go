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

// mostDetails is how many tools one call shows.
const mostDetails = 50

func (g *Gateway) getToolDetails(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var call struct {
		Server string `json:"server"`
		Name   string `json:"tool_name"`
		Tools  names  `json:"tools"`
	}
	wrong := decode(req, &call)
	wanted := call.Tools
	if call.Server != "" || call.Name != "" {
		wanted = append(wanted, call.Server+"/"+call.Name)
	}
	switch {
	case len(wanted) > mostDetails:
		wrong = append(wrong, stages.Errorf(stages.LimitExceeded, "ask for fewer at a time", "%d tools are named, more than %d", len(wanted), mostDetails))
	case len(wanted) == 0 && wrong == nil:
		wrong = append(wrong, stages.Errorf(stages.InvalidArguments, `give server and tool_name, or tools: ["server/tool", ...]`, "no tool is named"))
	}
	if wrong != nil {
		return nil, wrong
	}
	if g.o.Upstream == nil {
		return nil, stages.Errorf(stages.UnknownServer, "command and preview stages work", "there are no MCP servers here")
	}
	return g.details(ctx, wanted), nil
}

// details describes tools. One that is not known has its error in its place; the reply is an error if none is known.
func (g *Gateway) details(ctx context.Context, wanted []string) *mcp.CallToolResult {
	ctx, cancel := context.WithTimeout(ctx, checkWait)
	defer cancel()
	found := finder{pool: g.o.Upstream, servers: map[string]upstream.Listing{}}
	var entries []string
	known := 0
	for _, name := range wanted {
		t, err := found.tool(ctx, name)
		if err != nil {
			entries = append(entries, failureText(shown(name), asError(err), g.defaultOutput())+"\n")
			continue
		}
		known++
		var b strings.Builder
		writeDetails(&b, name, t)
		entries = append(entries, b.String())
	}
	text := listed("", entries, g.o.MaxOutput, "tool")
	if known == 0 {
		return failure(text)
	}
	return textResult(text)
}

// finder looks tools up and reads the list of each server once.
type finder struct {
	pool    *upstream.Pool
	servers map[string]upstream.Listing
}

// tool returns the catalog's entry of a tool named "server/tool".
func (f finder) tool(ctx context.Context, name string) (*upstream.CatalogTool, error) {
	server, toolName, ok := strings.Cut(name, "/")
	if !ok {
		return nil, stages.Errorf(stages.InvalidArguments, `write "server/tool"`, "%q does not name a server and a tool", shown(name))
	}
	if _, err := f.pool.Tool(ctx, server, toolName); err != nil { // knows what else may be meant
		return nil, err
	}
	l, ok := f.servers[server]
	if !ok {
		l = f.pool.Catalog(ctx, server)[0]
		f.servers[server] = l
	}
	for i := range l.Tools {
		if l.Tools[i].Name == toolName {
			return &l.Tools[i], nil
		}
	}
	return nil, stages.Errorf(stages.UnknownTool, "see list_all_tools", "no tool %q on %q", shown(toolName), shown(server))
}

func writeDetails(b *strings.Builder, name string, t *upstream.CatalogTool) {
	fmt.Fprintf(b, "## %s\n%s\n", plain(name, false), plain(strings.TrimSpace(t.Description), true))
	effect := "may change things"
	if t.ReadOnly {
		effect = "only reads"
	}
	fmt.Fprintf(b, "Effect: %s. Annotations: %s\n", effect, orNone(t.Annotations))
	fmt.Fprintf(b, "Signature: %s\n", plain(t.Tool.Signature, false))
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
