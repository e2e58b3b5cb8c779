package observe

import (
	"context"
	"strings"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/mcsh-dev/mcsh/stages"
)

// A Watch is told of runs and sees the calls of tools. Its methods may be called concurrently.
type Watch struct {
	metrics *Metrics
	tracer  *Tracer     // nil: nothing is traced
	log     *zap.Logger // of calls
	level   zapcore.Level
	kinds   map[string]bool
	tools   map[string]bool
}

// WatchOptions are what a [Watch] is made of.
type WatchOptions struct {
	Metrics *Metrics
	Tracer  *Tracer       // nil: nothing is traced
	Calls   *zap.Logger   // gets a line for each call of a tool; nil: there is none
	Level   zapcore.Level // of these lines
	Tools   []string      // the gateway's own
}

// NewWatch returns a watch.
func NewWatch(o WatchOptions) *Watch {
	w := &Watch{metrics: o.Metrics, tracer: o.Tracer, log: o.Calls, level: o.Level, kinds: map[string]bool{}, tools: map[string]bool{}}
	if w.log == nil {
		w.log = zap.NewNop()
	}
	for _, k := range stages.Kinds() {
		w.kinds[k.Name] = true
	}
	for _, name := range o.Tools {
		w.tools[name] = true
	}
	return w
}

// requestKey is where the context of a run has its name.
type requestKey struct{}

// Run is told of a run that begins, and by what it returns of its end.
func (w *Watch) Run(ctx context.Context, request, session string, o stages.RunOptions) (context.Context, stages.RunOptions, func(stages.Report, int64, bool, error)) {
	mode := "run"
	if o.DryRun {
		mode = "dry_run"
	}
	m := w.metrics
	m.runsStarted.WithLabelValues(mode).Inc()
	m.runsActive.Inc()
	ctx = context.WithValue(ctx, requestKey{}, request)
	endSpan := func(stages.Report, error) {}
	if w.tracer != nil {
		ctx, o, endSpan = w.tracer.run(ctx, request, session, o)
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

// stages counts stages with those within them.
func (w *Watch) stages(list []stages.StageReport) {
	for _, s := range list {
		kind := w.kindOf(s.Label)
		w.metrics.stages.WithLabelValues(kind).Inc()
		// A worker counts the bytes of commands between others. What it says may have made a sum overflow, and a counter
		// that is to go back panics.
		w.metrics.bytesIn.WithLabelValues(kind).Add(float64(max(0, s.BytesIn)))
		w.metrics.bytesOut.WithLabelValues(kind).Add(float64(max(0, s.BytesOut)))
		w.stages(s.Stages)
	}
}

// Refused is told of a call of one of the gateway's tools that was refused before anything ran.
func (w *Watch) Refused(tool string, err error) {
	if !w.tools[tool] {
		tool = others
	}
	w.metrics.refused.WithLabelValues(tool, codeOf(err)).Inc()
	w.metrics.reached(err)
}

// kindOf is the type of the stage with a label such as "tool shop/list_orders".
func (w *Watch) kindOf(label string) string {
	word, _, _ := strings.Cut(label, " ")
	if w.kinds[word] {
		return word
	}
	return others
}
