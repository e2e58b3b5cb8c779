package upstream

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mcsh-dev/mcsh/upstream/state"
)

// keepAgain is how long a list on disk is taken for used, though nobody writes it.
const keepAgain = 24 * time.Hour

// savedTools reads the list of an earlier process. It is parsed as if the server had sent it: the policy of today holds.
func (u *unit) savedTools() *toolList {
	if u.limits.State == nil {
		return nil
	}
	saved, ok := u.limits.State.Tools(u.key())
	if !ok {
		return nil
	}
	list := &toolList{byName: map[string]*tool{}, fetched: saved.Fetched, cut: saved.Cut}
	for _, raw := range saved.List[:min(len(saved.List), maxTools)] {
		list.read++
		list.add(raw, nil, u)
	}
	list.flaws = nil // the server will tell them again
	return list
}

// keep writes a list for later processes, where it is not there already. Nobody waits for it.
func (c *catalog) keep(list, old *toolList) {
	dir := c.unit.limits.State
	if dir == nil {
		return
	}
	c.mu.Lock()
	kept := c.kept
	c.mu.Unlock()
	same := old != nil && old.cut == list.cut && slices.EqualFunc(old.tools, list.tools, func(a, b *tool) bool { return bytes.Equal(a.raw, b.raw) })
	if same && time.Since(kept) < keepAgain {
		return
	}
	saved := state.Tools{Fetched: list.fetched, Cut: list.cut}
	for _, t := range list.tools {
		saved.List = append(saved.List, t.raw)
	}
	err := dir.SaveTools(c.unit.key(), saved)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err, c.kept = err, time.Now()
}

// note says why the list is not kept on disk, if that is so.
func (c *catalog) note() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		return ""
	}
	return fmt.Sprintf("its tools are not kept for the next start: %v", rootOf(c.err))
}

// Saved lists the servers with the tools that an earlier process has seen, as far as they were kept. It starts no server
// and asks none.
func (p *Pool) Saved(ctx context.Context) []Listing {
	_ = p.Load(ctx) // the servers that are there count
	p.mu.Lock()
	units := slices.Collect(maps.Values(p.units))
	p.mu.Unlock()
	var out []Listing
	for _, u := range units {
		l := Listing{Server: u.server.Name, Status: StatusStarting}
		if list := u.tools.saved(); list != nil {
			l.Tools, l.Refused = u.allowed(list)
		}
		out = append(out, l)
	}
	slices.SortFunc(out, func(a, b Listing) int { return strings.Compare(a.Server, b.Server) })
	return out
}
