package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mcsh-dev/mcsh/auth"
	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/observe"
	"github.com/mcsh-dev/mcsh/sandbox/docker"
	"github.com/mcsh-dev/mcsh/servers"
	"github.com/mcsh-dev/mcsh/servers/shell"
	"github.com/mcsh-dev/mcsh/servers/strictjson"
	"github.com/mcsh-dev/mcsh/servers/tool"
	"github.com/mcsh-dev/mcsh/upstream"
	"github.com/mcsh-dev/mcsh/upstream/config"
)

// addOptions adds a flag for each option of a built-in server; short has one-letter names of flags, by option. The returned
// function gives the options that were set, as JSON.
func addOptions(f *pflag.FlagSet, options []strictjson.Field, short map[string]string) func() json.RawMessage {
	values := map[string]any{}
	for _, o := range options {
		values[o.Name] = define(f, o, short[o.Name])
	}
	return func() json.RawMessage {
		given := map[string]any{}
		for _, o := range options {
			if f.Changed(flagOf(o)) {
				given[o.Name] = values[o.Name]
			}
		}
		return optionsOf(given)
	}
}

// optionFlags name the flags of options whose own name is another flag: --allow-host is a flag of the listener.
var optionFlags = map[string]string{"allow_hosts": "reach-host", "allow_roots": "allow-root"}

// shortFlags are one-letter names of the flags of a server, by option.
var shortFlags = map[string]map[string]string{"shell": {"working_dir": "w", "timeout": "t", "shell": "s", "verbose": "v"}}

// optionArgs name the options that arguments of a server's command set too, as those of other such programs do.
var optionArgs = map[string]string{"filesystem": "directories"}

// setAll sets a repeatable flag.
func setAll(f *pflag.FlagSet, name string, values []string) error {
	for _, v := range values {
		if err := f.Set(name, v); err != nil {
			return err
		}
	}
	return nil
}

// flagOf returns the flag name of an option.
func flagOf(o strictjson.Field) string {
	return cmp.Or(optionFlags[o.Name], strings.ReplaceAll(o.Name, "_", "-"))
}

// define adds the flag of an option and returns the pointer to its value.
func define(f *pflag.FlagSet, o strictjson.Field, short string) any {
	name := flagOf(o)
	switch {
	case o.Type == reflect.TypeFor[time.Duration](), o.Type.Kind() == reflect.String:
		return f.StringP(name, short, "", o.Usage)
	case o.Type.Kind() == reflect.Bool:
		return f.BoolP(name, short, false, o.Usage)
	case reflect.Zero(o.Type).CanInt():
		return f.Int64P(name, short, 0, o.Usage)
	case o.Type == reflect.TypeFor[[]string]():
		return f.StringArrayP(name, short, nil, o.Usage+" (repeatable)")
	}
	panic("mcsh: internal error: no flag for an option of type " + o.Type.String())
}

const (
	sandboxOption  = "sandbox"   // of servers that run programs in containers
	readOnlyOption = "read_only" // of servers that change nothing with it
)

// hasOption reports whether a server has an option.
func hasOption(b servers.Builtin, name string) bool {
	return slices.ContainsFunc(b.Options, func(o strictjson.Field) bool { return o.Name == name })
}

// host completes what the process provides to built-in servers. A server of a configuration connects to its engine with its
// first command, so that an engine that is down stops no other server.
func (p *program) host(s sandboxSettings, h servers.Host) servers.Host {
	h.Environ, h.Log, h.Commands = p.env, p.stderr, s.added.Names()
	if h.Contain == nil {
		h.Contain = func(dir string) (shell.Runner, error) {
			return newLateRunner(func(ctx context.Context) (shell.Runner, error) { return docker.OpenCommands(ctx, s.engine(), dir) }), nil
		}
	}
	return h
}

