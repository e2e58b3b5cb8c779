package runs

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"sync/atomic"
	"time"

	"github.com/mcsh-dev/mcsh/internal/pausing"
	"github.com/mcsh-dev/mcsh/store"
)

// Times of journals.
const (
	beginAfter = 2 * time.Second  // of a run under way, until its first entry is written
	entryEvery = 2 * time.Second  // the time between two entries of a run that has something to add
	beatEvery  = 5 * time.Second  // the longest time between two entries of a run under way
	deadAfter  = 15 * time.Second // without a new entry, until a reader takes a run under way for dead
	putTimeout = 10 * time.Second // for one entry; a run under way counts as dead a little later
	giveUp     = time.Minute      // of failures, until an ended run is not written any more
)

const (
	maxSending = 8    // runs of a kind that are written at the same time; each holds an entry in memory, up to three times
	maxWaiting = 1000 // ended runs that are being written or wait for that
)

// A journal is a run in the shared store: entries "runs/HASH/00000000", "runs/HASH/00000001" and so on. The writer of the next entry
// decides how the run goes on.
type journal struct {
	s *Store
	r *run

	writer string // of the entries with the run

	turn    chan struct{}    // has one value; its taker may use the fields below
	next    int              // number of the next entry
	sent    map[string]int64 // bytes of outputs that the entries have; -1: the whole output
	last    time.Time        // of the last entry
	covered int64            // of asked: what was written before that is in the entries
	ended   bool             // the entry that ends the run is written
	lost    error            // why nothing can be written any more
	holder  string           // the run that continues this one

	asked atomic.Int64 // calls of flush
	begun atomic.Bool  // an entry may have been written
	used  time.Time    // when an entry was written last because of a use; guarded by the store's mu
	timer *time.Timer  // nil once the run has ended; guarded by the store's mu
}

// ErrTaken is the reason why a gateway cannot write a run any more that it keeps.
var ErrTaken = errors.New("another gateway has declared this run dead, and may continue it")

// newJournal returns the journal of a run that begins.
func (s *Store) newJournal(r *run) *journal {
	j := &journal{s: s, r: r, writer: rand.Text(), turn: make(chan struct{}, 1), sent: map[string]int64{}, used: time.Now()}
	j.turn <- struct{}{}
	j.timer = time.AfterFunc(beginAfter, j.tick)
	return j
}

