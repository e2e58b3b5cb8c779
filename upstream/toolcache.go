package upstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mcsh-dev/mcsh/internal/memory"
	"github.com/mcsh-dev/mcsh/upstream/toollist"
)

// The defaults of [Options.Tools] and [Options.ToolList].
const (
	DefaultTools    = 10_000
	DefaultToolList = 16 << 20
)

const (
	leastPages   = 100             // of one tool list; more where it may have more than a hundred times as many tools
	freshForMiss = 2 * time.Second // a list this young is not fetched again for a name that is not in it
	maxCursor    = 16 << 10        // bytes; it goes back to the server

	// How long a list that has changed is used before it is fetched again: not at all the first time, then twice as long
	// each time, as long as the changes come so soon after each other.
	firstPause = 250 * time.Millisecond
	maxPause   = time.Minute
	calmAfter  = 10 * time.Second // without a change, beside the pauses
)

// A toolCache is the tool list of one server: fetched when first needed, answered from memory, refreshed in the
// background. If there is a state directory, the list of an earlier process is shown until the server has answered;
// plans and calls wait for the server's own list, because the effects of a tool may have changed.
type toolCache struct {
	conn  *serverConn
	lease *memory.Lease         // for the list
	saved func() *toollist.List // of an earlier process, nil if there is none; read once

	mu       sync.Mutex              // guards the fields below; not held while fetching
	list     *toollist.List          // nil before the first fetch
	fetch    *flight[*toollist.List] // the one under way, if one is
	stale    bool                    // the server has said that the list changed
	again    time.Time               // when the list was last fetched because it had changed
	pause    time.Duration           // between again and the next time
	waiting  bool                    // a fetch because of a change will begin in a moment
	timedOut bool                    // a caller has waited for the first list too long: the next one does not wait
	kept     time.Time               // when the list was written to disk
	err      error                   // why it could not be
}

// invalidate marks the list as out of date.
func (c *toolCache) invalidate() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stale = true
}

func newToolCache(sc *serverConn) *toolCache {
	return &toolCache{conn: sc, lease: sc.pool.options.Catalogs.Lease(), saved: sync.OnceValue(func() *toollist.List { return sc.savedTools() })}
}

// get returns the list, at once if it was ever fetched; one that is out of date is refreshed in the background.
func (c *toolCache) get(ctx context.Context) (*toollist.List, error) {
	c.mu.Lock()
	list := c.list
	var f *flight[*toollist.List]
	if c.outdated() {
		f = c.begin()
	}
	c.mu.Unlock()
	if list != nil {
		return list, nil
	}
	return c.wait(ctx, f)
}

// outdated reports whether the list needs a fetch. c.mu is held.
func (c *toolCache) outdated() bool {
	return c.list == nil || c.changed() || time.Since(c.list.Fetched) > c.list.TTL
}

// changed reports whether the list needs a fetch because it has changed. The pause bounds the fetches for a server that
// reports changes all the time, and for a caller whose calls make it look so. c.mu is held.
func (c *toolCache) changed() bool { return c.stale && time.Since(c.again) >= c.pause }

// noteChange sets the pause after a fetch because of a change. c.mu is held.
func (c *toolCache) noteChange() {
	since := time.Since(c.again)
	c.again = time.Now()
	if since > 2*c.pause+calmAfter {
		c.pause = 0
		return
	}
	c.pause = min(max(2*c.pause, firstPause), maxPause)
}

// fetched reports whether the server has listed its tools to this process.
func (c *toolCache) fetched() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.list != nil
}

// refresh returns a list that was fetched within the last moments.
func (c *toolCache) refresh(ctx context.Context) (*toollist.List, error) {
	c.mu.Lock()
	if c.list != nil && !c.changed() && time.Since(c.list.Fetched) < freshForMiss {
		defer c.mu.Unlock()
		return c.list, nil
	}
	f := c.begin()
	c.mu.Unlock()
	return c.wait(ctx, f)
}

func (c *toolCache) wait(ctx context.Context, f *flight[*toollist.List]) (*toollist.List, error) {
	if f.over(ctx) {
		return f.value, f.err
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		c.mu.Lock()
		c.timedOut = true
		c.mu.Unlock()
	}
	_, err := c.conn.session(ctx) // says that it is still starting, if that is why
	if err == nil {
		err = fmt.Errorf("waiting for the tools of server %q: %w", c.conn.server.Name, ctx.Err())
	}
	return nil, err
}

// begin fetches the list, unless that is under way. c.mu is held.
func (c *toolCache) begin() *flight[*toollist.List] {
	if c.fetch != nil {
		return c.fetch
	}
	if c.stale && c.list != nil {
		c.noteChange()
	}
	c.stale = false
	old := c.list
	c.fetch = launch(&c.conn.pool.goroutines, c.conn.closedError(), func() (*toollist.List, error) { return c.update(old) }, &c.mu, c.replace)
	return c.fetch
}

// update fetches the list, and keeps it for later processes.
func (c *toolCache) update(old *toollist.List) (*toollist.List, error) {
	if old == nil {
		old = c.saved()
	}
	list, err := c.load(old)
	if err == nil {
		err = c.lease.Grow(list.Memory())
	}
	if err != nil {
		return nil, err
	}
	c.keep(list, old)
	c.conn.pins.Check(list)
	if c.conn.isFirst() {
		c.conn.shapes.prune(list)
	}
	return list, nil
}

// replace makes a list that was fetched the current one. c.mu is held.
func (c *toolCache) replace(list *toollist.List, err error) {
	c.fetch = nil
	if err != nil {
		c.stale = true
		return
	}
	if c.list != nil {
		_ = c.lease.Grow(-c.list.Memory())
	}
	old := cmp.Or(c.list, c.saved())
	c.list, c.timedOut = list, false
	if c.conn.isFirst() { // clients see its tools
		c.conn.toolsChanged(old, list)
	}
	c.conn.probe(list)
}