// configBuiltins returns the built-in servers for configuration files.
func configBuiltins(host servers.Host) map[string]config.Builtin {
	table := map[string]config.Builtin{}
	for _, b := range servers.Builtins() {
		table[b.Name] = func(options json.RawMessage) (func(context.Context) (mcp.Transport, error), error) {
			server, err := b.Open(options, host)
			if err != nil {
				return nil, err
			}
			return upstream.InProcess(server.Server, server.Handlers, server.Begin), nil
		}
	}
	return table
}

// builtinOptions returns the names of the options of every built-in server.
func builtinOptions() map[string][]string {
	table := map[string][]string{}
	for _, b := range servers.Builtins() {
		table[b.Name] = convert(b.Options, func(o strictjson.Field) string { return o.Name })
	}
	return table
}

// A defaultServer is a built-in server that runs without a configuration.
type defaultServer struct {
	builtin string
	options json.RawMessage
	allow   []string // globs of its tools; empty: all
}

// defaultServers returns the servers of a machine without a configuration. They write nothing.
func defaultServers(s settings) []defaultServer {
	return []defaultServer{
		{"demo", nil, nil},
		{"fetch", nil, []string{"fetch"}},
		{"filesystem", optionsOf(map[string]any{"root": s.root, "read_only": true}), []string{"read_text_file", "list_directory", "directory_tree"}},
	}
}

// optionsOf encodes options as JSON.
func optionsOf(values map[string]any) json.RawMessage { return json.RawMessage(texts.JSON(values)) }

func (p *program) serverCommand() *cobra.Command {
	cmd := group("server", "Serve a built-in MCP server", `Serve one of the built-in MCP servers by itself, on standard input and output or, with --listen, over
streamable HTTP. In a configuration the same server is {"builtin": "NAME"}, with its options beside it.`)
	for _, b := range servers.Builtins() {
		cmd.AddCommand(p.builtinCommand(b))
	}
	return cmd
}

// builtinCommand returns the command of a built-in server.
func (p *program) builtinCommand(b servers.Builtin) *cobra.Command {
	var l listenFlags
	var e shutdownFlags
	cmd := &cobra.Command{Use: b.Name, Short: "Serve " + b.Summary, Args: cobra.NoArgs}
	if b.Help != "" {
		cmd.Long = cmd.Short + ".\n\n" + b.Help
	}
	options := addOptions(cmd.Flags(), b.Options, shortFlags[b.Name])
	var s settings
	var flags []func(*cobra.Command)
	switch {
	case b.Commands:
		flags = append(flags, s.limits.add, s.addConfig, p.sandboxFlags(&s.sandbox))
	case hasOption(b, sandboxOption):
		flags = append(flags, p.engineFlags(&s.sandbox))
	}
	if option := optionArgs[b.Name]; option != "" {
		cmd.Use, cmd.Args = b.Name+" ["+strings.ToUpper(option)+"...]", cobra.ArbitraryArgs
		cmd.PreRunE = func(_ *cobra.Command, args []string) error { return setAll(cmd.Flags(), option, args) }
	}
	return command(cmd, e.wrap(p.stderr, func(ctx context.Context, end shutdown) (err error) {
		if err := l.resolve(p); err != nil {
			return err
		}
		if b.Commands {
			if err := p.addCommands(ctx, &s); err != nil {
				return err
			}
		}
		s.limits.SpoolDir = p.scratchDir()
		lines := p.newPipes(ctx, s, l.address == "")
		defer func() { err = errors.Join(err, lines.close()) }()
		contain := func(dir string) (shell.Runner, error) { return docker.OpenCommands(ctx, s.sandbox.engine(), dir) } // an engine is needed
		host := servers.Host{Remote: l.address != "", Alone: l.address == "", Pipes: lines.start, Contain: contain}
		server, err := openBuiltin(b, options(), l, p.host(s.sandbox, host))
		if err != nil {
			return err
		}
		if server.Begin != nil {
			free := server.Begin()
			defer func() { err = errors.Join(err, free()) }()
		}
		if l.address == "" {
			return p.builtinOnStdio(ctx, server, b.Writes(options()), end)
		}
		return p.serveBuiltin(ctx, l, b.Name, server.Server, end)
	}), append(flags, l.add, e.add)...)
}

