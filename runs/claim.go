package runs

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mcsh-dev/mcsh/store"
)

// Claim records that the run claimant continues the run id, unless another run does. holder is the run that continues it now:
// claimant, the other one, or id itself while it is under way; it is empty if no run does or id is not kept. A claim outlasts its
// claimant; only release ends it. An empty claimant claims nothing. The error says that the shared store, which decides, cannot be reached.
func (c *Caller) Claim(ctx context.Context, id, claimant string) (holder string, release func(), err error) {
	s, release := c.s, func() {}
	defer func() { s.failed(err) }()
	s.mu.Lock()
	defer s.unlock()
	r := s.runs[id]
	switch {
	case r == nil || r.caller != c.name:
		return "", release, nil
	case r.inEnded == nil:
		return id, release, nil
	case r.journal != nil:
		s.mu.Unlock() // of a run that has ended nothing changes that is used below
		defer s.mu.Lock()
		return c.claimShared(ctx, r, claimant)
	case r.continuedBy != "" || claimant == "":
		return r.continuedBy, release, nil
	}
	r.continuedBy = claimant
	return claimant, sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.unlock()
		r.continuedBy = ""
	}), nil
}

// claimShared is Claim for an ended run with a journal.
func (c *Caller) claimShared(ctx context.Context, r *run, by string) (holder string, release func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, claimTimeout)
	defer cancel()
	var next entry
	if by != "" {
		next = entry{Writer: rand.Text(), Claim: &by}
		// Others must find the run that holds the claim, to continue it in turn if this process ends.
		if j := c.journalOf(by); j != nil {
			if err := j.flush(ctx); err != nil {
				return "", func() {}, unreachable(err)
			}
		}
	}
	j := r.journal
	if err := j.take(ctx); err != nil {
		return "", func() {}, unreachable(err)
	}
	defer j.give()
	holder, err = j.claim(ctx, next)
	if err != nil && by != "" {
		c.s.inBackground(func() { j.release(by) }) // it may be written
	}
	if err != nil || holder != by || by == "" {
		return holder, func() {}, unreachable(err)
	}
	return by, sync.OnceFunc(func() { j.release(by) }), nil
}

const claimTimeout = 10 * time.Second

// claim returns the holder of the run, once next is written unless there was one. The caller has the turn.
func (j *journal) claim(ctx context.Context, next entry) (holder string, err error) {
	if !j.ended && !errors.Is(j.lost, ErrTaken) {
		if next.Writer == "" {
			return j.holder, nil // nobody else can continue it
		}
		if err := j.send(ctx, false); err != nil && !errors.Is(j.lost, ErrTaken) {
			return "", err
		}
	}
	err = j.follow(ctx, next)
	return j.holder, err
}

// release gives up a claim.
func (j *journal) release(by string) {
	ctx, cancel := context.WithTimeout(j.s.closing, claimTimeout)
	defer cancel()
	if j.take(ctx) != nil {
		return
	}
	defer j.give()
	nobody := ""
	err := j.follow(ctx, entry{})
	if err == nil && j.holder == by {
		err = j.follow(ctx, entry{Writer: rand.Text(), Claim: &nobody})
	}
	if err != nil {
		j.s.problem(fmt.Errorf("a claim may not have been given up, and its run could not be resumed then: %w", err))
	}
}

// inBackground runs f in the background, unless the store is closed.
func (s *Store) inBackground(f func()) {
	s.mu.Lock()
	defer s.unlock()
	if !s.closed {
		s.background.Go(f)
	}
}

// touch notes a use of an ended run, so that the shared store keeps it as long as this one does. The caller has the store's mu.
func (j *journal) touch() {
	s := j.s
	if time.Since(j.used) < s.o.touchEvery() || s.closed {
		return
	}
	j.used = time.Now()
	s.background.Go(func() {
		ctx, cancel := context.WithTimeout(s.closing, putTimeout)
		defer cancel()
		if j.take(ctx) != nil {
			return
		}
		defer j.give()
		if j.ended {
			_ = j.follow(ctx, entry{Writer: rand.Text()}) // without it the run is kept for a shorter time
		}
	})
}

// follow reads the entries behind the end of the run, and writes next behind them, if it is not empty, unless that claims a run which
// has a holder. The caller has the turn.
func (j *journal) follow(ctx context.Context, next entry) error {
	for {
		e, _, err := j.s.readEntry(ctx, j.r.id, j.next)
		switch {
		case err == nil:
			j.passed(e)
			continue
		case !errors.Is(err, store.ErrNotFound):
			return err
		case next.Writer == "" || next.Claim != nil && j.holder != "" && *next.Claim != "":
			return nil
		}
		// A sweep removes the first entries first: while the one before is there, nobody has removed the claim of another run.
		if _, _, err := j.s.readEntry(ctx, j.r.id, j.next-1); errors.Is(err, store.ErrNotFound) {
			return errors.New("it no longer has this run")
		} else if err != nil {
			return err
		}
		_, err = j.s.writeEntry(ctx, j.r.id, j.next, next, nil)
		if errors.Is(err, store.ErrExists) {
			continue
		}
		if err == nil {
			j.passed(next)
		}
		return err
	}
}

// passed takes note of an entry behind the end of the run.
func (j *journal) passed(e entry) {
	j.next++
	if e.Claim != nil {
		j.holder = *e.Claim
	}
}

func unreachable(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("the shared store cannot be used: %w", err)
}
