package main

import (
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcsh-dev/mcsh/stages"
)

// When a run is slow enough to say how far it is, and how often.
const (
	progressAfter = 300 * time.Millisecond
	progressEvery = 200 * time.Millisecond
)

// progress keeps one line of a terminal current while a pipeline runs.
type progress struct {
	items, calls atomic.Int64
	quit         chan struct{}
	ended        sync.WaitGroup
}

// startProgress begins to show progress where a person watches stderr and the output goes elsewhere: on the same
// terminal the two would mix.
func (p *program) startProgress() *progress {
	g := &progress{quit: make(chan struct{})}
	if isTerminal(p.stderr) && !isTerminal(p.stdout) && p.env["TERM"] != "dumb" {
		g.ended.Go(func() { g.show(p.stderr) })
	}
	return g
}

// update is a callback of the engine: calls may overtake each other.
func (g *progress) update(n stages.Progress) {
	raise(&g.items, n.Items)
	raise(&g.calls, n.Calls)
}

func raise(v *atomic.Int64, to int64) {
	for old := v.Load(); old < to && !v.CompareAndSwap(old, to); old = v.Load() {
	}
}

func (g *progress) show(w io.Writer) {
	const clearLine = "\r\033[K"
	start := time.Now()
	select {
	case <-g.quit:
		return
	case <-time.After(progressAfter):
	}
	ticker := time.NewTicker(progressEvery)
	defer ticker.Stop()
	defer io.WriteString(w, clearLine)
	for {
		text := fmt.Sprintf("running for %d s", int(time.Since(start).Seconds()))
		if items, calls := int(g.items.Load()), int(g.calls.Load()); items > 0 {
			text += fmt.Sprintf(": %d %s finished, %d tool %s", items, plural(items, "item"), calls, plural(calls, "call"))
		}
		io.WriteString(w, clearLine+text)
		select {
		case <-g.quit:
			return
		case <-ticker.C:
		}
	}
}

// stop removes the line.
func (g *progress) stop() {
	close(g.quit)
	g.ended.Wait()
}
