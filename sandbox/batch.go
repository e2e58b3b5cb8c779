package sandbox

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/mcsh-dev/mcsh/sandbox/wire"
	"github.com/mcsh-dev/mcsh/stages"
)

// How much goes through one process. A larger item goes alone: its output is passed on as it comes.
const (
	batchItems  = 256
	batchBytes  = 64 << 10
	batchOutput = 1 << 20 // held until all of it is there
)

// batchTime is how long a batch may take. If it takes longer, each of its items goes alone and gets the whole timeout.
const batchTime = 500 * time.Millisecond

// quick is how long the next batch waits for the one before it: quick items share one process, and slow ones run side by
// side. After a batch that was slow fewer go together.
const (
	quick = 10 * time.Millisecond
	slow  = 4 * quick
)

// A format writes the items of a batch as one input, and reads their answers from one output.
type format struct {
	fits   func(item []byte) bool // whether an item can go with others
	append func(b, item []byte) []byte
	cut    func(b []byte) (a answer, rest []byte, ok bool)
	prefix bool // there may be answers to the first items only
}

// An answer is the output of an item, or its exit status and message.
type answer struct {
	text   []byte
	status int
}

// asLines is for programs that map lines, asItems for applets that take items.
var (
	asLines = format{
		fits:   func(item []byte) bool { return len(item) > 0 && bytes.IndexByte(item, '\n') == len(item)-1 },
		append: func(b, item []byte) []byte { return append(b, item...) },
		cut: func(b []byte) (a answer, rest []byte, ok bool) {
			n := bytes.IndexByte(b, '\n') + 1
			return answer{text: b[:n]}, b[n:], n > 0
		},
	}
	asItems = format{
		fits:   func(item []byte) bool { return len(item) <= wire.MaxItem },
		append: wire.AppendItem,
		cut: func(b []byte) (a answer, rest []byte, ok bool) {
			a.status, a.text, rest, ok = wire.CutAnswer(b)
			return a, rest, ok
		},
		prefix: true,
	}
)

// A batcher runs a command on items: those that wait go through one process together, since a start costs more than most
// items. The commands that it is for change nothing, so an item without an answer is run again, in the end alone. An item
// alone is an ordinary run, with the limits and errors of one. The fields belong to run.
type batcher struct {
	f        *filter
	together wire.Prepared // the chain for items that go together
	format   format

	waiting []stages.Job
	apart   int // how many of the first of them go alone: together they took too much
	window  int // how many of the others may go together
	running int // batches
	ended   chan batch
}

// A batch is jobs that go through one process.
type batch struct {
	jobs  []stages.Job // in their order; at the end those that have not ended
	size  int          // how many there were
	next  int          // how many may go together next, if that is fewer; 0: each goes alone
	quick bool         // all of them are done, in little time
}

// batches returns a [stages.MapFilter].
func (f *filter) batches(format format) (stages.MapFilter, error) {
	chain := f.session.pool.budget.chain()
	chain.Commands = slices.Clone(f.chain)
	chain.Commands[0].Batch = min(batchTime, f.chain[0].Timeout)
	together, err := wire.Prepare(chain)
	if err != nil {
		return nil, unprepared(err, f.chain[0].Name)
	}
	return func(ctx context.Context, jobs <-chan stages.Job, concurrency int) {
		b := &batcher{f: f, together: together, format: format, window: batchItems, ended: make(chan batch)}
		b.run(ctx, jobs, max(concurrency, 1))
	}, nil
}

// run starts a batch when jobs wait and the one before has ended or is slow. At most concurrency batches run at the same time.
func (b *batcher) run(ctx context.Context, jobs <-chan stages.Job, concurrency int) {
	late := time.NewTimer(quick)
	defer late.Stop()
	hold := false // until the last batch has ended, or is late
	for {
		if len(b.waiting) > 0 && b.running < concurrency && !hold {
			hold = b.apart == 0 && b.window > 1
			late.Reset(quick)
			b.start(ctx)
			continue
		}
		more := jobs
		switch {
		case len(b.waiting) >= b.window:
			more = nil
		case jobs == nil && len(b.waiting) == 0 && b.running == 0:
			return
		}
		select {
		case j, ok := <-more:
			if !ok {
				jobs = nil
				continue
			}
			b.waiting = append(b.waiting, j)
		case last := <-b.ended:
			b.running--
			b.waiting = slices.Concat(last.jobs, b.waiting)
			b.adapt(last)
			hold = false
		case <-late.C:
			hold = false
		}
	}
}

// start runs the first of the jobs that wait.
func (b *batcher) start(ctx context.Context) {
	n := b.span(b.waiting[:min(b.window, len(b.waiting))])
	if b.apart > 0 {
		n, b.apart = 1, b.apart-1
	}
	jobs := b.waiting[:n:n]
	b.waiting = b.waiting[n:]
	b.running++
	go func() { b.ended <- b.work(ctx, jobs) }()
}

// span returns how many of the first jobs can go together, at least 1.
func (b *batcher) span(jobs []stages.Job) int {
	size := 0
	for i, j := range jobs {
		in := j.Input()
		if size += len(in); !b.format.fits(in) || size > batchBytes {
			return max(i, 1)
		}
	}
	return len(jobs)
}

