package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/mcsh-dev/mcsh/auth"
	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/internal/namedfile"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/observe"
	"github.com/mcsh-dev/mcsh/runs"
	"github.com/mcsh-dev/mcsh/upstream"
	"github.com/mcsh-dev/mcsh/upstream/remote"
)

// observeFlags configure logs, metrics, traces and readiness.
type observeFlags struct {
	noMetrics bool
	metrics   string // an address
	otel      bool
	required  []string

	verbose, logCalls   bool
	logLevel, logFormat string
}

// flags adds the flags. servers completes the names of servers.
func (o *observeFlags) flags(servers completer) func(*cobra.Command) {
	return func(cmd *cobra.Command) {
		f := cmd.Flags()
		f.BoolVarP(&o.verbose, "verbose", "v", false, "log a line per pipeline to standard error: --log-level info")
		f.StringVar(&o.logLevel, "log-level", "", "debug (calls of tools too), info (a line per pipeline), warn or error (default warn)")
		f.StringVar(&o.logFormat, "log-format", "console", "console or json")
		f.BoolVar(&o.logCalls, "log-calls", false, "log calls of tools with level info, not debug")
		f.BoolVar(&o.noMetrics, "no-metrics", false, "serve no /metrics")
		f.StringVar(&o.metrics, "metrics-listen", "", "serve /metrics only on this address, with /readyz and /healthz; works beside stdio too")
		f.BoolVar(&o.otel, "otel", false, "send traces over OTLP/HTTP to the collector of $OTEL_EXPORTER_OTLP_ENDPOINT; the other variables of OpenTelemetry count too")
		completeFlag(cmd, "log-level", "debug", "info", "warn", "error")
		completeFlag(cmd, "log-format", "console", "json")
		f.StringArrayVar(&o.required, "require-server", nil, "server that /readyz requires, started at once: NAME, or * for all (repeatable)")
		withAll := completer(func(ctx context.Context) []string { return append(servers(ctx), "*") })
		_ = cmd.RegisterFlagCompletionFunc("require-server", withAll.complete) // the flag exists
		cmd.MarkFlagsMutuallyExclusive("no-metrics", "metrics-listen")
	}
}

// log writes to standard error, because standard output belongs to the protocol.
func (o *observeFlags) log(p *program, hide func(string) string) (*zap.Logger, error) {
	level := cmp.Or(o.logLevel, "warn")
	if o.logLevel == "" && (o.verbose || o.logCalls) {
		level = "info"
	}
	log, err := observe.NewLog(p.stderr.w, level, o.logFormat, hide)
	if err != nil {
		return nil, usageError("mcsh serve --help shows the flags", "the log: %w", err)
	}
	return log, nil
}

// hider removes secrets from the log once the pool knows them.
type hider struct{ atomic.Pointer[upstream.Pool] }

func (h *hider) hide(text string) string {
	if pool := h.Load(); pool != nil {
		return pool.Hide(text)
	}
	return text
}

// A monitor collects the metrics, traces and readiness of a gateway.
type monitor struct {
	flags   observeFlags
	metrics *observe.Metrics // also without a reader: counters are cheap
	watch   *observe.Watch
	tracer  *observe.Tracer // nil: no traces
	parts   *dependencies

	authenticated bool                       // callers must authenticate
	guard         atomic.Pointer[auth.Guard] // nil: not started yet

	end  shutdown
	life context.Context // ends with the drain
	stop func()          // closes the listener of --metrics-listen
}

// newMonitor returns the monitor of the parts. The caller must close it.
func (p *program) newMonitor(ctx context.Context, o observeFlags, l listenFlags, x *dependencies, kept *runs.Store, end shutdown, log *zap.Logger) (*monitor, error) {
	m := &monitor{flags: o, parts: x, life: ctx, stop: func() {}, end: end, authenticated: l.auth.enabled()}
	probes := observe.Probes{Servers: m.servers, Workers: m.workers, Memory: x.shares.used}
	if kept != nil {
		probes.Kept = kept.Usage
	}
	m.metrics = observe.NewMetrics(observe.Build{Version: version(), Revision: buildInfo().Revision, Go: runtime.Version()}, probes)
	if p.stores.metrics != nil {
		m.metrics.AddStore(p.stores.metrics)
	}
	var err error
	if m.tracer, err = p.tracer(ctx, o, log); err != nil {
		return nil, err
	}
	level := zapcore.DebugLevel
	if o.logCalls {
		level = zapcore.InfoLevel
	}
	m.watch = &observe.Watch{Metrics: m.metrics, Tracer: m.tracer, Calls: log, Level: level, Own: gateway.ToolNames()}
	if o.metrics != "" {
		if err := m.listen(p, l); err != nil {
			m.close(ctx, log)
			return nil, err
		}
	}
	m.conditions() // wakes the required servers
	return m, nil
}

