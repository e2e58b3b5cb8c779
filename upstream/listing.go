package upstream

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcsh-dev/mcsh/stages"
)

// Status words of a [Listing].
const (
	StatusReady    = "ready"    // the server answers, and Tools is current
	StatusDegraded = "degraded" // the server answers, but the last calls did not come through
	StatusStarting = "starting" // no answer yet; Tools may hold an earlier list
	StatusFailed   = "failed"   // Err says why; Tools may hold an earlier list
)

// restartWait is how long a listing waits for a server that has ended to come back.
const restartWait = time.Second

// warmWait is how long a list of all waits for a server of which nothing is known, where others are known from an
// earlier process: an answer at once that lacks a server, and says so, is worth more than one that lacks none.
const warmWait = 2 * time.Second

// errLate marks a server for which somebody has waited in vain already.
var errLate = errors.New("it has not answered yet")

// A Listing is one server with its tools.
type Listing struct {
	Server string
	Status string
	Err    error  // an *Error of stages, where Status is failed
	Stderr string // the last lines that a program wrote to its standard error
	Note   string // something odd that does no harm, or empty

	Protocol string // the version that the session speaks, or empty
	Refused  int    // tools that the operator does not allow

	// Tools are those that the operator allows, in the server's order.
	Tools []CatalogTool
}

// Catalog lists servers with their tools: those named, or all, sorted by name. It starts the servers that are not
// started, all at the same time, and waits for them until ctx is done. A name that is not known has a listing whose
// Err says so. Where all are listed, gateways that are left out are not among them, and one server that does not answer
// delays those that are known from before only for a moment.
func (p *Pool) Catalog(ctx context.Context, names ...string) []Listing {
	_ = p.Load(ctx) // its error is told by whoever wired the pool; here the servers that are there count
	all := len(names) == 0
	if all {
		p.mu.Lock()
		names = slices.Clone(p.names)
		units := slices.Collect(maps.Values(p.units))
		p.mu.Unlock()
		if slices.ContainsFunc(units, func(u *unit) bool { return u.tools.saved() != nil }) {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, warmWait)
			defer cancel()
		}
	}
	out := make([]Listing, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		wg.Go(func() {
			for again := true; again; {
				u, err := p.unit(ctx, name)
				if err != nil {
					out[i] = Listing{Server: name, Status: StatusFailed, Err: err}
					return
				}
				out[i] = u.listing(ctx)
				again = u.isRetired() && ctx.Err() == nil
			}
		})
	}
	wg.Wait()
	if all {
		out = slices.DeleteFunc(out, func(l Listing) bool { return errors.Is(l.Err, errGateway) })
	}
	return out
}

// listing is what is known of one server. It waits for the tools only where none are known from before.
func (u *unit) listing(ctx context.Context) Listing {
	l := Listing{Server: u.server.Name}
	list, err := u.tools.atHand(ctx)
	if err == nil {
		l.Status, err = u.status(ctx)
	}
	if err != nil {
		l.Status, l.Err = StatusFailed, u.hush(asError(err))
		if ctx.Err() != nil || errors.Is(err, errLate) {
			l.Status = StatusStarting
		}
	}
	if l.Status == StatusReady && u.degraded() {
		l.Status = StatusDegraded
	}
	l.Stderr, l.Note = u.diagnosis()
	l.Protocol = u.protocol()
	if list == nil {
		return l
	}
	notes := append(slices.Concat(list.notes(), u.idlePatterns(list)), l.Note, u.tools.note(), u.shapes.note())
	l.Note = strings.Join(slices.DeleteFunc(notes, func(note string) bool { return note == "" }), "; ")
	l.Tools, l.Refused = u.allowed(list)
	return l
}

// allowed are the tools of a list that the operator allows, and how many others there are.
func (u *unit) allowed(list *toolList) (tools []CatalogTool, refused int) {
	for _, t := range list.tools {
		if t.refused != "" {
			refused++
			continue
		}
		one := *t.details()
		one.Result = u.shapes.result(t)
		tools = append(tools, one)
	}
	return tools, refused
}

