package observe

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/mcsh-dev/mcsh/stages"
)

// Metrics are the metrics of one gateway. All methods may be called concurrently.
type Metrics struct {
	registry *prometheus.Registry

	runsStarted, runsFinished, refused *prometheus.CounterVec
	stages, bytesIn, bytesOut, limits  *prometheus.CounterVec
	calls, results, requests, auth     *prometheus.CounterVec
	jobs                               *prometheus.CounterVec
	jobsActive                         *prometheus.GaugeVec
	runTime, callTime                  *prometheus.HistogramVec
	runsActive, callsActive            prometheus.Gauge
	output, previewed                  prometheus.Counter

	servers *names
	calling *prometheus.Registry // of the metrics of calls of servers alone
	traffic traffic
}

// Build describes the running program.
type Build struct{ Version, Revision, Go string }

// Buckets in seconds: calls take milliseconds to a minute, runs up to several minutes.
var (
	callBuckets = []float64{0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60}
	runBuckets  = []float64{0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300}
)

// NewMetrics makes the metrics. The functions of p supply values at each scrape.
func NewMetrics(b Build, p Probes) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), servers: &names{known: map[string]string{}}}
	factory := promauto.With(m.registry)
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return factory.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return factory.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	}
	histogram := func(name, help string, buckets []float64, label string) *prometheus.HistogramVec {
		return factory.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, []string{label})
	}
	m.runsStarted = counter("mcsh_runs_started_total", "Pipelines that began to run, and calls of tools by names of their own, by mode: run, dry_run or call.", "mode")
	m.runsFinished = counter("mcsh_runs_finished_total", "Pipelines and calls of exposed tools that ended, by mode and code: OK, or that of the error.", "mode", "code")
	m.runsActive = gauge("mcsh_runs_active", "Pipelines and calls of exposed tools that are running.").WithLabelValues()
	m.runTime = histogram("mcsh_run_duration_seconds", "How long pipelines and calls of exposed tools ran, by mode.", runBuckets, "mode")
	m.refused = counter("mcsh_calls_refused_total", "Calls of the gateway's own tools that were refused before anything ran, by tool and code.", "tool", "code")
	m.stages = counter("mcsh_stages_total", "Stages of pipelines that ended, nested ones included, by type.", "type")
	m.bytesIn = counter("mcsh_stage_input_bytes_total", "Bytes that stages read, by type of stage.", "type")
	m.bytesOut = counter("mcsh_stage_output_bytes_total", "Bytes that stages wrote, by type of stage.", "type")
	m.output = counter("mcsh_output_bytes_total", "Bytes of output of whole pipelines.").WithLabelValues()
	m.previewed = counter("mcsh_replies_previewed_total", "Replies that showed the shape of an output that was too long.").WithLabelValues()
	m.limits = counter("mcsh_limits_reached_total", "Calls and runs that ended at a limit of the operator, by limit.", "limit")
	m.calls = counter("mcsh_tool_calls_total", "Calls of tools of the servers, by server and code: OK, or that of the error.", "server", "code")
	m.callTime = histogram("mcsh_tool_call_duration_seconds", "How long calls of tools took, waiting for their turn included, by server.", callBuckets, "server")
	m.results = counter("mcsh_tool_result_bytes_total", "Bytes of the results of tools, by server.", "server")
	m.callsActive = gauge("mcsh_tool_calls_active", "Calls of tools that are under way.").WithLabelValues()
	m.requests = counter("mcsh_http_requests_total", "Requests over HTTP that were answered, by route, method and status.", "route", "method", "status")
	m.auth = counter("mcsh_auth_refusals_total", "Requests over HTTP that were refused, by reason: unauthenticated (401) or forbidden (403).", "reason")
	m.jobs = counter("mcsh_durable_attempts_total",
		"Attempts of this gateway at durable runs that ended, by kind (run, or part of any run) and outcome: done, left (another attempt goes on) or failed.", "kind", "outcome")
	m.jobsActive = gauge("mcsh_durable_attempts_active", "Attempts of this gateway at durable runs that are under way, by kind: run, or part of any run.", "kind")
	m.calling = prometheus.NewRegistry()
	m.calling.MustRegister(m.calls, m.callTime)
	factory.NewGaugeVec(prometheus.GaugeOpts{Name: "mcsh_build_info", Help: "The program that runs; always 1."},
		[]string{"version", "revision", "goversion"}).WithLabelValues(b.Version, b.Revision, b.Go).Set(1)
	m.registry.MustRegister(collector{p, m.servers},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// scrapeTime bounds one scrape: all values are in memory.
const scrapeTime = 10 * time.Second

// Handler serves the metrics to Prometheus.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Timeout: scrapeTime, MaxRequestsInFlight: 4})
}

