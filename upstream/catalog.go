package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"
)

const (
	maxPages     = 100    // of one tool list
	maxTools     = 10_000 // of one server
	minTTL       = 10 * time.Second
	maxTTL       = time.Hour
	freshForMiss = 2 * time.Second // a list this young is not fetched again for a name that is not in it
)

// A catalog is the tool list of one server: fetched when first needed, answered from memory, refreshed behind.
type catalog struct {
	unit *unit

	mu    sync.Mutex // guards what follows; not held while fetching
	list  *toolList  // nil before the first fetch
	fetch *fetch     // the one under way, if one is
	stale bool       // the server has said that the list changed
}

// A toolList is one fetched list. It does not change.
type toolList struct {
	tools   []*tool
	byName  map[string]*tool
	flaws   []string // of tools that could not be read
	fetched time.Time
	ttl     time.Duration
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

// get returns the list, at once if it was ever fetched. One that is out of date is refreshed behind.
func (c *catalog) get(ctx context.Context) (*toolList, error) {
	c.mu.Lock()
	list := c.list
	var f *fetch
	if list == nil || c.stale || time.Since(list.fetched) > list.ttl {
		f = c.begin()
	}
	c.mu.Unlock()
	if list != nil {
		return list, nil
	}
	return c.wait(ctx, f)
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
		f.list, f.err = c.load(old)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.fetch = nil
		if f.err == nil {
			c.list = f.list
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
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(c.unit.life, c.unit.limits.ListTimeout)
	defer cancel()
	list := &toolList{byName: map[string]*tool{}, fetched: time.Now(), ttl: c.unit.limits.ListTTL}
	for cursor, page := "", 0; page < maxPages && len(list.tools) < maxTools; page++ {
		raw, err := l.list(ctx, cursor)
		if err != nil {
			return nil, unavailable(c.unit.server.Name, l.transport, err)
		}
		next, err := list.addPage(raw, old, c.unit)
		if err != nil {
			return nil, unavailable(c.unit.server.Name, nil, err)
		}
		if next == "" || next == cursor {
			break
		}
		cursor = next
	}
	return list, nil
}

// addPage reads one page, tool by tool: one that is malformed does not lose the others. Tools that are as they were
// in the old list are taken from it, with their compiled schemas.
func (list *toolList) addPage(raw json.RawMessage, old *toolList, u *unit) (next string, err error) {
	var page struct {
		Tools      []json.RawMessage `json:"tools"`
		NextCursor string            `json:"nextCursor"`
		TTL        float64           `json:"ttlMs"`
	}
	if err := json.Unmarshal(raw, &page); err != nil {
		return "", fmt.Errorf("reading the tool list: %w", err)
	}
	if page.TTL > 0 {
		list.ttl = min(maxTTL, max(minTTL, time.Duration(page.TTL)*time.Millisecond))
	}
	for i, raw := range page.Tools {
		t, err := parseTool(raw, u.server.Name, u.policy)
		if err != nil {
			list.flaws = append(list.flaws, fmt.Sprintf("tool %d: %v", i+1, err))
			continue
		}
		if list.byName[t.name] != nil {
			continue // names are unique; the first one counts
		}
		if old != nil {
			if same := old.byName[t.name]; same != nil && bytes.Equal(same.raw, t.raw) {
				t = same
			}
		}
		list.byName[t.name] = t
		list.tools = append(list.tools, t)
	}
	return page.NextCursor, nil
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
