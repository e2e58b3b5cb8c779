package gateway

import (
	"sync"

	"github.com/mcsh-dev/mcsh/stages"
)

// Defaults of the bounds on runs at once (pipeline.md §8).
const (
	DefaultRuns        = 64 // of the process
	DefaultCallerRuns  = 8  // of one caller
	DefaultAddressRuns = 48 // of one address without authentication
)

// slots bounds the calls at once of all callers, of one, and of one address. It reserves the slots beyond the bound of an
// address for addresses without a call.
type slots struct {
	of                   string // the kind of calls, in errors
	all, caller, address int    // bounds

	mu    sync.Mutex
	taken int            // guarded by mu
	by    map[string]int // taken, by origin; guarded by mu
}

func newSlots(of string, all, caller, address int) *slots {
	return &slots{of: of, all: all, caller: min(caller, all), address: min(address, all), by: map[string]int{}}
}

// take takes a slot without waiting, and returns its release.
func (s *slots) take(o origin) (release func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	const hint = "try again when one of them has ended"
	own := s.by[o.key]
	switch {
	case s.taken >= s.all:
		return nil, stages.OverLimit("runs", hint, "%d %s are running already", s.taken, s.of)
	case o.named && own >= s.caller:
		return nil, stages.OverLimit("caller-runs", hint, "you already have %d %s running", own, s.of)
	case o.named || o.local || own == 0:
	case own >= s.address:
		return nil, stages.OverLimit("address-runs", hint, "your address already has %d %s running", own, s.of)
	case s.taken >= s.address:
		return nil, stages.OverLimit("address-runs", hint,
			"%d %s are running already, %d of them from your address; the rest is for other addresses", s.taken, s.of, own)
	}
	s.taken++
	s.by[o.key]++
	return func() { s.release(o) }, nil
}

func (s *slots) release(o origin) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken--
	if s.by[o.key]--; s.by[o.key] == 0 {
		delete(s.by, o.key)
	}
}
