package observe

import (
	"encoding/json"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
)

// Probes supply the values of gauges at each scrape. They must not block. A nil one is skipped.
type Probes struct {
	Servers func() []Server
	Workers func() Workers
	Kept    func() (bytes, memory int64, runs int)
	Memory  func() map[string]int64 // bytes taken of each share of the memory budget
}

// A Server is the state of one server behind the gateway.
type Server struct {
	Name, State string
	Up          bool // the server answers, or rests until it is needed
}

// Workers counts the workers of the sandbox.
type Workers struct{ InUse, Warm, Queued, Max int }

// collector turns the values of probes into metrics.
type collector struct {
	Probes
	names *names
}

var (
	serverUp    = prometheus.NewDesc("mcsh_server_up", "Whether a server answers, or rests until it is needed: 1 or 0.", []string{"server"}, nil)
	servers     = prometheus.NewDesc("mcsh_servers", "Servers behind the gateway by state: idle, starting, ready, degraded, resting, failed, disabled.", []string{"state"}, nil)
	workers     = prometheus.NewDesc("mcsh_sandbox_workers", "Workers of the sandbox by state: in_use or warm.", []string{"state"}, nil)
	workersMax  = prometheus.NewDesc("mcsh_sandbox_workers_max", "The most workers that runs may hold at a time.", nil, nil)
	workerQueue = prometheus.NewDesc("mcsh_sandbox_queue", "Runs that wait for a worker of the sandbox.", nil, nil)
	keptBytes   = prometheus.NewDesc("mcsh_kept_bytes", "Bytes kept of the output of runs, by where: memory or disk.", []string{"where"}, nil)
	memoryBytes = prometheus.NewDesc("mcsh_memory_bytes", "Bytes used of the memory budget (--memory), by share.", []string{"share"}, nil)
	keptRuns    = prometheus.NewDesc("mcsh_kept_runs", "Runs kept, whole or in part.", nil, nil)
)

// States of servers of which nothing is known: one that was never needed, and one that an operator has disabled.
const (
	idle     = "idle"
	disabled = "disabled"
)

// states are the values of the label state of servers. All are always exported, so that alerts can rely on each.
var states = []string{idle, "starting", "ready", "degraded", "resting", "failed", disabled}

// Describe implements [prometheus.Collector].
func (l collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{serverUp, servers, workers, workersMax, workerQueue, keptBytes, memoryBytes, keptRuns} {
		out <- d
	}
}

// Collect implements [prometheus.Collector].
func (l collector) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	if l.Servers != nil {
		l.servers(gauge)
	}
	if l.Workers != nil {
		w := l.Workers()
		gauge(workers, float64(w.InUse), "in_use")
		gauge(workers, float64(w.Warm), "warm")
		gauge(workersMax, float64(w.Max))
		gauge(workerQueue, float64(w.Queued))
	}
	if l.Memory != nil {
		for share, used := range l.Memory() {
			gauge(memoryBytes, float64(used), share)
		}
	}
	if l.Kept != nil {
		bytes, memory, runs := l.Kept()
		gauge(keptBytes, float64(memory), "memory")
		gauge(keptBytes, float64(bytes-memory), "disk")
		gauge(keptRuns, float64(runs))
	}
}

// servers exports the state of servers. The label other is up if all servers without their own label are.
func (l collector) servers(gauge func(*prometheus.Desc, float64, ...string)) {
	count, up := map[string]int{}, map[string]float64{}
	for _, s := range l.Servers() {
		count[s.State]++
		if s.State == idle || s.State == disabled {
			continue
		}
		label := l.names.label(s.Name)
		if _, known := up[label]; !known {
			up[label] = 1
		}
		if !s.Up {
			up[label] = 0
		}
	}
	for _, state := range states {
		gauge(servers, float64(count[state]), state)
	}
	for label, v := range up {
		gauge(serverUp, v, label)
	}
}

// A Condition is one thing that a gateway needs in order to serve.
type Condition struct {
	Name  string `json:"name"`
	Ready bool   `json:"ready"`
	State string `json:"state"`
	Why   string `json:"why,omitempty"` // the reason if not ready; without secrets, since anybody can read it
}

// Ready serves 200 if all conditions hold and otherwise 503, with the conditions as JSON.
func Ready(conditions func() []Condition) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		answer := struct {
			Ready  bool        `json:"ready"`
			Checks []Condition `json:"checks"`
		}{true, conditions()}
		code := http.StatusOK
		for _, c := range answer.Checks {
			if !c.Ready {
				answer.Ready, code = false, http.StatusServiceUnavailable
			}
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(code)
		json.NewEncoder(w).Encode(answer) // the client may be gone
	})
}
