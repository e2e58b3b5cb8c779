package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/mcsh-dev/mcsh/auth"
	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/gateway/stdio"
	"github.com/mcsh-dev/mcsh/runs"
	"github.com/mcsh-dev/mcsh/upstream"
)

func (p *program) serveCommand() *cobra.Command {
	var s settings
	var l listenFlags
	var k runs.Options
	var o observeFlags
	var c controlFlags
	var pages consoleFlags
	var e shutdownFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the gateway to MCP clients",
		Long: `Serve the gateway: one MCP endpoint in front of all configured servers, with the tools execute_pipeline,
list_all_tools, get_tool_details and list_available_shell_commands.

Without --listen it serves one client on standard input and output, until the input ends. With --listen it serves
streamable HTTP at /mcp, the groups of the configuration at /mcp/GROUP, and beside them /healthz, /readyz and /metrics
(docs/observability.md). Where a runtime of MCP servers starts it, such as ToolHive, $MCP_TRANSPORT, $MCP_PORT and
$MCP_HOST stand for --listen.`,
		Example: "  mcsh serve --config mcp.json\n  mcsh serve --listen 127.0.0.1:8808\n  mcsh serve --listen 0.0.0.0:8808 --tokens tokens --allow-host mcp.example.com",
		Args:    cobra.NoArgs,
	}
	return command(cmd, e.wrap(p.stderr, func(ctx context.Context, end shutdown) error { return p.serve(ctx, s, l, c, pages, k, o, end) }),
		s.addSources, s.group.add, s.addState, s.addWorkspace, s.limits.add, s.addMemory, p.sandboxFlags(&s.sandbox),
		l.add, c.add, pages.add, addAsking(&s.limits.gateway), addKeep(&k), o.flags(p.serverNames(&s)), e.add, e.drain.add, s.expose.add, s.allowSave.add, s.durable.add)
}

func (p *program) serve(ctx context.Context, s settings, l listenFlags, c controlFlags, pages consoleFlags, k runs.Options, ob observeFlags, end shutdown) (err error) {
	if err := errors.Join(p.setMemory(&s), s.group.resolve(p), l.fromRuntime(p), l.resolve(p), c.resolve(p, &l), pages.resolve(p, &l), checkAsking(s.limits.gateway), s.expose.resolve(p), s.allowSave.resolve(p)); err != nil {
		return err
	}
	ctx, stop := end.drained(ctx, l.address != "")
	defer stop()
	listeners, err := l.listen()
	if err != nil {
		return err
	}
	defer closeAll(listeners)
	var secrets hider
	log, err := ob.log(p, secrets.hide)
	if err != nil {
		return err
	}
	if s.shared, err = s.store.open(ctx, p); err != nil {
		return err
	}
	kept, err := p.openKept(k, s, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeKept(kept)) }()
	s.instance, s.changed = rand.Text(), func(c upstream.Change) { logChange(log, c) }
	s.tools, s.serverLog = logTools(log), serverLogger(log)
	logins := p.newSignIns(ctx, s, &l)
	defer logins.Close()
	if logins.store != nil && l.alone() {
		s.signIns = logins
	}
	parts, err := p.openServing(ctx, s, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, parts.close()) }()
	logins.servers = parts.upstream
	secrets.Store(parts.upstream)
	mon, err := p.newMonitor(ctx, ob, l, parts, kept, end, log)
	if err != nil {
		return err
	}
	defer mon.close(ctx, log)
	x := gatewayParts{nil, parts, mon, logins, kept, listeners, log}
	disconnect, err := p.addGateway(ctx, s, l, &x, end)
	if err != nil {
		return err
	}
	defer disconnect()
	return p.serveGateway(ctx, s, l, c, pages, x, end)
}

// addGateway makes a gateway of its parts. disconnect ends the connection to the engines of durable runs.
func (p *program) addGateway(ctx context.Context, s settings, l listenFlags, x *gatewayParts, end shutdown) (disconnect func(), err error) {
	o := x.parts.gatewayOptions(l.trusted)
	o.Kept, o.Instance, o.Log, o.Watch, o.Grace, o.NameOf = x.kept, s.instance, x.log, x.monitor.watch, cmp.Or(end.grace, -1), auth.NameOf
	o.Group, o.GroupsOf, o.AllowSave = s.group.name, auth.GroupsOf, s.allowSave.value == "yes"
	if disconnect, err = s.durable.connect(ctx, p, s.shared, &o.Durable, x.log); err != nil {
		return nil, err
	}
	if x.gateway, err = s.expose.gateway(ctx, o); err != nil {
		disconnect()
		return nil, err
	}
	return disconnect, nil
}

