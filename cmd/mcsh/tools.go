package main

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

	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
)

func (p *program) toolsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tools",
		Short: "List, show, call and find the tools of the servers",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return usageError("mcsh tools ls lists the tools", "what about the tools? ls, show, call or search")
		},
	}
	cmd.AddCommand(p.toolsLsCommand(), p.toolsShowCommand(), p.toolsCallCommand(), p.toolsSearchCommand())
	return cmd
}

// withTools runs f with the servers that the settings name, and closes them.
func (p *program) withTools(ctx context.Context, s settings, f func(context.Context, *upstream.Pool) error) (err error) {
	pool, err := p.openUpstream(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	return f(ctx, pool)
}

func (p *program) toolsLsCommand() *cobra.Command {
	var s settings
	cmd := &cobra.Command{
		Use:   "ls [SERVER...]",
		Short: "List the tools, a line each; ! marks those that may change something",
		RunE: work(func(ctx context.Context, args []string) error {
			return p.withTools(ctx, s, func(ctx context.Context, pool *upstream.Pool) error { return p.listTools(ctx, pool, args) })
		}),
	}
	s.addSources(cmd)
	complete(cmd, true, p.serverNames(&s))
	p.addJSON(cmd, "print one JSON object per tool, a line each")
	return cmd
}

// toolJSON is a tool as --json prints it.
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
	Annotations json.RawMessage `json:"annotations,omitempty"`
}

func toolOf(server string, t upstream.CatalogTool) toolJSON {
	return toolJSON{
		server, t.Name, t.Title, t.Description, t.ReadOnly, t.Denied, t.Tool.Signature,
		t.InputSchema, t.OutputSchema, t.Annotations,
	}
}

// listTools prints the tools of all servers that answer. That one does not is an error, after the others were printed.
func (p *program) listTools(ctx context.Context, pool *upstream.Pool, names []string) error {
	waiting, cancel := context.WithTimeout(ctx, startWait)
	defer cancel()
	var failed error
	for _, l := range pool.Catalog(waiting, names...) {
		for _, t := range l.Tools {
			if err := p.printTool(l.Server, t); err != nil {
				return err
			}
		}
		if l.Note != "" {
			fmt.Fprintf(p.stderr, "note: %s: %s\n", l.Server, l.Note)
		}
		if l.Status == upstream.StatusReady {
			continue
		}
		if failed != nil { // the last one is the command's error
			fmt.Fprint(p.stderr, lines(failed.Error(), ""))
		}
		failed = listingError(l)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return failed
}

func (p *program) printTool(server string, t upstream.CatalogTool) error {
	if p.json {
		return writeJSON(p.stdout, toolOf(server, t))
	}
	signature := t.Tool.Signature
	if !t.ReadOnly {
		signature = strings.Replace(signature, "(", "!(", 1)
	}
	line := server + "/" + signature
	if said := firstSentence(t.Description); said != "" {
		line += " - " + said
	}
	_, err := fmt.Fprintln(p.stdout, line)
	return err
}

// listingError is why a server has no current list.
func listingError(l upstream.Listing) error {
	if l.Status == upstream.StatusStarting {
		return &failure{exitUnreachable, fmt.Errorf("server %q has not answered for %s", l.Server, startWait), "see whether it starts by itself, and what it says"}
	}
	e, ok := errors.AsType[*stages.Error](l.Err)
	if !ok {
		return &failure{exitUnreachable, fmt.Errorf("server %q: %w", l.Server, l.Err), ""}
	}
	return e
}

// firstSentence is the beginning of a description on one line.
func firstSentence(description string) string {
	line := strings.Join(strings.Fields(description), " ")
	line, _, _ = strings.Cut(line, ". ")
	return cut(strings.TrimSuffix(line, "."), 100)
}

func (p *program) toolsShowCommand() *cobra.Command {
	var s settings
	cmd := &cobra.Command{
		Use:   "show SERVER/TOOL",
		Short: "Show a tool: what it does, its arguments, and a stage that calls it",
		Args:  cobra.ExactArgs(1),
		RunE: work(func(ctx context.Context, args []string) error {
			return p.withTools(ctx, s, func(ctx context.Context, pool *upstream.Pool) error { return p.showTool(ctx, pool, args[0]) })
		}),
	}
	s.addSources(cmd)
	complete(cmd, false, p.toolNames(&s))
	p.addJSON(cmd, "print one JSON object")
	return cmd
}

// splitTool takes "server/tool" apart. A tool's name may hold a slash, a server's may not.
func splitTool(name string) (server, tool string, err error) {
	server, tool, ok := strings.Cut(name, "/")
	if !ok || server == "" || tool == "" {
		return "", "", usageError("write SERVER/TOOL, such as demo/list_orders; mcsh tools ls lists them", "%q does not name a server and a tool", name)
	}
	return server, tool, nil
}

func (p *program) showTool(ctx context.Context, pool *upstream.Pool, name string) error {
	server, tool, err := splitTool(name)
	if err != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, startWait)
	defer cancel()
	if _, err := pool.Tool(waiting, server, tool); err != nil {
		return err
	}
	list := pool.Catalog(waiting, server)[0].Tools
	i := slices.IndexFunc(list, func(t upstream.CatalogTool) bool { return t.Name == tool })
	if i < 0 {
		return &failure{exitFailed, fmt.Errorf("%s has just disappeared from the list of its server", name), "try again"}
	}
	if p.json {
		return writeJSON(p.stdout, toolOf(server, list[i]))
	}
	_, err = io.WriteString(p.stdout, details(server, list[i]))
	return err
}

