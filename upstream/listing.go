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

	"github.com/mcsh-dev/mcsh/internal/globs"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream/toollist"
)

// Status words of a [Listing].
const (
	StatusReady    = "ready"    // the server answers, and Tools is current
	StatusDegraded = "degraded" // the server answers, but the last calls failed
	StatusStarting = "starting" // no answer yet; Tools may be an earlier list
	StatusFailed   = "failed"   // Err says why; Tools may be an earlier list
	StatusSaved    = "kept"     // not asked: Tools is the list that an earlier process has saved
)

// restartWait is how long a listing waits for a server that has ended to start again.
const restartWait = time.Second

// catalogWait is how long a list of all servers waits for a server without a saved list, if others have one: a prompt
// answer that says which server is missing is worth more than a late complete one.
const catalogWait = 2 * time.Second

// errLate marks a server whose first list an earlier caller has waited for too long.
var errLate = errors.New("it has not answered yet")

// A Listing is one server with its tools.
type Listing struct {
	Server string
	Status string
	Err    error  // an *Error of stages, where Status is failed
	Stderr string // the last lines that a program wrote to its standard error
	Note   string // something odd but harmless, or empty

	Instructions string // by the server, about its use; empty if there are none or they are not known

	Protocol string // the version that the session speaks, or empty
	Refused  int    // tools that are not offered: the operator does not allow them, or nothing here can call them

	// Fetched is when Tools was read from the server, if Status is kept.
	Fetched time.Time

	// Tools are those that are offered, in the server's order.
	Tools []toollist.CatalogTool
}

// Catalog lists servers with their tools: those named, or all, sorted by name. It starts servers that are not started,
// all at the same time, and waits for them until ctx is done. An unknown name has a listing with an error. If all are
// listed, gateways that are left out are missing, and a server that does not answer delays saved lists only for a
// moment.
func (p *Pool) Catalog(ctx context.Context, names ...string) []Listing {
	_ = p.Load(ctx) // the caller of Load reports its error
	if len(names) == 0 && slices.ContainsFunc(p.shown(ctx), func(sc *serverConn) bool { return sc.tools.saved() != nil }) {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, catalogWait)
		defer cancel()
	}
	return p.listings(ctx, names, func(sc *serverConn) Listing { return sc.listing(ctx) })
}

// listings lists servers, all at the same time; without names, all but the gateways that are left out. A server that is
// replaced meanwhile is listed again.
func (p *Pool) listings(ctx context.Context, names []string, list func(*serverConn) Listing) []Listing {
	all := len(names) == 0
	if all {
		names = p.Servers(ctx)
		if p.hasResources(ctx) {
			names = append(names, ResourcesServer)
		}
	}
	out := make([]Listing, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		wg.Go(func() {
			for again := true; again; {
				sc, err := p.conn(ctx, name)
				if err != nil {
					out[i] = Listing{Server: name, Status: StatusFailed, Err: err}
					return
				}
				out[i] = list(sc)
				again = sc.isReplaced() && ctx.Err() == nil
			}
		})
	}
	wg.Wait()
	if all {
		out = slices.DeleteFunc(out, Listing.IsGateway)
	}
	return out
}

// IsGateway reports whether the server is a gateway that is left out.
func (l Listing) IsGateway() bool { return errors.Is(l.Err, errGateway) }

// listing lists one server. It waits for the tools only if no list of them is known.
func (sc *serverConn) listing(ctx context.Context) Listing {
	l := Listing{Server: sc.server.Name}
	list, err := sc.tools.cached(ctx)
	if err == nil {
		l.Status, err = sc.status(ctx)
	}
	if err != nil {
		l.Status, l.Err = StatusFailed, sc.hideError(asError(err))
		if ctx.Err() != nil || errors.Is(err, errLate) {
			l.Status = StatusStarting
		}
	}
	now := sc.state()
	l.Instructions = sc.instructions(now.session)
	if l.Status == StatusReady && now.degraded {
		l.Status = StatusDegraded
	}
	if now.session != nil {
		stderr, note := outputOf(now.session.Transport)
		l.Stderr, l.Note, l.Protocol = sc.hide(stderr), sc.hide(note), now.session.Version
	}
	if list == nil {
		return l
	}
	l.Tools, l.Refused = sc.allowed(ctx, list)
	notes := append(slices.Concat([]string{sc.pins.Note(list)}, list.Notes(), sc.unmatchedPatterns(list)), l.Note, sc.tools.note(), sc.offers.note(), sc.shapes.note(), uncheckedTools(l.Tools), sc.unexposed(ctx, list))
	l.Note = strings.Join(slices.DeleteFunc(notes, func(note string) bool { return note == "" }), "; ")
	return l
}

