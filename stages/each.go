package stages

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strconv"
	"sync"
	"time"
)

// each maps a filter over the items of its input: the one implementation of for_each (pipeline.md §4).
type each struct {
	r           *Run
	m           *Meter
	body        Filter
	effect      Effect
	value       bool // the body takes its item as one value; else as a line
	concurrency int
	lines       bool // one result a line, else one JSON array
	raw         bool // results are bytes, passed on as they are
	timeout     time.Duration
}

// filter runs the items of in and writes their results to out, in order. Two goroutines share the work: this one
// reads items and starts them, emit writes results.
func (e *each) filter(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, cancelTimeout := context.WithTimeoutCause(ctx, e.timeout, errTooSlow)
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
		case err != nil && context.Cause(ctx) == errTooSlow:
			return e.tooSlow()
		case err != nil:
			return err
		}
		defer checked.Close()
		source = checked.Reader()
	}
	return e.run(ctx, &queue{e: e, cancel: cancel, in: newItems(source, e.r.deps.Limits.Item)}, out)
}

// run dispatches and emits the items of q.
func (e *each) run(ctx context.Context, q *queue, out io.Writer) error {
	q.changed.L = &q.mu
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
	switch {
	case context.Cause(ctx) == errTooSlow && !q.complete:
		return e.tooSlow()
	case ctx.Err() != nil && !q.complete && (q.err == nil || echo(q.err)):
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
		_, err := s.next()
		if err == nil && n == limits.Items {
			err = tooMany(limits.Items)
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

// errTooSlow is the cause of the context of items whose time is up.
var errTooSlow = errors.New("the time of the items is up")

func (e *each) tooSlow() error {
	return Errorf(Timeout, "raise the stage's timeout, raise concurrency, or pass fewer items",
		"the items of for_each took longer than %s together (timeout of the stage)", e.timeout)
}

// slot is the place of one item in the order of results.
type slot struct {
	item   item
	number int // counted from 1
	out    holder
	done   bool
}

// queue is the items of one for_each that have begun and whose results are not written yet.
type queue struct {
	e       *each
	in      *items
	cancel  context.CancelCauseFunc
	running sync.WaitGroup

	mu       sync.Mutex
	changed  sync.Cond
	slots    []*slot // in the order of the items; guarded by mu, as is everything below
	active   int     // items that run
	writing  bool    // a result is on its way to the reader
	waiting  int64   // bytes of results that wait behind a slower item
	ended    bool    // no item will be added
	complete bool    // the input has ended and every result is written
	err      error   // the first failure
	begun    int     // items begun
	ok       int     // items that succeeded
}

func (q *queue) wake() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.changed.Broadcast()
}

// dispatch reads items and starts them, until the input ends, something fails, or nobody reads the results.
func (q *queue) dispatch(ctx context.Context) {
	defer func() {
		q.mu.Lock()
		q.ended = true
		q.changed.Broadcast()
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
		q.running.Go(func() { q.perform(ctx, s) })
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
		if q.active < q.e.concurrency && !blocked && q.waiting < q.e.r.deps.Limits.Waiting {
			return true
		}
		q.changed.Wait()
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
	return Errorf(LimitExceeded, "filter the items before for_each", "there are more than %d items (limit items)", limit)
}

// perform runs one item.
func (q *queue) perform(ctx context.Context, s *slot) {
	var err error
	func() {
		defer recovered(&err)
		data := s.item.data
		if !q.e.value {
			data = s.item.line()
		}
		err = q.e.body(ctx, bytes.NewReader(data), &s.out)
	}()
	if err != nil && !echo(err) && err != context.Cause(ctx) {
		err = q.itemError(s, err)
	}
	q.e.r.held.Add(-int64(len(s.item.data)))
	s.item = item{} // a result that waits behind a slower item does not keep its item
	q.settle(s, err)
	if err == nil {
		q.e.r.finished()
	}
}

// settle counts an item that has ended. Its failure is known before its place is free, so that no item takes it.
func (q *queue) settle(s *slot, err error) {
	if err != nil {
		q.fail(err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.active--
	s.done = true
	if err == nil {
		q.ok++
		q.waiting += int64(s.out.buf.Len())
	}
	q.changed.Broadcast()
}

// itemError says which item failed and shows it. Of nested for_each stages the innermost shows its item, those around
// it say where that was.
func (q *queue) itemError(s *slot, err error) error {
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
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
	e.Done, e.Started = q.ok, q.begun
	if q.in.atEnd {
		e.Items = q.begun
	}
}

// fail keeps the first failure and ends everything else. Items with effects that have begun are let finish by their
// tool stages; should one of them fail after the reader has stopped, that is the failure.
func (q *queue) fail(err error) {
	q.mu.Lock()
	if q.err == nil || echo(q.err) && !echo(err) {
		q.err = err
	}
	q.changed.Broadcast()
	q.mu.Unlock()
	if echo(err) {
		q.cancel(err)
		return
	}
	q.cancel(errBroken)
}

// emit writes the results in the order of the items, each as soon as all before it are written.
func (q *queue) emit(out io.Writer) error {
	c := &collector{out: out, lines: q.e.lines, raw: q.e.raw}
	for {
		s, more := q.take()
		if s == nil {
			if more {
				return nil // something failed: the array stays open, and the reader is told
			}
			return c.end()
		}
		err := c.add(s.out.buf.Bytes())
		s.out.release()
		q.mu.Lock()
		q.writing = false
		q.changed.Broadcast()
		q.mu.Unlock()
		if err != nil {
			return err
		}
	}
}

// take waits for the result that is next in order. It returns nil and false after the last one, nil and true when
// there will be no complete output.
func (q *queue) take() (*slot, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		switch {
		case q.err != nil:
			return nil, true
		case len(q.slots) > 0 && q.slots[0].done:
			s := q.slots[0]
			q.slots = q.slots[1:]
			q.writing = true
			q.waiting -= int64(s.out.buf.Len())
			return s, true
		case q.ended && len(q.slots) == 0:
			q.complete = q.in.atEnd
			return nil, !q.complete
		}
		q.changed.Wait()
	}
}

// drain gives back the memory of results that were not written.
func (q *queue) drain() {
	for _, s := range q.slots {
		s.out.release()
	}
}

// collector writes results as one JSON array or as lines.
type collector struct {
	out        io.Writer
	lines, raw bool
	n          int
	buf        []byte
}

// add writes one result. Each write is whole, so that a reader sees an element as soon as it is there.
func (c *collector) add(result []byte) error {
	if c.raw {
		_, err := c.out.Write(result)
		return err
	}
	c.buf = c.buf[:0]
	for _, v := range values(result) {
		switch {
		case c.lines:
			c.buf = append(append(c.buf, oneLine(v)...), '\n')
		case c.n == 0:
			c.buf = append(append(c.buf, '['), v...)
		default:
			c.buf = append(append(c.buf, ',', '\n'), v...)
		}
		c.n++
	}
	if len(c.buf) == 0 {
		return nil
	}
	_, err := c.out.Write(c.buf)
	return err
}

// end closes the array.
func (c *collector) end() error {
	end := "]\n"
	switch {
	case c.lines:
		return nil
	case c.n == 0:
		end = "[]\n"
	}
	_, err := io.WriteString(c.out, end)
	return err
}
