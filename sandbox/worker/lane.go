//go:build linux

package worker

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mcsh-dev/mcsh/sandbox/wire"
)

// A lane is a run of one command on many items, which follow each other through one kept applet without waiting for an
// answer. It ends with the applet: whoever sends the items sends those again that were not answered.
type lane struct {
	worker  *worker
	stream  *wire.Stream
	chain   wire.Chain
	command wire.Command
	p       *process // the command on the present item; for the listener
	k       *kept
	answers *answerWriter
	ended   chan struct{} // closed when the listener has ended

	mu      sync.Mutex
	changed sync.Cond
	items   []laneItem    // that were not answered, guarded by mu as everything below
	number  int           // of items that were answered
	closed  bool          // no item will come
	over    bool          // no item will be served
	spent   bool          // the applet is not to be used again
	failure *wire.Failure // of the first of items, if the applet is lost while it is the first
	failed  int           // number, when failure was found
}

// A laneItem is what is remembered of an item.
type laneItem struct {
	sample []byte
	size   int
	came   time.Time
}

// calm is how much processor time an applet may use before its memory is looked at: with less, it cannot take much.
const calm = time.Millisecond

// each is the [wire.Runner] for many items.
func (w *worker) each(ctx context.Context, s *wire.Stream, chain wire.Chain) wire.Outcome {
	l := &lane{worker: w, stream: s, chain: chain, ended: make(chan struct{})}
	l.changed.L = &l.mu
	failure := l.start()
	if failure == nil {
		var feeding sync.WaitGroup
		feeding.Go(l.feed)
		go l.listen()
		failure = l.watch(ctx)
		idle := l.idle()
		if !idle {
			l.k.kill() // the feeder may wait for it
		}
		_ = s.StopReading() // a lost connection ends the worker
		feeding.Wait()
		l.release(idle)
	}
	if failure != nil {
		describeLimit(failure, chain)
	}
	return wire.Outcome{Failure: failure}
}

// start finds an applet for the command.
func (l *lane) start() *wire.Failure {
	refuse := func(format string, args ...any) *wire.Failure {
		return &wire.Failure{Reason: wire.Refused, Detail: fmt.Sprintf(format, args...)}
	}
	if len(l.chain.Commands) != 1 {
		return refuse("items are for one command, not for %d", len(l.chain.Commands))
	}
	l.command = l.chain.Commands[0]
	p, err := l.worker.newProcess(0, l.chain)
	switch {
	case err != nil:
		return refuse("%v", err)
	case p.key == "":
		p.how.drop()
		return refuse("%s is not kept for items", l.command.Name)
	}
	if failure := l.worker.meter.enter(p, l.chain.Worker); failure != nil {
		p.how.drop()
		if p.kept != nil {
			p.kept.end()
		}
		return failure
	}
	if p.kept == nil {
		if p.kept, err = keep(p); err != nil {
			l.worker.meter.leave(p)
			return refuse("%v", err)
		}
	}
	l.p, l.k = p, p.kept
	l.k.lane = true
	_ = l.k.in.SetWriteDeadline(time.Time{}) // of an item before
	l.answers = &answerWriter{w: l.stream}
	return nil
}

// feed hands items to the applet as they come. What has come is sent before more is waited for.
func (l *lane) feed() {
	to := bufio.NewWriterSize(l.k.in, frameMax)
	send := frameWriter{w: to}
	from := bufio.NewReaderSize(prompt{l.stream, to}, wire.MaxItem)
	buf := make([]byte, wire.MaxItem)
	for {
		item, err := wire.ReadItem(from, buf)
		if err != nil || !l.expect(item) {
			break
		}
		if len(item) > 0 {
			_, err = send.write(frameData, item)
		}
		if err == nil {
			_, err = send.write(frameEnd, nil)
		}
		if err != nil {
			break
		}
	}
	err := to.Flush()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if err != nil && !errors.Is(err, unix.EPIPE) { // of that the listener sees the reason
		l.over, l.spent = true, true
		l.k.kill()
	}
	l.changed.Broadcast()
}

// expect takes note of an item that is sent to the applet next. It reports false if the applet is gone: what is sent to
// it from now on is not what has ended it.
func (l *lane) expect(item []byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.items) == 0 && !l.k.reads() {
		l.over, l.spent = true, true
		l.changed.Broadcast()
	}
	if l.over {
		return false
	}
	l.items = append(l.items, laneItem{append([]byte(nil), item[:min(len(item), sampleSize)]...), len(item), time.Now()})
	if len(l.items) == 1 {
		l.changed.Broadcast()
	}
	return true
}

// wait waits for the next item and returns it with its number, nil if there is none.
func (l *lane) wait() (*laneItem, int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.items) == 0 && !l.closed && !l.over {
		l.changed.Wait()
	}
	if len(l.items) == 0 || l.over {
		l.over = true
		return nil, l.number
	}
	return &l.items[0], l.number
}