// take takes the turn.
func (j *journal) take(ctx context.Context) error {
	select {
	case <-j.turn:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (j *journal) give() { j.turn <- struct{}{} }

// tick writes an entry of a run under way.
func (j *journal) tick() {
	ctx, cancel := context.WithTimeout(j.s.closing, putTimeout)
	defer cancel()
	if j.take(ctx) == nil {
		_ = j.send(ctx, time.Since(j.last) > beatEvery-entryEvery) // the next tick tries again
		j.give()
	}
	j.s.mu.Lock()
	defer j.s.mu.Unlock()
	if j.timer != nil && !j.s.closed {
		j.timer.Reset(entryEvery)
	}
}

// flush returns when all that was written to the run before the call is in the shared store.
func (j *journal) flush(ctx context.Context) error {
	ticket := j.asked.Add(1)
	if err := j.take(ctx); err != nil {
		return err
	}
	defer j.give()
	if j.covered >= ticket {
		return nil
	}
	return j.send(ctx, false)
}

// send writes what the entries lack; with beat at least one entry, which says that this gateway is there. The caller has the turn.
func (j *journal) send(ctx context.Context, beat bool) error {
	slots := j.slots()
	select {
	case slots <- struct{}{}:
		defer func() { <-slots }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	j.begun.Store(true) // before anything is read: see Flush
	for {
		covers := j.asked.Load()
		if j.ended { // the run may be evicted now
			j.covered = covers
			return nil
		}
		next, data, err := j.collect()
		switch {
		case err != nil:
			j.lost = err
		case len(next.Pieces) == 0 && !next.Ended && !beat:
			j.covered = covers
			return nil
		}
		beat = false
		whole, err := j.put(ctx, next, data)
		if err != nil {
			return err
		}
		if whole && !next.full(data) {
			j.covered = covers // what was added since then waits for the next call
			return nil
		}
	}
}

// slots returns the slots for the run as it is now: a run under way does not wait for those that have ended.
func (j *journal) slots() chan struct{} {
	j.s.mu.Lock()
	defer j.s.unlock()
	if j.r.inEnded != nil {
		return j.s.endedSlots
	}
	return j.s.liveSlots
}

// put writes the next entry, and reports whether it is the one that is there: an earlier call that got no answer may have written
// less. The caller has the turn.
func (j *journal) put(ctx context.Context, e entry, data []byte) (whole bool, err error) {
	if j.lost != nil {
		return false, j.lost
	}
	there, err := j.s.writeEntry(ctx, j.r.id, j.next, e, data)
	if errors.Is(err, store.ErrExists) {
		j.lost = ErrTaken
		return false, ErrTaken
	}
	if err != nil {
		return false, err
	}
	for _, x := range there.Pieces {
		if j.sent[x.Output] += x.Size; x.Ended {
			j.sent[x.Output] = -1
		}
	}
	j.next, j.last, j.ended = j.next+1, time.Now(), j.ended || there.Ended
	return slices.Equal(there.Pieces, e.Pieces) && there.Ended == e.Ended, nil
}

// collect returns the next entry and its data: of ended outputs and of logs what the entries lack, and the end of the run when nothing
// else is left.
func (j *journal) collect() (e entry, data []byte, err error) {
	s := j.s
	s.mu.Lock()
	kept, over := s.runs[j.r.id] == j.r, j.r.inEnded != nil
	outputs := maps.Clone(j.r.outputs)
	for _, o := range outputs {
		o.owners++ // an eviction empties none of them now
	}
	s.unlock()
	defer s.release(slices.Collect(maps.Values(outputs))...)
	if !kept {
		return entry{}, nil, errors.New("the run was evicted before it was written")
	}
	e = entry{Writer: j.writer, Caller: j.r.caller, Over: over}
	for _, name := range slices.Sorted(maps.Keys(outputs)) {
		from := j.sent[name]
		switch {
		case from < 0:
			continue
		case e.full(data):
			return e, data, nil
		}
		more, ended, incomplete, err := s.peek(outputs[name], from, int64(maxEntry-len(data)))
		if err != nil {
			return entry{}, nil, err
		}
		data = append(data, more...)
		if len(more) > 0 || ended {
			e.Pieces = append(e.Pieces, piece{
				Output: name, Log: outputs[name].log != nil, Size: int64(len(more)), Ended: ended, Incomplete: incomplete,
			})
		}
	}
	e.Ended = over && !e.full(data)
	return e, data, nil
}

// finish writes the end of a run.
func (j *journal) finish() {
	s := j.s
	defer s.waiting.Add(-1)
	ctx, cancel := context.WithTimeout(s.closing, giveUp)
	defer cancel()
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		err := j.flush(ctx)
		if err == nil || s.closing.Err() != nil {
			return
		}
		if ctx.Err() != nil || j.isLost(ctx) || pausing.For(ctx, pause) != nil {
			s.failed(alone(err))
			return
		}
	}
}

// isLost reports whether nothing can be written any more, or ctx has ended.
func (j *journal) isLost(ctx context.Context) bool {
	if j.take(ctx) != nil {
		return true
	}
	defer j.give()
	return j.lost != nil
}

// end starts to write the end of the run. The caller has the store's mu.
func (j *journal) end() {
	j.timer.Stop()
	j.timer = nil
	s := j.s
	if s.closed {
		return
	}
	if s.waiting.Add(1) > maxWaiting {
		s.waiting.Add(-1)
		s.background.Go(func() { s.failed(alone(errors.New("too many runs wait for the shared store"))) })
		return
	}
	s.background.Go(j.finish)
}

// Flush returns when all that was written to a run under way is safe from the end of this process. Before the first entry of a
// run is written no other gateway can continue it, so there is nothing to wait for.
func (c *Caller) Flush(ctx context.Context, id string) (err error) {
	j := c.journalOf(id)
	switch {
	case j == nil && c.s.closing.Err() != nil && c.Outlive():
		return errors.New("the gateway has closed its store of runs")
	case j == nil || !j.begun.Load():
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()
	for { // a store that is started again fails no call
		failure := j.flush(ctx)
		if failure == nil {
			return nil
		}
		if ctx.Err() == nil || err == nil {
			err = failure
		}
		if j.isLost(ctx) || pausing.For(ctx, flushPause) != nil {
			c.s.failed(err)
			return err
		}
	}
}

// Publish returns when a run that has ended is in the shared store, where other gateways find it.
func (c *Caller) Publish(ctx context.Context, id string) error {
	j := c.journalOf(id)
	if j == nil {
		return errors.New("the run is not kept")
	}
	err := j.flush(ctx)
	c.s.failed(err)
	return unreachable(err)
}

// Hold keeps a run in the shared store for [Options.Held] longer than others: another run that goes on that long needs it.
func (s *Store) Hold(ctx context.Context, id string) error {
	err := s.o.Shared.Put(ctx, path.Dir(objectName(id, 0))+held, nil)
	if errors.Is(err, store.ErrExists) {
		return nil
	}
	s.failed(err)
	return unreachable(err)
}

// Forget frees what this gateway has of a run that has ended: the shared store has it.
func (c *Caller) Forget(id string) {
	c.s.mu.Lock()
	defer c.s.unlock()
	if r := c.s.runs[id]; r != nil && r.caller == c.name && r.inEnded != nil && r.journal != nil {
		c.s.forget(r)
	}
}

// Use counts as a use of a run, here and in the shared store.
func (c *Caller) Use(ctx context.Context, id string) error {
	_, err := c.Fetch(ctx, id)
	c.s.mu.Lock()
	defer c.s.unlock()
	c.s.find(c, id, "")
	return err
}

const flushPause = 500 * time.Millisecond

// flushTimeout is how long a call that may change something waits for the shared store.
const flushTimeout = 10 * time.Second

// journalOf returns the journal of one of the caller's runs; nil where it has none.
func (c *Caller) journalOf(id string) *journal {
	c.s.mu.Lock()
	defer c.s.unlock()
	if r := c.s.runs[id]; r != nil && r.caller == c.name {
		return r.journal
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
			return fmt.Errorf("%d runs end with this gateway: the shared store has not taken them: %w", s.waiting.Load(), context.Cause(ctx))
		}
	}
	return nil
}

func alone(err error) error { return fmt.Errorf("runs are kept by this gateway alone: %w", err) }

// failed reports a failure of the shared store to the operator; callers do not see its details. Each damaged object is reported, any
// other failure only once until something is written again.
func (s *Store) failed(err error) {
	if err != nil && !errors.Is(err, context.Canceled) && (errors.Is(err, store.ErrDamaged) || !s.failing.Swap(true)) {
		s.problem(err)
	}
}

func (s *Store) problem(err error) {
	if s.o.Problem != nil {
		s.o.Problem(err)
	}
}
