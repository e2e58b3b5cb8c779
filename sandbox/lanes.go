package sandbox

import (
	"context"
	"time"

	"github.com/mcsh-dev/mcsh/stages"
)

// A further process is started when those there are have work and do little of it: a start takes some milliseconds of a
// processor, after which the first may have done with everything.
const (
	review     = 10 * time.Millisecond
	worthwhile = 50 * time.Microsecond // an item takes as much of a processor where another process helps
)

// each is a [stages.MapFilter].
func (f *filter) each(ctx context.Context, jobs <-chan stages.Job, atOnce int) {
	first, ok := <-jobs
	if !ok {
		return
	}
	gone := make(chan struct{})
	var lanes []*lane
	start := func(first ...stages.Job) {
		l := &lane{f: f, jobs: jobs, again: first, window: 1, wake: make(chan struct{}, 1)}
		lanes = append(lanes, l)
		go func() {
			l.run(ctx)
			gone <- struct{}{}
		}()
	}
	start(first)
	ticker := time.NewTicker(review)
	defer ticker.Stop()
	for ended := 0; ended < len(lanes); {
		select {
		case <-gone:
			ended++
		case <-ticker.C:
			slow := len(lanes) < atOnce && ended == 0
			for _, l := range lanes {
				slow = l.slow() && slow
			}
			for range len(lanes) {
				if slow && len(lanes) < atOnce {
					start()
				}
			}
		}
	}
}
