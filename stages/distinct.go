package stages

import (
	"bytes"
	"container/list"
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

// shared answers equal calls of one tool stage in one run from the first of them. An item that is tried again makes
// the call again, unless an item with the same arguments has done so in the meantime. Results for later calls are
// bounded by [Limits.Shared] over the whole run: the oldest results go first, and a call that has become unknown is
// made again. Calls that may change something are never forgotten; too many of them is an error.
type shared struct {
	c       *caller // makes the calls
	forever bool    // nothing is forgotten

	mu      sync.Mutex
	answers map[callKey]*answer // guarded by mu, as is what is in them
	kept    list.List           // answers whose size counts, the oldest first; guarded by mu
}

// An answer is what became of the calls with some arguments.
type answer struct {
	key     callKey
	running chan struct{} // closed when the call that runs has ended; nil: none does
	attempt int           // the latest attempt at which the call was made
	outcome outcome
	size    int64 // what it takes in kept; 0: it is not there
}

// An outcome is the result or the error of one call.
type outcome struct {
	result Result
	sent   bool
	err    error
}

// real reports whether the outcome is the tool's, or a failure on the way to it. A call that was cut off because its
// item has ended says nothing to other items.
func (o outcome) real() bool {
	_, failed := errors.AsType[*Error](o.err)
	return o.err == nil || failed
}

// answerSize is what an answer takes beside its result.
const answerSize = 256

// call returns the outcome of the calls with these arguments, and makes the call if none has been made at this attempt
// or a later one, and none has succeeded: own says that it has. Equal calls wait for the one that runs.
func (s *shared) call(ctx context.Context, attempt int, args json.RawMessage) (o outcome, own bool) {
	key := keyOf(args)
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		x := s.answers[key]
		if x == nil {
			x = &answer{key: key}
			s.answers[key] = x
		}
		for x.running != nil {
			if !s.wait(ctx, x.running) {
				return outcome{err: context.Cause(ctx)}, false
			}
		}
		if x.attempt > 0 && (x.outcome.err == nil || x.attempt >= attempt) { // it serves this attempt
			s.c.m.count(func(r *StageReport) { r.Shared++ })
			return x.outcome, false
		}
		if s.answers[key] == x { // else nothing came of it, or it is forgotten
			return s.lead(ctx, x, attempt, args), true
		}
	}
}

// wait waits for the end of a call, and reports whether it has come to that. The caller has mu, but not while it waits.
func (s *shared) wait(ctx context.Context, ended <-chan struct{}) bool {
	s.mu.Unlock()
	defer s.mu.Lock()
	select {
	case <-ended:
		return true
	case <-ctx.Done():
		return false
	}
}

// lead makes the call of an answer and wakes who waits for it, even when the call panics. The caller has mu, but not while
// the call runs.
func (s *shared) lead(ctx context.Context, x *answer, attempt int, args json.RawMessage) (o outcome) {
	o.err = errBroken
	x.running = make(chan struct{})
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		close(x.running)
		x.running = nil
		if err := s.settle(x, attempt, o); err != nil {
			o.err = err
		}
	}()
	return s.c.call(ctx, args)
}

// settle keeps the outcome of a call, unless the call was cut off.
func (s *shared) settle(x *answer, attempt int, o outcome) error {
	if !o.real() {
		if x.size == 0 {
			delete(s.answers, x.key)
		}
		return nil
	}
	r := o.result
	o.result = Result{Data: bytes.Clone(r.Data), Kind: r.Kind, Spans: r.Spans, None: r.None} // the result may be a part of something larger
	x.attempt, x.outcome = attempt, o
	return s.keep(x)
}

// keep counts what an answer takes, and forgets older ones where that is too much.
func (s *shared) keep(x *answer) error {
	if s.answers[x.key] != x {
		return nil // it was forgotten while the call ran
	}
	grown := answerSize + int64(len(x.outcome.result.Data)) - x.size
	if s.take(grown, x) {
		if x.size == 0 {
			s.kept.PushBack(x)
		}
		x.size += grown
		return nil
	}
	if s.forever {
		return ofRun(OverLimit("shared", "leave distinct out, or pass on only items that differ: jq 'unique' before",
			"the results of calls that are to be made once take more than %s", texts.Bytes(s.c.r.deps.Limits.Shared)))
	}
	if x.size == 0 {
		delete(s.answers, x.key)
	}
	return nil
}

// take takes n bytes of what the run may keep for equal calls, for the answer x.
func (s *shared) take(n int64, x *answer) bool {
	for {
		if s.c.r.shared.Add(n) <= s.c.r.deps.Limits.Shared {
			if s.c.r.hold(n) == nil {
				return true
			}
		}
		s.c.r.shared.Add(-n)
		if s.forever || !s.forget(x) {
			return false
		}
	}
}

// forget forgets the oldest answer but for one, and reports whether there was another.
func (s *shared) forget(but *answer) bool {
	e := s.kept.Front()
	if e != nil && e.Value == but {
		e = e.Next()
	}
	if e == nil {
		return false
	}
	x := s.kept.Remove(e).(*answer)
	s.c.r.shared.Add(-x.size)
	s.c.r.release(x.size)
	delete(s.answers, x.key)
	x.size = 0
	return true
}

// first reports whether a call with these arguments would be the first of its kind, and notes it.
func (s *shared) first(args json.RawMessage) bool {
	key := keyOf(args)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answers[key] != nil {
		return false
	}
	s.answers[key] = &answer{key: key}
	return true
}
