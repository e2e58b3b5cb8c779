// Package cli is the program mcsh with all its commands. It is the composition root: it alone reads flags, environment
// variables and configuration files, and gives each part its settings. It starts the parts and talks to users, and has
// none of the logic of the parts.
package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/mcsh-dev/mcsh/schemas"
	"github.com/mcsh-dev/mcsh/stages"
)

// Main runs the program with the arguments and the environment of the process, and ends the process with its exit status. connect
// connects to the engine of durable runs; nil: this program has none.
func Main(connect Connect) {
	args := os.Args[1:]
	if len(args) > 0 && args[0] == workerCommand {
		os.Exit(workerMain(args[1:])) // a worker starts before each command: no flags, no signals, nothing slow
	}
	if _, set := os.LookupEnv("GOGC"); !set {
		debug.SetGCPercent(gcPercent)
	}
	os.Exit(runWith(context.Background(), connect, args, os.Stdin, os.Stdout, os.Stderr, os.Environ()))
}

// A program is the process environment of a command.
type program struct {
	stdin  io.Reader
	stdout *stream // data and JSON, unchanged
	text   plain   // standard output for people
	stderr plain
	env    map[string]string
	json   bool // the command's --json: errors are JSON on stdout too
	stores stores
	typed  typed

	connectEngines Connect // nil: there is no engine of durable runs
}

// run is the program without the worker and without an engine of durable runs. It returns the exit status.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer, environ []string) int {
	return runWith(ctx, nil, args, stdin, stdout, stderr, environ)
}

func runWith(ctx context.Context, connect Connect, args []string, stdin io.Reader, stdout, stderr io.Writer, environ []string) int {
	p := &program{stdin: stdin, env: map[string]string{}, connectEngines: connect}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		p.env[name] = value
	}
	p.stdout, p.stderr = newStream(stdout, p.env), plain{newStream(stderr, p.env)}
	p.text = plain{p.stdout}
	if err := hide(); err != nil {
		return p.report(err)
	}
	ctx, stop := untilSignal(ctx)
	defer stop()
	defer p.closeStores()
	root := p.root()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetErr(p.stderr)
	return p.report(p.stdout.result(root.ExecuteContext(ctx))) // help and completions do not check their writes
}

// endSignals are the signals that end the program. nohup makes it ignore SIGHUP.
func endSignals() []os.Signal {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	return signals
}

// untilSignal returns a context that the first of the [endSignals] ends, so that everything closes in order. A second
// signal kills the process, except SIGHUP, which a closing terminal and its shell both send. A closed standard output is
// an error of Write instead of a signal, so that temporary files are removed.
func untilSignal(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(ctx, endSignals()...)
	context.AfterFunc(ctx, stop)
	unheard := make(chan os.Signal, 1)
	signal.Notify(unheard, syscall.SIGPIPE)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(unheard, syscall.SIGHUP)
	}
	return ctx, func() { stop(); signal.Stop(unheard) }
}

func (p *program) lookup(name string) (string, bool) {
	value, ok := p.env[name]
	return value, ok
}