// allowed are the tools of a list that the operator allows, and the number of the others. When ctx ends, the remaining
// tools are listed by name only.
func (sc *serverConn) allowed(ctx context.Context, list *toollist.List) (tools []toollist.CatalogTool, refused int) {
	tools = make([]toollist.CatalogTool, 0, len(list.Tools))
	for _, t := range list.Tools {
		if t.Refusal() != "" {
			refused++
			continue
		}
		one := *t.Details(ctx)
		if ctx.Err() == nil {
			one.Result = sc.shapes.result(t)
		}
		tools = append(tools, one)
	}
	return tools, refused
}

// firstNames names the first of some tools.
func firstNames[T any](tools []T, nameOf func(T) string) string {
	const most = 3
	var names []string
	for _, t := range tools[:min(len(tools), most)] {
		names = append(names, fmt.Sprintf("%.40q", nameOf(t)))
	}
	if more := len(tools) - most; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

// uncheckedTools names the tools with schemas that arguments are not checked against.
func uncheckedTools(tools []toollist.CatalogTool) string {
	var unchecked []string
	for i := range tools {
		if tools[i].Flaw != "" {
			unchecked = append(unchecked, tools[i].Name)
		}
	}
	if unchecked == nil {
		return ""
	}
	return "the input schema of " + firstNames(unchecked, func(name string) string { return name }) + " is too costly or cannot be read, so arguments are not checked here"
}

// status is the status of a server whose tools are known. A resting server is not started, and one that has ended gets a
// moment to start again.
func (sc *serverConn) status(ctx context.Context) (string, error) {
	now := sc.state()
	switch {
	case now.resting || now.alive():
		return StatusReady, nil
	case now.session == nil && now.failure != nil && now.start == nil:
		return StatusFailed, now.failure
	case now.session == nil && !sc.tools.fetched():
		return StatusStarting, nil
	}
	moment, cancel := context.WithTimeout(ctx, restartWait)
	defer cancel()
	if _, err := sc.session(moment); err != nil {
		if moment.Err() != nil {
			return StatusStarting, nil
		}
		return StatusFailed, err
	}
	return StatusReady, nil
}

// unmatchedPatterns names the operator's patterns that match no tool: they may be misspelt, and then deny nothing.
func (sc *serverConn) unmatchedPatterns(list *toollist.List) []string {
	var notes []string
	for _, patterns := range []struct {
		key  string
		list []string
	}{{"tools.allow", sc.server.Allow}, {"tools.deny", sc.server.Deny}, {"readOnly", sc.server.ReadOnly}, {"expose", sc.server.Expose}, {"--expose", sc.exposeFlags()}} {
		for _, p := range patterns.list {
			one := globs.Compile(p)
			if !slices.ContainsFunc(list.Tools, func(t *toollist.Tool) bool { return one.Match(t.Original) }) {
				notes = append(notes, fmt.Sprintf("the pattern %q of %s matches no tool", p, patterns.key))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(sc.server.Overrides)) {
		listed := slices.ContainsFunc(list.Tools, func(t *toollist.Tool) bool { return t.Original == name })
		if !listed && !slices.Contains(list.Yielded, name) {
			notes = append(notes, fmt.Sprintf("overrides has %q, which is no tool of the server", texts.Cut(name, maxNamed)))
		}
	}
	return notes
}

// cached returns the list as far as it is known, and refreshes it in the background if it is out of date. If nothing is
// known it waits for the first list, unless an earlier caller has waited for it too long.
func (c *toolCache) cached(ctx context.Context) (*toollist.List, error) {
	saved, resting := c.saved(), c.conn.state().resting
	c.mu.Lock()
	list, timedOut := c.list, c.timedOut
	var f *flight[*toollist.List]
	if c.outdated() && !(resting && list != nil) {
		f = c.begin()
	}
	c.mu.Unlock()
	switch {
	case list != nil:
		return list, nil
	case saved != nil:
		return saved, nil
	case !timedOut:
		return c.wait(ctx, f)
	}
	select {
	case <-f.done:
		return f.value, f.err
	default:
	}
	return nil, c.conn.lateError()
}

// lateError is the error of a server whose first list an earlier caller has waited for too long.
func (sc *serverConn) lateError() error {
	now := sc.state()
	if now.start == nil && now.failure != nil {
		return now.failure
	}
	e := stages.Errorf(stages.ServerUnavailable, sc.startHint(), "server %q has not answered yet", sc.server.Name)
	if now.start != nil {
		e.Msg += fmt.Sprintf(" (%v so far)", time.Since(now.start.begun).Round(time.Second))
	}
	e.Err = errLate
	return e
}

// known returns a tool of the list as far as it is known, or nil.
func (c *toolCache) known(name string) *toollist.Tool {
	if list := c.latest(); list != nil {
		return list.ByName[name]
	}
	return nil
}
