package observe

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync/atomic"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
)

// A Tracer sends spans of runs, stages and calls of tools to a collector over OTLP/HTTP. The environment variables of
// OpenTelemetry configure it: OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_TRACES_SAMPLER and so on.
type Tracer struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
}

// NewTracer returns a tracer. It calls failed when spans cannot be sent and are lost.
func NewTracer(ctx context.Context, version string, failed func(error)) (*Tracer, error) {
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("the exporter of traces: %w", err)
	}
	// The arguments of the process are left out: they can hold secrets.
	about, err := resource.New(ctx, resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", "mcsh"), attribute.String("service.version", version)),
		resource.WithFromEnv())
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, errors.Join(fmt.Errorf("the variables of OpenTelemetry: %w", err), exporter.Shutdown(ctx))
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { failed(errors.New(texts.Cut(err.Error(), maxFailure))) }))
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about))
	return &Tracer{provider, provider.Tracer("github.com/mcsh-dev/mcsh", trace.WithInstrumentationVersion(version))}, nil
}

// maxFailure is the number of bytes shown of an exporter's error, which holds the whole answer of the collector.
const maxFailure = 1000

// Close sends the remaining spans, until ctx is done.
func (t *Tracer) Close(ctx context.Context) error { return t.provider.Shutdown(ctx) }

// maxSpans bounds the spans of calls of one run: a pipeline may make a hundred thousand calls.
const maxSpans = 1000

// spansKey is the key of the number of call spans in the context of a run.
type spansKey struct{}

// run begins the span of a run in its caller's trace, and traces its stages.
func (t *Tracer) run(ctx context.Context, request, session string, o stages.RunOptions) (context.Context, stages.RunOptions, func(stages.Report, error)) {
	ctx, span := t.served(ctx, request, session, "execute_pipeline", o.Trace)
	span.SetAttributes(attribute.Bool("mcsh.dry_run", o.DryRun))
	var count atomic.Int64
	ctx = context.WithValue(ctx, spansKey{}, &count)
	o.Trace = within(ctx, o.Trace)
	o.Stage = t.stage
	return ctx, o, func(r stages.Report, err error) {
		span.SetAttributes(attribute.Int("mcsh.stages", len(r.Stages)), attribute.Int64("mcsh.tool_calls", r.AllCalls()))
		if left := count.Load() - maxSpans; left > 0 {
			span.SetAttributes(attribute.Int64("mcsh.tool_calls.untraced", left))
		}
		end(span, err)
	}
}

// exposed begins the span of a call of a server's tool by a name of its own, in its caller's trace.
func (t *Tracer) exposed(ctx context.Context, request, session, name string, outer stages.Trace) (context.Context, stages.Trace, func(error)) {
	ctx, span := t.served(ctx, request, session, clip(name), outer)
	return ctx, within(ctx, outer), func(err error) { end(span, err) }
}

// served begins the span of a call that a client makes.
func (t *Tracer) served(ctx context.Context, request, session, name string, outer stages.Trace) (context.Context, trace.Span) {
	ctx = propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": outer.Parent, "tracestate": outer.State})
	ctx, span := t.tracer.Start(ctx, "tools/call "+name, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
		attribute.String("mcp.method.name", "tools/call"),
		attribute.String("gen_ai.operation.name", "execute_tool"),
		attribute.String("gen_ai.tool.name", name),
		attribute.String("mcsh.request.id", request),
	))
	if session != "" {
		span.SetAttributes(attribute.String("mcp.session.id", nameOfSession(session)))
	}
	return ctx, span
}

// nameOfSession hashes the id of a session, since the id itself gives access to the session.
func nameOfSession(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:8])
}

// stage begins the span of a stage, or of a chain of commands in the sandbox.
func (t *Tracer) stage(ctx context.Context, place stages.Place, kind string, commands []string) (context.Context, func(error)) {
	name := "stage " + kind
	attributes := []attribute.KeyValue{attribute.String("mcsh.stage", place.Numbers())}
	if len(commands) > 0 {
		name = "sandbox chain"
		attributes = append(attributes, attribute.StringSlice("mcsh.commands", commands))
	}
	ctx, span := t.tracer.Start(ctx, name, trace.WithAttributes(attributes...))
	return ctx, func(err error) { end(span, err) }
}

// call begins the span of a call of a tool, and returns the trace to send to the server.
func (t *Tracer) call(ctx context.Context, c stages.Call) (context.Context, stages.Trace, func(stages.Result, int, error)) {
	if count, ok := ctx.Value(spansKey{}).(*atomic.Int64); ok && count.Add(1) > maxSpans {
		return ctx, within(ctx, c.Trace), func(stages.Result, int, error) {}
	}
	ctx, span := t.tracer.Start(ctx, "tools/call "+clip(c.Name), trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attribute.String("mcp.method.name", "tools/call"),
		attribute.String("gen_ai.operation.name", "execute_tool"),
		attribute.String("gen_ai.tool.name", clip(c.Name)),
		attribute.String("mcsh.server", clip(c.Server)),
	))
	return ctx, within(ctx, c.Trace), func(r stages.Result, attempts int, err error) {
		span.SetAttributes(attribute.Int("mcsh.result.bytes", len(r.Data)), attribute.Int("mcsh.attempts", attempts))
		end(span, err)
	}
}

// within returns the trace to pass on from the span in ctx.
func within(ctx context.Context, outer stages.Trace) stages.Trace {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	outer.Parent, outer.State = carrier["traceparent"], carrier["tracestate"]
	return outer
}

// end ends a span. It records only the code of an error: the text can quote data.
func end(span trace.Span, err error) {
	if err != nil {
		code := codeOf(err)
		span.SetAttributes(attribute.String("error.type", code))
		span.SetStatus(codes.Error, code)
	}
	span.End()
}
