package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/pipelines"
	"github.com/mcsh-dev/mcsh/schemas"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
)

// Values of [Options.PipelineTools] beside a glob of names.
const (
	PipelineToolsNone = "none"
	PipelineToolsAll  = "all"
)

const (
	mostSavedTools = 50              // saved pipelines that one client calls by names of their own
	savedWait      = 2 * time.Second // for checks of saved pipelines, when a client lists its tools
)

// CheckPipelineTools refuses a text that selects no saved pipelines.
func CheckPipelineTools(text string) error {
	if _, err := path.Match(text, ""); err != nil || text == "" {
		return fmt.Errorf("%q is not none, all or a glob of names", shown(text))
	}
	return nil
}

// keeperOf returns the name under which the saved pipelines of a caller are kept: the one client on standard input and output, or
// an identity. Others have none, because nobody could tell them apart later.
func keeperOf(extra *mcp.RequestExtra) string {
	if caller := callerOf(extra); caller == callerStdio || strings.HasPrefix(caller, callerUser) {
		return caller
	}
	return ""
}

// viewer is the sender of a request as one who asks for saved pipelines.
func (g *Gateway) viewer(ctx context.Context, extra *mcp.RequestExtra) pipelines.Viewer {
	return viewerOf(ctx, keeperOf(extra))
}

func viewerOf(ctx context.Context, keeper string) pipelines.Viewer {
	v := pipelines.Viewer{Caller: keeper}
	if view := upstream.ViewOf(ctx); view != nil {
		v.Shows = func(server string) bool { return server == upstream.ResourcesServer || view.Sees(server) }
	}
	return v
}

// Saved are the saved pipelines that a viewer may know of, as the tools of a server.
type Saved struct {
	Set    *pipelines.Set // nil: there are none
	Viewer pipelines.Viewer
}

func (g *Gateway) saved(ctx context.Context, extra *mcp.RequestExtra) Saved {
	return Saved{g.o.Pipelines, g.viewer(ctx, extra)}
}

// Catalog lists servers with their tools, those named or all, and the saved pipelines. It gets the other servers from list.
func (s Saved) Catalog(ctx context.Context, list func(ctx context.Context, names ...string) []upstream.Listing, names ...string) []upstream.Listing {
	if s.Set == nil {
		return list(ctx, names...)
	}
	others := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == pipelines.Server })
	named := len(others) < len(names)
	var all []upstream.Listing
	var saved upstream.Listing
	var wg sync.WaitGroup
	if named || len(names) == 0 { // beside the others, of which one may take all the time
		wg.Go(func() { saved = s.listing(ctx) })
	}
	if len(names) == 0 || len(others) > 0 {
		all = list(ctx, others...)
	}
	if wg.Wait(); named || len(saved.Tools) > 0 {
		all = append(all, saved)
		slices.SortStableFunc(all, func(a, b upstream.Listing) int { return cmp.Compare(a.Server, b.Server) })
	}
	return all
}

func (s Saved) listing(ctx context.Context) upstream.Listing {
	l := upstream.Listing{Server: pipelines.Server, Status: upstream.StatusReady, Instructions: "Saved pipelines: call them as tools in a pipeline."}
	for _, t := range s.Set.Tools(ctx, s.Viewer) {
		l.Tools = append(l.Tools, s.describe(ctx, &t))
	}
	return l
}

// Tool describes one saved pipeline.
func (s Saved) Tool(ctx context.Context, name string) (*upstream.CatalogTool, error) {
	t, err := s.Set.Find(ctx, name, s.Viewer)
	if err != nil {
		return nil, err
	}
	c := s.describe(ctx, t)
	if d := t.Definition; d != nil && t.Version.Private() { // the agent goes on with it
		c.Description += "\nits stages: " + string(d.Pipeline)
	}
	c.Name, c.Tool.Name = name, name
	return &c, nil
}

// describe returns a saved pipeline as a tool of the catalog.
func (s Saved) describe(ctx context.Context, t *pipelines.Tool) upstream.CatalogTool {
	c := upstream.CatalogTool{
		Name: t.Name, Original: t.Name, Description: savedText(t, s.Viewer), InputSchema: t.Schema, ReadOnly: t.Effects.ReadOnly,
		Tool: t.Info, Long: cmp.Or(t.Long, t.Name+"()"), Brief: cmp.Or(t.Brief, t.Name+"()"),
	}
	c.Tool.Server, c.Tool.Name, c.Tool.Signature = pipelines.Server, t.Name, cmp.Or(t.Info.Signature, t.Name+"()")
	c.Annotations, _ = json.Marshal(savedHints(t)) // booleans
	if c.Tool.Input.Check == nil {
		c.Tool.Input.Check = func(context.Context, json.RawMessage, bool) ([]string, string) { return nil, "" }
	}
	if t.Broken != nil {
		c.Denied = t.Broken.Error()
	}
	if d := t.Definition; d != nil {
		c.OutputSchema = d.OutputSchema
		c.Result = schemas.ResultShape(schemas.NewSteps(ctx, schemas.DefaultSteps), d.OutputSchema)
	}
	return c
}

// savedText describes a saved pipeline: first its state, where that is not the usual one.
func savedText(t *pipelines.Tool, v pipelines.Viewer) string {
	text := ""
	if t.Definition != nil {
		text = t.Definition.Description
	}
	if t.Version.Private() {
		whose := "you"
		if v.Caller != t.Version.Author.Caller {
			whose = "its author"
		}
		text = fmt.Sprintf("(version %d, only for %s until a person adopts it) %s", t.Version.Number, whose, text)
	}
	if t.Broken != nil {
		text = "(broken: " + shownUpTo(oneLine(t.Broken.Error()), noteLength) + ") " + text
	}
	return strings.TrimSpace(text)
}

