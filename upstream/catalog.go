package upstream

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mcsh-dev/mcsh/internal/memory"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

// The defaults of [Options.Tools] and [Options.ToolList].
const (
	DefaultTools    = 10_000
	DefaultToolList = 16 << 20
)

const (
	leastPages   = 100 // of one tool list; more where it may have more than a hundred times as many tools
	maxFlaws     = 10  // of one list that are named
	minTTL       = 10 * time.Second
	maxTTL       = time.Hour
	freshForMiss = 2 * time.Second // a list this young is not fetched again for a name that is not in it
	maxCursor    = 16 << 10        // bytes; it goes back to the server

	// How long a list that has changed is used before it is fetched again: not at all the first time, then twice as long
	// each time, as long as the changes come so soon after each other.
	firstPause = 250 * time.Millisecond
	maxPause   = time.Minute
	calmAfter  = 10 * time.Second // without a change, beside the pauses
)

// A catalog is the tool list of one server: fetched when first needed, answered from memory, refreshed in the
// background. If there is a state directory, the list of an earlier process is shown until the server has answered;
// plans and calls wait for the server's own list, because the effects of a tool may have changed.
type catalog struct {
	conn  *serverConn
	lease *memory.Lease    // for the list
	saved func() *toolList // of an earlier process, nil if there is none; read once

	mu       sync.Mutex         // guards what follows; not held while fetching
	list     *toolList          // nil before the first fetch
	fetch    *flight[*toolList] // the one under way, if one is
	stale    bool               // the server has said that the list changed
	again    time.Time          // when the list was last fetched because it had changed
	pause    time.Duration      // between again and the next time
	waiting  bool               // a fetch because of a change will begin in a moment
	timedOut bool               // somebody has waited for the first list in vain: nobody waits again
	kept     time.Time          // when the list was written to disk
	err      error              // why it could not be
}

// A toolList is one fetched list. It does not change.
type toolList struct {
	tools   []*tool
	byName  map[string]*tool
	flaws   []string // the first of the tools that could not be read, or whose annotations do not count
	flawed  int      // how many there are
	yielded []string // renamed tools that are left out, by the names that the server has for them
	cut     string   // why the list is incomplete, or empty
	read    int      // tools, with those that are not in the list
	size    int64    // bytes of the pages
	fetched time.Time
	ttl     time.Duration
	routed  bool // calls carry arguments in headers too
	reader  *reader
}

// invalidate marks the list as out of date.
func (c *catalog) invalidate() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stale = true
}

func newCatalog(sc *serverConn) *catalog {
	return &catalog{conn: sc, lease: sc.pool.options.Catalogs.Lease(), saved: sync.OnceValue(func() *toolList { return sc.savedTools() })}
}

// get returns the list, at once if it was ever fetched; one that is out of date is refreshed in the background.
func (c *catalog) get(ctx context.Context) (*toolList, error) {
	c.mu.Lock()
	list := c.list
	var f *flight[*toolList]
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
func (c *catalog) outdated() bool {
	return c.list == nil || c.changed() || time.Since(c.list.fetched) > c.list.ttl
}

// changed reports whether the list needs a fetch because it has changed. The pause bounds the fetches for a server that
// reports changes all the time, and for a caller whose calls make it look so. c.mu is held.
func (c *catalog) changed() bool { return c.stale && time.Since(c.again) >= c.pause }

// noteChange sets the pause after a fetch because of a change. c.mu is held.
func (c *catalog) noteChange() {
	since := time.Since(c.again)
	c.again = time.Now()
	if since > 2*c.pause+calmAfter {
		c.pause = 0
		return
	}
	c.pause = min(max(2*c.pause, firstPause), maxPause)
}

// fetched reports whether the server has listed its tools to this process.
func (c *catalog) fetched() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.list != nil
}

// refresh returns a list that was fetched within the last moments.
func (c *catalog) refresh(ctx context.Context) (*toolList, error) {
	c.mu.Lock()
	if c.list != nil && !c.changed() && time.Since(c.list.fetched) < freshForMiss {
		defer c.mu.Unlock()
		return c.list, nil
	}
	f := c.begin()
	c.mu.Unlock()
	return c.wait(ctx, f)
}

