package main

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/mcsh-dev/mcsh/gateway"
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
