package stages

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// queue is the items of one for_each that have begun and whose results are not written yet.
type queue struct {
	e       *each
	in      *items
	cancel  context.CancelCauseFunc
	running sync.WaitGroup
	many    *mapped // what runs them, if it takes many
	room    int     // items that may run

	// Of dispatch, and of those who come after it.
	ran          int       // items begun whose results an earlier run has not kept
	since, until time.Time // when the first of them began, and when the others were left

	mu         sync.Mutex
	place      sync.Cond // there may be a place for an item
	result     sync.Cond // there may be a result to be written
	items      []*item   // in the order of the input; guarded by mu, as is everything below
	active     int       // items that run
	writing    bool      // a result is on its way to the reader
	waiting    int64     // bytes of results that wait behind a slower item
	ended      bool      // no item will be added
	complete   bool      // the input has ended, or is left to others, and every result is written
	handedOver bool      // no item begins here any more: others run them
	err        error     // the first failure
	begun      int       // items begun
	written    int64     // bytes of results
	untried    int       // items begun that were only on their way to what runs them when everything ended
	ok         int       // items that succeeded
	failed     int       // items that failed, tolerated or not
}

func newQueue(e *each, cancel context.CancelCauseFunc, in *items) *queue {
	q := &queue{e: e, cancel: cancel, in: in, room: e.concurrency, since: time.Now()}
	q.place.L, q.result.L = &q.mu, &q.mu
	if e.many != nil && e.concurrency > 1 && !e.r.cautious() && !e.r.effects.knowsFatal() { // else none begins before the one before it has ended
		q.many, q.room = e.many, ahead
	}
	return q
}

// run dispatches and emits the items.
func (q *queue) run(ctx context.Context, out *collector) error {
	defer context.AfterFunc(ctx, q.wake)()
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
	for _, it := range q.items { // what was not written
		it.result.release()
	}
	q.countOthers()
	if ctx.Err() != nil && !q.complete && (q.err == nil || echo(q.err)) {
		if emitted != nil {
			return emitted
		}
		return context.Cause(ctx)
	}
	return q.err
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
	give := q.oneByOne
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
		it, err := q.next()
		if err != nil {
			if err != io.EOF {
				q.fail(err)
			}
			return
		}
		if known, err := it.takeKept(); known || err != nil {
			q.endItem(it, false, err)
			continue
		}
		if q.ran++; q.ran == 1 {
			q.since = time.Now()
		}
		hand(it)
	}
}

// oneByOne returns how items are given to goroutines that run them, and what ends those. They stay: one for each item
// would grow its stack anew.
func (q *queue) oneByOne(ctx context.Context) (hand func(*item), end func()) {
	work := make(chan *item)
	for range q.room {
		q.running.Go(func() {
			for it := range work {
				q.finish(ctx, it, q.e.try(ctx, it))
			}
		})
	}
	return func(it *item) { work <- it }, func() { close(work) }
}

// ready waits until one more item may begin: there is room to run it, no finished result waits for the reader, and
// the results that wait behind a slower item are within bounds. It reports false when no item may begin any more.
func (q *queue) ready(ctx context.Context) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		if q.err != nil || ctx.Err() != nil || q.handOver() {
			return false
		}
		blocked := q.writing || len(q.items) > 0 && q.items[0].done || q.active > 0 && q.e.r.crowded()
		if q.active < q.most() && !blocked && q.waiting < q.e.r.deps.Limits.Waiting {
			return true
		}
		q.place.Wait()
	}
}

// handOver decides whether others run the items that have not begun, and reports that. The caller has mu.
func (q *queue) handOver() bool {
	switch {
	case q.begun == 0:
	case q.e.spreads:
		q.handedOver = q.e.first.over(q.begun, q.since)
	case q.e.shard != nil && q.begun+q.e.shard.Before >= q.e.begunBefore: // the next shard would not know what became of those
		calls := max(q.e.r.calls.Load(), int64(q.begun))
		q.handedOver = q.written >= q.e.shard.Output || calls >= q.e.shard.Calls || time.Since(q.since) > shardTime
	}
	if q.handedOver {
		q.until = time.Now()
	}
	return q.handedOver
}

