package stages

import (
	"context"
	"errors"
	"io"
	"strconv"
	"sync"
)

// slot is the place of one item in the order of results.
type slot struct {
	item   item
	number int // counted from 1
	out    holder
	value  bool // out is one JSON value, not what the stages wrote
	done   bool
}

// become makes a JSON value the result of the item.
func (s *slot) become(value []byte) error {
	s.value = true
	return s.out.adopt(value)
}

// queue is the items of one for_each that have begun and whose results are not written yet.
type queue struct {
	e       *each
	in      *items
	cancel  context.CancelCauseFunc
	running sync.WaitGroup
	many    *mapped // what runs them, if it takes many
	room    int     // items that may run

	mu       sync.Mutex
	place    sync.Cond // there may be a place for an item
	result   sync.Cond // there may be a result to be written
	slots    []*slot   // in the order of the items; guarded by mu, as is everything below
	active   int       // items that run
	writing  bool      // a result is on its way to the reader
	waiting  int64     // bytes of results that wait behind a slower item
	ended    bool      // no item will be added
	complete bool      // the input has ended and every result is written
	err      error     // the first failure
	begun    int       // items begun
	untried  int       // of those, items that were only on their way to what runs them when everything ended
	ok       int       // items that succeeded
	failed   int       // items that failed, let pass or not
}

func (q *queue) wake() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.changed()
}

// changed wakes both who wait; the caller has mu. There is one for places and one for results.
func (q *queue) changed() {
	q.place.Signal()
	q.result.Signal()
}

// dispatch reads items and starts them, until the input ends, something fails, or nobody reads the results.
func (q *queue) dispatch(ctx context.Context) {
	give := q.workers
	if q.many != nil {
		give = q.mapped
	}
	hand, end := give(ctx)
	defer func() {
		end()
		q.mu.Lock()
		q.ended = true
		q.result.Signal()
		q.mu.Unlock()
	}()
	for q.ready(ctx) {
		it, err := q.in.next()
		if err == io.EOF {
			return
		}
		if err != nil {
			q.fail(err)
			return
		}
		s, err := q.add(it)
		if err != nil {
			q.fail(err)
			return
		}
		hand(s)
	}
}

// workers returns how items are given to goroutines that run them, of which as many are started as are needed, and what
// ends those.
func (q *queue) workers(ctx context.Context) (hand func(*slot), end func()) {
	work := make(chan *slot, q.room)
	workers := 0
	return func(s *slot) {
		if workers < q.room {
			workers++
			q.running.Go(func() { q.labour(ctx, work) })
		}
		work <- s
	}, func() { close(work) }
}

// labour runs items until there are no more. Workers stay: a goroutine for each item would grow its stack anew.
func (q *queue) labour(ctx context.Context, work <-chan *slot) {
	for s := range work {
		q.perform(ctx, s)
	}
}

// ready waits until one more item may begin: there is room to run it, no finished result waits for the reader, and
// the results that wait behind a slower item are within bounds. It reports false when no item may begin any more.
func (q *queue) ready(ctx context.Context) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		if q.err != nil || ctx.Err() != nil {
			return false
		}
		blocked := q.writing || len(q.slots) > 0 && q.slots[0].done || q.active > 0 && q.e.r.crowded()
		if q.active < q.room && !blocked && q.waiting < q.e.r.deps.Limits.Waiting {
			return true
		}
		q.place.Wait()
	}
}

func (q *queue) add(it item) (*slot, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if limit := q.e.r.deps.Limits.Items; q.begun == limit {
		return nil, tooMany(limit)
	}
	if err := q.e.r.hold(int64(len(it.data))); err != nil {
		return nil, err
	}
	q.begun++
	q.active++
	q.e.m.items.Add(1)
	s := &slot{item: it, number: q.begun, out: holder{r: q.e.r}}
	q.slots = append(q.slots, s)
	return s, nil
}

func tooMany(limit int) error {
	return OverLimit("items", "filter the items before for_each", "there are more than %d items", limit)
}

// perform runs one item.
func (q *queue) perform(ctx context.Context, s *slot) {
	failed, err := q.end(ctx, s)
	q.leave(s, failed, err)
}

// leave takes leave of an item that has ended.
func (q *queue) leave(s *slot, failed bool, err error) {
	q.e.r.held.Add(-int64(len(s.item.data)))
	s.item = item{} // a result that waits behind a slower item does not keep its item
	q.settle(s, failed, err)
	if err == nil {
		q.e.r.finished()
	}
}

// end runs an item to its end and leaves in its slot what stands for it in the output. It reports whether the item
// failed; err is what ends the other items too.
func (q *queue) end(ctx context.Context, s *slot) (failed bool, err error) {
	defer recovered(&err)
	if known, err := q.known(s); known || err != nil {
		return false, err
	}
	t, err := q.e.try(ctx, s)
	return q.conclude(ctx, s, &t, err)
}

