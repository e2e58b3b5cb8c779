package main

import (
	"sync/atomic"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/mcsh-dev/mcsh/observe"
	"github.com/mcsh-dev/mcsh/upstream"
)

// observeFlags say what those who run a gateway get to see of it.
type observeFlags struct {
	noMetrics bool
	metrics   string // an address
	otel      bool
	required  []string

	verbose, logCalls   bool
	logLevel, logFormat string
}

func (o *observeFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVarP(&o.verbose, "verbose", "v", false, "log a line per pipeline to standard error: --log-level info")
	f.StringVar(&o.logLevel, "log-level", "", "debug (calls of tools too), info (a line per pipeline), warn or error (default warn)")
	f.StringVar(&o.logFormat, "log-format", "console", "console or json")
	f.BoolVar(&o.logCalls, "log-calls", false, "log calls of tools with level info, not debug")
	f.BoolVar(&o.noMetrics, "no-metrics", false, "serve no /metrics")
	f.StringVar(&o.metrics, "metrics-listen", "", "serve /metrics, /readyz and /healthz on this address and /metrics on no other, also beside stdio")
	f.BoolVar(&o.otel, "otel", false, "send traces to a collector over OTLP/HTTP, as $OTEL_EXPORTER_OTLP_ENDPOINT and the other variables of OpenTelemetry say")
	f.StringArrayVar(&o.required, "require-server", nil, "server without which /readyz does not say ready, started at once: NAME, or * for all (repeatable)")
	cmd.MarkFlagsMutuallyExclusive("no-metrics", "metrics-listen")
}

// log writes to standard error: standard output belongs to the protocol.
func (o *observeFlags) log(p *program, hide func(string) string) (*zap.Logger, error) {
	level := o.logLevel
	switch {
	case level == "" && (o.verbose || o.logCalls):
		level = "info"
	case level == "":
		level = "warn"
	}
	log, err := observe.NewLog(p.stderr, observe.LogOptions{Level: level, Format: o.logFormat, Hide: hide})
	if err != nil {
		return nil, usageError("mcsh serve --help shows the flags", "the log: %w", err)
	}
	return log, nil
}

// hider takes secrets out of the log, as soon as they are known.
type hider struct{ pool atomic.Pointer[upstream.Pool] }

func (h *hider) hide(text string) string {
	if pool := h.pool.Load(); pool != nil {
		return pool.Hide(text)
	}
	return text
}
