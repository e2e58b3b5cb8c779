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
	w := &window{e: e, cancel: cancel, in: newItems(in, e.r.deps.Limits.Item)}
	w.changed.L = &w.mu
	// Neither a read nor a wait has a context: when the items end early, both must wake up.
	stop := context.AfterFunc(ctx, func() { stopReading(in); w.wake() })
	defer stop()
	var emitted error
	var emitter sync.WaitGroup
	emitter.Go(func() {
		defer func() {
			if emitted != nil {
				w.fail(emitted)
			}
		}()
		defer recovered(&emitted)
		emitted = w.emit(out)
	})
	w.dispatch(ctx)
	w.running.Wait()
	emitter.Wait()
	w.drain()
	w.count(w.err)
	switch {
	case context.Cause(ctx) == errTooSlow && !w.complete:
		return e.tooSlow()
	case ctx.Err() != nil && !w.complete && (w.err == nil || echo(w.err)):
		if emitted != nil {
			return emitted
		}
		return context.Cause(ctx)
	}
	return w.err
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

// window is the items of one for_each that have begun and whose results are not written yet.
type window struct {
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

func (w *window) wake() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changed.Broadcast()
}

// dispatch reads items and starts them, until the input ends, something fails, or nobody reads the results.
func (w *window) dispatch(ctx context.Context) {
	defer func() {
		w.mu.Lock()
		w.ended = true
		w.changed.Broadcast()
		w.mu.Unlock()
	}()
	for w.ready(ctx) {
		it, err := w.in.next()
		if err == io.EOF {
			return
		}
		if err != nil {
			w.fail(err)
			return
		}
		s, err := w.add(it)
		if err != nil {
			w.fail(err)
			return
		}
		w.running.Go(func() { w.perform(ctx, s) })
	}
}

// ready waits until one more item may begin: there is room to run it, no finished result waits for the reader, and
// the results that wait behind a slower item are within bounds. It reports false when no item may begin any more.
func (w *window) ready(ctx context.Context) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		if w.err != nil || ctx.Err() != nil {
			return false
		}
		blocked := w.writing || len(w.slots) > 0 && w.slots[0].done
		if w.active < w.e.concurrency && !blocked && w.waiting < w.e.r.deps.Limits.Waiting {
			return true
		}
		w.changed.Wait()
	}
}

func (w *window) add(it item) (*slot, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begun++
	if limit := w.e.r.deps.Limits.Items; w.begun > limit {
		return nil, Errorf(LimitExceeded, "filter the items before for_each", "there are more than %d items (limit items)", limit)
	}
	w.active++
	w.e.m.items.Add(1)
	s := &slot{item: it, number: w.begun, out: holder{r: w.e.r}}
	w.slots = append(w.slots, s)
	return s, nil
}

// perform runs one item.
func (w *window) perform(ctx context.Context, s *slot) {
	var err error
	func() {
		defer recovered(&err)
		data := s.item.data
		if !w.e.value {
			data = s.item.line()
		}
		err = w.e.body(ctx, bytes.NewReader(data), &s.out)
	}()
	if err != nil && !echo(err) && err != context.Cause(ctx) {
		err = w.itemError(s, err)
	}
	w.mu.Lock()
	w.active--
	s.done = true
	if err == nil {
		w.ok++
		w.waiting += int64(s.out.buf.Len())
	}
	w.changed.Broadcast()
	w.mu.Unlock()
	if err != nil {
		w.fail(err)
		return
	}
	w.e.r.finished()
}

// itemError says which item failed and shows it.
func (w *window) itemError(s *slot, err error) error {
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	if e.Item != 0 {
		e.Msg += " (within item " + strconv.Itoa(s.number) + " of the for_each around it)"
	}
	e.Item, e.Sample, e.Cut = s.number, s.item.data, false
	return e
}

// count tells the failure of an item what became of the others, once none of them runs any more: items with effects
// that had begun were let finish.
func (w *window) count(err error) {
	var e *Error
	if !errors.As(err, &e) || e.Item == 0 {
		return
	}
	e.Done, e.Started = w.ok, w.begun
	if w.in.atEnd {
		e.Items = w.begun
	}
}

// fail keeps the first failure and ends everything else. Items with effects that have begun are let finish by their
// tool stages; should one of them fail after the reader has stopped, that is the failure.
func (w *window) fail(err error) {
	w.mu.Lock()
	if w.err == nil || echo(w.err) && !echo(err) {
		w.err = err
	}
	w.changed.Broadcast()
	w.mu.Unlock()
	if echo(err) {
		w.cancel(err)
		return
	}
	w.cancel(errBroken)
}

// emit writes the results in the order of the items, each as soon as all before it are written.
func (w *window) emit(out io.Writer) error {
	c := &collector{out: out, lines: w.e.lines, raw: w.e.raw}
	for {
		s, more := w.take()
		if s == nil {
			if more {
				return nil // something failed: the array stays open, and the reader is told
			}
			return c.end()
		}
		err := c.add(s.out.buf.Bytes())
		s.out.release()
		w.mu.Lock()
		w.writing = false
		w.changed.Broadcast()
		w.mu.Unlock()
		if err != nil {
			return err
		}
	}
}

// take waits for the result that is next in order. It returns nil and false after the last one, nil and true when
// there will be no complete output.
func (w *window) take() (*slot, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		switch {
		case w.err != nil:
			return nil, true
		case len(w.slots) > 0 && w.slots[0].done:
			s := w.slots[0]
			w.slots = w.slots[1:]
			w.writing = true
			w.waiting -= int64(s.out.buf.Len())
			return s, true
		case w.ended && len(w.slots) == 0:
			w.complete = w.in.atEnd
			return nil, !w.complete
		}
		w.changed.Wait()
	}
}

// drain gives back the memory of results that were not written.
func (w *window) drain() {
	for _, s := range w.slots {
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
