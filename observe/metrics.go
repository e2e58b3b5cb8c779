package observe

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics are the counters of one gateway. All methods may be called concurrently.
type Metrics struct {
	registry *prometheus.Registry

	runsStarted, runsFinished *prometheus.CounterVec
	runsActive                prometheus.Gauge
	runTime                   *prometheus.HistogramVec
	refused                   *prometheus.CounterVec
	stages, bytesIn, bytesOut *prometheus.CounterVec
	output, previewed         prometheus.Counter
	limits                    *prometheus.CounterVec

	calls, results *prometheus.CounterVec
	callTime       *prometheus.HistogramVec
	callsActive    prometheus.Gauge

	requests, auth *prometheus.CounterVec

	servers *names
}

// Build is the program that is watched.
type Build struct{ Version, Revision, Go string }

// Buckets in seconds: calls take milliseconds to a minute, runs up to several minutes.
var (
	callBuckets = []float64{0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60}
	runBuckets  = []float64{0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300}
)

// NewMetrics makes the counters. What is only looked at when somebody asks comes from l.
func NewMetrics(b Build, l Looks) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), servers: newNames(maxServers)}
	m.ofRuns()
	m.ofCalls()
	m.ofHTTP()
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "mcsh_build_info", Help: "The program that runs; always 1.",
	}, []string{"version", "revision", "goversion"})
	build.WithLabelValues(b.Version, b.Revision, b.Go).Set(1)
	m.registry.MustRegister(build, looker{l, m.servers},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *Metrics) ofRuns() {
	m.runsStarted = m.counters("mcsh_runs_started_total", "Pipelines that began to run, by mode: run or dry_run.", "mode")
	m.runsFinished = m.counters("mcsh_runs_finished_total", "Pipelines that ended, by mode and code: OK, or that of the error.", "mode", "code")
	m.runsActive = m.gauge("mcsh_runs_active", "Pipelines that are running.")
	m.runTime = m.histograms("mcsh_run_duration_seconds", "How long pipelines ran, by mode.", runBuckets, "mode")
	m.refused = m.counters("mcsh_calls_refused_total", "Calls of the gateway's own tools that were refused before anything ran, by tool and code.", "tool", "code")
	m.stages = m.counters("mcsh_stages_total", "Stages of pipelines that ended, nested ones included, by type.", "type")
	m.bytesIn = m.counters("mcsh_stage_input_bytes_total", "Bytes that stages read, by type of stage.", "type")
	m.bytesOut = m.counters("mcsh_stage_output_bytes_total", "Bytes that stages wrote, by type of stage.", "type")
	m.output = m.counter("mcsh_output_bytes_total", "Bytes of output of whole pipelines.")
	m.previewed = m.counter("mcsh_replies_previewed_total", "Replies that showed the shape of an output that was too long.")
	m.limits = m.counters("mcsh_limits_reached_total", "Calls and runs that ended at a limit of the operator, by limit.", "limit")
}

func (m *Metrics) ofCalls() {
	m.calls = m.counters("mcsh_tool_calls_total", "Calls of tools of the servers, by server and code: OK, or that of the error.", "server", "code")
	m.callTime = m.histograms("mcsh_tool_call_duration_seconds", "How long calls of tools took, waiting for their turn included, by server.", callBuckets, "server")
	m.results = m.counters("mcsh_tool_result_bytes_total", "Bytes of the results of tools, by server.", "server")
	m.callsActive = m.gauge("mcsh_tool_calls_active", "Calls of tools that are under way.")
}

func (m *Metrics) ofHTTP() {
	m.requests = m.counters("mcsh_http_requests_total", "Requests over HTTP that were answered, by route, method and status.", "route", "method", "status")
	m.auth = m.counters("mcsh_auth_refusals_total", "Requests over HTTP that were refused, by reason: unauthenticated (401) or forbidden (403).", "reason")
}

func (m *Metrics) counters(name, help string, labels ...string) *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	m.registry.MustRegister(v)
	return v
}

func (m *Metrics) counter(name, help string) prometheus.Counter {
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	m.registry.MustRegister(c)
	return c
}

func (m *Metrics) gauge(name, help string) prometheus.Gauge {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	m.registry.MustRegister(g)
	return g
}

func (m *Metrics) histograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	m.registry.MustRegister(v)
	return v
}

// scrapeTime bounds one answer: what is looked at is in memory.
const scrapeTime = 10 * time.Second

// Handler serves the counters as Prometheus reads them.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Timeout: scrapeTime, MaxRequestsInFlight: 4})
}