// listen passes on what the applet says of the items.
func (l *lane) listen() {
	defer close(l.ended)
	buf := l.worker.buffers.get()
	defer l.worker.buffers.pool.Put(buf)
	exits := make(chan *process, 1)
	last := time.Now() // when the item before was answered
	looked := l.k.used
	for {
		it, number := l.wait()
		if it == nil {
			return
		}
		l.p.again(later(last, it.came))
		out := l.k.begin(l.p, exits).out
		var size int64
		for {
			n, err := out.Read(*buf)
			if err != nil {
				break
			}
			size += int64(n)
			l.answers.output((*buf)[:n])
		}
		p := <-exits
		last = time.Now()
		p.elapsed = last.Sub(p.started)
		if !p.served {
			l.lost(p, number)
			return
		}
		l.answer(p, it, size)
		left := l.served()
		used := l.k.used - looked
		spent := l.k.used > l.command.Timeout || l.answers.broken || used > calm && !l.roomy()
		if used > calm {
			looked = l.k.used
		}
		if spent || left == 0 || l.k.receive.r.Buffered() == 0 {
			l.answers.flush()
		}
		if spent {
			l.stop()
			return
		}
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// roomy reports whether the applet may have a further item, see settle.
func (l *lane) roomy() bool {
	_, data := usedBy(l.k.statm)
	return data <= max(l.chain.Memory/keptShare, l.k.freshData())
}

// answer says how the present item has ended.
func (l *lane) answer(p *process, it *laneItem, size int64) {
	u := wire.Usage{In: int64(it.size), Out: size, Elapsed: max(p.elapsed, 1), CPU: p.spent}
	f := p.judge(false)
	if f == nil {
		l.answers.done(u)
		return
	}
	l.explain(f, it)
	l.answers.failed(wire.Outcome{Usage: []wire.Usage{u}, Failure: f})
}

func (l *lane) explain(f *wire.Failure, it *laneItem) {
	f.Sample, f.Cut = it.sample, it.size > len(it.sample)
	describeLimit(f, l.chain)
}

// served takes leave of an item that was answered, and returns how many are left.
func (l *lane) served() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.number++
	l.items = l.items[1:]
	return len(l.items)
}

// lost finds out what has ended the applet: a limit that one item has reached, or what a single item has done. Where
// there are more, an answer to one of them may be lost with it.
func (l *lane) lost(p *process, number int) {
	l.answers.flush() // output without an end
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.failure
	blameless := l.over || f != nil // it was killed for another reason
	l.over, l.spent = true, true
	if f != nil && l.failed != number {
		f = nil // that item was answered before the kill
	}
	if f == nil && !blameless && len(l.items) == 1 {
		f = p.judge(false)
	}
	if l.failure = f; f != nil {
		if f.Stderr == "" {
			f.Stderr = p.stderr.text()
		}
		l.explain(f, &l.items[0])
	}
}

// stop ends the lane while there may be items left, and the applet with it.
func (l *lane) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over, l.spent = true, true
}

// watch waits for the end, enforces what only time can tell, and returns why the first item without an answer has failed.
func (l *lane) watch(ctx context.Context) *wire.Failure {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	cancelled := ctx.Done()
	var c laneClock
	last := time.Now()
	for {
		select {
		case <-l.ended:
			l.mu.Lock()
			defer l.mu.Unlock()
			if ctx.Err() != nil {
				return &wire.Failure{Reason: wire.Cancelled}
			}
			return l.failure
		case <-cancelled:
			cancelled = nil
			l.cancel()
		case now := <-ticker.C:
			l.tick(&c, now.Sub(last))
			last = now
		}
	}
}

// cancel ends the lane now.
func (l *lane) cancel() {
	l.stop()
	l.changed.Broadcast()
	l.k.kill()
	l.stream.Abort()
}

// A laneClock measures how long the first item has been the first, but for the time in which nobody takes its output.
type laneClock struct {
	number int
	moves  uint64
	used   time.Duration
}

func (l *lane) tick(c *laneClock, d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failure != nil {
		return
	}
	condemned := l.worker.meter.check(l.p, l.chain)
	if len(l.items) == 0 {
		c.number = -1
		if condemned != nil {
			l.over, l.spent = true, true
			l.changed.Broadcast()
		}
		return
	}
	moves := l.answers.moves.Load()
	stuck := moves%2 == 1 && moves == c.moves
	switch {
	case c.number != l.number:
		c.number, c.used = l.number, 0
	case !stuck:
		c.used += d
	}
	c.moves = moves
	switch {
	case c.used > l.command.Timeout:
		l.failure = &wire.Failure{Reason: wire.Timeout}
	case l.k.spending(l.p) > l.command.Timeout+cpuGrace:
		l.failure = &wire.Failure{Reason: wire.CPULimit}
	default:
		l.failure = condemned
	}
	if l.failure != nil {
		l.failed = l.number
		l.k.kill()
	}
}

// idle reports whether the applet has served all items, of which there will be no more.
func (l *lane) idle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed && len(l.items) == 0 && !l.spent
}

// release keeps the applet for other items, or ends it.
func (l *lane) release(idle bool) {
	l.worker.meter.leave(l.p)
	l.k.whole, l.k.torn, l.k.lane = true, false, false
	l.k.used = max(l.k.used, l.k.clock()) // whatever it said last
	l.k.items = false
	if idle && l.k.settle(l.command, l.chain.Memory) {
		l.worker.idle.put(l.k)
		return
	}
	l.k.end()
}