// scrapeWait bounds a request to the listener for metrics.
const scrapeWait = 30 * time.Second

// listen serves the metrics at their own address until close.
func (m *monitor) listen(p *program, as listenFlags) error {
	if _, _, err := net.SplitHostPort(m.flags.metrics); err != nil {
		return usageError("give host and port, such as --metrics-listen 127.0.0.1:9090", "--metrics-listen %q: %w", m.flags.metrics, err)
	}
	listener, err := listenOn(m.flags.metrics)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.Handle("GET /readyz", m.ready())
	mux.Handle("GET /metrics", m.metrics.Handler())
	names := listenFlags{address: m.flags.metrics, hosts: as.hosts}
	server := &http.Server{Handler: names.checkHosts(mux), ReadHeaderTimeout: headerTimeout, ReadTimeout: scrapeWait, WriteTimeout: scrapeWait, IdleTimeout: idleTimeout}
	served := make(chan struct{})
	go func() {
		defer close(served)
		server.Serve(listener) // until stop
	}()
	m.stop = func() { server.Close(); <-served }
	fmt.Fprintf(p.stderr, "metrics are at http://%s/metrics\n", listener.Addr())
	return nil
}

// routes adds readiness and metrics to the paths of h.
func (m *monitor) routes(h http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", h)
	mux.Handle("GET /readyz", m.ready())
	if !m.flags.noMetrics && m.flags.metrics == "" {
		mux.Handle("GET /metrics", auth.Unlimited(m.metrics.Handler()))
	}
	return mux
}

// ready serves /readyz.
func (m *monitor) ready() http.Handler { return m.end.drain.asking(observe.Ready(m.conditions)) }

// close sends the remaining traces and closes the listener.
func (m *monitor) close(ctx context.Context, log *zap.Logger) {
	if m.tracer != nil {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), traceWait)
		defer cancel()
		if err := m.tracer.Close(closing); err != nil {
			log.Warn("traces are lost", zap.Error(fmt.Errorf("sending the last traces: %w", err)))
		}
	}
	m.stop()
}

// upStates are the states of a server that can serve, now or on demand.
var upStates = []string{upstream.StatusReady, upstream.StatusDegraded, upstream.StatusResting}

func (m *monitor) servers() []observe.Server {
	return convert(m.parts.upstream.Statuses(), func(s upstream.ServerStatus) observe.Server {
		return observe.Server{Name: s.Server, State: s.Status, Up: slices.Contains(upStates, s.Status)}
	})
}

// conditions returns what the gateway needs in order to serve. It wakes required servers that are down.
func (m *monitor) conditions() []observe.Condition {
	list := []observe.Condition{{Name: "gateway", Ready: true, State: "serving"}, m.sandboxCondition()}
	switch {
	case m.life.Err() != nil:
		list[0] = observe.Condition{Name: "gateway", State: "stopping", Why: "it is shutting down"}
	case m.end.ending():
		list[0] = observe.Condition{Name: "gateway", State: "draining", Why: "it ends soon, so send new requests elsewhere"}
	}
	if m.authenticated {
		callers := observe.Condition{Name: "callers", Ready: true, State: "known"}
		if g := m.guard.Load(); g == nil || g.Ready() != nil {
			callers = observe.Condition{Name: "callers", State: "unknown", Why: "the issuer of their tokens or its keys are not available, so no caller can authenticate; the log says why"}
		}
		list = append(list, callers)
	}
	statuses := m.parts.upstream.Statuses()
	for _, name := range m.flags.required {
		known := name == "*"
		for _, s := range statuses {
			if name == s.Server || name == "*" && s.Status != upstream.StatusDisabled {
				known, list = true, append(list, m.required(s))
			}
		}
		if !known {
			list = append(list, observe.Condition{Name: "server " + name, State: "unknown", Why: "no configuration names it, and it was not found"})
		}
	}
	return list
}

