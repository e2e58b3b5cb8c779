package runs

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/mcsh-dev/mcsh/store"
)

// Times of rows.
const (
	beginAfter = 2 * time.Second  // of a run under way, until its first part is written
	partEvery  = 2 * time.Second  // the time between two parts of a run that has something to add
	beatEvery  = 5 * time.Second  // the longest time between two parts of a run under way
	deadAfter  = 15 * time.Second // without a new part, until a reader takes a run under way for dead
	putTimeout = 30 * time.Second // for one part
	giveUp     = time.Minute      // of failures, until an ended run is not written any more
)

const (
	maxSending = 4    // ended runs that are written at the same time
	maxWaiting = 1000 // ended runs that are being written or wait for that
)

// A row is a run in the shared store: parts "runs/ID/00000000", "runs/ID/00000001" and so on. Whoever writes the next part
// decides how the run goes on.
type row struct {
	s *Store
	r *run

	turn    chan struct{}    // has one value, which is taken by whoever uses what follows
	next    int              // number of the next part
	sent    map[string]int64 // bytes of outputs that the parts have; -1: the whole output
	pending *pending         // the next part, which may have been written
	last    time.Time        // of the last part
	covered int64            // of asked: what was written before that is in the parts
	ended   bool             // the part that ends the run is written
	lost    error            // why nothing can be written any more
	holder  string           // the run that continues this one

	asked atomic.Int64 // calls of flush
	begun atomic.Bool  // a part may have been written
	used  time.Time    // when a part was written last because of a use; guarded by the store's mu
	timer *time.Timer  // nil once the run has ended; guarded by the store's mu
}

type pending struct {
	part part
	data []byte
	sent map[string]int64 // of the row, once it is written
}

// errTaken is the reason why a gateway cannot write a run any more that it keeps.
var errTaken = errors.New("another gateway has taken this run for dead, and may continue it")

// newRow returns the row of a run that begins.
func (s *Store) newRow(r *run) *row {
	w := &row{s: s, r: r, turn: make(chan struct{}, 1), sent: map[string]int64{}, used: time.Now()}
	w.turn <- struct{}{}
	w.timer = time.AfterFunc(beginAfter, w.tick)
	return w
}

