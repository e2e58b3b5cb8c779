package upstream

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/globs"
	"github.com/mcsh-dev/mcsh/internal/lazy"
	"github.com/mcsh-dev/mcsh/internal/nearest"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
)

// A Group is a named part of the servers, as the operator has configured it.
type Group struct {
	Name    string
	Servers []string // names, and patterns with * and ?
	Where   string   // it is configured; may be empty

	view *View // set by mergeGroups
}

// groupNames matches the valid names of groups: each is one segment of a path in a URL, and a word in a file of tokens.
var groupNames = lazy.Regexp(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// ValidGroup reports whether a group may have a name.
func ValidGroup(name string) bool { return groupNames().MatchString(name) }

// A grouped [Source] also has groups: those of the last call of Servers.
type grouped interface{ Groups() []Group }

// A View is the part of the servers that one request may know of. Nil shows all servers; the zero View shows none.
type View struct {
	names    map[string]bool
	patterns globs.List
	only     string  // see Only
	parts    []*View // that it also shows
}

// newView returns the view of servers that are named, or match a pattern.
func newView(servers []string) *View {
	v := &View{names: map[string]bool{}}
	for _, name := range servers {
		if strings.ContainsAny(name, "*?") {
			v.patterns = append(v.patterns, globs.Compile(name)...)
		} else {
			v.names[name] = true
		}
	}
	if len(v.names) == 1 && v.patterns == nil {
		v.only = servers[0]
	}
	return v
}

// Sees reports whether the view shows a server.
func (v *View) Sees(server string) bool {
	return v == nil || v.names[server] || v.patterns.Match(server) || slices.ContainsFunc(v.parts, func(part *View) bool { return part.Sees(server) })
}

// Only returns the server of a view that can have no other, or "". Its clients see the names and URIs that this server gives.
func (v *View) Only() string {
	if v == nil {
		return ""
	}
	return v.only
}

// of returns the names that the view shows.
func (v *View) of(names []string) []string {
	if v == nil {
		return names
	}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !v.Sees(name) })
}

type viewKey struct{}

// WithView returns a context for requests in a view. Every method of a [Pool] with such a context acts as if there were no
// other servers.
func WithView(ctx context.Context, v *View) context.Context {
	return context.WithValue(ctx, viewKey{}, v)
}

// ViewOf returns the view of a request, nil without one.
func ViewOf(ctx context.Context) *View {
	v, _ := ctx.Value(viewKey{}).(*View)
	return v
}

// View returns the servers of some groups together. A group that is not there has no servers.
func (p *Pool) View(groups ...string) *View {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := &View{}
	for _, name := range groups {
		if v := p.groups[name].view; v != nil { // nil would show all servers
			all.parts = append(all.parts, v)
		}
	}
	if len(all.parts) == 1 {
		return all.parts[0]
	}
	if len(all.parts) > 0 && !slices.ContainsFunc(all.parts, func(part *View) bool { return part.only != all.parts[0].only }) {
		all.only = all.parts[0].only
	}
	return all
}

// HasGroup reports whether a group is configured.
func (p *Pool) HasGroup(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ok := p.groups[name]
	return ok
}

// Groups returns the groups, sorted by name. It waits for Load until ctx is done.
func (p *Pool) Groups(ctx context.Context) []Group {
	_ = p.Load(ctx) // the caller of Load reports its error
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []Group
	for _, name := range slices.Sorted(maps.Keys(p.groups)) {
		list = append(list, p.groups[name])
	}
	return list
}

// GroupNotes names what groups list and no server has. It may be misspelt, or the name of a server that is not there at present.
func (p *Pool) GroupNotes(ctx context.Context) (notes []string) {
	names := p.Servers(ctx)
	for _, group := range p.Groups(ctx) {
		for _, pattern := range group.Servers {
			if len(newView([]string{pattern}).of(names)) > 0 {
				continue
			}
			note := fmt.Sprintf("%s: no server has the name %q at present", group.label(), texts.Cut(pattern, maxNamed))
			if near := nearest.Name(pattern, names); near != "" {
				note += fmt.Sprintf("; did you mean %q?", near)
			}
			notes = append(notes, note)
		}
	}
	return notes
}

func (g Group) same(other Group) bool { return slices.Equal(g.Servers, other.Servers) }

func (g Group) label() string {
	label := fmt.Sprintf("group %q", g.Name)
	if g.Where != "" {
		label = g.Where + ": " + label
	}
	return label
}

// check returns what is wrong with a group.
func (g Group) check() error {
	switch {
	case !ValidGroup(g.Name):
		return fmt.Errorf("%s: its name is part of an address: want up to 64 of A-Z a-z 0-9 . _ - that begin with a letter or a digit",
			Group{Name: texts.Cut(g.Name, maxNamed), Where: g.Where}.label())
	case len(g.Servers) == 0:
		return fmt.Errorf("%s: it names no server; remove it, or name some", g.label())
	case slices.Contains(g.Servers, ""):
		return fmt.Errorf("%s: the name of a server in it is empty", g.label())
	}
	return nil
}

// mergeGroups puts the groups of all sources together. Two of the same name are an error: a file that nobody looks at would
// otherwise decide who may use what.
func mergeGroups(sources []*sourceState) (map[string]Group, error) {
	all := map[string]Group{}
	var errs []error
	for _, r := range sources {
		for _, g := range r.groups {
			err := g.check()
			if other, twice := all[g.Name]; err == nil && twice {
				err = fmt.Errorf("%s: it is defined twice, first at %s; rename one of them", g.label(), other.Where)
			}
			if err != nil {
				errs = append(errs, err)
				continue
			}
			g.view = newView(g.Servers)
			all[g.Name] = g
		}
	}
	return all, errors.Join(errs...)
}

// unknownServer is the error for a name that none of the servers has which the caller may know of.
func unknownServer(server string, names []string, v *View, loadErr error) error {
	named := texts.Cut(server, 80)
	switch near := nearest.List(server, names, 3); {
	case len(names) == 0 && v != nil:
		return stages.Errorf(stages.UnknownServer, "ask the operator of this gateway which groups you may use", "there is no server %q, nor any other for you", named)
	case len(names) == 0 && loadErr != nil:
		return stages.Errorf(stages.UnknownServer, "fix the configuration", "there is no server %q: %w", named, loadErr)
	case len(names) == 0:
		return stages.Errorf(stages.UnknownServer, "add a server to the configuration", "there is no server %q, nor any other", named)
	case len(near) > 0:
		return stages.Errorf(stages.UnknownServer, "did you mean "+quoted(near)+"?", "there is no server %q", named)
	default:
		return stages.Errorf(stages.UnknownServer, "call list_all_tools; there are "+quoted(names[:min(len(names), 10)]), "there is no server %q", named)
	}
}
