package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	maxPages     = 100    // of one tool list
	maxTools     = 10_000 // of one server
	maxListSize  = 16 << 20
	maxFlaws     = 10 // of one list that are told
	minTTL       = 10 * time.Second
	maxTTL       = time.Hour
	freshForMiss = 2 * time.Second // a list this young is not fetched again for a name that is not in it
)

// A catalog is the tool list of one server: fetched when first needed, answered from memory, refreshed behind. Where
// state is kept, the list that an earlier process has fetched is shown until the server has answered; what is planned or
// called waits for the server's own word, because what a tool may change can be another matter by now.
type catalog struct {
	unit  *unit
	saved func() *toolList // of an earlier process, nil if there is none; read once

	mu    sync.Mutex // guards what follows; not held while fetching
	list  *toolList  // nil before the first fetch
	fetch *fetch     // the one under way, if one is
	stale bool       // the server has said that the list changed
	hung  bool       // somebody has waited for the first list in vain: nobody waits again
	kept  time.Time  // when the list was written to disk
	err   error      // why it could not be
}

// A toolList is one fetched list. It does not change.
type toolList struct {
	tools   []*tool
	byName  map[string]*tool
	flaws   []string // of tools that could not be read
	cut     string   // why there may be more tools than these, or empty
	read    int      // tools, with those that are not in the list
	size    int64    // bytes of the pages
	fetched time.Time
	ttl     time.Duration
	routed  bool // calls carry arguments in headers too
}

// A fetch is a request for the list that callers wait for together.
type fetch struct {
	done chan struct{}
	list *toolList // once done is closed
	err  error     // once done is closed
}

// invalidate makes the next use refresh the list.
func (c *catalog) invalidate() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stale = true
}

func newCatalog(u *unit) *catalog {
	return &catalog{unit: u, saved: sync.OnceValue(func() *toolList { return u.savedTools() })}
}

// get returns the list, at once if it was ever fetched. One that is out of date is refreshed behind.
func (c *catalog) get(ctx context.Context) (*toolList, error) {
	c.mu.Lock()
	list := c.list
	var f *fetch
	if c.outdated() {
		f = c.begin()
	}
	c.mu.Unlock()
	if list != nil {
		return list, nil
	}
	return c.wait(ctx, f)
}

// outdated reports whether the list is to be fetched. c.mu is held.
func (c *catalog) outdated() bool {
	return c.list == nil || c.stale || time.Since(c.list.fetched) > c.list.ttl
}

// fetched reports whether the server has told its tools in this process.
func (c *catalog) fetched() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.list != nil
}

// renew returns a list that is no older than a moment.
func (c *catalog) renew(ctx context.Context) (*toolList, error) {
	c.mu.Lock()
	if c.list != nil && !c.stale && time.Since(c.list.fetched) < freshForMiss {
		defer c.mu.Unlock()
		return c.list, nil
	}
	f := c.begin()
	c.mu.Unlock()
	return c.wait(ctx, f)
}

func (c *catalog) wait(ctx context.Context, f *fetch) (*toolList, error) {
	select {
	case <-f.done:
		return f.list, f.err
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			c.mu.Lock()
			c.hung = true
			c.mu.Unlock()
		}
		_, err := c.unit.session(ctx) // says that it is still starting, if that is why
		if err == nil {
			err = fmt.Errorf("waiting for the tools of server %q: %w", c.unit.server.Name, ctx.Err())
		}
		return nil, err
	}
}