// take takes the turn.
func (w *row) take(ctx context.Context) error {
	select {
	case <-w.turn:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (w *row) give() { w.turn <- struct{}{} }

// tick writes a part of a run under way.
func (w *row) tick() {
	ctx, cancel := context.WithTimeout(w.s.closing, putTimeout)
	defer cancel()
	if w.take(ctx) == nil {
		_ = w.send(ctx, time.Since(w.last) > beatEvery-partEvery) // the next tick tries again
		w.give()
	}
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	if w.timer != nil && !w.s.closed {
		w.timer.Reset(partEvery)
	}
}

// flush returns when all that was written to the run before the call is in the shared store.
func (w *row) flush(ctx context.Context) error {
	ticket := w.asked.Add(1)
	if err := w.take(ctx); err != nil {
		return err
	}
	defer w.give()
	if w.covered >= ticket {
		return nil
	}
	return w.send(ctx, false)
}

// send writes what the parts lack; with beat at least one part, which says that this gateway is there. The caller has the turn.
func (w *row) send(ctx context.Context, beat bool) error {
	w.begun.Store(true) // before anything is read: see Flush
	covers := w.asked.Load()
	for {
		if w.pending == nil {
			next, err := w.collect()
			if err != nil {
				w.lost = err
			} else if len(next.part.Pieces) == 0 && !next.part.Ended && !beat {
				w.covered = covers
				return nil
			}
			w.pending = &next
		}
		beat = false
		if err := w.put(ctx, w.pending); err != nil {
			return err
		}
		w.pending = nil
	}
}

// put writes the next part. The caller has the turn.
func (w *row) put(ctx context.Context, p *pending) error {
	if w.lost != nil {
		return w.lost
	}
	err := w.s.writePart(ctx, w.r.id, w.next, p.part, p.data)
	if errors.Is(err, store.ErrExists) {
		w.lost = errTaken
		return errTaken
	}
	if err == nil {
		w.next, w.sent, w.last, w.ended = w.next+1, p.sent, time.Now(), w.ended || p.part.Ended
	}
	return err
}

// collect returns the next part: of ended outputs and of logs what the parts lack, and the end of the run when nothing else is
// left.
func (w *row) collect() (pending, error) {
	s := w.s
	s.mu.Lock()
	kept, over := s.runs[w.r.id] == w.r, w.r.inEnded != nil
	outputs := maps.Clone(w.r.outputs)
	s.unlock()
	if !kept {
		return pending{}, errors.New("the run was evicted before it was written")
	}
	p := pending{part: part{Writer: rand.Text(), Caller: w.r.caller}, sent: maps.Clone(w.sent)}
	for _, name := range slices.Sorted(maps.Keys(outputs)) {
		if len(p.data) == maxPart || len(p.part.Pieces) == maxPieces {
			return p, nil
		}
		if err := p.add(s, name, outputs[name]); err != nil {
			return pending{}, err
		}
	}
	p.part.Ended = over && !w.ended && len(p.data) < maxPart && len(p.part.Pieces) < maxPieces
	return p, nil
}

// add adds what the parts lack of an output, as far as there is room.
func (p *pending) add(s *Store, name string, o *output) error {
	from := p.sent[name]
	if from < 0 {
		return nil
	}
	x := piece{Output: name}
	data, ended, err := s.peek(o, from, int64(maxPart-len(p.data)))
	if err != nil {
		return err
	}
	p.data = append(p.data, data...)
	x.Size = int64(len(data))
	p.sent[name] = from + x.Size
	if x.Ended = ended; ended {
		x.Incomplete = o.incomplete // does not change any more
		p.sent[name] = -1
	}
	if x.Size > 0 || x.Ended {
		p.part.Pieces = append(p.part.Pieces, x)
	}
	return nil
}

// finish writes the end of a run.
func (w *row) finish() {
	s := w.s
	defer s.waiting.Add(-1)
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-s.closing.Done():
		return
	}
	var err error
	begin, pause := time.Now(), 100*time.Millisecond
	for time.Since(begin) < giveUp {
		if err = w.flush(s.closing); err == nil || w.lostNow() {
			break
		}
		select {
		case <-time.After(pause):
		case <-s.closing.Done():
			return
		}
		pause = min(2*pause, 5*time.Second)
	}
	if err != nil {
		s.problem(fmt.Errorf("a run is kept by this gateway alone: %w", err))
	}
}

func (w *row) lostNow() bool {
	<-w.turn
	defer w.give()
	return w.lost != nil
}

// end has the end of the run written behind. The caller has the store's mu.
func (w *row) end() {
	w.timer.Stop()
	w.timer = nil
	s := w.s
	if s.closed {
		return
	}
	if s.waiting.Add(1) > maxWaiting {
		s.waiting.Add(-1)
		go s.problem(errors.New("a run is kept by this gateway alone: too many runs wait for the shared store"))
		return
	}
	s.background.Go(w.finish)
}

// touch notes a use of an ended run, so that the shared store keeps it as long as this one does. The caller has the store's mu.
func (w *row) touch() {
	s := w.s
	if time.Since(w.used) < s.o.TTL/2 || s.closed {
		return
	}
	w.used = time.Now()
	s.background.Go(func() {
		ctx, cancel := context.WithTimeout(s.closing, putTimeout)
		defer cancel()
		if w.take(ctx) != nil {
			return
		}
		defer w.give()
		if w.ended {
			_, _ = w.follow(ctx, part{Writer: rand.Text()}) // without it the run is kept for a shorter time
		}
	})
}

// follow reads the parts behind the end of the run, and writes one behind them unless the run has a holder. It reports whether
// it has. The caller has the turn.
func (w *row) follow(ctx context.Context, next part) (written bool, err error) {
	for {
		p, _, err := w.s.readPart(ctx, w.r.id, w.next)
		switch {
		case err == nil:
			w.next++
			if p.Claim != nil {
				w.holder = *p.Claim
			}
			continue
		case !errors.Is(err, store.ErrNotFound):
			return false, err
		case next.Writer == "" || next.Claim != nil && w.holder != "" && *next.Claim != "":
			return false, nil
		}
		err = w.s.writePart(ctx, w.r.id, w.next, next, nil)
		if errors.Is(err, store.ErrExists) {
			continue
		}
		if err == nil {
			w.next++
			if next.Claim != nil {
				w.holder = *next.Claim
			}
		}
		return err == nil, err
	}
}

// Flush returns when all that was written to a run under way is safe from the end of this process. Before the first part of a
// run is written no other gateway can continue it, so there is nothing to wait for.
func (c *Caller) Flush(ctx context.Context, id string) error {
	w := c.rowOf(id)
	if w == nil || !w.begun.Load() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()
	return w.flush(ctx)
}

// flushTimeout is how long a call that may change something waits for the shared store.
const flushTimeout = 10 * time.Second

// rowOf returns the row of one of the caller's runs; nil where it has none.
func (c *Caller) rowOf(id string) *row {
	c.s.mu.Lock()
	defer c.s.unlock()
	if r := c.s.runs[id]; r != nil && r.caller == c.name {
		return r.row
	}
	return nil
}

// Outlive reports whether runs outlive this process.
func (c *Caller) Outlive() bool { return c.s.o.Shared != nil }

// Sync waits until the runs that have ended are in the shared store.
func (s *Store) Sync(ctx context.Context) error {
	for ask := time.NewTicker(5 * time.Millisecond); s.waiting.Load() > 0; {
		select {
		case <-ask.C:
		case <-ctx.Done():
			return fmt.Errorf("%d runs are not yet in the shared store: %w", s.waiting.Load(), context.Cause(ctx))
		}
	}
	return nil
}

func (s *Store) problem(err error) {
	if s.o.Problem != nil {
		s.o.Problem(err)
	}
}
