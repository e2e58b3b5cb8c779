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

// A runner takes jobs until there are no more.
type runner interface {
	run(ctx context.Context)

	// slow reports whether items have waited for it and it has done little since it was last asked.
	slow() bool
}

// each is a [stages.MapFilter] for a program that is kept.
func (f *filter) each(ctx context.Context, jobs <-chan stages.Job, atOnce int) {
	spread(ctx, jobs, atOnce, func(first []stages.Job) runner {
		return &lane{f: f, jobs: jobs, again: first, window: 1, wake: make(chan struct{}, 1)}
	})
}

// spread has runners take jobs, the first of which goes to the first runner.
func spread(ctx context.Context, jobs <-chan stages.Job, atOnce int, start func(first []stages.Job) runner) {
	first, ok := <-jobs
	if !ok {
		return
	}
	gone := make(chan struct{})
	var runners []runner
	begin := func(first ...stages.Job) {
		r := start(first)
		runners = append(runners, r)
		go func() {
			r.run(ctx)
			gone <- struct{}{}
		}()
	}
	begin(first)
	ticker := time.NewTicker(review)
	defer ticker.Stop()
	for ended := 0; ended < len(runners); {
		select {
		case <-gone:
			ended++
		case <-ticker.C:
			slow := len(runners) < atOnce && ended == 0
			for _, r := range runners {
				slow = r.slow() && slow
			}
			for range len(runners) {
				if slow && len(runners) < atOnce {
					begin()
				}
			}
		}
	}
}

// refuse ends jobs, also all those to come: the first with err, the others with [stages.ErrUntried].
func refuse(err error, left []stages.Job, jobs <-chan stages.Job) {
	for _, j := range left {
		j.End(err)
		err = stages.ErrUntried
	}
	for j := range jobs {
		j.End(err)
		err = stages.ErrUntried
	}
}
