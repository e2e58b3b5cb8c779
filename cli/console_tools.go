package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	sdkauth "github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/ui"
	"github.com/mcsh-dev/mcsh/upstream"
)

const (
	// consoleWait is how long a page waits for servers that start. It shows them when it is asked for again.
	consoleWait = 80 * time.Millisecond
	// toolWait is how long a page about one tool waits for its server.
	toolWait = 20 * time.Second
)

// person returns who looks at a page.
func (s *shown) person(ctx context.Context) gateway.Person {
	return s.parts.gateway.Person(sdkauth.TokenInfoFromContext(ctx), s.parts.listeners == nil)
}

// pool returns the pool with a context in which it shows what the person may use.
func (s *shown) pool(ctx context.Context) (*upstream.Pool, context.Context) {
	return s.parts.parts.upstream, s.person(ctx).View(ctx)
}

// Tools implements [ui.Tools].
func (s *shown) Tools(ctx context.Context, server, query string) ui.ToolList {
	pool, ctx := s.pool(ctx)
	ctx, cancel := context.WithTimeout(ctx, consoleWait)
	defer cancel()
	list := ui.ToolList{Servers: pool.Servers(ctx)}
	listings := pool.Catalog(ctx)
	for _, l := range listings {
		if l.Err != nil {
			list.Absent = append(list.Absent, ui.Absence{Server: l.Server, Status: l.Status, Why: reason(l.Server, l.Err)})
		}
	}
	if query != "" {
		for _, t := range gateway.Search(listings, query) {
			if server == "" || t.Server == server {
				list.Tools = append(list.Tools, toolRow(t.Server, t.Tool))
			}
		}
		return list
	}
	for _, l := range listings {
		for i := range l.Tools {
			if server == "" || l.Server == server {
				list.Tools = append(list.Tools, toolRow(l.Server, &l.Tools[i]))
			}
		}
	}
	return list
}

// reason is the error of a server, beside its name.
func reason(server string, err error) string {
	text := err.Error()
	if e, ok := errors.AsType[*stages.Error](err); ok {
		text = e.Msg
	}
	return strings.TrimPrefix(text, fmt.Sprintf("server %q: ", server))
}

func toolRow(server string, t *upstream.CatalogTool) ui.ToolRow {
	return ui.ToolRow{
		Server: server, Name: t.Name, Title: t.Title, Description: strings.TrimSpace(t.Description), Signature: t.Long, Changes: !t.ReadOnly,
	}
}

// tool finds a tool, with an error that names similar ones.
func (s *shown) tool(ctx context.Context, server, name string) (*upstream.CatalogTool, error) {
	pool, ctx := s.pool(ctx)
	ctx, cancel := context.WithTimeout(ctx, toolWait)
	defer cancel()
	if _, err := pool.Tool(ctx, server, name); err != nil {
		return nil, err
	}
	for _, l := range pool.Catalog(ctx, server) {
		for i := range l.Tools {
			if l.Tools[i].Name == name {
				return &l.Tools[i], nil
			}
		}
	}
	return nil, fmt.Errorf("%s has no tool %q", server, name)
}

// Tool implements [ui.Tools].
func (s *shown) Tool(ctx context.Context, server, name string) (d ui.ToolDetail, err error) {
	t, err := s.tool(ctx, server, name)
	if err != nil {
		return d, err
	}
	d = ui.ToolDetail{ToolRow: toolRow(server, t), Input: t.InputSchema, Output: t.OutputSchema, Doubt: t.Doubt, Flaw: t.Flaw, Idempotent: t.Tool.Idempotent}
	if t.Result.Known() {
		d.Returns = gateway.Returns(t)
	}
	if t.Original != t.Name {
		d.Original = t.Original
	}
	d.Example, _ = t.Example(ctx) // one that does not fit still shows what is required
	var annotations map[string]json.RawMessage
	_ = json.Unmarshal(t.Annotations, &annotations) // none, if it is no object
	for _, name := range []string{"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"} {
		if value := annotations[name]; value != nil {
			d.Annotations = append(d.Annotations, ui.Fact{Name: name, Text: texts.Fit(strings.Trim(string(value), `"`), 200)})
		}
	}
	waiting, _ := s.Waiting(ctx, server) // the page of the server has the error
	for _, w := range waiting {
		if w.Tool == t.Original && !w.New {
			d.Changed = w.Diff
		}
	}
	return d, nil
}

// Check implements [ui.Tools].
func (s *shown) Check(ctx context.Context, server, name string, args json.RawMessage) (wrong []string, note string) {
	t, err := s.tool(ctx, server, name)
	if err != nil {
		return []string{err.Error()}, ""
	}
	return t.Tool.Input.Check(ctx, args, false)
}

// Call implements [ui.Tools]. The call is a pipeline of one stage, so that its output is kept.
func (s *shown) Call(ctx context.Context, server, name string, args json.RawMessage) (ui.Called, error) {
	return s.execute(ctx, map[string]any{"pipeline": []any{map[string]any{"type": "tool", "server": server, "name": name, "args": args}}})
}

// execute calls execute_pipeline as the person.
func (s *shown) execute(ctx context.Context, call map[string]any) (ui.Called, error) {
	begun := time.Now()
	result, err := s.person(ctx).Call(ctx, "execute_pipeline", call)
	if err != nil {
		return ui.Called{}, err
	}
	called := ui.Called{Failed: result.IsError, Time: time.Since(begun)}
	var report struct{ Request, Run string }
	written, err := json.Marshal(result.Meta["mcsh/report"])
	if err == nil && json.Unmarshal(written, &report) == nil {
		called.Request, called.Run = report.Request, report.Run
	}
	var b strings.Builder
	for _, block := range result.Content {
		if text, ok := block.(*mcp.TextContent); ok {
			b.WriteString(text.Text)
		}
	}
	called.Text = b.String()
	return called, nil
}

// Waiting implements [ui.Servers].
func (s *shown) Waiting(ctx context.Context, server string) (list []ui.WaitingTool, err error) {
	pool, ctx := s.pool(ctx)
	waiting, err := pool.Pending(ctx, server)
	if err != nil {
		return nil, err
	}
	for i, t := range waiting {
		w := ui.WaitingTool{Tool: t.Tool, Hash: t.Hash, New: t.New}
		if i < maxShownTools {
			w.Diff = strings.TrimRight(pendingText(t), "\n")
		}
		list = append(list, w)
	}
	return list, nil
}
