package observe

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/mcsh-dev/mcsh/stages"
)

// A Watch observes runs and calls of tools. Its methods may be called concurrently.
type Watch struct {
	Metrics *Metrics
	Tracer  *Tracer       // nil: nothing is traced
	Calls   *zap.Logger   // the log of calls of tools; nil: none
	Level   zapcore.Level // of the lines in Calls
	Own     []string      // names of the gateway's own tools
}

// requestKey is the key of a run's name in its context.
type requestKey struct{}

// Run observes the begin of a run; the returned function observes its end.
func (w *Watch) Run(ctx context.Context, request, session string, o stages.RunOptions) (context.Context, stages.RunOptions, func(stages.Report, int64, bool, error)) {
	mode := "run"
	if o.DryRun {
		mode = "dry_run"
	}
	m := w.Metrics
	m.runsStarted.WithLabelValues(mode).Inc()
	m.runsActive.Inc()
	ctx = context.WithValue(ctx, requestKey{}, request)
	endSpan := func(stages.Report, error) {}
	if w.Tracer != nil {
		ctx, o, endSpan = w.Tracer.run(ctx, request, session, o)
	}
	return ctx, o, func(r stages.Report, bytes int64, previewed bool, err error) {
		endSpan(r, err)
		m.runsActive.Dec()
		m.runsFinished.WithLabelValues(mode, codeOf(err)).Inc()
		m.runTime.WithLabelValues(mode).Observe(r.Elapsed.Seconds())
		m.output.Add(float64(bytes))
		if previewed {
			m.previewed.Inc()
		}
		m.reached(err)
		w.stages(r.Stages)
	}
}

// Call observes the begin of a client's call of a server's tool by a name of its own, as a run; the returned function observes
// its end.
func (w *Watch) Call(ctx context.Context, request, session, name string, t stages.Trace) (context.Context, stages.Trace, func(error)) {
	const mode = "call"
	m, begun := w.Metrics, time.Now()
	m.runsStarted.WithLabelValues(mode).Inc()
	m.runsActive.Inc()
	ctx = context.WithValue(ctx, requestKey{}, request)
	endSpan := func(error) {}
	if w.Tracer != nil {
		ctx, t, endSpan = w.Tracer.exposed(ctx, request, session, name, t)
	}
	return ctx, t, func(err error) {
		endSpan(err)
		m.runsActive.Dec()
		m.runsFinished.WithLabelValues(mode, codeOf(err)).Inc()
		m.runTime.WithLabelValues(mode).Observe(time.Since(begun).Seconds())
		m.reached(err)
	}
}

// stages counts stages and the stages nested in them.
func (w *Watch) stages(list []stages.StageReport) {
	for _, s := range list {
		kind := s.Label.Kind
		w.Metrics.stages.WithLabelValues(kind).Inc()
		// The worker reports the bytes between commands, so a sum may have overflowed, and a counter panics on a
		// negative number.
		w.Metrics.bytesIn.WithLabelValues(kind).Add(float64(max(0, s.BytesIn)))
		w.Metrics.bytesOut.WithLabelValues(kind).Add(float64(max(0, s.BytesOut)))
		w.stages(s.Stages)
	}
}

// Refused counts a call of one of the gateway's tools that was refused before anything ran.
func (w *Watch) Refused(tool string, err error) {
	if !slices.Contains(w.Own, tool) {
		tool = others
	}
	w.Metrics.refused.WithLabelValues(tool, codeOf(err)).Inc()
	w.Metrics.reached(err)
}

// Asked counts and times a request for a resource, a prompt or a completion as a call of a tool.
func (w *Watch) Asked(method, server string, elapsed time.Duration, bytes int, err error) {
	w.Metrics.called(server, elapsed, bytes, err)
	w.Metrics.reached(err)
	if w.Calls == nil {
		return
	}
	if entry := w.Calls.Check(w.Level, "request"); entry != nil {
		entry.Write(zap.String("method", method), zap.String("server", clip(server)), zap.String("code", codeOf(err)), zap.Duration("elapsed", elapsed), zap.Int("bytes", bytes))
	}
}

// Job counts an attempt at a durable run, or at a part of a run.
func (w *Watch) Job(part bool) (ended func(left bool, err error)) {
	m, kind := w.Metrics, "run"
	if part {
		kind = "part"
	}
	m.jobsActive.WithLabelValues(kind).Inc()
	return func(left bool, err error) {
		outcome := "done"
		switch {
		case left:
			outcome = "left"
		case err != nil:
			outcome = "failed"
		}
		m.jobsActive.WithLabelValues(kind).Dec()
		m.jobs.WithLabelValues(kind, outcome).Inc()
	}
}

// called counts a call of a server.
func (m *Metrics) called(server string, elapsed time.Duration, bytes int, err error) {
	code, label := codeOf(err), others
	if code != string(stages.UnknownServer) && server != "" {
		label = m.servers.label(server)
	}
	m.calls.WithLabelValues(label, code).Inc()
	m.callTime.WithLabelValues(label).Observe(elapsed.Seconds())
	m.results.WithLabelValues(label).Add(float64(bytes))
	m.traffic.add(time.Now(), bytes, err != nil)
}

// tools counts, times, traces and logs the calls of tools.
type tools struct {
	stages.Tools
	w *Watch
}

// Tools returns tools whose calls are watched.
func (w *Watch) Tools(next stages.Tools) stages.Tools { return tools{next, w} }

// CallTool implements [stages.Tools].
func (t tools) CallTool(ctx context.Context, call stages.Call) (stages.Result, error) {
	m, start := t.w.Metrics, time.Now()
	m.callsActive.Inc()
	defer m.callsActive.Dec()
	attempts, allowed := 0, call.MaySend // MaySend is never called twice at the same time
	call.MaySend = func() bool {
		if allowed != nil && !allowed() {
			return false
		}
		attempts++
		return true
	}
	endSpan := func(stages.Result, int, error) {}
	if t.w.Tracer != nil {
		ctx, call.Trace, endSpan = t.w.Tracer.call(ctx, call)
	}
	result, err := t.Tools.CallTool(ctx, call)
	elapsed := time.Since(start)
	endSpan(result, attempts, err)
	m.called(call.Server, elapsed, len(result.Data), err)
	if t.w.Calls == nil {
		return result, err
	}
	if entry := t.w.Calls.Check(t.w.Level, "call"); entry != nil {
		request, _ := ctx.Value(requestKey{}).(string)
		entry.Write(zap.String("request", request), zap.String("trace", call.Trace.ID()), zap.String("server", clip(call.Server)), zap.String("tool", clip(call.Name)),
			zap.String("code", codeOf(err)), zap.Duration("elapsed", elapsed), zap.Int("bytes", len(result.Data)), zap.Int("attempts", attempts))
	}
	return result, err
}
