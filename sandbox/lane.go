package sandbox

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/mcsh-dev/mcsh/sandbox/wire"
	"github.com/mcsh-dev/mcsh/stages"
)

// How much is on its way to one process. What is there and not begun could run in another one instead, so there is much
// only of what takes no longer than its way.
const (
	maxAhead = 128                    // items
	maxBytes = 64 << 10               // of all of them
	growth   = 3                      // how many more for each that was cheap
	cheap    = 250 * time.Microsecond // an item takes less of a processor than that
)

// maxVain is how many processes may end one after another without an answer and without a reason.
const maxVain = 4

// A lane is the way of items to one process at a time and back.
type lane struct {
	f    *filter
	jobs <-chan stages.Job
	wake chan struct{} // something has changed for the sender
	vain int           // processes that have answered nothing, since the last that has
	last bool          // the job that has just failed ends all of them

	mu       sync.Mutex
	again    []stages.Job  // that go before those to come; guarded by mu as everything below
	sent     []stages.Job  // that were not answered, in order
	bytes    int           // of sent
	window   int           // how many may be sent
	alone    int           // of again, those that go one by one: one of them may have ended the process
	answered int           // since the last review
	spent    time.Duration // of a processor, for those
	waits    bool          // items wait for the process
	over     bool          // nothing is sent any more
}

// slow reports whether items have waited for the process, which has answered few since it was last asked.
func (l *lane) slow() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, spent := l.answered, l.spent
	l.answered, l.spent = 0, 0
	return l.waits && spent >= time.Duration(n)*worthwhile
}

// run runs jobs until there are no more, in one process after another.
func (l *lane) run(ctx context.Context) {
	if err := l.f.session.slot(ctx); err != nil {
		l.refuse(ctx, err)
		return
	}
	defer func() { <-l.f.session.slots }()
	if err := l.f.session.enter(); err != nil {
		l.refuse(ctx, err)
		return
	}
	defer l.f.session.leave()
	for {
		j := l.next()
		if j == nil {
			return
		}
		if ctx.Err() != nil {
			l.again = append([]stages.Job{j}, l.again...)
			l.refuse(ctx, cancelled(ctx))
			return
		}
		if in := j.Input(); len(in) > wire.MaxItem {
			l.wait(true) // those to come
			l.end(ctx, j, l.f.once(ctx, bytes.NewReader(in), j))
			l.wait(false)
			continue
		}
		l.again = append([]stages.Job{j}, l.again...)
		if err := l.through(ctx); err != nil {
			l.refuse(ctx, err)
			return
		}
	}
}

// wait notes whether items wait for one that goes by itself.
func (l *lane) wait(waits bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waits = waits
}

// next waits for a job, nil if there are no more. Nothing is on its way.
func (l *lane) next() stages.Job {
	l.over = false
	if len(l.again) > 0 {
		j := l.again[0]
		l.again = l.again[1:]
		return j
	}
	return <-l.jobs
}

// refuse ends all jobs, also those to come: with an error the one that it has met, the others with [stages.ErrUntried].
func (l *lane) refuse(ctx context.Context, err error) {
	err = at(err, 0, l.f.chain[0].Name)
	if l.last || len(l.sent) == 0 && ctx.Err() != nil {
		err = stages.ErrUntried
	}
	refuse(err, append(l.sent, l.again...), l.jobs)
}

// end ends a job that was begun.
func (l *lane) end(ctx context.Context, j stages.Job, err error) {
	j.End(err)
	l.last = err != nil && ctx.Err() != nil
}

// through sends jobs through one process until it is lost or there are no more. An error is about all jobs.
func (l *lane) through(ctx context.Context) error {
	stream, err := l.f.session.client.Each(l.f.id)
	if err != nil {
		return lostError(err)
	}
	c := newCall(stream, l.f.session)
	stop := context.AfterFunc(ctx, c.cancel)
	defer stop()
	go func() {
		defer close(c.fed)
		l.send(stream)
	}()
	count, cut, wrong := l.receive(ctx, stream)
	if cut || wrong != nil {
		c.cancel()
	}
	outcome, lost := stream.Outcome()
	l.f.session.judge(outcome, lost)
	l.mu.Lock()
	l.over = true
	l.mu.Unlock()
	l.poke()
	_ = c.close()
	switch {
	case ctx.Err() != nil:
		return cancelled(ctx)
	case lost != nil:
		return lostError(lost)
	case wrong != nil:
		l.f.session.spoil()
		return lostError(wrong)
	}
	if l.vain++; count > 0 || cut {
		l.vain = 0
	}
	if cut {
		outcome.Failure = nil
	}
	return l.settle(ctx, outcome.Failure, cut)
}

// settle takes back what was sent and not answered, but for the job that a failure is about.
func (l *lane) settle(ctx context.Context, failure *wire.Failure, cut bool) error {
	left := l.sent
	if len(left) > 0 {
		l.f.session.spoil()
	}
	l.sent, l.bytes, l.window = nil, 0, 1
	switch {
	case failure != nil && len(left) > 0:
		l.end(ctx, left[0], l.f.explain(failure))
		left = left[1:]
		l.alone = max(l.alone-1, 0)
		l.vain = 0
	case l.vain == maxVain:
		return lostError(errors.New("it does not answer items"))
	case !cut:
		l.alone = max(l.alone, len(left))
	}
	for _, j := range left {
		j.Forget()
	}
	l.again = append(left, l.again...)
	return nil
}

