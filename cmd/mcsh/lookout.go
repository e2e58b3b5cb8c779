package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/observe"
	"github.com/mcsh-dev/mcsh/runs"
)

// A lookout is what a gateway is seen by.
type lookout struct {
	flags   observeFlags
	metrics *observe.Metrics // also where nobody may read them: the counters cost next to nothing
	watch   *observe.Watch
	tracer  *observe.Tracer // nil: nothing is traced
	sandbox sandboxStanding
	callers callersStanding
	parts   *parts
	life    context.Context
	served  chan struct{} // closed when the listener of its own is; nil: there is none
	server  *http.Server
}

// look makes the lookout of the parts. It has to be closed.
func (p *program) look(ctx context.Context, o observeFlags, l listenFlags, x *parts, kept *runs.Store, log *zap.Logger) (*lookout, error) {
	out := &lookout{flags: o, parts: x, life: ctx, callers: callersStanding{asked: l.auth.asks()}}
	x.sandbox.start = out.sandbox.noting(x.sandbox.start)
	looks := observe.Looks{Servers: out.servers, Workers: out.sandbox.workers}
	if kept != nil {
		looks.Kept = kept.Usage
	}
	out.metrics = observe.NewMetrics(observe.Build{Version: version(), Revision: build().Revision, Go: runtime.Version()}, looks)
	var err error
	if out.tracer, err = p.tracer(ctx, o, log); err != nil {
		return nil, err
	}
	level := zapcore.DebugLevel
	if o.logCalls {
		level = zapcore.InfoLevel
	}
	out.watch = observe.NewWatch(observe.WatchOptions{
		Metrics: out.metrics, Tracer: out.tracer, Calls: log, Level: level, Tools: gateway.ToolNames(),
	})
	if o.metrics != "" {
		if err := out.listen(p, l); err != nil {
			return nil, errors.Join(err, out.close(ctx))
		}
	}
	out.conditions() // wakes the servers that are required
	return out, nil
}

// scrapeWait bounds a request of the listener for metrics, whose answers are short.
const scrapeWait = 30 * time.Second

// listen serves what there is to see on an address of its own, to the end.
func (l *lookout) listen(p *program, as listenFlags) error {
	if _, _, err := net.SplitHostPort(l.flags.metrics); err != nil {
		return usageError("give host and port, such as --metrics-listen 127.0.0.1:9090", "--metrics-listen %q: %w", l.flags.metrics, err)
	}
	listener, err := listenOn(l.flags.metrics)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.Handle("GET /readyz", observe.Ready(l.conditions))
	mux.Handle("GET /metrics", l.metrics.Handler())
	names := listenFlags{address: l.flags.metrics, hosts: as.hosts}
	l.server = &http.Server{Handler: names.checked(p, mux), ReadHeaderTimeout: headerTimeout, ReadTimeout: scrapeWait, WriteTimeout: scrapeWait, IdleTimeout: idleTimeout}
	l.served = make(chan struct{})
	go func() {
		defer close(l.served)
		l.server.Serve(listener) // until it is closed
	}()
	fmt.Fprintf(p.stderr, "metrics are at http://%s/metrics\n", listener.Addr())
	return nil
}

// routes serves what there is to see beside what h serves.
func (l *lookout) routes(h http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", h)
	mux.Handle("GET /readyz", observe.Ready(l.conditions))
	if !l.flags.noMetrics && l.flags.metrics == "" {
		mux.Handle("GET /metrics", l.metrics.Handler())
	}
	return mux
}

// end closes the lookout when a gateway has ended.
func (l *lookout) end(ctx context.Context, log *zap.Logger) {
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), traceWait)
	defer cancel()
	if err := l.close(ending); err != nil {
		log.Warn("traces are lost", zap.Error(err))
	}
}

// close sends the traces that are left, until ctx is done, and ends the listener.
func (l *lookout) close(ctx context.Context) error {
	var err error
	if l.tracer != nil {
		if err = l.tracer.Close(ctx); err != nil {
			err = fmt.Errorf("sending the last traces: %w", err)
		}
	}
	if l.server != nil {
		l.server.Close()
		<-l.served
	}
	return err
}
