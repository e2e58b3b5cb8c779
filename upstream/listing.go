package upstream

import (
	"context"
	"slices"
	"strings"
	"sync"
)

// Status words of a [Listing].
const (
	StatusReady    = "ready"    // the server answers, and Tools is current
	StatusStarting = "starting" // no answer yet; Tools may hold an earlier list
	StatusFailed   = "failed"   // Err says why; Tools may hold an earlier list
)

// A Listing is one server with its tools.
type Listing struct {
	Server string
	Status string
	Err    error  // an *Error of stages, where Status is failed
	Stderr string // the last lines that a program wrote to its standard error
	Note   string // something odd that does no harm, or empty

	// Tools are those that the operator allows, in the server's order.
	Tools []CatalogTool
}

// Catalog lists servers with their tools: those named, or all, sorted by name. It starts the servers that are not
// started, all at the same time, and waits for them until ctx is done. A name that is not known has a listing whose
// Err says so.
func (p *Pool) Catalog(ctx context.Context, names ...string) []Listing {
	_ = p.Load(ctx) // its error is told by whoever wired the pool; here the servers that are there count
	if len(names) == 0 {
		p.mu.Lock()
		names = slices.Clone(p.names)
		p.mu.Unlock()
	}
	out := make([]Listing, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		wg.Go(func() {
			u, err := p.unit(ctx, name)
			if err != nil {
				out[i] = Listing{Server: name, Status: StatusFailed, Err: err}
				return
			}
			out[i] = u.listing(ctx)
		})
	}
	wg.Wait()
	return out
}

// listing waits for the tools of one server.
func (u *unit) listing(ctx context.Context) Listing {
	l := Listing{Server: u.server.Name, Status: StatusReady}
	list, err := u.tools.get(ctx)
	if err == nil {
		_, err = u.session(ctx) // a list from memory does not say that the server lives
	}
	if err != nil {
		l.Status, l.Err = StatusFailed, asError(err)
		if ctx.Err() != nil {
			l.Status = StatusStarting
		}
	}
	l.Stderr, l.Note = u.diagnosis()
	if list == nil {
		return l
	}
	if notes := list.notes(); len(notes) > 0 {
		l.Note = strings.TrimSuffix(strings.Join(append(slices.Clone(notes), l.Note), "; "), "; ")
	}
	for _, t := range list.tools {
		if t.refused == "" {
			l.Tools = append(l.Tools, *t.details())
		}
	}
	return l
}

// diagnosis returns what the transport of the current session knows.
func (u *unit) diagnosis() (stderr, note string) {
	u.mu.Lock()
	l := u.link
	u.mu.Unlock()
	if l == nil {
		return "", ""
	}
	if d, ok := l.transport.(interface{ tail() string }); ok {
		stderr = d.tail()
	}
	if d, ok := l.transport.(interface{ note() string }); ok {
		note = d.note()
	}
	return stderr, note
}

// known returns a tool of the list as far as it was fetched.
func (c *catalog) known(name string) *tool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.list == nil {
		return nil
	}
	return c.list.byName[name]
}
