package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/mcsh-dev/mcsh/internal/namedfile"
	"github.com/mcsh-dev/mcsh/observe"
	"github.com/mcsh-dev/mcsh/upstream/remote"
)

// Variables of OpenTelemetry that are read here; all others are read by its exporter.
const (
	otelProtocolVariable = "OTEL_EXPORTER_OTLP_PROTOCOL"
	otelTracesProtocol   = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"
	otelExporterVariable = "OTEL_TRACES_EXPORTER"
	otelDisabledVariable = "OTEL_SDK_DISABLED"
)

// traceWait is how long the last traces may take, beside the time that requests have had.
const traceWait = 5 * time.Second

// tracer makes what sends traces, if that is asked for.
func (p *program) tracer(ctx context.Context, o observeFlags, log *zap.Logger) (*observe.Tracer, error) {
	if !o.otel || p.env[otelExporterVariable] == "none" || p.env[otelDisabledVariable] == "true" {
		return nil, nil
	}
	if e := p.env[otelExporterVariable]; e != "" && e != "otlp" {
		return nil, configError("set it to otlp or none", fmt.Errorf("%s=%s: there is no such exporter here", otelExporterVariable, cut(e, 40)))
	}
	for _, name := range []string{otelProtocolVariable, otelTracesProtocol} {
		if v := p.env[name]; v != "" && v != "http/protobuf" {
			return nil, configError("set it to http/protobuf, which collectors take on port 4318", fmt.Errorf("%s=%s: traces are sent in no other form", name, cut(v, 40)))
		}
	}
	if err := p.certificates(); err != nil {
		return nil, err
	}
	tracer, err := observe.NewTracer(ctx, version(), func(err error) { log.Warn("traces are lost", zap.Error(err)) })
	if err != nil {
		return nil, configError("mend the variables OTEL_…, or leave --otel out", err)
	}
	return tracer, nil
}

// certificates checks the files that the variables of the exporter name. It would wait for a pipe, and say of one that is
// not there only that traces are lost.
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
