package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/mcsh-dev/mcsh/stages"
)

const rootLong = `mcsh is one MCP endpoint in front of many MCP servers. An agent sends a pipeline, an array of stages;
mcsh calls the tools, filters, joins and counts, and returns only the end of the pipe.

  mcsh run '[{"type": "tool", "server": "demo", "name": "list_orders"},
             {"type": "command", "command": "jq", "args": [".orders | length"]}]'

Without a configuration there are the built-in servers demo, fetch and filesystem.
Data goes to standard output, everything else to standard error.

Exit status: 0 done, 1 wrong command line, 2 wrong configuration, 3 a server wants a sign-in, 4 a server cannot
be reached, 5 the pipeline or a tool failed, 124 out of time, 130 interrupted. mcsh explain says more of each.`

// root builds the tree of commands.
func (p *program) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "mcsh",
		Short:         "Pipelines over MCP tools and commands",
		Long:          rootLong,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.CompletionOptions.HiddenDefaultCmd = false
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError(cmd.CommandPath()+" --help shows the flags", "%w", err)
	})
	root.AddCommand(
		p.serveCommand(), p.runCommand(), p.checkCommand(), p.toolsCommand(), p.connectCommand(), p.importCommand(), p.commandsCommand(),
		p.schemaCommand(), p.serverCommand(), p.tokenCommand(), p.sandboxCommand(), p.doctorCommand(), p.explainCommand(), p.versionCommand(),
	)
	return root
}

// work makes a cobra function of a command's own. An error without a status of its own is one of the machine, not of
// the command line.
func work(f func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		err := f(cmd.Context(), args)
		if err == nil || classified(err) {
			return err
		}
		return &failure{exitFailed, err, ""}
	}
}

func classified(err error) bool {
	_, isFailure := errors.AsType[*failure](err)
	_, isPlan := errors.AsType[planError](err)
	_, isStage := errors.AsType[*stages.Error](err)
	return isFailure || isPlan || isStage || errors.Is(err, context.Canceled)
}

// addJSON adds the flag --json.
func (p *program) addJSON(cmd *cobra.Command, usage string) {
	cmd.Flags().BoolVar(&p.json, "json", false, usage)
}
