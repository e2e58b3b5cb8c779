package runs

import (
	"path"
	"slices"
	"strings"
	"time"
)

// skew is how far the clocks of gateways and of the shared store may be apart.
const skew = 10 * time.Minute

// sweep removes, now and then, what nobody has used for its TTL from the shared store: of the runs, and of what is known of them.
func (s *Store) sweep() {
	every := time.NewTicker(max(s.o.TTL/3, time.Second))
	defer every.Stop()
	for {
		failed := func(err error) {
			if err != nil && s.closing.Err() == nil {
				s.problem(unreachable(err))
			}
		}
		failed(s.sweepOnce(journalPrefix, 0))
		for prefix, later := range s.o.Beside {
			failed(s.sweepOnce(prefix, later))
		}
		select {
		case <-every.C:
		case <-s.closing.Done():
			return
		}
	}
}

// sweepOnce removes journals whose last object is too old, or objects that stand alone. A run may have been used after its last entry.
func (s *Store) sweepOnce(prefix string, later time.Duration) error {
	old := time.Now().Add(-s.o.TTL - s.o.touchEvery() - skew - later)
	var names []string // of one journal
	var last time.Time
	remove := func() error {
		keeps := old
		if slices.ContainsFunc(names, func(name string) bool { return strings.HasSuffix(name, held) }) {
			keeps = keeps.Add(-s.o.Held)
		}
		if last.After(keeps) {
			return nil
		}
		for _, name := range names {
			if err := s.o.Shared.Delete(s.closing, name); err != nil {
				return err
			}
		}
		return nil
	}
	for o, err := range s.o.Shared.List(s.closing, prefix) {
		if err != nil {
			return err
		}
		if len(names) > 0 && (path.Dir(names[0]) != path.Dir(o.Name) || prefix != journalPrefix) {
			if err := remove(); err != nil {
				return err
			}
			names, last = nil, time.Time{}
		}
		names = append(names, o.Name)
		if o.Modified.After(last) {
			last = o.Modified
		}
	}
	return remove()
}