// adapt has more items go together after a batch that was quick, and fewer after one that was not.
func (b *batcher) adapt(last batch) {
	switch {
	case last.next == 0:
		b.apart += len(last.jobs)
	case last.next < last.size:
		b.window = last.next
	case last.quick && last.size >= b.window:
		b.window = min(2*b.window, batchItems)
	}
}

// work runs jobs in one process.
func (b *batcher) work(ctx context.Context, jobs []stages.Job) batch {
	start := time.Now()
	ended, next, failed := len(jobs), len(jobs), false
	switch {
	case ctx.Err() != nil:
		for _, j := range jobs {
			j.End(stages.ErrUntried)
		}
	case len(jobs) == 1:
		failed = !b.alone(ctx, jobs[0])
	default:
		ended, next = b.through(ctx, jobs)
	}
	took := time.Since(start)
	if took > slow && next > 0 {
		next = max(1, next/2)
	}
	return batch{jobs: jobs[ended:], size: len(jobs), next: next, quick: ended == len(jobs) && !failed && took <= quick}
}

// through runs jobs in one process. It returns how many of them have ended, and how many may go together next.
func (b *batcher) through(ctx context.Context, jobs []stages.Job) (ended, next int) {
	answers, used, err := b.answers(ctx, jobs)
	if err != nil && ctx.Err() != nil {
		return 0, 0
	}
	ended = b.hand(ctx, jobs, answers, used)
	e, _ := errors.AsType[*stages.Error](err)
	switch {
	case err == nil:
		return ended, ended
	case ctx.Err() != nil || e == nil || e.Code != stages.CommandFailed:
		return ended, 0
	case b.format.prefix && ended < len(jobs): // the first without an answer is the reason
		b.alone(ctx, jobs[ended])
		ended++
	}
	return ended, len(jobs) / 2
}

// The faults of a batch whose output cannot be used.
var (
	errTooMuch = errors.New("its items write too much together")
	errNotEach = errors.New("it does not have one answer for each item")
)

// answers returns what one process answers to jobs: to all of them, or, if the format says so, to the first of them.
func (b *batcher) answers(ctx context.Context, jobs []stages.Job) (answers []answer, used stages.Usage, err error) {
	var in []byte
	for _, j := range jobs {
		in = b.format.append(in, j.Input())
	}
	f := *b.f
	f.prepared, f.used = b.together, func(_ int, u stages.Usage) { used = u }
	out := bounded{max: batchOutput}
	err = f.run(ctx, bytes.NewReader(in), &out)
	switch {
	case out.over:
		return nil, used, errTooMuch
	case err != nil && !b.format.prefix:
		return nil, used, err
	}
	left := out.b
	for len(answers) < len(jobs) {
		a, rest, ok := b.format.cut(left)
		if !ok {
			break
		}
		answers, left = append(answers, a), rest
	}
	some := b.format.prefix && len(answers) > 0
	if err == nil && (len(left) > 0 || len(answers) < len(jobs) && !some) {
		return nil, used, errNotEach
	}
	return answers, used, err
}

// hand gives jobs their answers, and returns how many have ended. When the error of one has ended ctx, those behind it
// have not begun.
func (b *batcher) hand(ctx context.Context, jobs []stages.Job, answers []answer, used stages.Usage) (ended int) {
	n := time.Duration(len(answers))
	for i, a := range answers {
		// Nobody has measured the time of each: it gets its part.
		u := stages.Usage{BytesIn: int64(len(jobs[i].Input())), Elapsed: max(used.Elapsed/n, 1), CPU: used.CPU / n}
		if i == 0 {
			u.Said = used.Said
		}
		var err error
		if a.status == 0 {
			u.BytesOut = int64(len(a.text))
			_, err = jobs[i].Write(a.text)
		} else {
			err = b.f.exit(a, jobs[i].Input())
		}
		if b.f.used != nil {
			b.f.used(0, u)
		}
		if jobs[i].End(err); err != nil && ctx.Err() != nil {
			return i + 1
		}
	}
	return len(answers)
}

// exit is the error of an item on which a command has failed.
func (f *filter) exit(a answer, in []byte) error {
	sample := bytes.Clone(in[:min(len(in), wire.SampleSize)])
	message := string([]rune(string(a.text))) // as JSON would carry it
	return f.explain(&wire.Failure{Reason: wire.Exit, Status: a.status, Stderr: message, Sample: sample, Cut: len(sample) < len(in)})
}

// alone runs a job in a process of its own. It reports whether that was a success.
func (b *batcher) alone(ctx context.Context, j stages.Job) bool {
	err := b.f.run(ctx, bytes.NewReader(j.Input()), j)
	j.End(err)
	return err == nil
}

// bounded keeps up to max bytes that are written. If there are more, Write returns full, which may be nil.
type bounded struct {
	max  int
	full error
	b    []byte
	over bool
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.over = b.over || len(b.b)+len(p) > b.max; b.over {
		return len(p), b.full
	}
	b.b = append(b.b, p...)
	return len(p), nil
}
