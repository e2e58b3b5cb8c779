package upstream

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// A Change is what reading a source again has done to the servers of a pool.
type Change struct {
	Added, Removed []string
	Restarted      []string // have become others: their calls in flight end well, the next ones go to the new server

	// Err says what is wrong with the source, which is used as it was before, or why it is no longer watched.
	Err error
}

// IsZero reports whether nothing has happened.
func (c Change) IsZero() bool {
	return len(c.Added)+len(c.Removed)+len(c.Restarted) == 0 && c.Err == nil
}

// A reading is what a source has said last.
type reading struct {
	source  Source
	servers []*Server
	err     error // of the last reading, which has left servers as they were
}

// read asks the source. At the first time the good servers of a bad source count, later the old ones do.
func (r *reading) read(ctx context.Context, first bool) error {
	servers, err := r.source.Servers(ctx)
	if err != nil && !first {
		return err
	}
	r.servers = nil
	for _, s := range servers {
		r.servers = append(r.servers, &s)
	}
	return err
}

// load reads the sources and wakes who waits for them.
func (p *Pool) load() {
	p.reading.Lock()
	defer p.reading.Unlock()
	var sources []*reading
	var errs []error
	for _, source := range p.options.Sources {
		r := &reading{source: source}
		if err := r.read(p.life, true); err != nil {
			errs = append(errs, err)
		}
		sources = append(sources, r)
	}
	wanted, err := merge(sources)
	p.mu.Lock()
	p.sources = sources
	p.apply(wanted)
	p.err = errors.Join(append(errs, err)...)
	close(p.loading)
	p.mu.Unlock()
	for _, r := range sources {
		if w, ok := r.source.(Watcher); ok && p.options.Follow {
			p.tasks.start(func() { p.follow(r, w) })
		}
	}
}

// merge puts the servers of all sources together. Of two with the same name the first counts, and of one that is
// configured and one that was found the former, without a word.
func merge(sources []*reading) (map[string]*Server, error) {
	wanted := map[string]*Server{}
	var errs []error
	for _, r := range sources {
		for _, s := range r.servers {
			other := wanted[s.Name]
			switch err := s.check(); {
			case err != nil:
				errs = append(errs, err)
			case other == nil, other.Found && !s.Found:
				wanted[s.Name] = s
			case s.Found:
			default:
				errs = append(errs, twice(other, s))
			}
		}
	}
	return wanted, errors.Join(errs...)
}

func twice(a, b *Server) error {
	where := ""
	if a.Where != "" && b.Where != "" {
		where = ": at " + a.Where + " and at " + b.Where
	}
	return fmt.Errorf("server %q is there twice%s; rename one of the two", a.Name, where)
}

// apply makes the servers of the pool those that are wanted, and leaves those alone that are as they were. p.mu is held.
func (p *Pool) apply(wanted map[string]*Server) Change {
	var c Change
	units := map[string]*unit{}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		s, old := wanted[name], p.units[name]
		if old != nil && old.is(s) {
			units[name] = old
			continue
		}
		units[name] = newUnit(*s, p.options, p.life, &p.tasks, p.learner)
		units[name].origin = s
		if old == nil {
			c.Added = append(c.Added, name)
		} else {
			c.Restarted = append(c.Restarted, name)
		}
	}
	old := p.units
	p.units, p.names = units, slices.Sorted(maps.Keys(units))
	for _, name := range slices.Sorted(maps.Keys(old)) {
		if units[name] == nil {
			c.Removed = append(c.Removed, name)
		}
		if units[name] != old[name] {
			old[name].retire()
		}
	}
	return c
}

// follow stays with a source until the pool is closed.
func (p *Pool) follow(r *reading, w Watcher) {
	err := w.Watch(p.life, func() { p.readAgain(r) })
	if err != nil && p.life.Err() == nil {
		p.tell(Change{Err: fmt.Errorf("changes of the configuration are not seen any more: %w", err)})
	}
}

// readAgain reads a source that may have changed.
func (p *Pool) readAgain(r *reading) {
	p.reading.Lock()
	defer p.reading.Unlock()
	err := r.read(p.life, false)
	if p.life.Err() != nil {
		return
	}
	var wanted map[string]*Server
	if err == nil {
		wanted, err = merge(p.sources)
	}
	p.mu.Lock()
	r.err = err
	var c Change
	if wanted != nil {
		c = p.apply(wanted)
	}
	p.mu.Unlock()
	c.Err = err
	if !c.IsZero() && p.options.Told != nil {
		p.options.Told(c)
	}
}

func (p *Pool) tell(c Change) {
	p.reading.Lock()
	defer p.reading.Unlock()
	if p.options.Told != nil {
		p.options.Told(c)
	}
}

// Servers are the names of all servers, sorted. It waits for Load until ctx is done.
func (p *Pool) Servers(ctx context.Context) []string {
	_ = p.Load(ctx) // told by whoever wired the pool
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.names)
}

// Trouble is what is wrong with sources that have changed since they were loaded, and are used as they were before
// that. It is nil where nothing is.
func (p *Pool) Trouble() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, r := range p.sources {
		errs = append(errs, r.err)
	}
	return errors.Join(errs...)
}
