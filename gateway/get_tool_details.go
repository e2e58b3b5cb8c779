package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/pipelines"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
)

const (
	mostDetails        = 50               // tools of one call
	instructionsLength = 4000             // characters of what a server says about its use
	detailsWait        = 30 * time.Second // for starting servers
)

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
	return g.details(ctx, g.saved(ctx, req.Extra), wanted, call.MaxOutput), nil
}

// details describes tools within n characters, and unknown ones by their errors. The reply is an error if all are unknown.
func (g *Gateway) details(ctx context.Context, saved Saved, wanted []string, n int) *mcp.CallToolResult {
	ctx, cancel := context.WithTimeout(ctx, detailsWait)
	defer cancel()
	listings := map[string]upstream.Listing{}
	var entries []string
	known := 0
	for _, name := range wanted {
		t, err := g.catalogTool(ctx, saved, listings, name)
		if err != nil {
			entries = append(entries, failureText(texts.Plain(shown(name), false), stages.AsError(err), g.defaultOutput())+"\n")
			continue
		}
		known++
		var b strings.Builder
		writeDetails(ctx, &b, name, t)
		entries = append(entries, b.String())
	}
	for _, server := range slices.Sorted(maps.Keys(listings)) {
		l := listings[server]
		if first, rest := firstSentence(l.Instructions); strings.TrimSpace(rest) != "" || shownUpTo(oneLine(first), instructionLength) != oneLine(first) {
			text := strings.TrimSpace(shownUpTo(first+rest, instructionsLength))
			// They are no entry of their own: the last line counts tools.
			entries[len(entries)-1] += fmt.Sprintf("## %s: its instructions\n%s\n", texts.Plain(server, false), Fenced(texts.Plain(text, true)))
		}
	}
	text := listed("", entries, n, "tool")
	if known == 0 {
		return failure(text)
	}
	return textResult(text)
}

// catalogTool returns the catalog's entry of "server/tool". It reads the list of each server once, into listings.
func (g *Gateway) catalogTool(ctx context.Context, saved Saved, listings map[string]upstream.Listing, name string) (*upstream.CatalogTool, error) {
	server, toolName, ok := strings.Cut(name, "/")
	if !ok {
		return nil, stages.Errorf(stages.InvalidArguments, `write "server/tool"`, "%q does not name a server and a tool", shown(name))
	}
	if server == pipelines.Server && saved.Set != nil {
		return saved.Tool(ctx, toolName)
	}
	if _, err := g.o.Upstream.Tool(ctx, server, toolName); err != nil { // its error names similar tools
		return nil, err
	}
	l, ok := listings[server]
	if !ok {
		l = g.o.Upstream.Catalog(ctx, server)[0]
		listings[server] = l
	}
	for i := range l.Tools {
		if l.Tools[i].Name == toolName {
			return &l.Tools[i], nil
		}
	}
	return nil, stages.Errorf(stages.UnknownTool, "see list_all_tools", "no tool %q on %q", shown(toolName), shown(server))
}

// writeDetails describes a tool, with its schemas as the server sent them.
func writeDetails(ctx context.Context, b *strings.Builder, name string, t *upstream.CatalogTool) {
	writeTool(ctx, b, name, t)
	if why := t.Unchecked(ctx); why != "" {
		fmt.Fprintf(b, "Arguments are checked by the server only: %s\n", texts.Plain(shownUpTo(why, troubleLength), false))
	}
	fmt.Fprintf(b, "Input schema: %s\n", orNone(t.InputSchema))
	fmt.Fprintf(b, "Output schema: %s\n\n", orNone(t.OutputSchema))
}

// writeTool describes a tool without its schemas.
func writeTool(ctx context.Context, b *strings.Builder, name string, t *upstream.CatalogTool) {
	fmt.Fprintf(b, "## %s\n", texts.Plain(name, false))
	if t.Title != "" && t.Title != t.Name {
		fmt.Fprintf(b, "Title: %s\n", texts.Plain(t.Title, false))
	}
	if description := strings.TrimSpace(t.Description); description != "" {
		b.WriteString(Fenced(texts.Plain(description, true)))
	}
	effect := "may change things"
	if t.ReadOnly {
		effect = "only reads"
	}
	if t.Doubt != "" {
		effect += " (" + texts.Plain(t.Doubt, false) + ")"
	}
	fmt.Fprintf(b, "Effect: %s. Annotations: %s\n", effect, orNone(t.Annotations))
	if t.Denied != "" {
		fmt.Fprintf(b, "It cannot be called: %s\n", t.Denied)
	}
	fmt.Fprintf(b, "Signature: %s\n", texts.Plain(t.Tool.Signature, false))
	fmt.Fprintf(b, "Returns: %s\n", Returns(t))
	fmt.Fprintf(b, "Stage: %s\n", exampleStage(ctx, name, t))
}

// Returns describes the result of a tool, and the source of that knowledge.
func Returns(t *upstream.CatalogTool) string {
	if !t.Result.Known() {
		return "not known yet; put a preview into the pipeline"
	}
	text := texts.Plain(t.Result.Brief(fullShape), false)
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

// exampleStage returns a stage that calls the tool with example values for its required arguments.
func exampleStage(ctx context.Context, name string, t *upstream.CatalogTool) string {
	server, _, _ := strings.Cut(name, "/")
	args, _ := t.Example(ctx) // an example that violates the schema still shows the required arguments
	return stageText(server, t.Name, args)
}

// stageText returns a stage that calls a tool.
func stageText(server, name string, args json.RawMessage) string {
	return texts.JSON(struct {
		Type   string          `json:"type"`
		Server string          `json:"server"`
		Name   string          `json:"name"`
		Args   json.RawMessage `json:"args,omitempty"`
	}{"tool", server, name, args})
}
