package stages

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"slices"
	"sync"
)

// shared answers equal calls of one tool stage in one run from the first of them. An item that is tried again makes
// the call again, unless an item with the same arguments has done so in the meantime. What is kept for later calls is
// bounded by [Limits.Shared] over the whole run: the oldest results go first, and a call that has become unknown is
// made again. Calls that may change something are never forgotten; too many of them is an error.
type shared struct {
	c       *caller  // makes the calls
	forever bool     // nothing is forgotten
	log     *itemLog // knows the calls of an earlier run, where nothing is forgotten; else nil
	tool    int      // the stage, to log

	mu             sync.Mutex
	answers        map[callKey]*answer
	oldest, newest *answer // of those whose size counts
}

// callKey stands for the arguments of a call.
type callKey [sha256.Size]byte

// An answer is what became of the calls with some arguments. The mutex of the shared guards it.
type answer struct {
	key     callKey
	running bool
	ended   chan struct{} // closed when the call that runs has ended; nil while nobody waits
	attempt int           // the latest attempt at which the call was made
	outcome outcome
	size    int64
	next    *answer // the next younger one
}

// An outcome is what one call came to.
type outcome struct {
	result Result
	left   bool // it was sent
	unsure bool // it may have changed something: the tool did not say that it failed
	err    error
}

// real reports whether the outcome is the tool's, or a failure on the way to it. A call that was cut off because its
// item has ended says nothing to other items.
func (o outcome) real() bool {
	if o.err == nil {
		return true
	}
	var e *Error
	return errors.As(o.err, &e)
}

// answerSize is what an answer takes beside its result.
const answerSize = 256

// call returns the outcome of the calls with these arguments, and makes the call if none has been made at this attempt
// or a later one, and none has succeeded: own says that it has. Equal calls wait for the one that runs.
func (s *shared) call(ctx context.Context, attempt int, args json.RawMessage) (o outcome, own bool) {
	key := keyOf(args)
	for {
		s.mu.Lock()
		x := s.answers[key]
		if x == nil {
			x = &answer{key: key}
			s.answers[key] = x
		}
		for x.running {
			ended := x.wait()
			s.mu.Unlock()
			select {
			case <-ended:
			case <-ctx.Done():
				return outcome{err: context.Cause(ctx)}, false
			}
			s.mu.Lock()
		}
		if x.serves(attempt) {
			s.c.m.shared.Add(1)
			o = x.outcome
			s.mu.Unlock()
			return o, false
		}
		if s.answers[key] != x { // nothing came of it, or it is forgotten
			s.mu.Unlock()
			continue
		}
		x.running = true
		s.mu.Unlock()
		return s.lead(ctx, x, attempt, args), true
	}
}

// serves reports whether a call at an attempt takes the outcome that is there.
func (x *answer) serves(attempt int) bool {
	return x.attempt > 0 && (x.outcome.err == nil || x.attempt >= attempt)
}

// wait returns what is closed when the call that runs has ended.
func (x *answer) wait() <-chan struct{} {
	if x.ended == nil {
		x.ended = make(chan struct{})
	}
	return x.ended
}

// lead makes the call of an answer and wakes who waits for it, also when the call panics.
func (s *shared) lead(ctx context.Context, x *answer, attempt int, args json.RawMessage) (o outcome) {
	o.err = errBroken
	defer func() {
		if err := s.settle(x, attempt, o); err != nil {
			o.err = err
		}
	}()
	if o, known := s.earlier(x.key); known {
		return o
	}
	if o = s.c.call(ctx, args); o.err == nil {
		s.log.keepCall(callRef{s.tool, x.key}, o.result.Data)
	}
	return o
}

// earlier returns what a call came to that the run which is resumed has made.
func (s *shared) earlier(key callKey) (o outcome, known bool) {
	data, known, err := s.log.called(callRef{s.tool, key})
	if known {
		s.c.m.shared.Add(1)
	}
	return outcome{result: Result{Data: data}, err: err}, known
}

// settle keeps the outcome of a call, if it is one.
func (s *shared) settle(x *answer, attempt int, o outcome) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	x.running = false
	if x.ended != nil {
		close(x.ended)
		x.ended = nil
	}
	if !o.real() {
		if x.size == 0 {
			delete(s.answers, x.key)
		}
		return nil
	}
	o.result = Result{Data: bytes.Clone(o.result.Data)} // the result may be a part of something larger
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
			s.append(x)
		}
		x.size += grown
		return nil
	}
	if s.forever {
		return ofRun(OverLimit("shared", "leave distinct out, or pass on only items that differ: jq 'unique' before",
			"the results of calls that are to be made once take more than %s", size(s.c.r.deps.Limits.Shared)))
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

func (s *shared) append(x *answer) {
	if s.newest == nil {
		s.oldest = x
	} else {
		s.newest.next = x
	}
	s.newest = x
}

// forget forgets the oldest answer but for one, and reports whether there was another.
func (s *shared) forget(but *answer) bool {
	var before *answer
	x := s.oldest
	if x != nil && x == but {
		before, x = x, x.next
	}
	if x == nil {
		return false
	}
	if before == nil {
		s.oldest = x.next
	} else {
		before.next = x.next
	}
	if s.newest == x {
		s.newest = before
	}
	s.c.r.shared.Add(-x.size)
	s.c.r.held.Add(-x.size)
	delete(s.answers, x.key)
	x.next, x.size = nil, 0
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
	if _, known, _ := s.log.called(callRef{s.tool, key}); known {
		return false
	}
	s.answers[key] = &answer{key: key}
	return true
}

// keyOf returns the key of arguments. The order of members and blanks do not matter to it.
func keyOf(args json.RawMessage) callKey {
	if bytes.ContainsAny(args, ", \t\r\n") {
		args = canonical(nil, args, maxCanonical)
	}
	return sha256.Sum256(args)
}

// maxCanonical is how deep the order of members is looked at: each level is read once more. Below it, calls that differ
// only in that order are different calls.
const maxCanonical = 8

// canonical appends a JSON value with the members of objects in the order of their names, and without blanks.
func canonical(b []byte, value []byte, depth int) []byte {
	value = bytes.TrimSpace(value)
	if depth == 0 || len(value) == 0 || value[0] != '{' && value[0] != '[' {
		return append(b, value...)
	}
	var parts []part
	sortable := value[0] == '{'
	for rest := trimBlank(value[1:]); len(rest) > 0 && rest[0] != '}' && rest[0] != ']'; rest = trimBlank(rest) {
		if rest[0] == ',' {
			rest = trimBlank(rest[1:])
		}
		var p part
		if value[0] == '{' {
			p.name, rest = nextValue(rest)
			rest = trimBlank(trimBlank(rest)[1:]) // behind the colon
			sortable = sortable && bytes.IndexByte(p.name, '\\') < 0
		}
		p.value, rest = nextValue(rest)
		parts = append(parts, p)
	}
	if sortable { // a name can be written in several ways, and twice: then the order may matter
		slices.SortStableFunc(parts, func(x, y part) int { return bytes.Compare(x.name, y.name) })
	}
	b = append(b, value[0])
	for i, p := range parts {
		if i > 0 {
			b = append(b, ',')
		}
		if value[0] == '{' {
			b = append(append(b, p.name...), ':')
		}
		b = canonical(b, p.value, depth-1)
	}
	return append(b, value[len(value)-1])
}

// part is an element of an array, or a member of an object with its name as it is written.
type part struct{ name, value []byte }