// poke wakes the sender.
func (l *lane) poke() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// send sends jobs as they come, and never waits for one while others are not on their way.
func (l *lane) send(stream *wire.Stream) {
	var buf []byte
	for {
		j, source, goes := l.pick()
		if goes && j == nil {
			if j, goes = l.await(source, stream, &buf); goes && j == nil {
				continue
			}
		}
		if !goes {
			break
		}
		if !l.register(j) {
			break
		}
		buf = wire.AppendItem(buf, j.Input())
		if len(buf) >= wire.MaxData && !flush(stream, &buf) {
			return
		}
	}
	if flush(stream, &buf) {
		_ = stream.End() // the receiver sees what is wrong
	}
}

// pick returns the next job, if there is one that was sent before, or else where to get one: from nowhere while there is
// no room. It reports false if nothing is sent any more.
func (l *lane) pick() (j stages.Job, source <-chan stages.Job, goes bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	window := l.window
	if l.alone > 0 {
		window = 1
	}
	l.waits = !l.over && len(l.sent) > 0 && (len(l.sent) >= window || l.bytes >= maxBytes)
	switch {
	case l.over || l.waits:
		return nil, nil, !l.over
	case len(l.again) > 0:
		j, l.again = l.again[0], l.again[1:]
		return j, nil, true
	}
	return nil, l.jobs, true
}

// await takes a job from source. Before it waits it sends what is to be sent. It returns nil and true if there may be
// another source now, and false when there are no more.
func (l *lane) await(source <-chan stages.Job, stream *wire.Stream, buf *[]byte) (stages.Job, bool) {
	select {
	case j, ok := <-source:
		return j, ok
	default:
	}
	if !flush(stream, buf) {
		return nil, false
	}
	select {
	case j, ok := <-source:
		return j, ok
	case <-l.wake:
		return nil, true
	}
}

// register notes that a job is on its way. It reports false for one that is too large to go with others.
func (l *lane) register(j stages.Job) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(j.Input()) > wire.MaxItem {
		l.again = append([]stages.Job{j}, l.again...)
		return false
	}
	l.sent = append(l.sent, j)
	l.bytes += len(j.Input())
	return true
}

func flush(stream *wire.Stream, buf *[]byte) bool {
	if len(*buf) == 0 {
		return true
	}
	_, err := stream.Write(*buf)
	*buf = (*buf)[:0]
	return err == nil
}

// receive hands answers to their jobs, until there are no more or a job has refused its output, which is cut then. It
// returns how many jobs have ended; an error says what the worker did wrong.
func (l *lane) receive(ctx context.Context, stream *wire.Stream) (count int, cut bool, err error) {
	answers := wire.NewAnswers(stream)
	var spent time.Duration // for n items, of which some may have been told before
	n, told := 0, 0
	for {
		output, end, err := answers.Next()
		if err != nil {
			return count, false, wrongful(err)
		}
		j := l.first()
		switch {
		case j == nil:
			return count, false, errors.New("it answers an item that it was not sent")
		case end == nil:
			if _, err := j.Write(output); err != nil {
				l.leave(j)
				l.end(ctx, j, err)
				return count + 1, true, nil
			}
			continue
		case len(end.Usage) > 1:
			return count, false, errors.New("it reports what several commands used, and there is one")
		}
		count, n = count+1, n+1
		for _, u := range end.Usage {
			spent += u.CPU
		}
		l.leave(j)
		l.finish(ctx, j, end)
		if l.last {
			return count, false, nil
		}
		if !answers.Ready() {
			l.pace(n-told, n, spent)
			if told = n; spent > 0 {
				n, told, spent = 0, 0, 0
			}
		}
	}
}

// wrongful returns err if it says what the worker did wrong. Of any other the outcome says why.
func wrongful(err error) error {
	if _, ok := errors.AsType[*wire.ProtocolError](err); ok {
		return err
	}
	return nil
}

// pace takes note of some items that were answered together, and has the sender go on. What they took is that of the last
// n: a worker may know it of several only.
func (l *lane) pace(some, n int, spent time.Duration) {
	l.mu.Lock()
	l.answered += some
	l.spent += spent
	if spent < time.Duration(n)*cheap {
		l.window = min(l.window+growth*some, maxAhead)
	} else {
		l.window = 1
	}
	waits := l.waits
	l.mu.Unlock()
	if waits {
		l.poke()
	}
}

// first returns the job that is answered next.
func (l *lane) first() stages.Job {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.sent) == 0 {
		return nil
	}
	return l.sent[0]
}

// leave takes leave of the first job.
func (l *lane) leave(j stages.Job) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent = l.sent[1:]
	l.bytes -= len(j.Input())
	l.alone = max(l.alone-1, 0)
}

// finish ends a job as its answer says.
func (l *lane) finish(ctx context.Context, j stages.Job, end *wire.Outcome) {
	if l.f.used != nil {
		for i, u := range end.Usage {
			l.f.used(i, stages.Usage{BytesIn: u.In, BytesOut: u.Out, Elapsed: u.Elapsed, CPU: u.CPU})
		}
	}
	l.f.session.judge(*end, nil)
	if end.Failure != nil {
		l.end(ctx, j, l.f.explain(end.Failure))
		return
	}
	j.End(nil)
}
