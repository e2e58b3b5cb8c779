package observe

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/mcsh-dev/mcsh/stages"
)

// tools counts, times, traces and logs the calls of tools.
type tools struct {
	w    *Watch
	next stages.Tools
}

// Tools returns tools whose calls are watched.
func (w *Watch) Tools(next stages.Tools) stages.Tools { return tools{w, next} }

// Tool implements [stages.Tools].
func (t tools) Tool(ctx context.Context, server, name string) (*stages.Tool, error) {
	return t.next.Tool(ctx, server, name)
}

// CallTool implements [stages.Tools].
func (t tools) CallTool(ctx context.Context, call stages.Call) (stages.Result, error) {
	m, start := t.w.metrics, time.Now()
	m.callsActive.Inc()
	defer m.callsActive.Dec()
	attempts, allowed := 0, call.Sent // Sent is never asked twice at the same time
	call.Sent = func() bool {
		if allowed != nil && !allowed() {
			return false
		}
		attempts++
		return true
	}
	endSpan := func(stages.Result, int, error) {}
	if t.w.tracer != nil {
		ctx, call.Trace, endSpan = t.w.tracer.call(ctx, call)
	}
	result, err := t.next.CallTool(ctx, call)
	elapsed := time.Since(start)
	endSpan(result, attempts, err)
	code := codeOf(err)
	server := others
	if code != string(stages.UnknownServer) {
		server = m.servers.label(call.Server)
	}
	m.calls.WithLabelValues(server, code).Inc()
	m.callTime.WithLabelValues(server).Observe(elapsed.Seconds())
	m.results.WithLabelValues(server).Add(float64(len(result.Data)))
	if entry := t.w.log.Check(t.w.level, "call"); entry != nil {
		request, _ := ctx.Value(requestKey{}).(string)
		entry.Write(zap.String("request", request), zap.String("trace", call.Trace.ID()), zap.String("server", call.Server), zap.String("tool", clip(call.Name)),
			zap.String("code", code), zap.Duration("elapsed", elapsed), zap.Int("bytes", len(result.Data)), zap.Int("attempts", attempts))
	}
	return result, err
}
