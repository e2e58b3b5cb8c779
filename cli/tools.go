package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/pipelines"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
)

func (p *program) toolsCommand() *cobra.Command {
	return group("tools", "List, show, call and find the tools of the servers", "",
		p.toolsLsCommand(), p.toolsShowCommand(), p.toolsCallCommand(), p.toolsSearchCommand(), p.toolsAcceptCommand())
}

// withTools is a command's function that calls f with the servers and the saved pipelines of the settings, and closes them.
func (p *program) withTools(s *settings, f func(context.Context, *dependencies, []string) error) func(context.Context, []string) error {
	return func(ctx context.Context, args []string) (err error) {
		if err := p.setMemory(s); err != nil {
			return err
		}
		s.sandbox.warm = 0
		parts, err := p.open(ctx, ctx, *s)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, parts.close()) }()
		defer p.show(parts.upstream.Statuses).stop()
		return f(ctx, parts, args)
	}
}

// catalog are the saved pipelines, as the tools of a server beside the others.
func (x *dependencies) catalog() gateway.Saved {
	return gateway.Saved{Set: x.saved, Viewer: pipelines.Operator()}
}

func (p *program) toolsLsCommand() *cobra.Command {
	var s settings
	cmd := &cobra.Command{
		Use:   "ls [SERVER...]",
		Short: "List the tools, a line each; ! marks those that may change something",
	}
	return command(cmd, p.withTools(&s, p.listTools), s.addSources, s.addState, s.addRefresh, p.sandboxFlags(&s.sandbox),
		completing(everyArgument, p.listedNames(&s)), p.jsonFlag("print one JSON object per tool, a line each"))
}

