package main

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/gateway/stdio"
	"github.com/mcsh-dev/mcsh/servers"
)

const serverLong = `Serve one of the built-in MCP servers by itself, on standard input and output or, with --listen, over
streamable HTTP. In a configuration the same server is {"builtin": "NAME"}, with its options beside.`

func (p *program) serverCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "server",
		Short: "Serve a built-in MCP server",
		Long:  serverLong,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return usageError("mcsh server --help lists them", "which built-in server?")
		},
	}
	for _, b := range servers.Builtins() {
		cmd.AddCommand(p.builtinCommand(b))
	}
	return cmd
}

// builtinCommand makes the command of one row of the table.
func (p *program) builtinCommand(b servers.Builtin) *cobra.Command {
	var l listenFlags
	var e endFlags
	cmd := &cobra.Command{Use: b.Name, Short: "Serve " + b.Summary, Args: cobra.NoArgs}
	options := addOptions(cmd.Flags(), b.Options)
	l.add(cmd)
	e.add(cmd)
	cmd.RunE = work(e.watched(p.stderr, func(ctx context.Context, end ending) error {
		server, err := b.Open(options())
		if err != nil {
			return usageError(cmd.CommandPath()+" --help shows the flags", "%w", err)
		}
		return p.serveBuiltin(ctx, b.Name, server, l, end)
	}))
	return cmd
}

func (p *program) serveBuiltin(ctx context.Context, name string, server *mcp.Server, l listenFlags, end ending) error {
	if l.address == "" {
		return stdio.Serve(ctx, stdio.Options{Server: server, In: p.stdin, Out: p.stdout, Grace: end.begin, Finish: end.finish})
	}
	listeners, err := l.listen()
	if err != nil {
		return err
	}
	calls, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	server.AddReceivingMiddleware(gateway.EndWith(calls))
	p.greet("mcsh server "+name, endpointOf(listeners[0].Addr()))
	end.finish = func(ending context.Context) error {
		defer context.AfterFunc(ending, cancel)() // a session is not closed before its calls have ended
		for session := range server.Sessions() {
			session.Close()
		}
		return nil
	}
	return serveHTTP(ctx, listeners, l.checked(p, gateway.Handler(server)), end)
}
