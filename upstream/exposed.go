package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

// CheckExpose refuses a text that is no pattern SERVER/TOOL.
func CheckExpose(pattern string) error {
	server, tool, ok := strings.Cut(pattern, "/")
	if !ok || server == "" || tool == "" {
		return fmt.Errorf("%q is no pattern SERVER/TOOL", texts.Cut(pattern, maxNamed))
	}
	return nil
}

// exposedBy returns the globs of the tools of a server that clients call by names of their own.
func (o *Options) exposedBy(s *Server) globs {
	list := slices.Clone(s.Expose)
	for _, pattern := range o.Expose {
		if server, tool, ok := strings.Cut(pattern, "/"); ok && compileGlobs([]string{server}).match(s.Name) {
			list = append(list, tool)
		}
	}
	return compileGlobs(list)
}

// exposeFlags returns the patterns of [Options.Expose] that are for this server alone, without its name.
func (sc *serverConn) exposeFlags() (tools []string) {
	for _, pattern := range sc.pool.options.Expose {
		if tool, ok := strings.CutPrefix(pattern, sc.server.Name+"/"); ok {
			tools = append(tools, tool)
		}
	}
	return tools
}

// ExposeWithoutServer returns the patterns of [Options.Expose] that no server fits.
func (p *Pool) ExposeWithoutServer(ctx context.Context) []string {
	servers := p.Servers(ctx)
	return slices.DeleteFunc(slices.Clone(p.options.Expose), func(pattern string) bool {
		server, _, _ := strings.Cut(pattern, "/")
		return slices.ContainsFunc(servers, compileGlobs([]string{server}).match)
	})
}

// An ExposedTool is a tool that clients may call by a name of its own, as it is known.
type ExposedTool struct {
	Server, Name string
	tool         *tool
}

// Exposed lists the tools that clients may call by names of their own: by server, in the server's order, as far as they are
// known. It asks no server, starts none and does not wait. The list is out of date when [Pool.Generation] returns another number.
func (p *Pool) Exposed() (tools []ExposedTool, generation uint64) {
	generation = p.Generation()
	for _, sc := range p.connections() {
		for _, t := range sc.exposedOf(sc.tools.latest()) {
			tools = append(tools, ExposedTool{sc.server.Name, t.Name, t})
		}
	}
	return tools, generation
}

// Generation is a number that changes with the lists of tools.
func (p *Pool) Generation() uint64 { return p.generation.Load() }

// exposedOf are the tools of a list, which may be nil, that clients may call by names of their own.
func (sc *serverConn) exposedOf(list *toolList) (tools []*tool) {
	if list == nil || len(sc.exposed) == 0 {
		return nil
	}
	for _, t := range list.tools {
		if t.refused == "" && sc.exposed.match(t.original) {
			tools = append(tools, t)
		}
	}
	return tools
}

// latest returns the list as far as it is known, or nil.
func (c *catalog) latest() *toolList {
	c.mu.Lock()
	list := c.list
	c.mu.Unlock()
	if list == nil {
		return c.saved()
	}
	return list
}

// OnTools makes the pool call f when the tools that clients may call by names of their own have changed. f must not block. From
// then on a server of such tools is asked for its list where that is not known, and when the server reports a change.
func (p *Pool) OnTools(f func()) {
	p.onTools.Store(&f)
	p.goroutines.start(func() {
		_ = p.Load(p.life) // the caller of Load reports its error
		p.readExposed()
	})
}

// exposes reports whether the pool follows the list of the server's tools for clients.
func (sc *serverConn) exposes() bool {
	follows := sc.pool.follows.Load()
	return (len(sc.exposed) > 0 || follows != nil && (*follows)(sc.server.Name)) && sc.pool.onTools.Load() != nil
}

// FollowTools makes the pool follow the lists of more servers than those with exposed tools, from [Pool.OnTools] on.
func (p *Pool) FollowTools(server func(name string) bool) { p.follows.Store(&server) }

// toolsChanged reports that the list of the server's tools is another one.
func (sc *serverConn) toolsChanged(old, now *toolList) {
	if old != nil && slices.Equal(old.tools, now.tools) {
		return
	}
	sc.pool.generation.Add(1)
	same := func(a, b *tool) bool { return a == b || bytes.Equal(a.raw, b.raw) && a.duplicated == b.duplicated }
	if f := sc.pool.onTools.Load(); f != nil && !slices.EqualFunc(sc.exposedOf(old), sc.exposedOf(now), same) {
		(*f)()
	}
}