// next begins the next item.
func (q *queue) next() (*item, error) {
	el, err := q.in.next()
	if err != nil {
		return nil, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.begun == q.e.r.deps.Limits.Items {
		return nil, q.e.r.deps.Limits.tooMany()
	}
	if err := q.e.r.hold(int64(len(el.data))); err != nil {
		return nil, err
	}
	q.begun++
	q.active++
	ahead := int64(q.in.r.Buffered())
	q.e.m.count(func(r *StageReport) { r.Items, r.ahead = r.Items+1, ahead })
	number := q.begun
	if q.e.shard != nil {
		number += q.e.shard.Before
	}
	it := &item{element: el, number: number, of: q.e, result: holder{r: q.e.r, buffer: buffer{lease: q.e.r.memory}}}
	q.items = append(q.items, it)
	return it, nil
}

func (l Limits) tooMany() error {
	return OverLimit(l.name("items"), "filter the items before for_each", "there are more than %d items", l.Items)
}

// finish ends an item whose stages have ended with err.
func (q *queue) finish(ctx context.Context, it *item, err error) {
	failed, err := it.conclude(ctx, err)
	q.endItem(it, failed, err)
}

// endItem ends an item and counts it; err ends the others. A result that waits behind a slower item keeps nothing of its own
// item. The failure is known before the place of the item is free, so that no item takes it.
func (q *queue) endItem(it *item, failed bool, err error) {
	q.e.r.release(int64(len(it.data)))
	it.element, it.before, it.hold, it.fed = element{}, failureGroups{}, nil, nil
	if err != nil {
		q.fail(err)
	} else {
		defer q.e.r.finished()
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.active--
	it.done = true
	switch {
	case failed:
		q.failed++
	case err == nil:
		q.ok++
	}
	q.waiting += int64(it.result.buf.Len())
	if len(q.items) > 0 && q.items[0] == it {
		q.result.Signal() // and no item begins before it is written
		return
	}
	q.place.Signal()
}

// countOthers adds to the failure of an item the counts of the others, once none of them runs any more: items with effects
// that had begun have finished.
func (q *queue) countOthers() {
	e, ok := errors.AsType[*Error](q.err)
	if !ok || e.each != q.e {
		return
	}
	e.Done, e.Failed, e.Started = q.ok, q.failed, q.begun-q.untried
	if q.in.atEnd {
		e.Items = q.begun
	}
}

// fail keeps the first failure and ends everything else. Items that have begun to change something finish, see
// [effectHold]; should one of them fail after the reader has stopped, that is the failure.
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
func (q *queue) emit(c *collector) error {
	var batch []*item
	for {
		batch = q.take(batch[:0])
		if len(batch) == 0 {
			return nil
		}
		var err error
		for _, it := range batch {
			if err == nil {
				err = c.collect(it)
			}
			it.result.release()
		}
		if err == nil {
			err = c.Flush()
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

// take waits for the result that is next in order, and appends it to batch with those behind it that are there. It returns
// nothing after the last one, and when an item has failed: then the array stays open, and the reader gets the error.
func (q *queue) take(batch []*item) []*item {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		switch {
		case q.err != nil:
			return nil
		case len(q.items) > 0 && q.items[0].done:
			for len(q.items) > 0 && q.items[0].done {
				it := q.items[0]
				q.items = q.items[1:]
				q.waiting -= int64(it.result.buf.Len())
				q.written += int64(it.result.buf.Len())
				batch = append(batch, it)
			}
			q.writing = true
			return batch
		case q.ended && len(q.items) == 0:
			q.complete = q.in.atEnd || q.handedOver
			return nil
		}
		q.result.Wait()
	}
}

// ahead is how many items may be on their way through a [MapFilter].
const ahead = 256

// mapped returns how items are given to the filter that takes many, and what ends it.
func (q *queue) mapped(ctx context.Context) (hand func(*item), end func()) {
	jobs := make(chan Job, q.room)
	q.running.Go(func() {
		if err := q.many.run(ctx, jobs, q.e.concurrency); err != nil {
			q.fail(err)
		}
	})
	return func(it *item) {
		it.fed, it.over = q.e.input(it), func(err error) { q.over(ctx, it, err) }
		jobs <- it
	}, func() { close(jobs) }
}

// over ends an item that was given to the filter of many, with how it has ended there.
func (q *queue) over(ctx context.Context, it *item, how error) {
	if how == ErrUntried {
		q.mu.Lock()
		q.untried++
		q.mu.Unlock()
		q.e.m.count(func(r *StageReport) { r.Items-- })
		q.endItem(it, false, cmp.Or(context.Cause(ctx), errBroken))
		return
	}
	it.attempts = 1
	it.in.describe(q.e.aboutInput(it.element))
	describeLines(q.many.link.steps, headers{in: &it.in, out: &it.out})
	q.finish(ctx, it, q.many.explain(ctx, how))
}

// collector writes the results of items.
type collector struct {
	valueList
	raw  bool    // results are bytes, passed on as they are
	open bool    // raw results so far do not end with a newline
	data *header // of the output, to be described with the first result; nil: it is
}

// collect writes one result, at the latest with the next Flush.
func (c *collector) collect(it *item) error {
	result := it.result.buf.Bytes()
	if c.data != nil {
		c.data.describe(about{Kind: it.out.get().Kind})
		c.data = nil
	}
	raw := c.raw && !it.isValue
	if c.open && (!raw || len(result) > 0) {
		c.WriteByte('\n')
		c.open = false
	}
	switch {
	case raw:
		if len(result) > 0 {
			c.open = !bytes.HasSuffix(result, []byte("\n"))
		}
		_, err := c.Write(result)
		return err
	case it.isValue:
		return c.add(result)
	}
	for _, v := range it.out.get().values(result) {
		if err := c.add(v); err != nil {
			return err
		}
	}
	return nil
}

// valueList writes values as one JSON array or as lines. A value is written at the latest with the next Flush. It keeps
// its first error.
type valueList struct {
	*bufio.Writer
	lines bool
	n     int64
}

// listChunk is how much is written at a time.
const listChunk = 8 << 10

func newValueList(out io.Writer, lines bool) valueList {
	return valueList{Writer: bufio.NewWriterSize(out, listChunk), lines: lines}
}

func (l *valueList) add(v json.RawMessage) error {
	switch {
	case l.lines:
		v = append(oneLine(v), '\n')
	case l.n == 0:
		l.WriteByte('[')
	default:
		l.WriteString(",\n")
	}
	l.n++
	_, err := l.Write(v)
	return err
}

// end closes the array.
func (l *valueList) end() error {
	if !l.lines {
		if l.n == 0 {
			l.WriteByte('[')
		}
		l.WriteString("]\n")
	}
	return l.Flush()
}

// run runs the items of in and writes their results to out, in order. Two goroutines share the work: this one reads
// items and starts them, emit writes results.
func (e *each) run(ctx context.Context, in io.Reader, out io.Writer) error {
	tooSlow := e.tooSlow() // one of its own for each run: a for_each around this one can be too slow as well
	ctx, cancelTimeout := e.r.clock.WithTimeout(ctx, e.m.step.clock.given, tooSlow)
	defer cancelTimeout()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// Neither a read nor a wait has a context: when the items end early, both must wake up.
	defer context.AfterFunc(ctx, func() { stopReading(in) })()
	source := in
	if e.changes {
		checked, err := e.checked(in, headersOf(ctx).in)
		switch {
		case err != nil && context.Cause(ctx) == tooSlow:
			return tooSlow
		case err != nil:
			return err
		}
		defer checked.Close()
		source = checked.Reader()
	}
	q := newQueue(e, cancel, e.items(source, headersOf(ctx).in))
	c := &collector{valueList: newValueList(out, e.Collect == collectLines), raw: e.raw, data: e.describe(headersOf(ctx))}
	err := q.run(ctx, c)
	if err == nil && q.handedOver && e.spreads {
		q.complete = false
		err = e.spread(ctx, q, c)
		q.complete = err == nil
	}
	switch {
	case err == nil:
		return c.end()
	case !q.complete && context.Cause(ctx) == tooSlow:
		return e.late(q)
	}
	return err
}

// items returns the items of the input.
func (e *each) items(in io.Reader, data *header) *items {
	s := newItems(in, e.r.deps.Limits.Item, data)
	if e.shard != nil {
		s.mode = (*items).frame
	}
	return s
}

// describe describes the output, and returns its header where that is left to the first result.
func (e *each) describe(h headers) *header {
	switch {
	case !e.raw:
		h.out.describe(about{Kind: Values})
	case !describeLines(e.body, h):
		return h.out
	}
	return nil
}

// checked reads all items before the first of them may change anything, so that one that is no JSON, or one too many,
// is found before.
func (e *each) checked(in io.Reader, data *header) (*spool, error) {
	limits := e.r.deps.Limits
	kept := e.r.newSpool()
	s := e.items(io.TeeReader(in, kept), data)
	before := 0
	if e.shard != nil {
		before = e.shard.Before
	}
	check := e.shardCheck()
	for n := 0; ; n++ {
		el, err := s.next()
		if err == nil && n == limits.Items {
			err = limits.tooMany()
		}
		if err == nil {
			e.log.verify(before+n+1, el)
			err = check.add(n, el)
		}
		if err == io.EOF {
			if err = check.end(); err == nil {
				return kept, nil
			}
		}
		if err != nil {
			kept.Close()
			return nil, err
		}
	}
}

// tooSlow is the cause of the context of items whose time is up.
func (e *each) tooSlow() error {
	c := e.m.step.clock
	return c.late("pass fewer items, raise concurrency, or "+c.more(),
		"the items of for_each took longer than %s together (%s)", shortTime(c.given), c.words())
}

// late is [each.tooSlow] with what became of the items. None of them runs any more.
func (e *each) late(q *queue) error {
	err := e.tooSlow().(*Error)
	err.Msg += fmt.Sprintf("; %d of them had succeeded, %d had failed, %d were cut off", q.ok, q.failed, q.begun-q.untried-q.ok-q.failed)
	return err
}