func (c *catalog) wait(ctx context.Context, f *flight[*toolList]) (*toolList, error) {
	select {
	case <-f.done:
		return f.value, f.err
	case <-ctx.Done():
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
}

// begin fetches the list, unless that is under way. c.mu is held.
func (c *catalog) begin() *flight[*toolList] {
	if c.fetch != nil {
		return c.fetch
	}
	if c.stale && c.list != nil {
		c.noteChange()
	}
	c.stale = false
	old := c.list
	c.fetch = launch(&c.conn.pool.goroutines, c.conn.closedError(), func() (*toolList, error) { return c.update(old) }, &c.mu, c.replace)
	return c.fetch
}

// update fetches the list, and keeps it for later processes.
func (c *catalog) update(old *toolList) (*toolList, error) {
	if old == nil {
		old = c.saved()
	}
	list, err := c.load(old)
	if err == nil {
		err = c.lease.Grow(list.size)
	}
	if err != nil {
		return nil, err
	}
	c.keep(list, old)
	c.conn.pins.check(list)
	if c.conn.isFirst() {
		c.conn.shapes.prune(list)
	}
	return list, nil
}

// replace makes a list that was fetched the current one. c.mu is held.
func (c *catalog) replace(list *toolList, err error) {
	c.fetch = nil
	if err != nil {
		c.stale = true
		return
	}
	if c.list != nil {
		_ = c.lease.Grow(-c.list.size)
	}
	old := cmp.Or(c.list, c.saved())
	c.list, c.timedOut = list, false
	if c.conn.isFirst() { // clients see its tools
		c.conn.toolsChanged(old, list)
	}
	c.conn.probe(list)
}

// cutAt notes that the list is incomplete.
func (list *toolList) cutAt(why string) {
	list.cut = fmt.Sprintf("the tool list was cut after %d tools: %s", len(list.tools), why)
}

// cutLong notes that the list exceeds its limit of bytes.
func (list *toolList) cutLong() {
	limit := list.reader.limits.ToolList
	list.cutAt(fmt.Sprintf("it is longer than %d bytes (%s)", limit, raised("tool-list", fmt.Sprintf("%dMiB", max(1, 2*limit>>20)))))
}

// moreTools names the limit of tools and how the operator raises it.
func moreTools(limit int) string { return raised("tools", 2*limit) }

// raised names a limit and how the operator raises it.
func raised(limit string, value any) string {
	return fmt.Sprintf("limit %s; the operator can raise it with --limit %s=%v", limit, limit, value)
}

// addPage reads one page, tool by tool: a malformed one does not lose the others, and nothing beyond the limits is
// decoded. A tool that is unchanged since the old list is taken from there, with its compiled schemas.
func (list *toolList) addPage(raw json.RawMessage, old *toolList) (next string, err error) {
	var page struct {
		Tools      json.RawMessage `json:"tools"`
		NextCursor string          `json:"nextCursor"`
		TTL        float64         `json:"ttlMs"`
	}
	if err := json.Unmarshal(raw, &page); err != nil {
		return "", fmt.Errorf("reading the tool list: %w", err)
	}
	if page.TTL > 0 {
		list.ttl = min(maxTTL, max(minTTL, time.Duration(page.TTL)*time.Millisecond))
	}
	if rpc.IsNull(page.Tools) {
		page.Tools = json.RawMessage("[]")
	}
	dec := json.NewDecoder(bytes.NewReader(page.Tools))
	if start, err := dec.Token(); err != nil || start != json.Delim('[') {
		return "", fmt.Errorf("reading the tool list: tools is not an array")
	}
	for dec.More() {
		var one json.RawMessage
		if err := dec.Decode(&one); err != nil {
			return "", fmt.Errorf("reading the tool list: %w", err)
		}
		switch list.read++; {
		case list.read > list.reader.limits.Tools:
			list.cutAt(fmt.Sprintf("it has more than %d (%s)", list.reader.limits.Tools, moreTools(list.reader.limits.Tools)))
			return "", nil
		case list.size+dec.InputOffset() > list.reader.limits.ToolList:
			list.cutLong()
			return "", nil
		}
		list.add(one, old)
	}
	if list.size += int64(len(raw)); list.size > list.reader.limits.ToolList && page.NextCursor != "" {
		list.cutLong()
	}
	return page.NextCursor, nil
}

// add reads one tool. Of two with the same name the first one stays in the list. A call may reach either, so their
// annotations do not count.
func (list *toolList) add(raw json.RawMessage, old *toolList) {
	t, err := list.reader.parse(raw, false)
	if err == nil && list.routed {
		err = t.checkHeaders()
	}
	if err != nil {
		list.flaw("tool %d: %v", list.read, err)
		return
	}
	if first := list.byName[t.Name]; first != nil && first.original != t.original && list.yield(first, t) {
		return
	}
	at, end := len(list.tools), len(list.tools)
	if first := list.byName[t.Name]; first != nil && first.duplicated {
		return
	} else if first != nil {
		if t, err = list.reader.parse(first.raw, true); err != nil {
			return // cannot be: it has been read before
		}
		at = slices.Index(list.tools, first)
		end = at + 1
	}
	t = old.reuse(t)
	list.byName[t.Name] = t
	list.tools = slices.Replace(list.tools, at, end, t)
	switch {
	case t.hints.doubt != "":
		list.flaw("%.100q counts as a tool that may change something: %s", t.Name, t.hints.doubt)
	case t.duplicated:
		list.flaw("the server lists two tools of the name %.100q", t.Name)
	}
}

// drop removes a tool.
func (list *toolList) drop(t *tool) {
	if i := slices.Index(list.tools, t); i >= 0 {
		list.tools = slices.Delete(list.tools, i, i+1)
	}
}

// reuse returns the tool of an earlier list, with its compiled schemas, if it is unchanged; else t.
func (list *toolList) reuse(t *tool) *tool {
	if list == nil {
		return t
	}
	if old := list.byName[t.Name]; old != nil && bytes.Equal(old.raw, t.raw) && old.duplicated == t.duplicated {
		return old
	}
	return t
}

// flaw notes that something is wrong with a tool. Beyond maxFlaws they are only counted.
func (list *toolList) flaw(format string, args ...any) {
	if list.flawed++; list.flawed <= maxFlaws {
		list.flaws = append(list.flaws, fmt.Sprintf(format, args...))
	}
}

// notes say what is wrong with the list.
func (list *toolList) notes() []string {
	notes := slices.Clone(list.flaws)
	if more := list.flawed - len(list.flaws); more > 0 {
		notes = append(notes, fmt.Sprintf("and %d more like these", more))
	}
	if list.cut == "" {
		return notes
	}
	return append([]string{list.cut}, notes...)
}

// names are the tools that may be called.
func (list *toolList) names() []string {
	var names []string
	for _, t := range list.tools {
		if t.refusal() == "" {
			names = append(names, t.Name)
		}
	}
	return names
}
