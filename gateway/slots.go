package gateway

import (
	"sync"

	"github.com/mcsh-dev/mcsh/stages"
)

// Runs at once (pipeline.md §8), unless the operator says otherwise.
const (
	DefaultRuns       = 64 // of the process
	DefaultCallerRuns = 8  // of one caller
)

// slots bounds how many calls there are at once, of all callers and of one.
type slots struct {
	of          string // what the calls do
	all, caller int    // the bounds

	mu    sync.Mutex
	taken int            // guarded by mu
	by    map[string]int // taken by each caller; guarded by mu
}

func newSlots(of string, all, caller int) *slots {
	return &slots{of: of, all: all, caller: caller, by: map[string]int{}}
}

// take takes a slot for a caller and returns what gives it back. It never waits. Those who are nobody in particular share
// the slots of the process.
func (s *slots) take(caller string) (release func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	const hint = "try again when one of them has ended"
	if s.taken >= s.all {
		return nil, stages.OverLimit("runs", hint, "%d %s are running already", s.taken, s.of)
	}
	known := caller != callerAnonymous
	if known && s.by[caller] >= s.caller {
		return nil, stages.OverLimit("caller-runs", hint, "%d %s of yours are running already", s.by[caller], s.of)
	}
	s.taken++
	if known {
		s.by[caller]++
	}
	return func() { s.release(caller, known) }, nil
}

func (s *slots) release(caller string, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken--
	if !known {
		return
	}
	if s.by[caller]--; s.by[caller] == 0 {
		delete(s.by, caller)
	}
}
