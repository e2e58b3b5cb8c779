package observe

import (
	"regexp"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/mcsh-dev/mcsh/stages"
)

// fqName finds the name in the text of a description, which has no other way to it.
var fqName = regexp.MustCompile(`fqName: "(mcsh_[^"]+)"`)

// Described are the names of all that may ever be counted or looked at.
func (m *Metrics) Described() (list []string) {
	all := make(chan *prometheus.Desc)
	go func() { defer close(all); m.registry.Describe(all) }()
	for d := range all {
		if found := fqName.FindStringSubmatch(d.String()); found != nil {
			list = append(list, found[1])
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// Touched is all that there is to be counted, each with at least one series.
func (m *Metrics) Touched() []*dto.MetricFamily {
	m.runsStarted.WithLabelValues("run")
	m.runsFinished.WithLabelValues("run", codeOK)
	m.runTime.WithLabelValues("run")
	m.refused.WithLabelValues("execute_pipeline", codeOK)
	m.stages.WithLabelValues("tool")
	m.bytesIn.WithLabelValues("tool")
	m.bytesOut.WithLabelValues("tool")
	m.limits.WithLabelValues("run")
	m.calls.WithLabelValues("s", string(stages.Internal))
	m.callTime.WithLabelValues("s")
	m.results.WithLabelValues("s")
	m.requests.WithLabelValues("/mcp", "POST", "200")
	m.auth.WithLabelValues("forbidden")
	m.jobs.WithLabelValues("run", "done")
	m.jobsActive.WithLabelValues("run")
	families, err := m.registry.Gather()
	if err != nil {
		panic(err)
	}
	return families
}

// CodeOf is the label of an outcome.
var CodeOf = codeOf
