package runs

import (
	"context"
	"path"
	"time"
)

// skew is how far the clocks of gateways and of the shared store may be apart.
const skew = 10 * time.Minute

// sweep removes, now and then, the runs from the shared store that nobody has used for their TTL.
func (s *Store) sweep() {
	every := time.NewTicker(max(s.o.TTL/3, time.Second))
	defer every.Stop()
	for {
		if err := s.sweepOnce(s.closing); err != nil && s.closing.Err() == nil {
			s.problem(unreachable(err))
		}
		select {
		case <-every.C:
		case <-s.closing.Done():
			return
		}
	}
}

func (s *Store) sweepOnce(ctx context.Context) error {
	old := time.Now().Add(-s.o.TTL - skew)
	var names []string // of one run
	var last time.Time
	remove := func() error {
		if last.After(old) {
			return nil
		}
		for _, name := range names {
			if err := s.o.Shared.Delete(ctx, name); err != nil {
				return err
			}
		}
		return nil
	}
	for o, err := range s.o.Shared.List(ctx, rowsPrefix) {
		if err != nil {
			return err
		}
		if len(names) > 0 && path.Dir(names[0]) != path.Dir(o.Name) {
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
