package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/mcsh-dev/mcsh/internal/texts"
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
	tools      []upstream.ExposedTool // by server, in the server's order
	list       []namedTool            // those that have a name
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

// shown lists the tools that a view shows. Where it can show one server only, they have the names that this server gives them,
// by which its apps call them.
func (x *exposed) shown(v *upstream.View) []namedTool {
	t := x.current()
	only := v.Only()
	switch {
	case v == nil:
		return t.list
	case only == "":
		return slices.DeleteFunc(slices.Clone(t.list), func(one namedTool) bool { return !v.Sees(one.Server) })
	}
	var list []namedTool
	for _, tool := range t.tools {
		if tool.Server == only && !slices.Contains(x.own, tool.Name) {
			list = append(list, namedTool{tool, tool.Name})
		}
	}
	return list
}

// find returns the tool that has a name in a view.
func (x *exposed) find(v *upstream.View, name string) (upstream.ExposedTool, bool) {
	t := x.current()
	if only := v.Only(); only != "" {
		at := slices.IndexFunc(t.tools, func(tool upstream.ExposedTool) bool { return tool.Server == only && tool.Name == name })
		if at < 0 {
			return upstream.ExposedTool{}, false
		}
		return t.tools[at], true
	}
	tool, ok := t.byName[name]
	return tool, ok && v.Sees(tool.Server)
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
	t := &exposedTable{tools: tools, byName: map[string]upstream.ExposedTool{}}
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
			x.log.Warn("a tool has no name for clients, so that only pipelines can call it: " + texts.Plain(c, false))
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
	return errors.New(texts.Plain(strings.Join(list, "; "), false))
}

// exposedTrouble returns a warning if tools have no name for clients.
func (g *Gateway) exposedTrouble(ctx context.Context) string {
	list := g.exposed.current().collisions
	if list == nil || upstream.ViewOf(ctx) != nil { // it names other servers
		return ""
	}
	return fmt.Sprintf("note: only pipelines can call some tools: %s\n", texts.Plain(shownUpTo(strings.Join(list, "; "), troubleLength), false))
}