// serversChanged reports that the pool has other servers.
func (p *Pool) serversChanged() {
	if f := p.onTools.Load(); f != nil {
		p.readExposed()
		(*f)()
	}
}

// readExposed starts reading the lists of exposed tools that are not known.
func (p *Pool) readExposed() {
	for _, sc := range unknownExposed(p.connections()) {
		sc.tools.mu.Lock()
		sc.tools.begin()
		sc.tools.mu.Unlock()
	}
}

// unknownExposed are those of some servers that have exposed tools and whose lists are not known.
func unknownExposed(servers []*serverConn) []*serverConn {
	return slices.DeleteFunc(servers, func(sc *serverConn) bool { return !sc.exposes() || sc.tools.latest() != nil })
}

// AwaitExposed waits until the lists of the exposed tools that the view of ctx shows are known, or cannot be read: also of
// servers outside this process, or only of those within, which answer at once.
func (p *Pool) AwaitExposed(ctx context.Context, outside bool) {
	_ = p.Load(ctx) // the caller of Load reports its error
	var wg sync.WaitGroup
	for _, sc := range unknownExposed(p.shown(ctx)) {
		if !outside && !sc.server.InProcess {
			continue
		}
		wg.Go(func() { _, _ = sc.tools.get(ctx) }) // who lists the server's tools sees the error
	}
	wg.Wait()
}

// follow reads a list that has changed, if its server runs: soon, but not all the time for a server that reports changes all
// the time.
func (c *catalog) follow() {
	if now := c.conn.state(); !c.conn.exposes() || !now.alive() || now.resting {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !c.stale || c.waiting:
	case c.fetch == nil && c.changed():
		c.begin()
	default:
		c.waiting = true
		time.AfterFunc(max(c.pause-time.Since(c.again), firstPause), func() {
			c.mu.Lock()
			c.waiting = false
			c.mu.Unlock()
			c.follow()
		})
	}
}

// Raw is the tool as its server lists it.
func (e ExposedTool) Raw() json.RawMessage { return e.tool.raw }

// Details describes the tool.
func (e ExposedTool) Details(ctx context.Context) *CatalogTool { return e.tool.details(ctx) }

// Held reports whether the tool is held back until somebody accepts it. It is not for lists then, and a call is refused.
func (e ExposedTool) Held() bool {
	pins := e.tool.from.pins
	held := pins.refusal(e.tool) != ""
	if held {
		pins.awaitAccept()
	}
	return held
}

// Flaw says why clients cannot have the tool by a name of its own, or is empty.
func (e ExposedTool) Flaw(ctx context.Context) string { return e.tool.exposedFlaw(ctx) }

// exposedFlaw returns the flaw, which is found once. When ctx ends first, the next call looks again.
func (t *tool) exposedFlaw(ctx context.Context) string {
	t.mu.Lock()
	known := t.flaw
	t.mu.Unlock()
	if known != nil {
		return *known
	}
	flaw := t.findFlaw(ctx)
	if ctx.Err() == nil {
		t.mu.Lock()
		t.flaw = &flaw
		t.mu.Unlock()
	}
	return flaw
}

func (t *tool) findFlaw(ctx context.Context) string {
	d := t.details(ctx)
	if size := len(t.raw); size > maxOffer {
		return fmt.Sprintf("it takes %d bytes, more than the %d that a list for clients may have for one tool", size, maxOffer)
	}
	if d.Denied != "" {
		return "it cannot be called: " + d.Denied
	}
	if why := d.Unchecked(ctx); why != "" {
		return "its input schema: " + why
	}
	if err := objectSchema(d.InputSchema); err != nil {
		return "its input schema: " + err.Error()
	}
	return ""
}

// unexposed names the exposed tools of a list that clients cannot have.
func (sc *serverConn) unexposed(ctx context.Context, list *toolList) string {
	const named = 3
	var names []string
	n, why := 0, ""
	for _, t := range sc.exposedOf(list) {
		flaw := t.exposedFlaw(ctx)
		if flaw == "" {
			continue
		}
		if n++; n <= named {
			names = append(names, fmt.Sprintf("%.40q", t.Name))
			if why == "" {
				why = texts.Cut(flaw, maxFault)
			}
		}
	}
	if n == 0 {
		return ""
	}
	if n > named {
		names = append(names, fmt.Sprintf("%d more", n-named))
	}
	return "only pipelines can call " + strings.Join(names, ", ") + choose(n > 1, " (the first: ", " (") + why + ")"
}
