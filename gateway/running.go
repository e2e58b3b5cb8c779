package gateway

import (
	"slices"
	"strings"
	"sync"
	"time"
)

// A Running describes a run in progress.
type Running struct {
	Request string // its name in logs, which gives no access
	Caller  string // as the log names it; empty: it has no name
	Started time.Time
	Stages  int // without nested ones
	DryRun  bool
}

// running holds the runs in progress.
type running struct {
	mu   sync.Mutex
	runs map[string]Running // by request; guarded by mu
}

// add adds a run, and returns its removal.
func (r *running) add(run Running) (remove func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.runs[run.Request] = run
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.runs, run.Request)
	}
}

// Running lists the runs in progress, the oldest first.
func (g *Gateway) Running() []Running {
	g.running.mu.Lock()
	defer g.running.mu.Unlock()
	list := make([]Running, 0, len(g.running.runs))
	for _, run := range g.running.runs {
		list = append(list, run)
	}
	slices.SortFunc(list, func(a, b Running) int {
		if c := a.Started.Compare(b.Started); c != 0 {
			return c
		}
		return strings.Compare(a.Request, b.Request)
	})
	return list
}