// savedHints are the annotations of a saved pipeline: the effects of its plan.
func savedHints(t *pipelines.Tool) map[string]bool {
	if t.Effects.ReadOnly {
		return map[string]bool{"readOnlyHint": true}
	}
	return map[string]bool{"readOnlyHint": false, "destructiveHint": !t.Effects.Additive, "idempotentHint": t.Effects.Idempotent}
}

// savedTools are the saved pipelines that a client calls by names of their own. A tool of a server keeps its name.
func (g *Gateway) savedTools(ctx context.Context, v pipelines.Viewer) (list []pipelines.Tool) {
	if g.o.Pipelines == nil || !g.exposesSaved() {
		return nil
	}
	soon, cancel := context.WithTimeout(ctx, savedWait)
	defer cancel()
	for _, t := range g.o.Pipelines.Tools(soon, v) {
		_, taken := g.exposed.find(upstream.ViewOf(ctx), t.Name)
		if g.selectsSaved(t.Name) && t.Broken == nil && !taken && len(list) < mostSavedTools {
			list = append(list, t)
		}
	}
	return list
}

func (g *Gateway) exposesSaved() bool {
	return g.o.PipelineTools != "" && g.o.PipelineTools != PipelineToolsNone
}

// selectsSaved reports whether clients may call a saved pipeline by a name of its own.
func (g *Gateway) selectsSaved(name string) bool {
	fits, err := path.Match(g.o.PipelineTools, name)
	return g.o.PipelineTools == PipelineToolsAll || fits && err == nil
}

// savedForms are the saved pipelines as tools that a client lists.
func (g *Gateway) savedForms(ctx context.Context, extra *mcp.RequestExtra) (forms []json.RawMessage) {
	v := g.viewer(ctx, extra)
	for _, t := range g.savedTools(ctx, v) {
		form, err := json.Marshal(struct {
			Name         string          `json:"name"`
			Description  string          `json:"description"`
			InputSchema  json.RawMessage `json:"inputSchema"`
			OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
			Annotations  map[string]bool `json:"annotations"`
		}{t.Name, texts.Plain(savedText(&t, v), true), t.Schema, t.Definition.OutputSchema, savedHints(&t)})
		if err == nil && json.Unmarshal(form, new(mcp.Tool)) == nil { // else clients would refuse the whole list
			forms = append(forms, form)
		}
	}
	return forms
}

// PipelinesChanged tells clients that saved pipelines have changed.
func (g *Gateway) PipelinesChanged() {
	if g.exposesSaved() {
		g.toolsChanged()
	}
}

// isSavedTool reports whether a name is that of a saved pipeline that the client may call by it.
func (g *Gateway) isSavedTool(ctx context.Context, extra *mcp.RequestExtra, name string) bool {
	if g.o.Pipelines == nil || !g.exposesSaved() || !g.selectsSaved(name) || strings.Contains(name, "@") {
		return false
	}
	_, err := g.o.Pipelines.Find(ctx, name, g.viewer(ctx, extra))
	return err == nil
}

// savedKey is the context key of the saved pipeline that a call runs by its own name.
type savedKey struct{}

// A savedCall is a call of a saved pipeline by its own name; nil: a call of something else.
type savedCall struct{ definition *pipelines.Definition }

func savedIn(ctx context.Context) *savedCall {
	s, _ := ctx.Value(savedKey{}).(*savedCall)
	return s
}

// callSaved calls a saved pipeline: it runs a pipeline of one stage, whose output stands alone in the reply.
func (g *Gateway) callSaved(ctx context.Context, req *mcp.CallToolRequest) (mcp.Result, error) {
	name := req.Params.Name
	run := func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		t, err := g.o.Pipelines.Find(ctx, name, g.viewer(ctx, req.Extra))
		if err == nil {
			err = t.Broken
		}
		if err != nil {
			return nil, err
		}
		args := req.Params.Arguments
		if len(args) == 0 || string(args) == "null" {
			args = json.RawMessage("{}")
		}
		plan, err := json.Marshal([]map[string]any{{"type": "tool", "server": pipelines.Server, "name": name, "args": args}})
		if err != nil {
			return nil, err
		}
		call := schemas.Call{Pipeline: plan, Mode: schemas.ModeRun, Timeout: g.longest().Seconds(), MaxOutput: g.defaultOutput()}
		if t.Definition.OutputSchema != nil {
			call.MaxOutput = g.o.MaxOutput // half of it would be no structured content
		}
		return g.execute(context.WithValue(ctx, savedKey{}, &savedCall{t.Definition}), req, call)
	}
	result, err := g.serve(tool{name: name, subject: texts.Plain(shown(name), false), slots: g.runs, call: run})(ctx, req)
	if result == nil {
		return nil, err
	}
	return result, err
}

// structure gives the result of a saved pipeline with an output schema its structured content, or refuses the output.
func (s *savedCall) structure(ctx context.Context, out *reply, result *mcp.CallToolResult) error {
	if s == nil || s.definition.OutputSchema == nil {
		return nil
	}
	if out.shape != nil {
		return stages.OverLimit("max-output", "ask for less", "the output has %d characters and cannot be given whole, as its outputSchema demands", out.characters)
	}
	output := json.RawMessage(out.kept.Bytes())
	if err := s.definition.CheckOutput(ctx, output); err != nil {
		return err
	}
	result.StructuredContent = output
	return nil
}

// putAside takes the note and the windows out of the content.
func (r *reply) putAside(out *contents, report stages.Report) {
	out.windows(report.Windows, out.left)
	for _, block := range out.list {
		if text := textOf(block); text != nil {
			r.notes = append(r.notes, strings.TrimSpace(*text))
		}
	}
	*out = contents{left: r.budget}
}
