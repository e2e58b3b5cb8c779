package observe

import "github.com/prometheus/client_golang/prometheus"

// Looks are what is looked at when somebody asks, and must not wait for anything. A nil one is left out.
type Looks struct {
	Servers func() []Server
	Workers func() Workers
	Kept    func() (bytes, memory int64, runs int)
}

// A Server is how one server behind the gateway is.
type Server struct {
	Name, State string
	Up          bool // it answers, or rests until it is needed
}

// Workers are the workers of the sandbox.
type Workers struct{ InUse, Warm, Queued, Max int }

// looker makes metrics of what is looked at.
type looker struct {
	Looks
	names *names
}

var (
	serverUp    = prometheus.NewDesc("mcsh_server_up", "Whether a server answers, or rests until it is needed: 1 or 0.", []string{"server"}, nil)
	servers     = prometheus.NewDesc("mcsh_servers", "Servers behind the gateway by state: idle, starting, ready, degraded, resting, failed.", []string{"state"}, nil)
	workers     = prometheus.NewDesc("mcsh_sandbox_workers", "Workers of the sandbox by state: in_use or warm.", []string{"state"}, nil)
	workersMax  = prometheus.NewDesc("mcsh_sandbox_workers_max", "The most workers that runs may hold at a time.", nil, nil)
	workerQueue = prometheus.NewDesc("mcsh_sandbox_queue", "Runs that wait for a worker of the sandbox.", nil, nil)
	keptBytes   = prometheus.NewDesc("mcsh_kept_bytes", "Bytes kept of what runs produced, by where: memory or disk.", []string{"where"}, nil)
	keptRuns    = prometheus.NewDesc("mcsh_kept_runs", "Runs of which something is kept.", nil, nil)
)

// idle is the state of a server that nobody has needed yet.
const idle = "idle"

// states are the values of the label state of servers: all of them are always there, so that a rule can name one.
var states = []string{idle, "starting", "ready", "degraded", "resting", "failed"}

// Describe implements [prometheus.Collector].
func (l looker) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{serverUp, servers, workers, workersMax, workerQueue, keptBytes, keptRuns} {
		out <- d
	}
}

// Collect implements [prometheus.Collector].
func (l looker) Collect(out chan<- prometheus.Metric) {
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
	if l.Kept != nil {
		bytes, memory, runs := l.Kept()
		gauge(keptBytes, float64(memory), "memory")
		gauge(keptBytes, float64(bytes-memory), "disk")
		gauge(keptRuns, float64(runs))
	}
}

// servers says how the servers are. Those without a label of their own are up where all of them are.
func (l looker) servers(gauge func(*prometheus.Desc, float64, ...string)) {
	count, up := map[string]int{}, map[string]float64{}
	for _, s := range l.Servers() {
		count[s.State]++
		if s.State == idle {
			continue // it is not known
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
