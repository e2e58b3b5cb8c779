package upstream

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// A Change says how a pool has changed after it has read sources again.
type Change struct {
	Added, Removed []string
	Restarted      []string // replaced: calls in flight finish on the old server, the next ones go to the new one
	Groups         bool     // groups have changed

	// Err says what is wrong with a source, whose earlier servers stay, or why it is no longer watched.
	Err error
}

// IsZero reports whether nothing has changed.
func (c Change) IsZero() bool {
	return len(c.Added)+len(c.Removed)+len(c.Restarted) == 0 && !c.Groups && c.Err == nil
}

// A sourceState is a source with the servers that it gave last.
type sourceState struct {
	source  Source
	servers []*Server
	groups  []Group
	err     error // of the last reading, which has left servers as they were
}

// read asks the source. The first time, the good servers of a bad source count; later, the old ones stay.
func (r *sourceState) read(ctx context.Context, first bool) error {
	servers, err := r.source.Servers(ctx)
	if err != nil && !first {
		return err
	}
	r.servers, r.groups = nil, nil
	if g, ok := r.source.(grouped); ok {
		r.groups = g.Groups()
	}
	for _, s := range servers {
		r.servers = append(r.servers, &s)
	}
	return err
}

// load reads the sources.
func (p *Pool) load() (struct{}, error) {
	p.sourcesMu.Lock()
	defer p.sourcesMu.Unlock()
	var sources []*sourceState
	var errs []error
	for _, source := range p.options.Sources {
		r := &sourceState{source: source}
		if err := r.read(p.life, true); err != nil {
			errs = append(errs, err)
		}
		sources = append(sources, r)
	}
	wanted, err := merge(sources)
	groups, wrong := mergeGroups(sources)
	p.mu.Lock()
	p.sources, p.groups = sources, groups
	p.apply(wanted)
	p.mu.Unlock()
	for _, r := range sources {
		if w, ok := r.source.(Watcher); ok && p.options.OnChange != nil {
			p.goroutines.start(func() { p.follow(r, w) })
		}
	}
	return struct{}{}, errors.Join(append(errs, err, wrong)...)
}

// merge puts the servers of all sources together. Of two with the same name the first counts; a configured one replaces
// one that was found.
func merge(sources []*sourceState) (map[string]*Server, error) {
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
				errs = append(errs, duplicateServer(other, s))
			}
		}
	}
	return wanted, errors.Join(errs...)
}

func duplicateServer(a, b *Server) error {
	where := ""
	if a.Where != "" && b.Where != "" {
		where = ": at " + a.Where + " and at " + b.Where
	}
	return fmt.Errorf("server %q is defined twice%s; rename one of them", a.Name, where)
}

// apply makes the servers of the pool those that are wanted, and keeps those that have not changed. p.mu is held.
func (p *Pool) apply(wanted map[string]*Server) Change {
	var c Change
	conns := map[string]*serverConn{}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		s, old := wanted[name], p.conns[name]
		if old != nil && old.is(s) && old.disabled == p.disabled[name] {
			conns[name] = old
			continue
		}
		switch conns[name] = p.anew(s, old); {
		case p.disabled[name]:
		case old == nil || old.disabled:
			c.Added = append(c.Added, name)
		default:
			c.Restarted = append(c.Restarted, name)
		}
	}
	old := p.conns
	p.conns, p.names = conns, slices.DeleteFunc(slices.Sorted(maps.Keys(conns)), func(name string) bool { return conns[name].disabled })
	p.generation.Add(1)
	for _, name := range slices.Sorted(maps.Keys(old)) {
		if conns[name] == nil && !old[name].disabled {
			c.Removed = append(c.Removed, name)
		}
		if conns[name] != old[name] {
			old[name].drain()
			p.subscriptions.replaced(old[name])
		}
	}
	for _, name := range c.Added {
		p.subscriptions.retry(name)
	}
	return c
}