// begin fetches the list, unless that is under way. c.mu is held.
func (c *catalog) begin() *fetch {
	if c.fetch != nil {
		return c.fetch
	}
	f := &fetch{done: make(chan struct{})}
	c.fetch = f
	c.stale = false
	old := c.list
	started := c.unit.tasks.start(func() {
		if old == nil {
			old = c.saved()
		}
		f.list, f.err = c.load(old)
		if f.err == nil {
			c.keep(f.list, old)
			c.unit.shapes.keepOnly(f.list)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.fetch = nil
		if f.err == nil {
			c.list, c.hung = f.list, false
			c.unit.probe(f.list)
		} else {
			c.stale = true
		}
		close(f.done)
	})
	if !started {
		f.err = c.unit.closing()
		c.fetch = nil
		close(f.done)
	}
	return f
}

// load reads the whole list from the server.
func (c *catalog) load(old *toolList) (*toolList, error) {
	l, err := c.unit.session(c.unit.life)
	if err == nil {
		err = c.unit.recognise(l.session)
	}
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(c.unit.life, c.unit.limits.ListTimeout)
	defer cancel()
	list := &toolList{byName: map[string]*tool{}, fetched: time.Now(), ttl: c.unit.limits.ListTTL, routed: l.routed()}
	seen := map[string]bool{} // cursors
	for cursor, page := "", 1; ; page++ {
		raw, err := l.list(ctx, cursor)
		if err != nil {
			return nil, unavailable(c.unit.server.Name, l.peer, err)
		}
		if cursor, err = list.addPage(raw, old, c.unit); err != nil {
			return nil, unavailable(c.unit.server.Name, l.peer, err)
		}
		switch {
		case cursor == "" || list.cut != "":
			return list, nil
		case seen[cursor]:
			list.cutAt("the server gives the same page again")
			return list, nil
		case page == maxPages:
			list.cutAt(fmt.Sprintf("it has more than %d pages", maxPages))
			return list, nil
		}
		seen[cursor] = true
	}
}

// cutAt notes that there may be more tools than are in the list.
func (list *toolList) cutAt(why string) {
	list.cut = fmt.Sprintf("the tool list was cut after %d tools: %s", len(list.tools), why)
}

// addPage reads one page, tool by tool: one that is malformed does not lose the others, and what is too much is never
// decoded. Tools that are as they were in the old list are taken from it, with their compiled schemas.
func (list *toolList) addPage(raw json.RawMessage, old *toolList, u *unit) (next string, err error) {
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
	if isNull(page.Tools) {
		page.Tools = json.RawMessage("[]")
	}
	dec := json.NewDecoder(bytes.NewReader(page.Tools))
	if start, err := dec.Token(); err != nil || start != json.Delim('[') {
		return "", fmt.Errorf("reading the tool list: tools is no array")
	}
	for dec.More() {
		var one json.RawMessage
		if err := dec.Decode(&one); err != nil {
			return "", fmt.Errorf("reading the tool list: %w", err)
		}
		switch list.read++; {
		case list.read > maxTools:
			list.cutAt(fmt.Sprintf("it has more than %d", maxTools))
			return "", nil
		case list.size+dec.InputOffset() > maxListSize:
			list.cutAt(fmt.Sprintf("it is longer than %d MiB", maxListSize>>20))
			return "", nil
		}
		list.add(one, old, u)
	}
	if list.size += int64(len(raw)); list.size > maxListSize && page.NextCursor != "" {
		list.cutAt(fmt.Sprintf("it is longer than %d MiB", maxListSize>>20))
	}
	return page.NextCursor, nil
}

// add reads one tool.
func (list *toolList) add(raw json.RawMessage, old *toolList, u *unit) {
	t, err := parseTool(raw, u.server.Name, u.policy)
	if err == nil && list.routed {
		err = t.checkHeaders()
	}
	if err != nil {
		if len(list.flaws) < maxFlaws {
			list.flaws = append(list.flaws, fmt.Sprintf("tool %d: %v", list.read, err))
		}
		return
	}
	if list.byName[t.name] != nil {
		return // names are unique; the first one counts
	}
	if old != nil {
		if same := old.byName[t.name]; same != nil && bytes.Equal(same.raw, t.raw) {
			t = same
		}
	}
	list.byName[t.name] = t
	list.tools = append(list.tools, t)
}

// notes tell what is wrong with the list.
func (list *toolList) notes() []string {
	if list.cut == "" {
		return list.flaws
	}
	return append([]string{list.cut}, list.flaws...)
}

// names are the tools that may be called or at least be spoken of.
func (list *toolList) names() []string {
	var names []string
	for _, t := range list.tools {
		if t.refused == "" {
			names = append(names, t.name)
		}
	}
	return names
}
