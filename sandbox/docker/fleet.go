package docker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/yamux"
)

// A fleet is the containers that there are: those that wait for a caller, and those that have one.
type fleet struct {
	launch  func(context.Context) (*box, error)
	options Options
	begins  chan struct{} // holds one value for each container that is being started
	ctx     context.Context
	cancel  context.CancelFunc
	work    sync.WaitGroup // starts and ends in the background

	mu       sync.Mutex
	boxes    map[*box]bool
	warm     []*box
	starting int           // for warm
	awaited  int           // starts that a caller waits for
	delay    time.Duration // before the next start in the background, after one that failed
	retry    *time.Timer
	closed   bool
}

// startsAtOnce is how many containers an engine is asked to start side by side: more only wait for each other.
const startsAtOnce = 4

// Waiting between starts in the background that fail.
const (
	firstDelay = time.Second
	longest    = time.Minute
)

var errClosed = errors.New("starting a worker: the driver is closed")

func newFleet(o Options, launch func(context.Context) (*box, error)) *fleet {
	f := &fleet{launch: launch, options: o, begins: make(chan struct{}, startsAtOnce), boxes: map[*box]bool{}}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	return f
}

// start launches a container when it is its turn, and ends with the fleet, which waits for it.
func (f *fleet) start(ctx context.Context) (*box, error) {
	if !f.enter() {
		return nil, errClosed
	}
	defer f.work.Done()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(f.ctx, func() { cancel(errClosed) })()
	select {
	case f.begins <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-f.begins }()
	b, err := f.launch(ctx)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	closed := f.closed
	if !closed {
		f.boxes[b] = true
		f.work.Go(func() { f.watch(b) })
	}
	f.mu.Unlock()
	if closed {
		b.destroy()
		return nil, errClosed
	}
	return b, nil
}

// enter begins work that close waits for; Done of work ends it. It returns false when the fleet has closed.
func (f *fleet) enter() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.closed {
		f.work.Add(1)
	}
	return !f.closed
}

// watch retires a container that has ended or of which its host says that it should.
func (f *fleet) watch(b *box) {
	select {
	case text := <-b.complaint:
		fmt.Fprintln(b.said, text) // it takes everything
	case <-b.session.CloseChan():
	case <-b.ended:
		return
	}
	f.retire(b)
}

// take returns a container for a run of caller, and counts the run. The container may have ended by then.
func (f *fleet) take(ctx context.Context, caller string) (*box, error) {
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return nil, errClosed
	}
	b := f.find(caller)
	if b == nil {
		f.makeRoom()
		b = f.adopt(caller)
	}
	if b != nil {
		f.begin(b)
		f.mu.Unlock()
		f.refill()
		return b, nil
	}
	f.awaited++
	f.mu.Unlock()

	b, err := f.start(ctx)
	f.mu.Lock()
	f.awaited--
	if err == nil {
		f.bind(b, caller)
		f.begin(b)
	}
	f.mu.Unlock()
	if err != nil {
		return nil, err
	}
	f.refill()
	return b, nil
}

// adopt gives a container that waits to a caller; nil: none waits.
func (f *fleet) adopt(caller string) *box {
	for len(f.warm) > 0 {
		b := f.warm[0]
		if b.session.IsClosed() {
			f.retireLocked(b)
			continue
		}
		f.warm = slices.Delete(f.warm, 0, 1)
		f.bind(b, caller)
		return b
	}
	return nil
}

// find returns a container of the caller that has room: the one with the fewest runs in it.
func (f *fleet) find(caller string) *box {
	var best *box
	for b := range f.boxes {
		if b.bound && b.caller == caller && f.serves(b) && (best == nil || b.active < best.active) {
			best = b
		}
	}
	return best
}

// serves reports whether a container has room for a run of its caller.
func (f *fleet) serves(b *box) bool {
	return !b.retired && !b.session.IsClosed() && b.active < f.options.Share && b.runs < f.options.Runs
}

// bind gives a container to a caller, for a while.
func (f *fleet) bind(b *box, caller string) {
	b.bound, b.caller = true, caller
	b.expiry = time.AfterFunc(f.options.Life, func() { f.retire(b) })
}