// follow watches a source until the pool is closed.
func (p *Pool) follow(r *sourceState, w Watcher) {
	err := w.Watch(p.life, func() {
		p.sourcesMu.Lock()
		defer p.sourcesMu.Unlock()
		p.readAgain(r)
	})
	if err != nil && p.life.Err() == nil {
		p.sourcesMu.Lock()
		defer p.sourcesMu.Unlock()
		p.report(Change{Err: fmt.Errorf("changes of the configuration are no longer seen: %w", err)})
	}
}

// Reload reads the sources that can change, and returns the change. The reading belongs to the pool: if ctx ends first, it
// goes on, and only the change is not returned. Callers that come before a reading begins share it.
func (p *Pool) Reload(ctx context.Context) (Change, error) {
	_ = p.Load(ctx) // its error stays in the change
	p.mu.Lock()
	if p.reload == nil && ctx.Err() == nil {
		p.reload = launch(&p.goroutines, errClosing, p.readAll, &p.mu, func(Change, error) {})
	}
	f := p.reload
	p.mu.Unlock()
	if ctx.Err() == nil && f.over(ctx) {
		return f.value, f.err
	}
	return Change{}, fmt.Errorf("the configuration of servers is still being read: %w", ctx.Err())
}

var errClosing = errors.New("the gateway is closing")

// readAll reads all sources that can change.
func (p *Pool) readAll() (Change, error) {
	p.sourcesMu.Lock()
	defer p.sourcesMu.Unlock()
	p.mu.Lock()
	p.reload = nil // who comes now may have changed a source that is being read
	p.mu.Unlock()
	var again []*sourceState
	for _, r := range p.sources {
		if _, ok := r.source.(Watcher); ok { // reading another one again would restart its servers
			again = append(again, r)
		}
	}
	c := p.readAgain(again...)
	if p.life.Err() != nil {
		return c, errClosing
	}
	return c, nil
}

// readAgain reads sources that may have changed, and returns the change. p.sourcesMu is held.
func (p *Pool) readAgain(changed ...*sourceState) Change {
	errs := make([]error, len(changed))
	for i, r := range changed {
		errs[i] = r.read(p.life, false)
	}
	if p.life.Err() != nil {
		return Change{}
	}
	wanted, conflict := merge(p.sources)
	groups, wrong := mergeGroups(p.sources)
	conflict = errors.Join(conflict, wrong)
	p.mu.Lock()
	for i, r := range changed {
		r.err = errs[i]
	}
	p.conflict = conflict
	c := p.apply(wanted)
	if wrong == nil {
		c.Groups = !maps.EqualFunc(p.groups, groups, Group.same)
		p.groups = groups
	}
	p.mu.Unlock()
	if !c.IsZero() {
		p.offersChanged()
		p.serversChanged()
	}
	c.Err = errors.Join(append(errs, conflict)...)
	p.report(c)
	return c
}

// report passes a change on. p.sourcesMu is held.
func (p *Pool) report(c Change) {
	if !c.IsZero() && p.options.OnChange != nil {
		p.options.OnChange(c)
	}
}

// Servers returns the names of all servers that the view of ctx shows and that are not disabled, sorted. It waits for Load until ctx
// is done.
func (p *Pool) Servers(ctx context.Context) []string {
	_ = p.Load(ctx) // the caller of Load reports it
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(ViewOf(ctx).of(p.names))
}

// Configured returns all servers as the sources describe them, disabled ones too, sorted by name. It waits for Load until ctx is
// done.
func (p *Pool) Configured(ctx context.Context) []Server {
	_ = p.Load(ctx) // the caller of Load reports it
	list := []Server{}
	for _, sc := range p.all(WithView(ctx, nil)) {
		list = append(list, *sc.origin)
	}
	return list
}

// SourceError says what is wrong with sources that have changed since Load, and of which the earlier servers stay; nil
// if nothing is.
func (p *Pool) SourceError() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, r := range p.sources {
		errs = append(errs, r.err)
	}
	return errors.Join(append(errs, p.conflict)...)
}
