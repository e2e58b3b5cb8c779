package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/upstream"
)

// Variables that replace the flags of the tools that clients call by names of their own.
const (
	exposeVariable = "MCSH_EXPOSE"
	namesVariable  = "MCSH_EXPOSE_NAMES"
)

// exposeFlags select the tools of servers that clients call by names of their own.
type exposeFlags struct {
	tools []string // patterns SERVER/TOOL
	names string   // the rule
	rule  gateway.NameRule

	pipelines string // --pipeline-tools
}

func (e *exposeFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringArrayVar(&e.tools, "expose", nil, "tools of servers that clients also call by names of their own, such as 'github/*' (repeatable; $"+exposeVariable+", separated by commas)")
	e.addPipelineTools(cmd)
	f.StringVar(&e.names, "expose-names", "", "how these names are made (default \""+gateway.DefaultNames+"\"; $"+namesVariable+")")
}

// resolve takes values from the variables for flags that are not given, and checks them.
func (e *exposeFlags) resolve(p *program) (err error) {
	if len(e.tools) == 0 {
		e.tools = strings.FieldsFunc(p.env[exposeVariable], func(c rune) bool { return c == ',' })
	}
	for i, pattern := range e.tools {
		e.tools[i] = strings.TrimSpace(pattern)
		if err := upstream.CheckExpose(e.tools[i]); err != nil {
			return usageError("write SERVER/TOOL, where * stands for any text: 'github/*'", "--expose: %v", err)
		}
	}
	if e.rule, err = gateway.ParseNameRule(cmp.Or(e.names, p.env[namesVariable], gateway.DefaultNames)); err != nil {
		return usageError("write it like "+gateway.DefaultNames+" or {tool}", "--expose-names: %v", err)
	}
	return e.resolvePipelineTools(p)
}

// localWait is how long the start of a gateway waits for built-in servers, so that the first list has their tools.
const localWait = 2 * time.Second

// gateway returns a gateway with these names. The error is that of tools that are known to have the same name.
func (e *exposeFlags) gateway(ctx context.Context, o gateway.Options) (*gateway.Gateway, error) {
	o.Names, o.PipelineTools = e.rule, e.pipelines
	g := gateway.New(o)
	soon, cancel := context.WithTimeout(ctx, localWait)
	defer cancel()
	o.Upstream.AwaitExposed(soon, false)
	for _, pattern := range o.Upstream.ExposeWithoutServer(ctx) {
		o.Log.Warn("no server fits a pattern of --expose", zap.String("pattern", pattern))
	}
	if err := g.ExposedError(); err != nil {
		return g, configError("rename one of them with overrides, expose fewer tools, or give another rule with --expose-names", err)
	}
	return g, nil
}

// groupVariable replaces --group.
const groupVariable = "MCSH_GROUP"

// A groupFlag names the only group of servers that a gateway serves.
type groupFlag struct {
	name  string // empty: all servers
	flags *pflag.FlagSet
}

func (g *groupFlag) add(cmd *cobra.Command) {
	g.flags = cmd.Flags()
	g.flags.StringVar(&g.name, "group", "", "serve only this group of servers of the configuration (default: all servers; $"+groupVariable+")")
}

// resolve takes the name from the variable if the flag is not given. A value that is set but empty is an error: it must not
// serve all servers.
func (g *groupFlag) resolve(p *program) error {
	given, from := g.flags.Changed("group"), "--group"
	if value, set := p.env[groupVariable]; set && !given {
		g.name, given, from = value, true, "$"+groupVariable
	}
	if given && strings.TrimSpace(g.name) == "" {
		return usageError("give it a value, or leave it out", "%s is empty", from)
	}
	return nil
}

// check refuses a group that is not there, and warns of servers in groups that are not there.
func (g *groupFlag) check(ctx context.Context, pool *upstream.Pool, log *zap.Logger) error {
	for _, note := range pool.GroupNotes(ctx) {
		log.Warn(note)
	}
	names := convert(pool.Groups(ctx), func(g upstream.Group) string { return g.Name })
	if g.name == "" || slices.Contains(names, g.name) {
		return nil
	}
	there := `write {"groups": {"NAME": ["SERVER"]}} into the configuration`
	if len(names) > 0 {
		there = "the configuration has " + strings.Join(names, ", ")
	}
	return configError(there, fmt.Errorf("--group %s: there is no such group of servers", texts.Quote(g.name)))
}

// describeGroups adds a finding for each group.
func (d *diagnosis) describeGroups(ctx context.Context, pool *upstream.Pool) {
	for _, g := range pool.Groups(ctx) {
		names := pool.Servers(upstream.WithView(ctx, pool.View(g.Name)))
		d.add(statusOK, "", "the group %s, at /mcp/%s, has %s", g.Name, g.Name, cmp.Or(strings.Join(names, ", "), "no server at present"))
	}
	for _, note := range pool.GroupNotes(ctx) {
		d.add(statusWarning, "", "%s", note)
	}
}

// allowSaveVariable replaces --allow-save.
const allowSaveVariable = "MCSH_ALLOW_SAVE"

// allowSaveFlag says whether agents save pipelines.
type allowSaveFlag struct{ value string }

func (a *allowSaveFlag) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.value, "allow-save", "", "whether agents save pipelines, with the tool save_pipeline: yes or no (default no; $"+allowSaveVariable+")")
	completeFlag(cmd, "allow-save", "yes", "no")
}

// resolve takes the value from the variable if the flag is not given.
func (a *allowSaveFlag) resolve(p *program) error {
	a.value = cmp.Or(a.value, p.env[allowSaveVariable], "no")
	if a.value != "yes" && a.value != "no" {
		return usageError("yes lets each caller save pipelines for itself; no, or nothing, does not", "--allow-save %s: want yes or no", texts.Fit(a.value, 40))
	}
	return nil
}

// addAsking adds the flags for questions of servers.
func addAsking(o *gateway.Options) func(*cobra.Command) {
	return func(cmd *cobra.Command) {
		cmd.Flags().DurationVar(&o.AskTimeout, "ask-timeout", gateway.DefaultAskTimeout,
			"how long a call waits for its client's answers to questions of servers, all together; its timeouts are paused meanwhile; 0 passes no questions on")
		cmd.Flags().BoolVar(&o.Sampling, "sampling", false, "let servers ask the models of clients (sampling)")
	}
}

// checkAsking checks the flags of addAsking.
func checkAsking(o gateway.Options) error {
	if o.AskTimeout < 0 {
		return usageError("--ask-timeout 0 passes no questions on", "--ask-timeout %v is below zero", o.AskTimeout)
	}
	return nil
}
