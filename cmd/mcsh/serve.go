package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/mcsh-dev/mcsh/auth"
	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/gateway/stdio"
	"github.com/mcsh-dev/mcsh/upstream"
)

const serveLong = `Serve the gateway: one MCP endpoint in front of all configured servers, with the tools execute_pipeline,
list_all_tools, get_tool_details and list_available_shell_commands.

On standard input and output it ends with its input. With --listen it serves streamable HTTP at /mcp, /healthz, /readyz
and /metrics (docs/observability.md).
Without flags it does what the variables of a runtime of MCP servers say: $MCP_TRANSPORT, $MCP_PORT, $MCP_HOST.`

func (p *program) serveCommand() *cobra.Command {
	var s settings
	var l listenFlags
	var k keepFlags
	var o observeFlags
	var e endFlags
	cmd := &cobra.Command{
		Use:     "serve",
		Short:   "Serve the gateway to MCP clients",
		Long:    serveLong,
		Example: "  mcsh serve --config mcp.json\n  mcsh serve --listen 127.0.0.1:8808\n  mcsh serve --listen 0.0.0.0:8808 --tokens tokens --allow-host mcp.example.com",
		Args:    cobra.NoArgs,
	}
	cmd.RunE = work(e.watched(p.stderr, func(ctx context.Context, end ending) error { return p.serve(ctx, s, l, k, o, end) }))
	s.addSources(cmd)
	s.addState(cmd)
	s.addWorkspace(cmd)
	s.limits.add(cmd)
	p.addSandbox(cmd, &s.sandbox)
	l.add(cmd)
	l.auth.add(cmd)
	k.add(cmd)
	o.add(cmd)
	e.add(cmd)
	return cmd
}

func (p *program) serve(ctx context.Context, s settings, l listenFlags, k keepFlags, ob observeFlags, end ending) (err error) {
	kept, err := k.open(p.scratchDir())
	if err != nil {
		return err
	}
	if kept != nil {
		defer kept.Close()
	}
	if err := errors.Join(l.fromRuntime(p), l.auth.settle(p, &l)); err != nil {
		return err
	}
	var listeners []net.Listener
	if l.address != "" {
		if listeners, err = l.listen(); err != nil {
			return err
		}
		defer closeAll(listeners)
	}
	var secrets hider
	log, err := ob.log(p, secrets.hide)
	if err != nil {
		return err
	}
	s.instance = rand.Text()
	s.told = func(c upstream.Change) { logChange(log, c) }
	parts, err := p.open(ctx, ctx, s, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, parts.close()) }()
	secrets.pool.Store(parts.upstream)
	seen, err := p.look(ctx, ob, l, parts, kept, log)
	if err != nil {
		return err
	}
	defer func() { seen.end(ctx, log) }()
	o := gateway.Options{
		Upstream: parts.upstream, Kept: kept, Instance: s.instance, Sandbox: parts.sandbox, Version: version(), Log: log, Watch: seen.watch,
		Limits: parts.limits.Limits, Runs: parts.limits.runs, CallerRuns: parts.limits.callerRuns, Grace: end.gatewayGrace(), NameOf: auth.NameOf,
	}
	if parts.files != nil {
		o.Files = parts.files
	}
	g := gateway.New(o)
	greet := func() error { return p.greetSandbox(ctx, parts.sandbox, s.sandbox.backend, log) }
	end.finish = g.Close
	if listeners == nil {
		return p.serveOnStdio(ctx, g, greet, end)
	}
	return beside(ctx, greet, func(ctx context.Context) error { return p.serveGateway(ctx, listeners, l, g, seen, log, end) })
}

func closeAll(listeners []net.Listener) {
	for _, l := range listeners {
		l.Close()
	}
}

// serveGateway serves the gateway over HTTP, to those who may call it.
func (p *program) serveGateway(ctx context.Context, listeners []net.Listener, l listenFlags, g *gateway.Gateway, seen *lookout, log *zap.Logger, end ending) error {
	following, stop := context.WithCancel(ctx)
	guard, wait, err := l.auth.guard(following, log, g.EndUser)
	if err != nil {
		stop()
		return err
	}
	defer wait()
	defer stop()
	h := seen.routes(g.Handler())
	if guard != nil {
		seen.callers.guard.Store(guard)
		h = guard.Protect(h)
	}
	p.greet("mcsh", endpointOf(listeners[0].Addr()))
	if warning := l.auth.openly(listeners[0].Addr()); warning != "" && !l.contained {
		log.Warn(warning)
	}
	return serveHTTP(ctx, listeners, seen.metrics.HTTP(l.checked(p, h)), end)
}

// serveOnStdio serves the gateway to the one client at the other end of the pipes.
func (p *program) serveOnStdio(ctx context.Context, g *gateway.Gateway, greet func() error, end ending) error {
	if err := greet(); err != nil {
		return err
	}
	err := stdio.Serve(ctx, stdio.Options{
		Server: g.Server(), In: p.stdin, Out: p.stdout, Answerer: g, Grace: end.begin, Finish: end.finish,
	})
	if ctx.Err() != nil { // the grace of a signal is over
		return err
	}
	grace, cancel := end.begin()
	defer cancel()
	return errors.Join(err, g.Close(grace))
}

// beside serves while something starts, which ends the serving if it fails: until then requests are answered that do
// not need it, and others learn that it is on its way.
func beside(ctx context.Context, start func() error, serve func(context.Context) error) error {
	serving, stop := context.WithCancel(ctx)
	defer stop()
	failed := make(chan error, 1)
	go func() {
		err := start()
		if err != nil && ctx.Err() == nil {
			stop()
		}
		failed <- err
	}()
	err := serve(serving)
	if started := <-failed; ctx.Err() == nil {
		return errors.Join(started, err)
	}
	return err
}

// greetSandbox starts the sandbox and says what commands run in. Without one the gateway serves the other stages, unless
// a backend was asked for by name; it tries again when a command comes.
func (p *program) greetSandbox(ctx context.Context, l *lateSandbox, backend string, log *zap.Logger) error {
	r, err := l.describe(ctx)
	switch {
	case err == nil:
		log.Info("commands run in the sandbox: " + sandboxLine(r))
		for _, note := range r.Notes {
			log.Warn(note)
		}
	case backend != backendAuto && backend != backendOff:
		return configError("mcsh doctor shows what is missing; --sandbox auto takes what there is", err)
	default:
		fmt.Fprintf(p.stderr, "mcsh: command stages are refused: %v\n", err)
	}
	return nil
}

// logChange tells what has become of the servers when one of their sources changed.
func logChange(log *zap.Logger, c upstream.Change) {
	if c.Err != nil {
		log.Warn("the configuration has changed and is wrong; the one before is in use", zap.Error(c.Err))
	}
	if c.Err == nil || len(c.Added)+len(c.Removed)+len(c.Restarted) > 0 {
		log.Info("the servers have changed", zap.Strings("added", c.Added), zap.Strings("removed", c.Removed), zap.Strings("restarted", c.Restarted))
	}
}
