package toollist

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/mcsh-dev/mcsh/upstream/state"
)

const (
	maxFlaws = 10 // of one list that are named
	minTTL   = 10 * time.Second
	maxTTL   = time.Hour
)

// A List is one fetched list. It does not change.
type List struct {
	Tools   []*Tool
	ByName  map[string]*Tool
	flaws   []string // the first of the tools that could not be read, or whose annotations do not count
	flawed  int      // how many there are
	Yielded []string // renamed tools that are left out, by the names that the server has for them
	Cut     string   // why the list is incomplete, or empty
	read    int      // tools, with those that are not in the list
	Size    int64    // bytes of the pages
	Fetched time.Time
	TTL     time.Duration
	routed  bool // calls carry arguments in headers too
	reader  *Reader
}

// CutAt notes that the list is incomplete.
func (list *List) CutAt(why string) {
	list.Cut = fmt.Sprintf("the tool list was cut after %d tools: %s", len(list.Tools), why)
}

// TooLong says that something is longer than the limit of bytes, and how the operator raises it.
func TooLong(limit int64) string {
	return fmt.Sprintf("longer than %d bytes (%s)", limit, raised("tool-list", fmt.Sprintf("%dMiB", max(1, 2*limit>>20))))
}

// MoreTools names the limit of tools and how the operator raises it.
func MoreTools(limit int) string { return raised("tools", 2*limit) }

// raised names a limit and how the operator raises it.
func raised(limit string, value any) string {
	return fmt.Sprintf("limit %s; the operator can raise it with --limit %s=%v", limit, limit, value)
}

// TTLOf is how long a list is current of which a server says so many milliseconds.
func TTLOf(ms float64) time.Duration {
	return min(maxTTL, max(minTTL, time.Duration(ms)*time.Millisecond))
}

// AddPage reads one page, tool by tool: a malformed one does not lose the others, and nothing beyond the limits is
// decoded. A tool that is unchanged since the old list is taken from there, with its compiled schemas.
func (list *List) AddPage(raw json.RawMessage, old *List) (string, error) {
	limit, begun := list.reader, list.Size
	next, ttl, err := ReadPage(raw, "tools", func(one []byte) bool {
		list.Size += int64(len(one))
		switch list.read++; {
		case list.read > limit.Tools:
			list.CutAt(fmt.Sprintf("it has more than %d (%s)", limit.Tools, MoreTools(limit.Tools)))
		case list.Size > limit.Bytes:
			list.CutAt("it is " + TooLong(limit.Bytes))
		default:
			list.add(bytes.Clone(one), old) // a tool may outlast its list, and keeps no page
		}
		return list.Cut == ""
	})
	if err != nil {
		return "", fmt.Errorf("reading the tool list: %w", err)
	}
	list.TTL = cmp.Or(ttl, list.TTL)
	if list.Size = begun + int64(len(raw)); list.Size > limit.Bytes && next != "" {
		list.CutAt("it is " + TooLong(limit.Bytes))
	}
	return next, nil
}

// add reads one tool. Of two with the same name the first one stays in the list. A call may reach either, so their
// annotations do not count.
func (list *List) add(raw json.RawMessage, old *List) {
	t, err := list.reader.Parse(raw, false)
	if err == nil && list.routed {
		err = t.checkHeaders()
	}
	if err != nil {
		list.flaw("tool %d: %v", list.read, err)
		return
	}
	if first := list.ByName[t.Name]; first != nil && first.Original != t.Original && list.yield(first, t) {
		return
	}
	at, end := len(list.Tools), len(list.Tools)
	if first := list.ByName[t.Name]; first != nil && first.duplicated {
		return
	} else if first != nil {
		if t, err = list.reader.Parse(first.raw, true); err != nil {
			return // cannot be: it has been read before
		}
		at = slices.Index(list.Tools, first)
		end = at + 1
	}
	t = old.reuse(t)
	list.ByName[t.Name] = t
	list.Tools = slices.Replace(list.Tools, at, end, t)
	switch {
	case t.hints.doubt != "":
		list.flaw("%.100q counts as a tool that may change something: %s", t.Name, t.hints.doubt)
	case t.duplicated:
		list.flaw("the server lists two tools of the name %.100q", t.Name)
	}
}

// drop removes a tool.
func (list *List) drop(t *Tool) {
	if i := slices.Index(list.Tools, t); i >= 0 {
		list.Tools = slices.Delete(list.Tools, i, i+1)
	}
}

// reuse returns the tool of an earlier list, with its compiled schemas, if it is unchanged; else t.
func (list *List) reuse(t *Tool) *Tool {
	if list == nil {
		return t
	}
	if old := list.ByName[t.Name]; old != nil && old.Same(t) {
		return old
	}
	return t
}

// flaw notes that something is wrong with a tool. Beyond maxFlaws they are only counted.
func (list *List) flaw(format string, args ...any) {
	if list.flawed++; list.flawed <= maxFlaws {
		list.flaws = append(list.flaws, fmt.Sprintf(format, args...))
	}
}

// Notes say what is wrong with the list.
func (list *List) Notes() []string {
	notes := slices.Clone(list.flaws)
	if more := list.flawed - len(list.flaws); more > 0 {
		notes = append(notes, fmt.Sprintf("and %d more like these", more))
	}
	if list.Cut == "" {
		return notes
	}
	return append([]string{list.Cut}, notes...)
}

// Memory is what the list may take, in bytes: its pages, and the descriptions in the form in which they are searched.
func (list *List) Memory() int64 {
	size := list.Size
	for _, t := range list.Tools {
		size += int64(len(t.Description))
	}
	return size
}

// Names are the tools that may be called.
func (list *List) Names() []string {
	var names []string
	for _, t := range list.Tools {
		if t.Refusal() == "" {
			names = append(names, t.Name)
		}
	}
	return names
}

// yield settles that a renamed tool has the name of another one, and reports whether t is to be left out: it is the renamed one.
func (list *List) yield(first, t *Tool) bool {
	out := t
	if first.renamed() && !t.renamed() {
		out = first
		delete(list.ByName, first.Name)
		list.drop(first)
	}
	list.Yielded = append(list.Yielded, out.Original)
	list.flaw("%.100q is left out: its override names it %.100q, which another tool of the server is called", out.Original, out.Name)
	return out == t
}

// SavedList reads a list that an earlier process has saved. It is read as if the server had sent it, so the current policy holds.
func SavedList(r *Reader, saved state.Tools) *List {
	list := New(r, 0, false)
	list.Fetched, list.Cut = saved.Fetched, saved.Cut
	for _, raw := range saved.List[:min(len(saved.List), r.Tools)] {
		list.read++
		list.Size += int64(len(raw))
		list.add(raw, nil)
	}
	list.flaws, list.flawed = nil, 0 // the server's own list will have them again
	return list
}

// Saved returns what is saved of the list for later processes.
func (list *List) Saved() state.Tools {
	saved := state.Tools{Fetched: list.Fetched, Cut: list.Cut}
	for _, t := range list.Tools {
		saved.List = append(saved.List, t.raw)
		if t.duplicated {
			saved.List = append(saved.List, t.raw)
		}
	}
	return saved
}

// New makes an empty list that is current for a time. routed says that calls carry arguments in headers too.
func New(r *Reader, ttl time.Duration, routed bool) *List {
	return &List{reader: r, ByName: map[string]*Tool{}, Fetched: time.Now(), TTL: ttl, routed: routed}
}
