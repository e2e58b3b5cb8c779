package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"

	"github.com/mcsh-dev/mcsh/upstream"
)

// exposed names the tools of servers that clients call beside ours. Its methods may be called concurrently.
type exposed struct {
	pool *upstream.Pool
	rule NameRule
	log  *zap.Logger
	own  []string // names of ours, which no other tool gets

	table atomic.Pointer[exposedTable]

	mu    sync.Mutex      // held while a table is made
	noted map[string]bool // collisions that the log has; guarded by mu
}

// An exposedTable holds the names for one generation of the lists. It does not change.
type exposedTable struct {
	generation uint64
	list       []namedTool // by server, in the server's order
	byName     map[string]upstream.ExposedTool
	collisions []string
}

// A namedTool is a tool of a server with its name for clients.
type namedTool struct {
	upstream.ExposedTool
	as string
}

func newExposed(pool *upstream.Pool, rule NameRule, log *zap.Logger) *exposed {
	return &exposed{pool: pool, rule: rule, log: log, own: ToolNames(), noted: map[string]bool{}}
}

// has reports whether a tool of a server has a name. Over HTTP it is asked for every call.
func (x *exposed) has(name string) bool {
	_, ok := x.current().byName[name]
	return ok
}

// current returns the table for the lists as they are known now.
func (x *exposed) current() *exposedTable {
	if t := x.table.Load(); t != nil && t.generation == x.pool.Generation() {
		return t
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	old := x.table.Load()
	if old != nil && old.generation == x.pool.Generation() {
		return old
	}
	tools, generation := x.pool.Exposed()
	t := x.named(tools, old)
	t.generation = generation
	x.table.Store(t)
	x.note(t.collisions)
	return t
}

// named makes a table. Of several tools with one name, the one keeps it that has it in the old table, or else the first. So no
// server takes a name from another one while the gateway runs.
func (x *exposed) named(tools []upstream.ExposedTool, old *exposedTable) *exposedTable {
	t := &exposedTable{byName: map[string]upstream.ExposedTool{}}
	names := make([]string, len(tools))
	for i, tool := range tools {
		names[i] = x.rule.name(tool.Server, tool.Name)
		_, taken := t.byName[names[i]]
		if !taken || old != nil && sameTool(old.byName[names[i]], tool) {
			t.byName[names[i]] = tool
		}
	}
	for i, tool := range tools {
		label := fmt.Sprintf("%.100q", tool.Server+"/"+tool.Name)
		switch holder := t.byName[names[i]]; {
		case slices.Contains(x.own, names[i]):
			t.collide("the tool %s would be called %s, as a tool of the gateway itself", label, names[i])
		case !sameTool(holder, tool):
			t.collide("the tools %s and %s would both be called %s", fmt.Sprintf("%.100q", holder.Server+"/"+holder.Name), label, names[i])
		default:
			t.list = append(t.list, namedTool{tool, names[i]})
		}
	}
	for _, name := range x.own {
		delete(t.byName, name)
	}
	return t
}

func sameTool(a, b upstream.ExposedTool) bool { return a.Server == b.Server && a.Name == b.Name }

// mostCollisions bounds the collisions that are kept for messages.
const mostCollisions = 10

func (t *exposedTable) collide(format string, args ...any) {
	if len(t.collisions) < mostCollisions {
		t.collisions = append(t.collisions, fmt.Sprintf(format, args...))
	}
}

// note logs new collisions. x.mu is held.
func (x *exposed) note(collisions []string) {
	for _, c := range collisions {
		if !x.noted[c] {
			x.log.Warn("a tool has no name for clients, so that only pipelines can call it: " + Plain(c, false))
		}
	}
	x.noted = map[string]bool{}
	for _, c := range collisions {
		x.noted[c] = true
	}
}

// ExposedError is the error of tools that clients cannot call because two have the same name, as far as the tools are known.
func (g *Gateway) ExposedError() error {
	if g.exposed == nil {
		return nil
	}
	list := g.exposed.current().collisions
	if list == nil {
		return nil
	}
	return errors.New(Plain(strings.Join(list, "; "), false))
}

// exposedTrouble returns a warning if tools have no name for clients.
func (g *Gateway) exposedTrouble() string {
	list := g.exposed.current().collisions
	if list == nil {
		return ""
	}
	return fmt.Sprintf("note: only pipelines can call some tools: %s\n", Plain(shownUpTo(strings.Join(list, "; "), troubleLength), false))
}

// toolsChanged notifies clients that the list of tools has changed. The SDK sends notifications only for tools of its own, and one
// that is replaced by itself is such a change.
func (g *Gateway) toolsChanged() {
	first := g.tools()[0]
	g.server.AddTool(first.tool(), g.handlers[first.name])
}

// listTools lists the tools of the gateway, and those of servers that clients call by names of their own.
func (g *Gateway) listTools(ctx context.Context, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
	list := g.exposed.current().list
	if len(list) == 0 {
		return next(ctx, "tools/list", req)
	}
	cursor := ""
	if p := req.(*mcp.ListToolsRequest).Params; p != nil {
		cursor = p.Cursor
	}
	var own []json.RawMessage
	for _, t := range g.tools() {
		one, err := json.Marshal(t.tool())
		if err != nil {
			return nil, err
		}
		own = append(own, one)
	}
	return pageOf(req, "tools", cursor, own, len(list), func(i int) json.RawMessage { return exposedForm(ctx, list[i]) })
}

// exposedForm is a tool as clients see it, or nil if they cannot have it.
func exposedForm(ctx context.Context, t namedTool) json.RawMessage {
	if t.Flaw(ctx) != "" {
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
		t.as, Plain(d.Title, false), Plain(d.Description, true), t.InputSchema(ctx), t.OutputSchema(ctx), exposedHints(d), exposedMeta(t.Raw()),
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
		hints["title"] = Plain(title, false)
	}
	if _, said := given["readOnlyHint"].(bool); said || d.Tool.Annotated || d.ReadOnly {
		hints["readOnlyHint"] = d.ReadOnly
	}
	return hints
}

// exposedMeta is the metadata of a tool, without that of the connection to its server and without that of a user interface, whose
// URIs mean nothing here.
func exposedMeta(raw json.RawMessage) json.RawMessage {
	var tool struct {
		Meta map[string]json.RawMessage `json:"_meta"`
	}
	if json.Unmarshal(raw, &tool) != nil {
		return nil
	}
	maps.DeleteFunc(tool.Meta, func(name string, _ json.RawMessage) bool {
		return name == "ui" || strings.HasPrefix(name, "ui/") || strings.HasPrefix(name, "io.modelcontextprotocol/")
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