// gatewayParts are a gateway with its parts.
type gatewayParts struct {
	gateway   *gateway.Gateway
	parts     *dependencies
	monitor   *monitor
	logins    *signIns
	kept      *runs.Store    // nil: outputs are not kept
	listeners []net.Listener // nil: it serves standard input and output
	log       *zap.Logger
}

// serveGateway serves a gateway to its clients, and to programs that control it.
func (p *program) serveGateway(ctx context.Context, s settings, l listenFlags, c controlFlags, pages consoleFlags, x gatewayParts, end shutdown) error {
	greet := func() error { return p.startSandbox(ctx, x.parts.sandbox, s.sandbox.backend, x.log) }
	source := p.controlled(s, x)
	api, err := c.handler(source, x.log)
	if err != nil {
		return err
	}
	console, err := newConsole(ctx, pages, s, source, x)
	if err != nil {
		return err
	}
	defer p.serveControl(s, source, console, x.log)()
	defer followPipelines(ctx, x.parts, x.gateway, x.log)()
	defer work(ctx, x.gateway, x.log)()
	end.stop = x.gateway.Close
	if x.listeners == nil {
		return p.serveOnStdio(ctx, x.gateway, greet, end)
	}
	most := x.parts.limits.withDefaults()
	at := endpoint{
		name: "mcsh", handler: x.monitor.routes(x.gateway.Handler()), pages: x.logins.SignIns, control: api, endUser: x.gateway.EndUser,
		guarded: x.monitor.guard.Store, around: x.monitor.metrics.HTTP,
		listeners: x.listeners, connections: newConnections(most.conns, most.addrConns, l.trusted), log: x.log,
	}
	if pages.listens(&l) && console != nil {
		at.console = console
		at.endUser = func(id string) { x.gateway.EndUser(id); console.EndUser(id) }
	}
	return serveDuring(ctx, greet, func(ctx context.Context) error { return l.serve(ctx, p, at, end) })
}

// openServing assembles the parts of a gateway, and says what its operator should know.
func (p *program) openServing(ctx context.Context, s settings, log *zap.Logger) (*dependencies, error) {
	parts, err := p.open(ctx, ctx, s)
	if err != nil {
		return nil, err
	}
	if err := s.group.check(ctx, parts.upstream, log); err != nil {
		return nil, errors.Join(err, parts.close())
	}
	p.noteLogins(ctx, s)
	return parts, nil
}

// gatewayOptions returns the gateway options of the parts.
func (x *dependencies) gatewayOptions(proxies gateway.Proxies) gateway.Options {
	o := x.limits.gateway
	o.Upstream, o.Sandbox, o.Version, o.Pipelines = x.upstream, x.sandbox, version(), x.saved
	o.Limits, o.Memory = x.limits.Limits, x.shares.results
	o.HTTP.Proxies, o.HTTP.Bodies, o.HTTP.SessionBytes = proxies, x.shares.bodies, x.shares.sessions
	o.AskTimeout = cmp.Or(o.AskTimeout, -1) // 0 asks nobody
	if x.files != nil {
		o.Files = x.files
	}
	return o
}

func closeAll(listeners []net.Listener) {
	for _, l := range listeners {
		l.Close()
	}
}

// serveOnStdio serves the gateway to one client on standard input and output.
func (p *program) serveOnStdio(ctx context.Context, g *gateway.Gateway, greet func() error, end shutdown) error {
	if err := greet(); err != nil {
		return err
	}
	p.greetTerminal("mcsh connect writes the gateway into the configuration of a client; --listen serves HTTP")
	return p.stdioSession(ctx, g.Server(), g, end)
}

// An answerer answers ordinary calls of a server, and closes it.
type answerer interface {
	Direct(ctx context.Context, ss *mcp.ServerSession, message []byte) (*gateway.Call, *jsonrpc.Error)
	Answered(ss *mcp.ServerSession, message []byte) bool
	Close(ctx context.Context) error
}

// stdioSession serves a server to one client on standard input and output.
func (p *program) stdioSession(ctx context.Context, server *mcp.Server, a answerer, end shutdown) error {
	err := stdio.Serve(ctx, stdio.Options{Server: server, In: p.stdin, Out: p.stdout.w, Direct: a.Direct, Answered: a.Answered, Grace: end.begin, Finish: a.Close})
	if ctx.Err() != nil { // a signal ended it, and the grace is over
		return err
	}
	grace, cancel := end.begin()
	defer cancel()
	return errors.Join(err, a.Close(grace))
}

// greetTerminal explains a server that waits on a terminal.
func (p *program) greetTerminal(instead string) {
	if isTerminal(p.stdin) {
		fmt.Fprintf(p.stderr, "mcsh: waiting for messages of an MCP client on standard input, which is a terminal; Ctrl-D ends it\nhint: %s\n", instead)
	}
}

