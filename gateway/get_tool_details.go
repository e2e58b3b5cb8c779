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

		MaxOutput int `json:"max_output"`
	}
	call.MaxOutput = g.defaultOutput()
	wrong := append(decode(req, &call), g.checkBudget(call.MaxOutput)...)
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
	return g.details(ctx, wanted, call.MaxOutput), nil
}

// details describes tools within n characters. One that is not known has its error in its place; the reply is an error if none is known.
func (g *Gateway) details(ctx context.Context, wanted []string, n int) *mcp.CallToolResult {
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
	text := listed("", entries, n, "tool")
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

// writeDetails writes all that is known of a tool, its schemas as the server sent them.
func writeDetails(b *strings.Builder, name string, t *upstream.CatalogTool) {
	writeTool(b, name, t)
	if t.Tool.Input.Check == nil {
		b.WriteString("Its input schema cannot be compiled here: arguments are checked by the server only.\n")
	}
	fmt.Fprintf(b, "Input schema: %s\n", orNone(t.InputSchema))
	fmt.Fprintf(b, "Output schema: %s\n\n", orNone(t.OutputSchema))
}

// writeTool writes all that is known of a tool but its schemas.
func writeTool(b *strings.Builder, name string, t *upstream.CatalogTool) {
	fmt.Fprintf(b, "## %s\n", Plain(name, false))
	if t.Title != "" && t.Title != t.Name {
		fmt.Fprintf(b, "%s\n", Plain(t.Title, false))
	}
	fmt.Fprintf(b, "%s\n", Plain(strings.TrimSpace(t.Description), true))
	effect := "may change things"
	if t.ReadOnly {
		effect = "only reads"
	}
	fmt.Fprintf(b, "Effect: %s. Annotations: %s\n", effect, orNone(t.Annotations))
	if t.Denied != "" {
		fmt.Fprintf(b, "It cannot be called: %s\n", t.Denied)
	}
	fmt.Fprintf(b, "Signature: %s\n", Plain(t.Tool.Signature, false))
	fmt.Fprintf(b, "Returns: %s\n", returns(t))
	fmt.Fprintf(b, "Stage: %s\n", exampleStage(name, t))
}

// returns says what a tool returns, and how that is known.
func returns(t *upstream.CatalogTool) string {
	if !t.Result.Known() {
		return "not known yet; put a preview into the pipeline"
	}
	text := Plain(t.Result.Brief(fullShape), false)
	switch n := t.Result.Calls; {
	case n == 0:
		return text + " (as its output schema says)"
	case n == 1:
		return text + " (as seen in 1 call)"
	default:
		return fmt.Sprintf("%s (as seen in %d calls)", text, n)
	}
}

func orNone(raw json.RawMessage) string {
	if len(bytes.TrimSpace(raw)) == 0 {
		return "none"
	}
	return string(raw)
}

// exampleStage is a stage that calls the tool, its required arguments to be replaced.
func exampleStage(name string, t *upstream.CatalogTool) string {
	server, _, _ := strings.Cut(name, "/")
	args, _ := t.Example() // where it does not satisfy the schema, it still shows what is required
	var b strings.Builder
	out := json.NewEncoder(&b)
	out.SetEscapeHTML(false)
	if err := out.Encode(struct {
		Type   string          `json:"type"`
		Server string          `json:"server"`
		Name   string          `json:"name"`
		Args   json.RawMessage `json:"args"`
	}{"tool", server, t.Name, args}); err != nil {
		return ""
	}
	return strings.TrimSpace(b.String())
}