// builtinOnStdio serves a built-in server to one client on standard input and output.
func (p *program) builtinOnStdio(ctx context.Context, server *tool.Opened, writes bool, end shutdown) error {
	p.greetTerminal("--listen serves HTTP; mcsh tools call calls its tools")
	var grace time.Duration // of calls that only read
	if writes {
		grace = end.grace
	}
	at := gateway.NewEndpoint(server.Server, gateway.HTTPOptions{})
	at.Answer(server.Info, server.Handlers, grace)
	return p.stdioSession(ctx, server.Server, at, end)
}

// openBuiltin opens a built-in server for the callers that the flags allow.
func openBuiltin(b servers.Builtin, options json.RawMessage, l listenFlags, host servers.Host) (*tool.Opened, error) {
	if host.Remote && !l.auth.enabled() && b.Writes(options) {
		hint, why := authenticate, "there is no authentication"
		if hasOption(b, readOnlyOption) {
			hint += "; or give --read-only"
		}
		if l.noAuth {
			why = "--no-auth is only for servers that change nothing"
		}
		return nil, usageError(hint, "--listen %s: callers can change this machine with %s, and %s", l.address, b.Name, why)
	}
	server, err := b.Open(options, host)
	if err != nil {
		return nil, usageError("mcsh server "+b.Name+" --help shows the flags", "%w", err)
	}
	return server, nil
}

// serveBuiltin serves a built-in server over HTTP.
func (p *program) serveBuiltin(ctx context.Context, l listenFlags, name string, server *mcp.Server, end shutdown) error {
	log, err := observe.NewLog(p.stderr.w, "warn", "console", func(text string) string { return text })
	if err != nil {
		return err
	}
	listeners, err := l.listen()
	if err != nil {
		return err
	}
	at := gateway.NewEndpoint(server, gateway.HTTPOptions{Proxies: l.trusted})
	end.stop = at.Close
	return l.serve(ctx, p, endpoint{
		name: "mcsh server " + name, handler: auth.Unlimited(at.Handler()), endUser: at.EndUser,
		listeners: listeners, connections: newConnections(defaultConnections, defaultAddressConnections, l.trusted), log: log,
	}, end)
}

// A lateRunner opens a runner with the first command, and again after a failure and after Close.
type lateRunner struct {
	open   func(context.Context) (shell.Runner, error)
	turn   chan struct{} // holds one element while somebody opens or closes: a wait for it can end
	runner shell.Runner  // nil before; for the holder of the turn
}

func newLateRunner(open func(context.Context) (shell.Runner, error)) *lateRunner {
	return &lateRunner{open: open, turn: make(chan struct{}, 1)}
}

// Run implements [shell.Runner].
func (r *lateRunner) Run(ctx context.Context, argv, env []string, stdout, stderr io.Writer) (int, error) {
	runner, err := r.opened(ctx)
	switch {
	case ctx.Err() != nil:
		return -1, context.Cause(ctx)
	case err != nil:
		return -1, err
	}
	return runner.Run(ctx, argv, env, stdout, stderr)
}

func (r *lateRunner) opened(ctx context.Context) (shell.Runner, error) {
	select {
	case r.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-r.turn }()
	if r.runner != nil {
		return r.runner, nil
	}
	runner, err := r.open(ctx)
	if err == nil {
		r.runner = runner
	}
	return runner, err
}

// Close implements [shell.Runner].
func (r *lateRunner) Close() error {
	r.turn <- struct{}{}
	defer func() { <-r.turn }()
	runner := r.runner
	if r.runner = nil; runner == nil {
		return nil
	}
	return runner.Close()
}
