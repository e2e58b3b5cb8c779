package sandbox

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcsh-dev/mcsh/stages"
)

// How much goes through one process. A longer line goes by itself: its output is passed on as it comes.
const (
	batchItems  = 256
	batchBytes  = 64 << 10
	batchOutput = 1 << 20 // which is held until it is known to be whole
)

// batchTime is what lines that go together get of their command's timeout: one that needs much of it for itself keeps the
// others waiting no longer. When they took a quarter of it at most, more go together the next time.
const batchTime = 500 * time.Millisecond

// lines returns a [stages.MapFilter] for a program that maps lines.
func (f *filter) lines() (stages.MapFilter, error) {
	chain := f.session.pool.budget.chain()
	chain.Commands = slices.Clone(f.chain)
	chain.Commands[0].Timeout = min(chain.Commands[0].Timeout, batchTime)
	id, err := f.session.client.Prepare(chain)
	if err != nil {
		return nil, unprepared(err, []stages.Command{{Name: f.chain[0].Name}})
	}
	return func(ctx context.Context, jobs <-chan stages.Job, atOnce int) {
		places := make(chan struct{}, max(atOnce, 1))
		spread(ctx, jobs, atOnce, func(first []stages.Job) runner {
			return &batcher{f: f, together: id, jobs: jobs, places: places, left: first, window: batchItems}
		})
	}, nil
}

// A batcher runs a command that maps lines ([stages.Habits]) on items that are lines: those that are there go through one
// process together. What does not go well there is forgotten and done again, for such a command changes nothing: where
// one fails half as many go together, down to one, which shows whose fault it was; where they take too much each gets a
// process of its own.
type batcher struct {
	f        *filter
	together uint32 // the chain for lines that go together
	jobs     <-chan stages.Job
	places   chan struct{} // holds one value for each process of all batchers
	left     []stages.Job  // that go before those to come
	window   int           // how many may go together

	done atomic.Int64 // jobs that have ended
	seen int64        // of done, when slow was last asked
}

func (b *batcher) slow() bool {
	before := b.seen
	b.seen = b.done.Load()
	return len(b.jobs) > 0 && b.seen == before
}

func (b *batcher) run(ctx context.Context) {
	for batch := b.gather(); len(batch) > 0; batch = b.gather() {
		switch {
		case ctx.Err() != nil:
			b.untried(batch)
		case b.window == 1 || len(batch) == 1:
			b.apart(ctx, batch)
		default:
			b.batch(ctx, batch)
		}
	}
}

// gather returns the jobs that are there and can go together, or side by side, and waits for the first of them. There are
// none when there are no more.
func (b *batcher) gather() (batch []stages.Job) {
	most := b.window
	if most == 1 {
		most = cap(b.places)
	}
	for size := 0; len(batch) < most; {
		j := b.next(len(batch) == 0)
		if j == nil {
			break
		}
		in := j.Input()
		size += len(in)
		line := bytes.IndexByte(in, '\n') == len(in)-1 && len(in) > 0
		if fits := line && size <= batchBytes; !fits && len(batch) > 0 {
			b.left = slices.Insert(b.left, 0, j)
			break
		} else if batch = append(batch, j); !fits {
			break
		}
	}
	return batch
}

// next returns the next job, nil if there is none.
func (b *batcher) next(wait bool) stages.Job {
	if len(b.left) > 0 {
		j := b.left[0]
		b.left = b.left[1:]
		return j
	}
	if wait {
		return <-b.jobs
	}
	select {
	case j := <-b.jobs:
		return j
	default:
		return nil
	}
}

// untried ends jobs that were not begun.
func (b *batcher) untried(jobs []stages.Job) {
	for _, j := range jobs {
		j.End(stages.ErrUntried)
	}
}

// apart runs jobs in a process each.
func (b *batcher) apart(ctx context.Context, jobs []stages.Job) {
	start := time.Now()
	var failed atomic.Bool
	var running sync.WaitGroup
	for i, j := range jobs {
		b.places <- struct{}{}
		if ctx.Err() != nil {
			<-b.places
			b.untried(jobs[i:])
			break
		}
		running.Go(func() {
			err := b.f.run(ctx, bytes.NewReader(j.Input()), j)
			b.end(j, err)
			if err != nil {
				failed.Store(true)
			}
			<-b.places
		})
	}
	running.Wait()
	if !failed.Load() {
		b.grow(len(jobs), time.Since(start))
	}
}

// grow has more jobs go together after n that went well.
func (b *batcher) grow(n int, took time.Duration) {
	if n >= b.window && took <= batchTime/4 {
		b.window = min(2*b.window, batchItems)
	}
}

// end ends a job that was begun.
func (b *batcher) end(j stages.Job, err error) {
	j.End(err)
	b.done.Add(1)
}

// batch runs jobs in one process if that goes well.
func (b *batcher) batch(ctx context.Context, jobs []stages.Job) {
	b.places <- struct{}{}
	start := time.Now()
	lines, used, err := b.through(ctx, jobs)
	took := time.Since(start)
	<-b.places
	switch {
	case ctx.Err() != nil && err != nil:
		b.untried(jobs)
	case errors.Is(err, errTooMuch):
		b.window = 1
		b.apart(ctx, jobs)
	case err != nil:
		b.window = len(jobs) / 2
		b.left = slices.Concat(jobs, b.left)
	default:
		b.hand(ctx, jobs, lines, used)
		b.grow(len(jobs), took)
	}
}

// What lines that went together came to, when that is not one line of each.
var (
	errTooMuch = errors.New("they take too much together")
	errNotOne  = errors.New("they do not make one line each")
)

// through returns the lines that one process makes of those of jobs, and what it used.
func (b *batcher) through(ctx context.Context, jobs []stages.Job) (lines [][]byte, used stages.Usage, _ error) {
	var in []byte
	for _, j := range jobs {
		in = append(in, j.Input()...)
	}
	f := *b.f
	f.id = b.together
	f.used = func(_ int, u stages.Usage) { used = u }
	var out bounded
	if err := f.run(ctx, bytes.NewReader(in), &out); err != nil {
		if e, ok := errors.AsType[*stages.Error](err); !ok || e.Code != stages.CommandFailed {
			return nil, used, errTooMuch
		}
		return nil, used, err
	}
	if out.over {
		return nil, used, errTooMuch
	}
	lines = bytes.SplitAfter(out.b, []byte{'\n'})
	if len(lines) != len(jobs)+1 || len(lines[len(jobs)]) > 0 { // what is behind the last newline
		return nil, used, errNotOne
	}
	return lines, used, nil
}

// hand gives jobs their lines. When the error of one has ended ctx, those behind it count as not begun.
func (b *batcher) hand(ctx context.Context, jobs []stages.Job, lines [][]byte, used stages.Usage) {
	n := time.Duration(len(jobs))
	for i, j := range jobs {
		if b.f.used != nil { // of time, which nobody has measured, its part
			b.f.used(0, stages.Usage{
				BytesIn: int64(len(j.Input())), BytesOut: int64(len(lines[i])), Elapsed: max(used.Elapsed/n, 1), CPU: used.CPU / n,
			})
		}
		_, err := j.Write(lines[i])
		if b.end(j, err); err != nil && ctx.Err() != nil {
			b.untried(jobs[i+1:])
			return
		}
	}
}

// bounded keeps what is written if that is not too much.
type bounded struct {
	b    []byte
	over bool
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.over = b.over || len(b.b)+len(p) > batchOutput; !b.over {
		b.b = append(b.b, p...)
	}
	return len(p), nil
}