// routes are the values of the label route, beside "other".
var routes = map[string]bool{"/mcp": true, "/healthz": true, "/readyz": true, "/metrics": true}

// methods are the values of the label method, beside "other".
var methods = map[string]bool{
	http.MethodGet: true, http.MethodPost: true, http.MethodDelete: true, http.MethodHead: true, http.MethodOptions: true, http.MethodPut: true, http.MethodPatch: true,
}

// refusals are the values of the label reason, by status.
var refusals = map[int]string{http.StatusUnauthorized: "unauthenticated", http.StatusForbidden: "forbidden"}

// HTTP counts the requests that next answers.
func (m *Metrics) HTTP(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := &status{ResponseWriter: w}
		defer func() { m.answered(r, s) }() // also after a panic
		next.ServeHTTP(s, r)
	})
}

func (m *Metrics) answered(r *http.Request, s *status) {
	route, method := r.URL.Path, r.Method
	if !routes[route] {
		route = others
	}
	if !methods[method] {
		method = others
	}
	if s.code == 0 { // nothing was written, so the server sends 200
		s.code = http.StatusOK
	}
	m.requests.WithLabelValues(route, method, strconv.Itoa(s.code)).Inc()
	if reason := refusals[s.code]; reason != "" {
		m.auth.WithLabelValues(reason).Inc()
	}
}

// status remembers the status of a response.
type status struct {
	http.ResponseWriter
	code int
}

// WriteHeader implements [http.ResponseWriter].
func (s *status) WriteHeader(code int) {
	if s.code < http.StatusOK { // 1xx statuses come before the final one
		s.code = code
	}
	s.ResponseWriter.WriteHeader(code)
}

// Write implements [http.ResponseWriter].
func (s *status) Write(p []byte) (int, error) {
	if s.code < http.StatusOK {
		s.code = http.StatusOK
	}
	return s.ResponseWriter.Write(p)
}

// Unwrap is for [http.ResponseController].
func (s *status) Unwrap() http.ResponseWriter { return s.ResponseWriter }

const (
	maxServers = 256     // servers with their own label: a source may add new names without end
	maxName    = 100     // bytes of a name
	others     = "other" // the label of all other names
)

// names bounds the number of values of the label server.
type names struct {
	mu    sync.Mutex
	known map[string]string // the label of a name; guarded by mu
}

// label returns the label of a name: its own for the first maxServers names, then others.
func (n *names) label(name string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	label, ok := n.known[name]
	switch {
	case ok:
		return label
	case len(n.known) >= maxServers:
		return others
	}
	n.known[name] = clip(name)
	return n.known[name]
}

// clip makes a name valid and short: servers choose the names of tools.
func clip(name string) string {
	name = strings.ToValidUTF8(name, "\uFFFD")
	return strings.ToValidUTF8(name[:min(len(name), maxName)], "") // without a part of a character
}

// codeOK is the code of success.
const codeOK = "OK"

// codeOf returns the code of an outcome.
func codeOf(err error) string {
	e, failed := errors.AsType[*stages.Error](err)
	switch {
	case err == nil:
		return codeOK
	case failed && e.Code != "":
		return string(e.Code)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return string(stages.Cancelled)
	}
	return string(stages.Internal)
}

// reached counts the limit that err reports, if any. A timeout without a limit is the stage's own.
func (m *Metrics) reached(err error) {
	e, ok := errors.AsType[*stages.Error](err)
	switch {
	case !ok:
	case e.Limit != "":
		m.limits.WithLabelValues(e.Limit).Inc()
	case e.Code == stages.LimitExceeded:
		m.limits.WithLabelValues(others).Inc()
	}
}