// serveDuring serves while start runs, and stops serving if start fails. Meanwhile it answers requests that do not need
// the result.
func serveDuring(ctx context.Context, start func() error, serve func(context.Context) error) error {
	var startErr, serveErr error
	both, serving := errgroup.WithContext(ctx)
	both.Go(func() error {
		if startErr = start(); ctx.Err() != nil {
			startErr = nil // a signal is no failure
		}
		return startErr
	})
	both.Go(func() error {
		serveErr = serve(serving)
		return serveErr
	})
	_ = both.Wait()
	return errors.Join(startErr, serveErr)
}

// startSandbox starts the sandbox and logs its report. If that fails, the gateway serves the other stages, unless the
// operator named the backend; the next command tries again.
func (p *program) startSandbox(ctx context.Context, l *lazySandbox, backend string, log *zap.Logger) error {
	active, err := l.get(ctx)
	switch {
	case err == nil:
		r := active.report()
		log.Info("commands run in the sandbox: " + sandboxLine(r))
		for _, note := range r.Notes {
			log.Info(note)
		}
	case backend != backendAuto && backend != backendOff:
		return configError("mcsh doctor shows what is missing; --sandbox auto takes any backend that works", err)
	default:
		fmt.Fprintf(p.stderr, "mcsh: command stages are refused: %v\n", err)
	}
	return nil
}

// logChange logs a change of the servers.
func logChange(log *zap.Logger, c upstream.Change) {
	if c.Err != nil {
		log.Warn("the configuration has changed and is wrong; the one before is in use", zap.Error(c.Err))
	}
	if c.Groups {
		log.Info("the groups of servers have changed")
	}
	if c.Err == nil && !c.Groups || len(c.Added)+len(c.Removed)+len(c.Restarted) > 0 {
		log.Info("the servers have changed", zap.Strings("added", c.Added), zap.Strings("removed", c.Removed), zap.Strings("restarted", c.Restarted))
	}
}

// shutdownFlags configure the shutdown of a server.
type shutdownFlags struct {
	grace time.Duration
	drain drain
}

func (e *shutdownFlags) add(cmd *cobra.Command) {
	cmd.Flags().DurationVar(&e.grace, "grace", gateway.DefaultGrace,
		"time for running calls to finish after SIGTERM, SIGINT or SIGHUP, and after their client is lost; a second signal cancels them")
}

// wrap returns a command function that runs serve with a shutdown. It writes to w what the first signal does.
func (e *shutdownFlags) wrap(w io.Writer, serve func(context.Context, shutdown) error) func(context.Context, []string) error {
	return func(ctx context.Context, _ []string) error {
		if e.grace < 0 {
			return usageError("--grace 0 cancels at once", "--grace %v is below zero", e.grace)
		}
		if e.drain.time < 0 {
			return usageError("--drain 0 takes no new requests after the signal", "--drain %v is below zero", e.drain.time)
		}
		forced, stop := secondSignal(ctx, func() { fmt.Fprintln(w, e.notice()) })
		defer stop()
		return serve(ctx, shutdown{grace: e.grace, drain: &e.drain, signalled: ctx, forced: forced})
	}
}

// notice says what the first signal does.
func (e *shutdownFlags) notice() string {
	calls := fmt.Sprintf("running calls may finish within %v; a second signal cancels them", e.grace)
	if e.grace == 0 {
		calls = "running calls are cancelled"
	}
	if wait := e.drain.length(); wait > 0 {
		return fmt.Sprintf("draining: /readyz is 503, and new requests are answered for %v; then %s", wait, calls)
	}
	return "ending: " + calls
}

// secondSignal returns a context that ends with the second of the [endSignals]; the third ends the process. It calls
// first after the first signal, because the kernel may merge or reorder pending signals. A SIGHUP after another signal
// does not count: a closing terminal sends it twice.
func secondSignal(ctx context.Context, first func()) (context.Context, context.CancelFunc) {
	forced, cancel := context.WithCancel(context.WithoutCancel(ctx))
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, endSignals()...)
	go func() {
		defer signal.Stop(signals)
		for n := 0; n < 2; {
			select {
			case s := <-signals:
				if n == 0 {
					first()
				}
				if n == 0 || s != syscall.SIGHUP {
					n++
				}
			case <-forced.Done():
				return
			}
		}
		cancel()
	}()
	return forced, cancel
}

// A shutdown describes how a server ends.
type shutdown struct {
	grace     time.Duration
	drain     *drain
	signalled context.Context // done after the first signal; nil: the server does not say that it ends
	forced    context.Context // done when a second signal cuts drain and grace short

	// stop stops the server: it accepts nothing new, and calls in flight may finish until ctx is done. nil only closes
	// the session.
	stop func(ctx context.Context) error
}

// begin starts the grace and returns its context.
func (e shutdown) begin() (context.Context, context.CancelFunc) {
	return context.WithTimeout(e.forced, e.grace)
}