// required reports whether a server serves. For a failure it shows only the code, because the server writes the text.
func (m *monitor) required(s upstream.ServerStatus) observe.Condition {
	c := observe.Condition{Name: "server " + s.Server, Ready: slices.Contains(upStates, s.Status), State: s.Status}
	if c.Ready || m.life.Err() != nil {
		return c
	}
	m.parts.upstream.Wake(s.Server)
	switch c.Why = "it has not answered yet"; s.Status {
	case upstream.StatusDisabled:
		c.Why = "an operator has disabled it"
	case upstream.StatusFailed:
		c.Why = fmt.Sprintf("%s; mcsh doctor and list_all_tools say more", s.Code)
	}
	return c
}

// sandboxCondition reports whether the first start of the sandbox has ended. A failed one is ready too, because other
// stages work.
func (m *monitor) sandboxCondition() observe.Condition {
	switch active, err := m.parts.sandbox.state(); {
	case active != nil:
		return observe.Condition{Name: "sandbox", Ready: true, State: active.pool.Report().Backend}
	case err != nil:
		return observe.Condition{Name: "sandbox", Ready: true, State: "none"}
	}
	return observe.Condition{Name: "sandbox", State: "starting", Why: "the backend of commands is starting"}
}

// workers reports the load of the sandbox.
func (m *monitor) workers() observe.Workers {
	if active, _ := m.parts.sandbox.state(); active != nil {
		return observe.Workers(active.pool.Load())
	}
	return observe.Workers{}
}

// traceWait bounds the time to send the last traces.
const traceWait = 5 * time.Second

// tracer returns the tracer; nil: tracing is off.
func (p *program) tracer(ctx context.Context, o observeFlags, log *zap.Logger) (*observe.Tracer, error) {
	const exporter = "OTEL_TRACES_EXPORTER" // the exporter itself reads the other variables
	if !o.otel || p.env[exporter] == "none" || p.env["OTEL_SDK_DISABLED"] == "true" {
		return nil, nil
	}
	if e := p.env[exporter]; e != "" && e != "otlp" {
		return nil, configError("set it to otlp or none", fmt.Errorf("%s=%s: there is no such exporter here", exporter, texts.Fit(e, 40)))
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"} {
		if v := p.env[name]; v != "" && v != "http/protobuf" {
			return nil, configError("set it to http/protobuf, which collectors take on port 4318", fmt.Errorf("%s=%s: traces are sent in no other form", name, texts.Fit(v, 40)))
		}
	}
	if err := p.certificates(); err != nil {
		return nil, err
	}
	tracer, err := observe.NewTracer(ctx, version(), func(err error) { log.Warn("traces are lost", zap.Error(err)) })
	if err != nil {
		return nil, configError("fix the variables OTEL_…, or leave --otel out", err)
	}
	return tracer, nil
}

// certificates checks the files in the exporter's variables. The exporter would block on a pipe, and report a missing
// file only as lost traces.
func (p *program) certificates() error {
	for _, variable := range slices.Sorted(maps.Keys(p.env)) {
		path, named := p.env[variable], strings.HasSuffix(variable, "CERTIFICATE") || strings.HasSuffix(variable, "CLIENT_KEY")
		if path == "" || !named || !strings.HasPrefix(variable, "OTEL_EXPORTER_OTLP_") {
			continue
		}
		if _, err := namedfile.Read(path, remote.MaxPEM); err != nil {
			return configError("give the path of a file in PEM", fmt.Errorf("%s: %w", variable, err))
		}
	}
	return nil
}

// logLevels are the levels of our log for those of servers.
var logLevels = map[string]zapcore.Level{
	"debug": zap.DebugLevel, "info": zap.InfoLevel, "notice": zap.InfoLevel, "warning": zap.WarnLevel,
	"error": zap.ErrorLevel, "critical": zap.ErrorLevel, "alert": zap.ErrorLevel, "emergency": zap.ErrorLevel,
}

// serverLogger returns a function that writes to our log what a server writes to the log of its client.
func serverLogger(log *zap.Logger) func(upstream.LogLine) {
	return func(l upstream.LogLine) {
		fields := []zap.Field{zap.String("server", l.Server), zap.String("text", l.Text)}
		if l.Logger != "" {
			fields = append(fields, zap.String("logger", l.Logger))
		}
		if l.Lost > 0 {
			fields = append(fields, zap.Int64("lost", l.Lost))
		}
		log.Log(logLevels[l.Level], "a server logs", fields...)
	}
}
