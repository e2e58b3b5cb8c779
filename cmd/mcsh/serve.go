package main

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/mcsh-dev/mcsh/gateway"
)

const serveLong = `Serve the gateway: one MCP endpoint in front of all configured servers, with the tools execute_pipeline,
list_all_tools, get_tool_details and list_available_shell_commands.

On standard input and output it ends with its input. With --listen it serves streamable HTTP at /mcp, and /healthz.`

func (p *program) serveCommand() *cobra.Command {
	var s settings
	var l listenFlags
	var verbose bool
	cmd := &cobra.Command{
		Use:     "serve",
		Short:   "Serve the gateway to MCP clients",
		Long:    serveLong,
		Example: "  mcsh serve --config mcp.json\n  mcsh serve --listen 127.0.0.1:8808",
		Args:    cobra.NoArgs,
		RunE:    work(func(ctx context.Context, _ []string) error { return p.serve(ctx, s, l, verbose) }),
	}
	s.addSources(cmd)
	s.addBackends(cmd)
	l.add(cmd)
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "log a line per pipeline to standard error")
	return cmd
}

func (p *program) serve(ctx context.Context, s settings, l listenFlags, verbose bool) (err error) {
	var listener net.Listener
	if l.address != "" {
		if listener, err = l.listen(); err != nil {
			return err
		}
		defer listener.Close()
	}
	parts, err := p.open(ctx, s, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, parts.close()) }()
	o := gateway.Options{Upstream: parts.upstream, Version: version(), Log: p.log(verbose)}
	if o.Sandbox, err = parts.sandbox.get(); err != nil {
		if s.backend != backendAuto && !errors.Is(err, errSandboxOff) {
			return configError("mcsh commands shows what is missing; --sandbox auto serves without commands", err)
		}
		fmt.Fprintf(p.stderr, "mcsh: command stages are refused: %v\n", err)
	}
	g := gateway.New(o)
	if listener == nil {
		err = p.serveStdio(ctx, g.Server())
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
		defer cancel()
		return errors.Join(err, g.Close(ending))
	}
	p.greet("mcsh", endpointOf(listener.Addr()))
	return serveHTTP(ctx, listener, g.Handler(), g.Close)
}

// log writes to standard error: standard output belongs to the protocol.
func (p *program) log(verbose bool) *zap.Logger {
	level := zapcore.WarnLevel
	if verbose {
		level = zapcore.InfoLevel
	}
	encoder := zap.NewProductionEncoderConfig()
	encoder.EncodeTime = zapcore.ISO8601TimeEncoder
	return zap.New(zapcore.NewCore(zapcore.NewConsoleEncoder(encoder), zapcore.Lock(zapcore.AddSync(p.stderr)), level))
}
