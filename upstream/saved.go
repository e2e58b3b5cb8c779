package upstream

import (
	"context"
	"slices"
	"time"

	"github.com/mcsh-dev/mcsh/upstream/toollist"
)

// keepAgain is after how long a list on disk is written again, to mark it as used.
const keepAgain = 24 * time.Hour

// savedTools reads the list of an earlier process.
func (sc *serverConn) savedTools() *toollist.List {
	if sc.pool.options.State == nil || sc.pool.options.Refresh || sc.server.InProcess {
		return nil
	}
	saved, ok := sc.pool.options.State.Tools(sc.key())
	if !ok {
		return nil
	}
	list := toollist.SavedList(sc.reader(), saved)
	if sc.tools.lease.Grow(list.Memory()) != nil {
		return nil // without memory for it the list is fetched when it is needed
	}
	return list
}

// keep writes a list for later processes, unless it is there already.
func (c *toolCache) keep(list, old *toollist.List) {
	dir := c.conn.pool.options.State
	if dir == nil || c.conn.server.InProcess || !c.conn.isFirst() {
		return
	}
	c.mu.Lock()
	kept := c.kept
	c.mu.Unlock()
	same := old != nil && old.Cut == list.Cut && slices.EqualFunc(old.Tools, list.Tools, (*toollist.Tool).Same)
	if same && time.Since(kept) < keepAgain {
		return
	}
	err := dir.SaveTools(c.conn.key(), list.Saved())
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err, c.kept = err, time.Now()
}

// note says why the list is not saved, if that is so.
func (c *toolCache) note() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return notSaved("its tool list is not saved for the next start", c.err)
}

// Saved lists the servers with the tools that an earlier process has saved. It starts no server and asks only those of
// this process.
func (p *Pool) Saved(ctx context.Context) []Listing {
	return p.listings(ctx, nil, func(sc *serverConn) Listing { return sc.keptOr(ctx, sc.server.InProcess) })
}

// CatalogSaved lists servers like [Pool.Catalog], but asks only servers without a saved list.
func (p *Pool) CatalogSaved(ctx context.Context, names ...string) []Listing {
	return p.listings(ctx, names, func(sc *serverConn) Listing { return sc.keptOr(ctx, true) })
}

// keptOr lists the tools that an earlier process has saved. If there are none, the server may be asked.
func (sc *serverConn) keptOr(ctx context.Context, ask bool) Listing {
	list := sc.tools.saved()
	switch {
	case list == nil && ask:
		return sc.listing(ctx)
	case list == nil:
		return Listing{Server: sc.server.Name, Status: StatusStarting}
	}
	l := Listing{Server: sc.server.Name, Status: StatusSaved, Fetched: list.Fetched, Instructions: sc.instructions(nil), Note: sc.pins.Note(list)}
	l.Tools, l.Refused = sc.allowed(ctx, list)
	return l
}
