package sandbox

import (
	"bytes"
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/mcsh-dev/mcsh/stages"
)

// How much goes through one process.
const (
	batchItems = 256
	batchBytes = 64 << 10 // the last item may exceed it
)

// A command that maps lines may make them longer, but not without a bound.
const (
	longer = 16 // times
	spare  = 1 << 20
)

// A batcher runs a command that maps lines ([stages.Habits]) on items that are lines: those that are there go through one
// process together. What does not go well there is done again with a process for each half of them, down to one item, which
// shows whose fault it was: such a command changes nothing.
type batcher struct {
	f     *filter
	jobs  <-chan stages.Job
	again []stages.Job // that go before those to come
	last  bool         // the job that has just failed ends all of them

	done atomic.Int64 // jobs that have ended
	seen int64        // of done, when slow was last asked
}

func (b *batcher) slow() bool {
	before := b.seen
	b.seen = b.done.Load()
	return len(b.jobs) > 0 && b.seen == before
}

func (b *batcher) run(ctx context.Context) {
	if err := b.f.session.slot(ctx); err != nil {
		b.refuse(ctx, err)
		return
	}
	defer func() { <-b.f.session.slots }()
	if err := b.f.session.enter(); err != nil {
		b.refuse(ctx, err)
		return
	}
	defer b.f.session.leave()
	for batch := b.gather(); len(batch) > 0; batch = b.gather() {
		if ctx.Err() != nil {
			b.leave(batch)
			b.refuse(ctx, cancelled(ctx))
			return
		}
		b.together(ctx, batch)
	}
}

// refuse ends all jobs, also those to come.
func (b *batcher) refuse(ctx context.Context, err error) {
	err = at(err, 0, b.f.chain[0].Name)
	if ctx.Err() != nil {
		err = stages.ErrUntried
	}
	refuse(err, b.again, b.jobs)
}

// gather returns the jobs that are there and can go together, and waits for the first of them. There are none when there
// are no more.
func (b *batcher) gather() (batch []stages.Job) {
	for size := 0; len(batch) < batchItems && size < batchBytes; {
		j := b.next(len(batch) == 0)
		if j == nil {
			break
		}
		in := j.Input()
		line := bytes.IndexByte(in, '\n') == len(in)-1 && len(in) > 0
		if !line && len(batch) > 0 {
			b.leave([]stages.Job{j})
			break
		}
		batch = append(batch, j)
		if size += len(in); !line {
			break
		}
	}
	return batch
}

// next returns the next job, nil if there is none.
func (b *batcher) next(wait bool) stages.Job {
	if len(b.again) > 0 {
		j := b.again[0]
		b.again = b.again[1:]
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

// together runs jobs in one process if that goes well, else in one for each half of them. What is not begun when ctx has
// ended is left for later.
func (b *batcher) together(ctx context.Context, batch []stages.Job) {
	if ctx.Err() != nil {
		b.leave(batch)
		return
	}
	if len(batch) == 1 {
		b.end(ctx, batch[0], b.f.once(ctx, bytes.NewReader(batch[0].Input()), batch[0]))
		return
	}
	lines := b.through(ctx, batch)
	if lines == nil {
		half := len(batch) / 2
		b.together(ctx, batch[:half])
		b.together(ctx, batch[half:])
		return
	}
	for i, j := range batch {
		if b.last {
			b.leave(batch[i:])
			return
		}
		_, err := j.Write(lines[i])
		b.end(ctx, j, err)
	}
}

// leave leaves jobs for later.
func (b *batcher) leave(batch []stages.Job) { b.again = slices.Concat(batch, b.again) }

// end ends a job that was begun.
func (b *batcher) end(ctx context.Context, j stages.Job, err error) {
	j.End(err)
	b.done.Add(1)
	b.last = err != nil && ctx.Err() != nil
}

// through returns the lines that one process makes of those of a batch, nil if it does not make one of each.
func (b *batcher) through(ctx context.Context, batch []stages.Job) [][]byte {
	var in []byte
	for _, j := range batch {
		in = append(in, j.Input()...)
	}
	var used stages.Usage
	f := *b.f
	f.used = func(_ int, u stages.Usage) { used = u }
	out := bounded{max: longer*len(in) + spare}
	if err := f.once(ctx, bytes.NewReader(in), &out); err != nil || out.over {
		return nil
	}
	lines := bytes.SplitAfter(out.b, []byte{'\n'})
	if len(lines) != len(batch)+1 || len(lines[len(batch)]) > 0 { // what is behind the last newline
		return nil
	}
	b.share(batch, lines, used)
	return lines
}

// share tells what each item has used: of time, which nobody has measured, its part.
func (b *batcher) share(batch []stages.Job, lines [][]byte, used stages.Usage) {
	if b.f.used == nil {
		return
	}
	n := time.Duration(len(batch))
	for i, j := range batch {
		b.f.used(0, stages.Usage{
			BytesIn: int64(len(j.Input())), BytesOut: int64(len(lines[i])), Elapsed: max(used.Elapsed/n, 1), CPU: used.CPU / n,
		})
	}
}

// bounded keeps what is written if that is max bytes or less.
type bounded struct {
	b    []byte
	max  int
	over bool
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.over = b.over || len(b.b)+len(p) > b.max; !b.over {
		b.b = append(b.b, p...)
	}
	return len(p), nil
}