// isTerminal reports whether an input or output is a terminal.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// root returns the tree of commands.
func (p *program) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "mcsh",
		Short: "Pipelines over MCP tools and commands",
		Long: `mcsh is one MCP endpoint in front of many MCP servers. An agent sends a pipeline, an array of stages;
mcsh calls the tools, filters, joins and counts, and returns only the end of the pipe.

  mcsh run '[{"type": "tool", "server": "demo", "name": "list_orders"},
             {"type": "command", "command": "jq", "args": [".orders | length"]}]'

Without a configuration there are the built-in servers demo, fetch and filesystem.
Data goes to standard output, everything else to standard error.

Exit status: 0 done, 1 wrong command line, 2 wrong configuration, 3 a server wants a sign-in, 4 a server cannot
be reached, 5 the pipeline or a tool failed, 124 out of time, 130 interrupted. mcsh explain says more of each.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          knownCommand,
	}
	root.SetFlagErrorFunc(flagError)
	root.PersistentPreRunE = exclusiveFlags
	root.AddCommand(
		p.serveCommand(), p.gatewaysCommand(), p.serversCommand(), p.consoleCommand(), p.reloadCommand(), p.runCommand(), p.checkCommand(), p.runsCommand(), p.pipelineCommand(), p.toolsCommand(), p.connectCommand(), p.importCommand(), p.commandsCommand(),
		p.loginCommand(), p.logoutCommand(), p.loginsCommand(),
		p.schemaCommand(), p.serverCommand(), p.doctorCommand(), p.explainCommand(), p.manCommand(), p.versionCommand(),
		group("token", "Make, list and remove the tokens of callers", tokenLong, p.tokenListCommand(), p.tokenNewCommand(), p.tokenRemoveCommand()),
		group("sandbox", "Build the image of sandbox containers, and show what the engine has", "", p.sandboxBuildCommand(), p.sandboxStatusCommand()),
		p.flagsCommand(),
	)
	root.SetOut(p.stdout) // the completion command keeps it
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range append(root.Commands(), root) {
		if cmd.HasSubCommands() {
			cmd.Args = knownCommand
		}
		if !cmd.Runnable() {
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
	}
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { fmt.Fprint(cmd.OutOrStdout(), helpText(cmd)) })
	root.SetUsageFunc(func(cmd *cobra.Command) error {
		_, err := fmt.Fprint(cmd.OutOrStderr(), usageText(cmd, helpWidth, false))
		return err
	})
	return root
}

// command gives a command its function and its flags. An error without an exit status gets exitFailed.
func command(cmd *cobra.Command, run func(ctx context.Context, args []string) error, flags ...func(*cobra.Command)) *cobra.Command {
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		err := run(cmd.Context(), args)
		if err == nil || classified(err) {
			return err
		}
		return &failure{exitFailed, err, ""}
	}
	for _, add := range flags {
		add(cmd)
	}
	return cmd
}

// group returns a command that has others below it. Without one of them it does the first one if that is a list, or else shows its
// help.
func group(name, short, long string, below ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: name, Short: short, Long: long}
	if len(below) > 0 && below[0].Name() == "ls" {
		cmd.RunE = below[0].RunE
		cmd.Flags().AddFlagSet(below[0].Flags())
		cmd.Long = cmp.Or(long, short+".") + " Without a command it lists them, as " + name + " ls does."
	}
	cmd.AddCommand(below...)
	return cmd
}

func classified(err error) bool {
	_, isFailure := errors.AsType[*failure](err)
	_, isPlan := errors.AsType[planError](err)
	_, isStage := errors.AsType[*stages.Error](err)
	return isFailure || isPlan || isStage || errors.Is(err, context.Canceled)
}

// jsonFlag adds --json.
func (p *program) jsonFlag(usage string) func(*cobra.Command) {
	return func(cmd *cobra.Command) { cmd.Flags().BoolVar(&p.json, "json", false, usage) }
}

type versionJSON struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"` // the tree had uncommitted changes
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func (p *program) versionCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "version", Short: "Print the version", Args: cobra.NoArgs}
	return command(cmd, func(context.Context, []string) error {
		v := buildInfo()
		return p.print(v, fmt.Sprintf("mcsh %s (%s, %s)\n", v.Version, v.Go, v.Platform))
	}, p.jsonFlag("print one JSON object"))
}

// version returns the version for clients and servers.
func version() string { return buildInfo().Version }

// buildInfo returns what the compiler recorded about this binary.
func buildInfo() versionJSON {
	v := versionJSON{Version: "devel", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if m := info.Main.Version; m != "" && m != "(devel)" {
		v.Version = m
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

func (p *program) schemaCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of a call of execute_pipeline",
		Long:  "Print the JSON Schema of what execute_pipeline takes, with every field described.\nThe schema of one stage is at #/$defs/stage.",
		Args:  cobra.NoArgs,
	}
	return command(cmd, func(context.Context, []string) error {
		var out bytes.Buffer
		if err := json.Indent(&out, schemas.ExecutePipeline(stages.Kinds(), schemas.Options{}), "", "  "); err != nil {
			return err
		}
		_, err := fmt.Fprintln(p.stdout, out.String())
		return err
	})
}