// status says how a server is whose tools are known. One that rests is not woken, and one that has ended gets a moment
// to come back.
func (u *unit) status(ctx context.Context) (string, error) {
	u.mu.Lock()
	l, starting, failure, resting := u.link, u.start != nil, u.failure, u.resting
	u.mu.Unlock()
	switch {
	case resting, l != nil && !l.dead():
		return StatusReady, nil
	case l == nil && failure != nil && !starting:
		return StatusFailed, failure
	case l == nil && !u.tools.fetched():
		return StatusStarting, nil
	}
	moment, cancel := context.WithTimeout(ctx, restartWait)
	defer cancel()
	if _, err := u.session(moment); err != nil {
		if moment.Err() != nil {
			return StatusStarting, nil
		}
		return StatusFailed, err
	}
	return StatusReady, nil
}

// protocol is the version that the current session speaks.
func (u *unit) protocol() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.link == nil {
		return ""
	}
	return u.link.version
}

// idlePatterns tells of patterns of the operator that match no tool: they may be misspelt, and then deny nothing.
func (u *unit) idlePatterns(list *toolList) []string {
	var notes []string
	for _, patterns := range []struct {
		key  string
		list []string
	}{{"tools.allow", u.server.Allow}, {"tools.deny", u.server.Deny}, {"readOnly", u.server.ReadOnly}} {
		for _, p := range patterns.list {
			one := compileGlobs([]string{p})
			if !slices.ContainsFunc(list.tools, func(t *tool) bool { return one.match(t.name) }) {
				notes = append(notes, fmt.Sprintf("the pattern %q of %s matches no tool", p, patterns.key))
			}
		}
	}
	return notes
}

// diagnosis returns what the transport of the current session knows.
func (u *unit) diagnosis() (stderr, note string) {
	u.mu.Lock()
	l := u.link
	u.mu.Unlock()
	if l == nil {
		return "", ""
	}
	if d, ok := l.peer.(interface{ Tail() string }); ok {
		stderr = u.hide(d.Tail())
	}
	if d, ok := l.peer.(interface{ Note() string }); ok {
		note = u.hide(d.Note())
	}
	return stderr, note
}

// atHand returns the list as far as it is known, and refreshes it behind where it may be out of date. Where nothing is
// known it waits for the first list, unless somebody has done so in vain.
func (c *catalog) atHand(ctx context.Context) (*toolList, error) {
	saved, resting := c.saved(), c.unit.rests()
	c.mu.Lock()
	list, hung := c.list, c.hung
	var f *fetch
	if c.outdated() && !(resting && list != nil) {
		f = c.begin()
	}
	c.mu.Unlock()
	switch {
	case list != nil:
		return list, nil
	case saved != nil:
		return saved, nil
	case !hung:
		return c.wait(ctx, f)
	}
	select {
	case <-f.done:
		return f.list, f.err
	default:
	}
	return nil, c.unit.late()
}

// late is the error of a server that has let somebody wait in vain.
func (u *unit) late() error {
	u.mu.Lock()
	s, failure := u.start, u.failure
	u.mu.Unlock()
	if s == nil && failure != nil {
		return failure
	}
	e := stages.Errorf(stages.ServerUnavailable, "call again in a while, or do without it", "server %q has not answered yet", u.server.Name)
	if s != nil {
		e.Msg += fmt.Sprintf(" (%v so far)", time.Since(s.begun).Round(time.Second))
	}
	e.Err = errLate
	return e
}

// known returns a tool of the list as far as it is known.
func (c *catalog) known(name string) *tool {
	c.mu.Lock()
	list := c.list
	c.mu.Unlock()
	if list == nil {
		list = c.saved()
	}
	if list == nil {
		return nil
	}
	return list.byName[name]
}
