package ui

import (
	"context"
	"time"

	"github.com/mcsh-dev/mcsh/control"
)

// Activity says what is going on in a gateway.
type Activity interface {
	Servers(ctx context.Context) []control.Server // that the person whose identity the context has may use
	Runs(ctx context.Context, v control.Viewer, f control.RunFilter) control.RunList

	// Calls returns the calls of tools of the last while, of all callers, in steps of a time; the oldest first.
	Calls() []CallStep
}

// A CallStep counts the calls that have ended within a time.
type CallStep struct {
	Begin         time.Time
	Calls, Failed int64
	Bytes         int64 // of results
}

// recentRuns is how many runs the page lists.
const recentRuns = 8

// start is the data of the page.
type start struct {
	Servers  []control.Server // that do not work
	Ready    int
	All      int
	Live     int
	Runs     []control.Run
	Finished []control.Run
	Plot     *plot // nil: the person may not know of the calls of others
	Calls    int64
	Failed   int64
	Bytes    int64
	Endpoint string
}

// plot is what <mcsh-plot> takes.
type plot struct {
	X      []int64      `json:"x"`
	Series []plotSeries `json:"series"`
}

type plotSeries struct {
	Label  string  `json:"label"`
	Values []int64 `json:"values"`
}

func startPage() page {
	return page{path: "", title: "Overview", file: "start.html", menu: "start", keys: "h", there: func(o *Options) bool { return o.Activity != nil }, show: showStart}
}

func showStart(v *Visit) (any, error) {
	source := v.Options().Activity
	s := start{Endpoint: v.Options().About().Address}
	for _, server := range source.Servers(v.Context()) {
		s.All++
		switch server.Status {
		case "failed", "degraded":
			s.Servers = append(s.Servers, server)
		case "ready":
			s.Ready++
		}
	}
	for _, run := range source.Runs(v.Context(), v.Viewer(), control.RunFilter{Limit: 50 * recentRuns}).Runs {
		switch {
		case run.Live():
			s.Live++
			s.Runs = append(s.Runs, run)
		case len(s.Finished) < recentRuns:
			s.Finished = append(s.Finished, run)
		}
	}
	s.Runs = s.Runs[:min(len(s.Runs), recentRuns)]
	if v.Who.Operator {
		s.plot(source.Calls())
	}
	return s, nil
}

// plot sums the calls up.
func (s *start) plot(steps []CallStep) {
	s.Plot = &plot{Series: []plotSeries{{Label: "calls"}, {Label: "failed"}}}
	for _, step := range steps {
		s.Calls, s.Failed, s.Bytes = s.Calls+step.Calls, s.Failed+step.Failed, s.Bytes+step.Bytes
		s.Plot.X = append(s.Plot.X, step.Begin.Unix())
		s.Plot.Series[0].Values = append(s.Plot.Series[0].Values, step.Calls)
		s.Plot.Series[1].Values = append(s.Plot.Series[1].Values, step.Failed)
	}
}

// runKind returns the kind of badge of a state of a run.
func runKind(state string) string {
	return map[string]string{
		control.RunRunning: "busy", control.RunAsking: "warn", control.RunOK: "good", control.RunFailed: "bad",
		control.RunCancelled: "", control.RunTimedOut: "bad",
	}[state]
}
