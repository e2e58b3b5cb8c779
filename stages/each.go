package stages

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"
)

// each maps a filter over the items of its input: the one implementation of for_each (pipeline.md §4).
type each struct {
	r           *Run
	m           *Meter
	body        Filter
	many        *mapped // nil, or what runs the body on many items
	effect      Effect
	value       bool // the body takes its item as one value; else as a line
	concurrency int
	form        form
	tries       tries
	direct      bool // it gets the item of the for_each around it, unchanged
	timeout     time.Duration
	log         *itemLog
}

// filter runs the items of in and writes their results to out, in order. Two goroutines share the work: this one
// reads items and starts them, emit writes results.
func (e *each) filter(ctx context.Context, in io.Reader, out io.Writer) error {
	tooSlow := e.tooSlow() // one of its own for each run: a for_each around this one can be too slow as well
	ctx, cancelTimeout := context.WithTimeoutCause(ctx, e.timeout, tooSlow)
	defer cancelTimeout()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// Neither a read nor a wait has a context: when the items end early, both must wake up.
	stopIn := context.AfterFunc(ctx, func() { stopReading(in) })
	defer stopIn()
	source := in
	if e.effect == Changes {
		checked, err := e.checked(in)
		switch {
		case err != nil && context.Cause(ctx) == tooSlow:
			return tooSlow
		case err != nil:
			return err
		}
		defer checked.Close()
		source = checked.Reader()
	}
	q := &queue{e: e, cancel: cancel, in: newItems(source, e.r.deps.Limits.Item), room: e.concurrency}
	if e.many != nil && e.concurrency > 1 { // else none begins before the one before it has ended
		q.many, q.room = e.many, ahead
	}
	if err := e.run(ctx, q, out); q.complete || context.Cause(ctx) != tooSlow {
		return err
	}
	return e.late(q)
}

// run dispatches and emits the items of q.
func (e *each) run(ctx context.Context, q *queue, out io.Writer) error {
	q.place.L, q.result.L = &q.mu, &q.mu
	stop := context.AfterFunc(ctx, q.wake)
	defer stop()
	var emitted error
	var emitter sync.WaitGroup
	emitter.Go(func() {
		defer func() {
			if emitted != nil {
				q.fail(emitted)
			}
		}()
		defer recovered(&emitted)
		emitted = q.emit(out)
	})
	q.dispatch(ctx)
	q.running.Wait()
	emitter.Wait()
	q.drain()
	q.tell()
	if ctx.Err() != nil && !q.complete && (q.err == nil || echo(q.err)) {
		if emitted != nil {
			return emitted
		}
		return context.Cause(ctx)
	}
	return q.err
}

// checked reads all items before the first of them may change anything, so that one that is no JSON, or one too many,
// is found before.
func (e *each) checked(in io.Reader) (*spool, error) {
	limits := e.r.deps.Limits
	kept := e.r.newSpool()
	s := newItems(io.TeeReader(in, kept), limits.Item)
	for n := 0; ; n++ {
		it, err := s.next()
		if err == nil && n == limits.Items {
			err = tooMany(limits.Items)
		}
		if err == nil {
			err = e.log.verify(n+1, it)
		}
		if err == io.EOF {
			return kept, nil
		}
		if err != nil {
			kept.Close()
			return nil, err
		}
	}
}

// tooSlow is the cause of the context of items whose time is up.
func (e *each) tooSlow() error {
	return e.clock().late("pass fewer items, raise concurrency, or "+e.clock().more(),
		"the items of for_each took longer than %s together (%s)", shortTime(e.timeout), e.clock().words())
}

// late is [each.tooSlow] with what became of the items. None of them runs any more.
func (e *each) late(q *queue) error {
	err := e.tooSlow().(*Error)
	err.Msg += fmt.Sprintf("; %d of them had succeeded, %d had failed, %d were cut off", q.ok, q.failed, q.begun-q.untried-q.ok-q.failed)
	return err
}

func (e *each) clock() clock {
	return clock{e.timeout, e.r.deps.Limits.Run, "run", `the stage's "timeout"`}
}