func details(server string, t upstream.CatalogTool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s/%s\n", server, t.Tool.Signature)
	if t.Description != "" {
		fmt.Fprintf(&b, "\n%s\n", strings.TrimSpace(t.Description))
	}
	effect := "may change something"
	if t.ReadOnly {
		effect = "only reads"
	}
	fmt.Fprintf(&b, "\neffect: %s\n", effect)
	if t.Flaw != "" {
		fmt.Fprintf(&b, "its arguments are checked by the server only: %s\n", t.Flaw)
	}
	writeSchema(&b, "input", t.InputSchema)
	writeSchema(&b, "output", t.OutputSchema)
	fmt.Fprintf(&b, "stage:  %s\n", exampleStage(server, t))
	return b.String()
}

func writeSchema(b *strings.Builder, name string, schema json.RawMessage) {
	var pretty bytes.Buffer
	if len(schema) == 0 || json.Indent(&pretty, schema, "", "  ") != nil {
		return
	}
	fmt.Fprintf(b, "%s: %s\n", name, pretty.String())
}

// stageJSON is a tool stage as a person would write it.
type stageJSON struct {
	Type   string          `json:"type"`
	Server string          `json:"server"`
	Name   string          `json:"name"`
	Args   json.RawMessage `json:"args,omitempty"`
}

// exampleStage is a stage that calls the tool, its required arguments to be filled in.
func exampleStage(server string, t upstream.CatalogTool) string {
	stage := stageJSON{Type: "tool", Server: server, Name: t.Name}
	if required := t.Tool.Input.Required; len(required) > 0 {
		args := map[string]any{}
		for _, name := range required {
			args[name] = "..."
		}
		stage.Args = optionsOf(args)
	}
	data, err := json.Marshal(stage)
	if err != nil { // args is JSON
		panic("mcsh: internal error: encoding a stage: " + err.Error())
	}
	return string(data)
}

func (p *program) toolsCallCommand() *cobra.Command {
	o := runOptions{settings: settings{sandbox: sandboxSettings{backend: backendOff}}}
	cmd := &cobra.Command{
		Use:     "call SERVER/TOOL [ARGUMENTS | -]",
		Short:   "Call a tool with a JSON object of arguments",
		Example: `  mcsh tools call demo/get_customer '{"id": "c-001"}'`,
		Args:    cobra.RangeArgs(1, 2),
		RunE:    work(func(ctx context.Context, args []string) error { return p.callTool(ctx, args, o) }),
	}
	o.addSources(cmd)
	complete(cmd, false, p.toolNames(&o.settings))
	cmd.Flags().DurationVar(&o.timeout, "timeout", time.Minute, "time for the call")
	p.addJSON(cmd, `print {"output", "report"}, or {"errors"}`)
	return cmd
}

// callTool runs a pipeline of one stage: arguments, results and errors are the same everywhere.
func (p *program) callTool(ctx context.Context, args []string, o runOptions) error {
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
			return usageError(`write them like '{"id": 7}'`, "the arguments are not a JSON object: %s", cut(string(text), 60))
		}
		stage.Args = text
	}
	o.limits.Call = max(o.timeout, cmp.Or(o.limits.Call, time.Minute))
	pipeline, err := json.Marshal([]stageJSON{stage})
	if err != nil {
		return fmt.Errorf("encoding the stage: %w", err)
	}
	return p.runPipeline(ctx, []string{string(pipeline)}, o)
}
