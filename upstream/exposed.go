package upstream

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcsh-dev/mcsh/internal/globs"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/upstream/toollist"
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
func (o *Options) exposedBy(s *Server) globs.List {
	list := slices.Clone(s.Expose)
	for _, pattern := range o.Expose {
		if server, tool, ok := strings.Cut(pattern, "/"); ok && globs.Compile(server).Match(s.Name) {
			list = append(list, tool)
		}
	}
	return globs.Compile(list...)
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
		return slices.ContainsFunc(servers, globs.Compile(server).Match)
	})
}

// An ExposedTool is a tool that clients may call by a name of its own, as it is known.
type ExposedTool struct {
	*toollist.Tool
	Server string
	conn   *serverConn
}

// Exposed lists the tools that clients may call by names of their own: by server, in the server's order, as far as they are
// known. It asks no server, starts none and does not wait. The list is out of date when [Pool.Generation] returns another number.
func (p *Pool) Exposed() (tools []ExposedTool, generation uint64) {
	generation = p.Generation()
	for _, sc := range p.connections() {
		for _, t := range sc.exposedOf(sc.tools.latest()) {
			tools = append(tools, ExposedTool{t, sc.server.Name, sc})
		}
	}
	return tools, generation
}

// Generation is a number that changes with the lists of tools.
func (p *Pool) Generation() uint64 { return p.generation.Load() }

// exposedOf are the tools of a list, which may be nil, that clients may call by names of their own.
func (sc *serverConn) exposedOf(list *toollist.List) (tools []*toollist.Tool) {
	if list == nil || len(sc.exposed) == 0 {
		return nil
	}
	for _, t := range list.Tools {
		if t.Refused == "" && sc.exposed.Match(t.Original) {
			tools = append(tools, t)
		}
	}
	return tools
}

// latest returns the list as far as it is known, or nil.
func (c *toolCache) latest() *toollist.List {
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
func (sc *serverConn) toolsChanged(old, now *toollist.List) {
	if old != nil && slices.Equal(old.Tools, now.Tools) {
		return
	}
	sc.pool.generation.Add(1)
	if f := sc.pool.onTools.Load(); f != nil && !slices.EqualFunc(sc.exposedOf(old), sc.exposedOf(now), (*toollist.Tool).Same) {
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
func (c *toolCache) follow() {
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

// Held reports whether the tool is held back until somebody accepts it. It is not for lists then, and a call is refused.
func (e ExposedTool) Held() bool {
	held := e.conn.pins.Refusal(e.Tool) != ""
	if held && e.conn.exposes() {
		e.conn.pins.AwaitAccept(e.conn.pool.goroutines.start, func() { (*e.conn.pool.onTools.Load())() })
	}
	return held
}

// unexposed names the exposed tools of a list that clients cannot have.
func (sc *serverConn) unexposed(ctx context.Context, list *toollist.List) string {
	flawed := slices.DeleteFunc(sc.exposedOf(list), func(t *toollist.Tool) bool { return t.Flaw(ctx) == "" })
	if len(flawed) == 0 {
		return ""
	}
	names := firstNames(flawed, func(t *toollist.Tool) string { return t.Name })
	return "only pipelines can call " + names + choose(len(flawed) > 1, " (the first: ", " (") + texts.Cut(flawed[0].Flaw(ctx), maxFault) + ")"
}
