package runs

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Claim records that the run by continues the run id, unless another run does. holder is the run that continues it now: by,
// the other one, or id itself while it is under way; it is empty if no run does or id is not kept. A claim outlasts by; only
// release ends it. An empty by claims nothing. The error says that the shared store, which decides, cannot be reached.
func (c *Caller) Claim(ctx context.Context, id, by string) (holder string, release func(), err error) {
	s, release := c.s, func() {}
	s.mu.Lock()
	defer s.unlock()
	r := s.runs[id]
	switch {
	case r == nil || r.caller != c.name:
		return "", release, nil
	case r.inEnded == nil:
		return id, release, nil
	case r.row != nil:
		s.mu.Unlock() // of a run that has ended nothing changes that is used below
		defer s.mu.Lock()
		return c.claimShared(ctx, r, by)
	case r.continuedBy != "" || by == "":
		return r.continuedBy, release, nil
	}
	r.continuedBy = by
	return by, sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.unlock()
		r.continuedBy = ""
	}), nil
}

// claimShared is Claim for an ended run with a row.
func (c *Caller) claimShared(ctx context.Context, r *run, by string) (holder string, release func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, claimTimeout)
	defer cancel()
	var next part
	if by != "" {
		next = part{Writer: rand.Text(), Claim: &by}
		// Others must find the run that holds the claim, to continue it in turn if this process ends.
		if w := c.rowOf(by); w != nil {
			if err := w.flush(ctx); err != nil {
				return "", func() {}, unreachable(err)
			}
		}
	}
	w := r.row
	if err := w.take(ctx); err != nil {
		return "", func() {}, unreachable(err)
	}
	defer w.give()
	holder, err = w.claim(ctx, next)
	if err != nil || holder != by || by == "" {
		return holder, func() {}, unreachable(err)
	}
	return by, sync.OnceFunc(func() { w.release(by) }), nil
}

const claimTimeout = 10 * time.Second

// claim returns the holder of the run, once next is written unless there was one. The caller has the turn.
func (w *row) claim(ctx context.Context, next part) (holder string, err error) {
	if !w.ended && !errors.Is(w.lost, errTaken) {
		if next.Writer == "" {
			return w.holder, nil // nobody else can continue it
		}
		if err := w.send(ctx, false); err != nil && !errors.Is(w.lost, errTaken) {
			return "", err
		}
	}
	_, err = w.follow(ctx, next)
	return w.holder, err
}

// release gives up a claim.
func (w *row) release(by string) {
	ctx, cancel := context.WithTimeout(w.s.closing, claimTimeout)
	defer cancel()
	if w.take(ctx) != nil {
		return
	}
	defer w.give()
	nobody := ""
	if _, err := w.follow(ctx, part{}); err == nil && w.holder == by {
		_, err = w.follow(ctx, part{Writer: rand.Text(), Claim: &nobody})
		if err != nil {
			w.s.problem(fmt.Errorf("a run stays claimed by one that has done nothing: %w", err))
		}
	}
}

func unreachable(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("the shared store cannot be used: %w", err)
}