type toolJSON struct {
	Server      string          `json:"server"`
	Name        string          `json:"name"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	ReadOnly    bool            `json:"read_only"`
	Denied      string          `json:"denied,omitempty"` // why it cannot be called
	Signature   string          `json:"signature"`
	Input       json.RawMessage `json:"input_schema,omitempty"`
	Output      json.RawMessage `json:"output_schema,omitempty"`
	Returns     string          `json:"returns,omitempty"` // the shape of its result
	Annotations json.RawMessage `json:"annotations,omitempty"`
}

func toolOf(server string, t upstream.CatalogTool) toolJSON {
	one := toolJSON{
		Server: server, Name: t.Name, Title: t.Title, Description: t.Description, ReadOnly: t.ReadOnly, Denied: t.Denied,
		Signature: t.Tool.Signature, Input: t.InputSchema, Output: t.OutputSchema, Annotations: t.Annotations,
	}
	if t.Result.Known() {
		one.Returns = t.Result.String()
	}
	return one
}

// listTools prints the tools of all servers with a known list. If a server does not answer, it returns an error after the
// list.
func (p *program) listTools(ctx context.Context, x *dependencies, names []string) error {
	listings := x.listings(ctx, names...)
	for _, l := range listings {
		for _, t := range l.Tools {
			p.printTool(l.Server, t)
		}
		if l.Note != "" {
			fmt.Fprintf(p.stderr, "note: %s\n", texts.Plain(l.Server+": "+l.Note, false))
		}
	}
	return p.failedListings(ctx, listings)
}

func (p *program) printTool(server string, t upstream.CatalogTool) {
	signature := t.Tool.Signature
	if !t.ReadOnly {
		signature = strings.Replace(signature, "(", "!(", 1)
	}
	line := server + "/" + signature
	if text := firstSentence(t.Description); text != "" {
		line += " - " + text
	}
	p.print(toolOf(server, t), texts.Plain(line, false)+"\n")
}

// firstSentence returns the first sentence of a description on one line.
func firstSentence(description string) string {
	line := strings.Join(strings.Fields(description), " ")
	line, _, _ = strings.Cut(line, ". ")
	return texts.Fit(strings.TrimSuffix(line, "."), 100)
}

func (p *program) toolsShowCommand() *cobra.Command {
	var s settings
	cmd := &cobra.Command{
		Use:   "show SERVER/TOOL",
		Short: "Show a tool: what it does, its arguments, and a stage that calls it",
		Args:  withFirst(cobra.ExactArgs(1)),
	}
	return command(cmd, p.withTools(&s, p.showTool), s.addSources, s.addState, p.sandboxFlags(&s.sandbox),
		completing(firstArgument, p.toolNames(&s)), p.jsonFlag("print one JSON object"))
}

// splitTool splits "server/tool". Only a tool's name may contain a slash.
func splitTool(name string) (server, tool string, err error) {
	server, tool, ok := strings.Cut(name, "/")
	if !ok || server == "" || tool == "" {
		return "", "", usageError("write SERVER/TOOL, such as demo/list_orders; mcsh tools ls lists them", "%q does not name a server and a tool", name)
	}
	return server, tool, nil
}

func (p *program) showTool(ctx context.Context, x *dependencies, args []string) error {
	server, tool, err := splitTool(args[0])
	if err != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, defaultRun)
	defer cancel()
	t, err := x.tool(waiting, server, tool)
	if err != nil {
		return err
	}
	t.Flaw = t.Unchecked(waiting)
	return p.print(toolOf(server, *t), details(server, *t))
}

// tool finds a tool of a server, or a saved pipeline.
func (x *dependencies) tool(ctx context.Context, server, name string) (*upstream.CatalogTool, error) {
	if server == pipelines.Server && x.saved != nil {
		return x.catalog().Tool(ctx, name)
	}
	if _, err := x.upstream.Tool(ctx, server, name); err != nil {
		return nil, err
	}
	list := x.upstream.Catalog(ctx, server)[0].Tools
	i := slices.IndexFunc(list, func(t upstream.CatalogTool) bool { return t.Name == name })
	if i < 0 {
		return nil, &failure{exitFailed, fmt.Errorf("%s/%s has just disappeared from the list of its server", server, name), "try again"}
	}
	return &list[i], nil
}

func details(server string, t upstream.CatalogTool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", texts.Plain(server+"/"+t.Tool.Signature, false))
	if t.Description != "" {
		fmt.Fprintf(&b, "\n%s", gateway.Fenced(strings.TrimSpace(t.Description)))
	}
	effect := "may change something"
	if t.ReadOnly {
		effect = "only reads"
	}
	if t.Doubt != "" {
		effect += " (" + texts.Plain(t.Doubt, false) + ")"
	}
	fmt.Fprintf(&b, "\neffect: %s\n", effect)
	if t.Flaw != "" {
		fmt.Fprintf(&b, "its arguments are checked by the server only: %s\n", texts.Plain(t.Flaw, false))
	}
	var schema bytes.Buffer
	if len(t.InputSchema) > 0 && json.Indent(&schema, t.InputSchema, "", "  ") == nil {
		fmt.Fprintf(&b, "input: %s\n", schema.String())
	}
	fmt.Fprintf(&b, "returns: %s\n", gateway.Returns(&t))
	fmt.Fprintf(&b, "stage:  %s\n", exampleStage(server, t))
	return b.String()
}

// stageJSON is a tool stage.
type stageJSON struct {
	Type   string          `json:"type"`
	Server string          `json:"server"`
	Name   string          `json:"name"`
	Args   json.RawMessage `json:"args,omitempty"`
}

// exampleStage returns a stage that calls the tool, with placeholders for its required arguments.
func exampleStage(server string, t upstream.CatalogTool) string {
	stage := stageJSON{Type: "tool", Server: server, Name: t.Name}
	if required := t.Tool.Input.Required; len(required) > 0 {
		args := map[string]any{}
		for _, name := range required {
			args[name] = "..."
		}
		stage.Args = optionsOf(args)
	}
	return texts.JSON(stage)
}

func (p *program) toolsCallCommand() *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:     "call SERVER/TOOL [ARGUMENTS | -]",
		Short:   "Call a tool with a JSON object of arguments",
		Example: `  mcsh tools call demo/get_customer '{"id": "c-001"}'`,
		Args:    withFirst(cobra.RangeArgs(1, 2)),
	}
	cmd.Flags().DurationVar(&o.timeout, "timeout", 0, "time for everything, waiting for the server included (default: 1m for the call itself)")
	// It runs a pipeline of one stage, so that arguments, results and errors are the same as in pipelines.
	return command(cmd, func(ctx context.Context, args []string) error {
		server, tool, err := splitTool(args[0])
		if err != nil {
			return err
		}
		stage := stageJSON{Type: "tool", Server: server, Name: tool}
		if len(args) == 2 {
			text := []byte(args[1])
			if args[1] == "-" {
				if text, err = io.ReadAll(io.LimitReader(p.stdin, maxPipeline)); err != nil {
					return usageError("", "reading the arguments: %w", err)
				}
			}
			if text = bytes.TrimSpace(text); !json.Valid(text) || text[0] != '{' {
				return usageError(`write them like '{"id": 7}'`, "the arguments are not a JSON object: %s", texts.Fit(string(text), 60))
			}
			stage.Args = text
		}
		o.limits.Call = max(o.timeout, cmp.Or(o.limits.Call, time.Minute))
		return p.runPipeline(ctx, []string{texts.JSON([]stageJSON{stage})}, o)
	}, o.addSources, o.addState, o.addWorkspace, p.sandboxFlags(&o.sandbox), completing(firstArgument, p.toolNames(&o.settings)),
		p.jsonFlag(`print {"output", "report"}, or {"errors"}`))
}

func (p *program) toolsSearchCommand() *cobra.Command {
	var s settings
	var limit int
	cmd := &cobra.Command{
		Use:     "search WORDS...",
		Short:   "Find tools by what they do, the best first",
		Example: "  mcsh tools search open orders",
		Args:    withFirst(cobra.ArbitraryArgs),
	}
	cmd.Flags().IntVar(&limit, "limit", 10, "how many to print at most")
	// A search reports servers that do not answer, because they may have the tool.
	search := p.withTools(&s, func(ctx context.Context, x *dependencies, args []string) error {
		query := strings.Join(args, " ")
		listings := x.listings(ctx)
		found := gateway.Search(listings, query)
		for _, t := range found[:min(limit, len(found))] {
			p.printTool(t.Server, *t.Tool)
		}
		failed := p.failedListings(ctx, listings)
		switch {
		case failed != nil:
			return failed
		case len(found) == 0:
			return &failure{exitFailed, fmt.Errorf("no tool fits %q", query), "mcsh tools ls lists all of them"}
		case len(found) > limit:
			fmt.Fprintf(p.stderr, "note: %d of %d tools that fit; --limit prints more\n", limit, len(found))
		}
		return nil
	})
	return command(cmd, func(ctx context.Context, args []string) error {
		if limit < 1 {
			return usageError("leave it out for the best ten", "--limit %d is not above zero", limit)
		}
		return search(ctx, args)
	}, s.addSources, s.addState, s.addRefresh, p.sandboxFlags(&s.sandbox), p.jsonFlag("print one JSON object per tool, a line each"))
}

// staleAfter is the age at which a kept tool list is reported.
const staleAfter = 10 * time.Minute

func (s *settings) addRefresh(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&s.refresh, "refresh", false, "ask all servers, also those whose tools were kept by an earlier command")
}

// listings lists the servers, those with kept lists first, and the saved pipelines. The startTimeout bounds each server, the time
// of a run bounds them all.
func (x *dependencies) listings(ctx context.Context, names ...string) []upstream.Listing {
	waiting, cancel := context.WithTimeout(ctx, defaultRun)
	defer cancel()
	return x.catalog().Catalog(waiting, x.upstream.CatalogSaved, names...)
}

// noteStale reports lists that may be out of date.
func (p *program) noteStale(listings []upstream.Listing) {
	oldest, n := time.Duration(0), 0
	for _, l := range listings {
		if age := time.Since(l.Fetched); l.Status == upstream.StatusSaved && age > staleAfter {
			oldest = max(oldest, age)
			n++
		}
	}
	if n > 0 {
		fmt.Fprintf(p.stderr, "note: the tools of %s were read up to %s ago; --refresh asks again\n", texts.Count(n, "server"), age(oldest))
	}
}

// age formats a duration in its largest unit.
func age(d time.Duration) string {
	n, unit := int(d.Minutes()), "minute"
	switch {
	case d >= 48*time.Hour:
		n, unit = int(d.Hours()/24), "day"
	case d >= 2*time.Hour:
		n, unit = int(d.Hours()), "hour"
	}
	return texts.Count(n, unit)
}

// failedListings prints why servers did not answer, even if their tools are known, and returns the last error for the exit
// status. Before that it reports lists that may be out of date.
func (p *program) failedListings(ctx context.Context, listings []upstream.Listing) error {
	p.noteStale(listings)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var last error
	for _, l := range listings {
		err := listingError(l)
		if last != nil && err != nil {
			fmt.Fprint(p.stderr, errorText(last, ""))
		}
		last = cmp.Or(err, last)
	}
	return last
}

// listingError returns the reason that a server has no current list; nil: it has.
func listingError(l upstream.Listing) error {
	e, ok := errors.AsType[*stages.Error](l.Err)
	switch {
	case l.Status == upstream.StatusStarting:
		return &failure{exitUnreachable, fmt.Errorf("server %q has not answered for %s", l.Server, defaultRun), "see whether it starts by itself, and what it says"}
	case l.Status != upstream.StatusFailed:
		return nil
	case ok:
		return e
	}
	return &failure{exitUnreachable, fmt.Errorf("server %q: %w", l.Server, l.Err), ""}
}