// begin counts a run, for which workers that wait make room.
func (f *fleet) begin(b *box) {
	b.active++
	b.runs++
	f.clear(b)
}

// makeRoom retires containers that wait for callers who may not come again, those that wait longest first, so that
// with one more there are no more containers with a caller than there may be runs.
func (f *fleet) makeRoom() {
	var idle []*box
	bound := f.awaited
	for b := range f.boxes {
		if !b.bound || b.retired {
			continue
		}
		if bound++; b.active == 0 {
			idle = append(idle, b)
		}
	}
	slices.SortFunc(idle, func(a, b *box) int { return a.left.Compare(b.left) })
	for _, b := range idle[:min(len(idle), max(bound+1-f.options.Max, 0))] {
		f.retireLocked(b)
	}
}

// done takes note that a run has left its container.
func (f *fleet) done(b *box) {
	f.mu.Lock()
	defer f.mu.Unlock()
	b.active--
	b.left = time.Now()
	if b.runs >= f.options.Runs || b.retired {
		f.retireLocked(b)
	}
}

// retire lets a container begin no run any more. It ends when the last run has left it.
func (f *fleet) retire(b *box) {
	f.mu.Lock()
	f.retireLocked(b)
	f.mu.Unlock()
	f.refill()
}

func (f *fleet) retireLocked(b *box) {
	b.retired = true
	if i := slices.Index(f.warm, b); i >= 0 {
		f.warm = slices.Delete(f.warm, i, i+1)
	}
	if b.active > 0 && !b.session.IsClosed() || !f.boxes[b] {
		return
	}
	delete(f.boxes, b)
	if b.expiry != nil {
		b.expiry.Stop()
	}
	f.work.Go(b.destroy)
}

// refill starts containers in the background until enough wait. One that fails is tried again later, and later still.
func (f *fleet) refill() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for !f.closed && f.retry == nil && len(f.warm)+f.starting < f.options.Warm {
		f.starting++
		f.work.Go(func() {
			b, err := f.start(f.ctx)
			f.started(b, err)
		})
	}
}

func (f *fleet) started(b *box, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.starting--
	switch {
	case err == nil:
		f.delay = 0
		if !b.retired {
			f.warm = append(f.warm, b)
			f.work.Go(func() { f.spare(b) })
		}
	case !f.closed && f.retry == nil:
		f.delay = min(max(2*f.delay, firstDelay), longest)
		f.retry = time.AfterFunc(f.delay, func() {
			f.mu.Lock()
			f.retry = nil
			f.mu.Unlock()
			f.refill()
		})
	}
}

// keep has a container wait for a caller.
func (f *fleet) keep(b *box) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !b.retired {
		f.warm = append(f.warm, b)
	}
}

// open opens the stream to a new worker of b: the one that waits, if there is one, and has another one wait.
func (f *fleet) open(b *box) (*yamux.Stream, error) {
	f.mu.Lock()
	stream := b.spare
	b.spare = nil
	f.mu.Unlock()
	if stream == nil {
		return b.session.OpenStream()
	}
	return stream, nil
}

// prepare has a worker wait in b for its next run, if there will be one.
func (f *fleet) prepare(b *box) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.closed && f.boxes[b] && !b.retired && b.spare == nil && b.runs < f.options.Runs {
		f.work.Go(func() { f.spare(b) })
	}
}

func (f *fleet) spare(b *box) {
	stream, err := b.session.OpenStream()
	if err != nil {
		return // the container has ended
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if b.spare == nil {
		b.spare = stream
		return
	}
	_ = stream.Close() // another one waits already
}

// close ends all containers and returns when they are gone.
func (f *fleet) close() {
	f.mu.Lock()
	f.closed = true
	if f.retry != nil {
		f.retry.Stop()
	}
	boxes := f.boxes
	f.boxes, f.warm = map[*box]bool{}, nil
	f.mu.Unlock()
	f.cancel()
	var ending sync.WaitGroup
	for b := range boxes {
		if b.expiry != nil {
			b.expiry.Stop()
		}
		ending.Go(b.destroy)
	}
	ending.Wait()
	f.work.Wait()
}