// known looks for the result of an item that an earlier run had.
func (q *queue) known(s *slot) (bool, error) {
	known, err := q.e.log.answer(s)
	if !known || err != nil {
		return false, err
	}
	q.e.m.resumed.Add(1)
	return true, q.e.form.success(s)
}

// conclude leaves in the slot what stands for an item that was tried, see end.
func (q *queue) conclude(ctx context.Context, s *slot, t *trial, err error) (failed bool, _ error) {
	if err != nil && t.unsure {
		q.e.log.doubt(s)
	}
	if err == nil {
		q.e.log.keep(s)
		q.e.m.tally.success(t.attempts)
		return false, q.e.form.success(s)
	}
	if echo(err) || err == context.Cause(ctx) {
		return false, err // it was cancelled
	}
	onError, f := q.e.form.onError, failureOf(err)
	if f == nil {
		onError = onErrorFail
	}
	q.e.m.tally.failure(messageOf(err), onError == onErrorSkip)
	if onError == onErrorFail {
		return true, q.itemError(s, err, t)
	}
	return true, q.e.form.failure(s, f, t)
}

// settle counts an item that has ended; err ends the others. Such a failure is known before the place of the item is
// free, so that no item takes it.
func (q *queue) settle(s *slot, failed bool, err error) {
	if err != nil {
		q.fail(err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.active--
	s.done = true
	switch {
	case failed:
		q.failed++
	case err == nil:
		q.ok++
	}
	q.waiting += int64(s.out.buf.Len())
	if len(q.slots) > 0 && q.slots[0] == s {
		q.result.Signal() // and no item begins before it is written
		return
	}
	q.place.Signal()
}

// itemError says which item failed and shows it. Of nested for_each stages the innermost shows its item, those around
// it say where that was.
func (q *queue) itemError(s *slot, err error, t *trial) error {
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	e.Msg += t.told(q.e.tries.more)
	if e.Item != 0 {
		e.Msg += " (within item " + strconv.Itoa(s.number) + " of the for_each around it)"
		return e
	}
	e.Item, e.Sample, e.Cut = s.number, s.item.data, false
	e.queue = q
	return e
}

// tell tells the failure of an item what became of the others, once none of them runs any more: items with effects
// that had begun were let finish.
func (q *queue) tell() {
	var e *Error
	if !errors.As(q.err, &e) || e.queue != q {
		return
	}
	e.Done, e.Failed, e.Started = q.ok, q.failed, q.begun-q.untried
	if q.in.atEnd {
		e.Items = q.begun
	}
}

// fail keeps the first failure and ends everything else. Items that have begun to change something are let finish, see
// [begun]; should one of them fail after the reader has stopped, that is the failure.
func (q *queue) fail(err error) {
	q.mu.Lock()
	if q.err == nil || echo(q.err) && !echo(err) {
		q.err = err
	}
	q.changed()
	q.mu.Unlock()
	if echo(err) {
		q.cancel(err)
		return
	}
	q.cancel(errBroken)
}

// emit writes the results in the order of the items, each as soon as all before it are written. Those that are there
// together are written together.
func (q *queue) emit(out io.Writer) error {
	c := &collector{form: q.e.form, list: valueList{out: out, lines: q.e.form.lines}}
	var batch []*slot
	for {
		var more bool
		batch, more = q.take(batch[:0])
		if len(batch) == 0 {
			if more {
				return nil // something failed: the array stays open, and the reader is told
			}
			return c.list.end()
		}
		var err error
		for _, s := range batch {
			if err == nil {
				err = c.add(s)
			}
			s.out.release()
		}
		if err == nil {
			err = c.list.flush()
		}
		q.mu.Lock()
		q.writing = false
		q.place.Signal()
		q.mu.Unlock()
		if err != nil {
			return err
		}
	}
}

// take waits for the result that is next in order, and appends it to batch with those behind it that are there. It appends
// nothing and returns false after the last one, nothing and true when there will be no complete output.
func (q *queue) take(batch []*slot) ([]*slot, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		switch {
		case q.err != nil:
			return nil, true
		case len(q.slots) > 0 && q.slots[0].done:
			for len(q.slots) > 0 && q.slots[0].done {
				s := q.slots[0]
				q.slots = q.slots[1:]
				q.waiting -= int64(s.out.buf.Len())
				batch = append(batch, s)
			}
			q.writing = true
			return batch, true
		case q.ended && len(q.slots) == 0:
			q.complete = q.in.atEnd
			return nil, !q.complete
		}
		q.result.Wait()
	}
}

// drain gives back the memory of results that were not written.
func (q *queue) drain() {
	for _, s := range q.slots {
		s.out.release()
	}
}
