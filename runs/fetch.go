package runs

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/mcsh-dev/mcsh/internal/pausing"
	"github.com/mcsh-dev/mcsh/store"
)

// missWait is how long Fetch waits for a run that the shared store does not have: another gateway writes it after its reply.
const missWait = 5 * time.Second

// Fetch brings a run of the caller here if another gateway keeps it, for the methods that read. running says that it is under way
// there. A run whose gateway seems dead counts as ended. The error says that the shared store cannot be reached.
func (c *Caller) Fetch(ctx context.Context, id string) (running bool, err error) {
	return c.fetch(ctx, id, deadAfter)
}

// TakeOver is [Caller.Fetch] for a run whose gateway is known to be dead: it counts as ended at once. A gateway that goes on with it all
// the same makes no call any more that may change something.
func (c *Caller) TakeOver(ctx context.Context, id string) (running bool, err error) {
	return c.fetch(ctx, id, 0)
}

// fetch fetches a run, whose gateway is dead when it has written nothing for patience.
func (c *Caller) fetch(ctx context.Context, id string, patience time.Duration) (running bool, err error) {
	s := c.s
	if s.o.Shared == nil || !runID.MatchString(id) || s.Has(id) {
		return false, nil
	}
	defer func() { s.failed(err) }()
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	f := &fetch{s: s, id: id, outputs: map[string]*writer{}, moved: time.Now()}
	defer f.discard()
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, 500*time.Millisecond) {
		first := f.next == 0
		moved, err := f.read(ctx, c.name)
		switch {
		case err != nil:
			return false, unreachable(err)
		case f.foreign:
			return false, nil
		case f.ended:
			return false, f.keep(c.name)
		case moved && !first && !f.over && patience > 0:
			return true, nil
		case f.next == 0 && time.Since(f.moved) > missWait:
			return false, nil
		case f.next > 0 && time.Since(f.moved) >= patience:
			if err := f.bury(ctx, c.name); err != nil {
				return false, unreachable(err)
			}
			continue
		}
		if pausing.For(ctx, pause) != nil {
			return false, unreachable(context.Cause(ctx))
		}
	}
}

const fetchTimeout = time.Minute

// A fetch reads a journal.
type fetch struct {
	s       *Store
	id      string
	outputs map[string]*writer
	next    int
	moved   time.Time // when the last entry was found
	foreign bool      // the run is another caller's
	over    bool      // the run has ended; its gateway is still writing it
	ended   bool
}

// read reads the entries that are there, up to the end of the run, and reports whether there are any.
func (f *fetch) read(ctx context.Context, caller string) (moved bool, err error) {
	for !f.ended && !f.foreign {
		e, data, err := f.s.readEntry(ctx, f.id, f.next)
		switch {
		case errors.Is(err, store.ErrNotFound):
			return moved, nil
		case err != nil:
			return moved, err
		case e.Caller != caller:
			f.foreign = true
			return moved, nil
		}
		moved, f.moved, f.over, f.ended, f.next = true, time.Now(), e.Over, e.Ended, f.next+1
		for _, x := range e.Pieces {
			f.add(x, data[:x.Size])
			data = data[x.Size:]
		}
	}
	return moved, nil
}

// add adds a piece to its output.
func (f *fetch) add(x piece, data []byte) {
	w := f.outputs[x.Output]
	if w == nil {
		w = f.s.newWriter(x.Log)
		w.o.owners = 1
		f.outputs[x.Output] = w
	}
	_, _ = w.Write(data) // it does not fail
	if x.Ended {
		w.end(x.Incomplete)
	}
}

// bury ends a run whose gateway has written nothing for long, if it still writes nothing.
func (f *fetch) bury(ctx context.Context, caller string) error {
	_, err := f.s.writeEntry(ctx, f.id, f.next, entry{Writer: rand.Text(), Caller: caller, Ended: true}, nil)
	if errors.Is(err, store.ErrExists) {
		return nil // it has just written something
	}
	return err
}

// keep makes the run one of this store.
func (f *fetch) keep(caller string) error {
	s := f.s
	r := &run{id: f.id, caller: caller, outputs: map[string]*output{}}
	for name, w := range f.outputs {
		why := "" // of a run whose gateway has died there is what it has written of its logs
		if !w.partial {
			why = "the gateway of the run ended before it was written"
		}
		w.end(why) // does nothing where the journal has the end
		r.outputs[name] = w.o
	}
	r.journal = &journal{s: s, r: r, turn: make(chan struct{}, 1), next: f.next, ended: true, used: time.Now()}
	r.journal.give()
	s.mu.Lock()
	defer s.unlock()
	if s.runs[f.id] != nil {
		return nil // another fetch was faster
	}
	if !s.add(r) {
		return errors.New("the runs that are under way leave no room for another one")
	}
	r.inEnded, r.used = s.ended.PushBack(r), time.Now()
	s.arm()
	f.outputs = nil
	return nil
}

// discard frees what was read of a run that is not kept.
func (f *fetch) discard() {
	for _, w := range f.outputs {
		w.end("")
		f.s.release(w.o)
	}
}
