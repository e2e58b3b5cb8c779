package gateway

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/upstream"
	"github.com/mcsh-dev/mcsh/upstream/outward"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

// toolsChanged notifies clients that the list of tools has changed. The SDK sends notifications only for tools of its own, and
// one that is replaced by itself is such a change.
func (g *Gateway) toolsChanged() {
	first := g.own[0]
	g.server.AddTool(first.tool(), g.handlers[first.name])
	g.subscriptions.changed(rpc.ToolsChanged)
}

// listTools lists the tools of the gateway, and those of servers that clients call by names of their own.
func (g *Gateway) listTools(ctx context.Context, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
	list, saved, tools := g.exposed.shown(upstream.ViewOf(ctx)), g.savedForms(ctx, req.GetExtra()), g.ownTools(req.GetExtra())
	if len(list)+len(saved) == 0 && len(tools) == len(g.own) {
		return next(ctx, "tools/list", req)
	}
	forms := make([]*mcp.Tool, len(tools))
	for i, t := range tools {
		forms[i] = t.tool()
	}
	own, err := marshalEach(forms)
	if err != nil {
		return nil, err
	}
	return pageOf(req, "tools", append(own, saved...), len(list), func(i int) json.RawMessage { return exposedForm(ctx, list[i]) })
}

// ownTools are the tools of the gateway that a caller can use: one without a name saves nothing.
func (g *Gateway) ownTools(extra *mcp.RequestExtra) []tool {
	if keeperOf(extra) != "" {
		return g.own
	}
	return slices.DeleteFunc(slices.Clone(g.own), func(t tool) bool { return t.name == saveName })
}

// exposedForm is a tool as clients see it, or nil if they cannot have it.
func exposedForm(ctx context.Context, t namedTool) json.RawMessage {
	if t.Held() || t.Flaw(ctx) != "" {
		return nil
	}
	d := t.Details(ctx)
	form, err := json.Marshal(struct {
		Name         string          `json:"name"`
		Title        string          `json:"title,omitempty"`
		Description  string          `json:"description,omitempty"`
		InputSchema  json.RawMessage `json:"inputSchema"`
		OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
		Annotations  map[string]any  `json:"annotations,omitempty"`
		Meta         json.RawMessage `json:"_meta,omitempty"`
	}{
		t.as, texts.Plain(d.Title, false), texts.Plain(d.Description, true), t.InputSchema(ctx), t.OutputSchema(ctx), exposedHints(d), exposedMeta(ctx, t.Raw()),
	})
	if err != nil || json.Unmarshal(form, new(mcp.Tool)) != nil { // clients would refuse the whole list
		return nil
	}
	return form
}

// exposedHints are the annotations of a tool that clients can read, with the effect that counts here.
func exposedHints(d *upstream.CatalogTool) map[string]any {
	var given map[string]any
	_ = json.Unmarshal(d.Annotations, &given) // without them there are none
	hints := map[string]any{}
	for _, name := range []string{"destructiveHint", "idempotentHint", "openWorldHint"} {
		if hint, ok := given[name].(bool); ok {
			hints[name] = hint
		}
	}
	if title, ok := given["title"].(string); ok {
		hints["title"] = texts.Plain(title, false)
	}
	if _, said := given["readOnlyHint"].(bool); said || d.Tool.Annotated || d.ReadOnly {
		hints["readOnlyHint"] = d.ReadOnly
	}
	return hints
}

// exposedMeta is the metadata of a tool, without that of the connection to its server and, unless the view can show no other
// server, without that of MCP Apps.
func exposedMeta(ctx context.Context, raw json.RawMessage) json.RawMessage {
	var tool struct {
		Meta map[string]json.RawMessage `json:"_meta"`
	}
	if json.Unmarshal(raw, &tool) != nil {
		return nil
	}
	apps := upstream.ViewOf(ctx).Only() != ""
	maps.DeleteFunc(tool.Meta, func(name string, _ json.RawMessage) bool {
		return !apps && outward.IsApp(name) || strings.HasPrefix(name, "io.modelcontextprotocol/")
	})
	if len(tool.Meta) == 0 {
		return nil
	}
	meta, err := json.Marshal(tool.Meta)
	if err != nil || len(meta) > maxMeta {
		return nil
	}
	return meta
}
