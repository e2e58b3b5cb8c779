package upstream

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream/state"
	"github.com/mcsh-dev/mcsh/upstream/toollist"
)

const (
	maxDefinition  = 16 << 10 // bytes of one tool that are kept to show what has changed
	maxDefinitions = 4 << 20  // of all tools of a server, trusted or waiting
	maxPinName     = 128      // bytes of a name that stands in the file; a longer one is a hash there
	maxNoted       = 3        // names in a note, of either kind
	maxReported    = 10       // names in a [ToolsChange], of either kind
)

// A ToolsChange says that tools of a server are not those that are trusted. At most ten of each kind are named.
type ToolsChange struct {
	Server       string
	Changed, New []string
	More         int   // tools that are not named
	Held         bool  // they are neither offered nor called until somebody accepts them
	Err          error // why the pins of the server cannot be read or written; nil: they can
}

// pins compare the tools of one server with those that are trusted: what the first list had, and what somebody has accepted
// since.
type pins struct {
	conn *serverConn
	dir  *state.Dir // nil: in memory only
	hold bool       // tools that are not trusted are neither offered nor called
	look bool       // nothing is written

	awaiting atomic.Bool // a goroutine of awaitAccept runs
	updating sync.Mutex  // held while the file is read or written; taken before mu

	mu       sync.Mutex // guards what follows
	known    *state.Pins
	file     *state.PinsFile
	written  time.Time         // the file, or read
	reported map[string]string // hashes of tools that are not trusted, by name
	err      error             // why the file could not be read or written
	failed   string            // err as it was reported
}

// newPins returns nil for a server of this process: its tools are part of the binary.
func newPins(sc *serverConn) *pins {
	o := sc.pool.options
	if sc.server.InProcess {
		return nil
	}
	return &pins{conn: sc, dir: cmp.Or(o.Look, o.State), hold: o.Pin, look: o.Look != nil, reported: map[string]string{}}
}

// key names the server over restarts, whoever has signed in: another sign-in makes no tool trusted.
func (p *pins) key() state.Key { return p.conn.server.key() }

// take makes the pins those of the former connection to the same server, as they are known.
func (p *pins) take(former *pins) {
	if p == nil || former == nil {
		return
	}
	former.mu.Lock()
	defer former.mu.Unlock()
	p.known, p.file, p.written = former.known, former.file, former.written
}

// pinName is the name of a tool in the file. It comes from the server's own: another name in the configuration is no change.
func pinName(t *toollist.Tool) string {
	if len(t.Original) <= maxPinName {
		return t.Original
	}
	sum := sha256.Sum256([]byte(t.Original))
	return "#" + hex.EncodeToString(sum[:])
}

// check compares a list that the server has sent, and trusts what may be trusted at first sight.
func (p *pins) check(list *toollist.List) {
	if p == nil {
		return
	}
	p.updating.Lock()
	if !p.upToDate(list) {
		known, file, err := p.update(func(known *state.Pins) bool { return p.compare(known, list) })
		p.mu.Lock()
		if p.err = err; err == nil {
			p.known, p.file, p.written = known, file, time.Now()
		}
		p.mu.Unlock()
	}
	p.updating.Unlock()
	p.report(list)
}

// upToDate reports whether a list has nothing that is not trusted, and its file has been used lately.
func (p *pins) upToDate(list *toollist.List) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.known != nil && p.err == nil && len(p.known.Waiting) == 0 && time.Since(p.written) < keepAgain && (p.known.Strict || !p.hold) &&
		!slices.ContainsFunc(list.Tools, func(t *toollist.Tool) bool { return p.known.Trusted[pinName(t)].Hash != t.Pin() })
}

// update changes the pins where they are kept, and returns them without the definitions.
func (p *pins) update(change func(*state.Pins) bool) (known *state.Pins, file *state.PinsFile, err error) {
	keep := func(pins *state.Pins) bool {
		changed := change(pins)
		known = withoutDefinitions(pins)
		return changed
	}
	switch {
	case p.dir == nil:
		all := p.last()
		if all == nil {
			all = &state.Pins{First: true, Trusted: map[string]state.Pin{}, Waiting: map[string]state.Pin{}}
		}
		keep(withoutDefinitions(all))
	case p.look:
		var all *state.Pins
		if all, file, err = p.dir.Pins(p.key()); err == nil {
			keep(all)
		}
	default:
		file, err = p.dir.UpdatePins(p.conn.life, p.key(), keep)
	}
	return known, file, err
}

// last are the pins as they were last read or written, or nil.
func (p *pins) last() *state.Pins {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.known
}

func withoutDefinitions(p *state.Pins) *state.Pins {
	less := *p
	less.Trusted, less.Waiting = maps.Clone(p.Trusted), maps.Clone(p.Waiting)
	for _, pins := range []map[string]state.Pin{less.Trusted, less.Waiting} {
		for name, pin := range pins {
			pins[name] = state.Pin{Hash: pin.Hash}
		}
	}
	return &less
}

// compare changes pins by a list, and reports whether that is to be written.
func (p *pins) compare(known *state.Pins, list *toollist.List) (changed bool) {
	if last := p.last(); known.First && last != nil && !last.First { // the file is gone: that makes nothing trusted
		*known, changed = *withoutDefinitions(last), true
	}
	if known.First && len(list.Tools) == 0 {
		return false
	}
	room := maxDefinitions
	for _, pins := range []map[string]state.Pin{known.Trusted, known.Waiting} {
		for _, pin := range pins {
			room -= len(pin.Definition)
		}
	}
	pinOf := func(t *toollist.Tool) state.Pin {
		pin := state.Pin{Hash: t.Pin()}
		if d := t.Definition(); p.dir != nil && len(d) <= min(maxDefinition, room) {
			pin.Definition = d
			room -= len(d)
		}
		return pin
	}
	// Where some gateway holds tools back, none trusts new ones, nor any after the pins were damaged: these trust no tool.
	trusting := known.First || !p.hold && !known.Strict && len(known.Trusted) > 0
	here := map[string]bool{}
	for _, t := range list.Tools {
		name := pinName(t)
		here[name] = true
		old, is := known.Trusted[name]
		_, waits := known.Waiting[name]
		switch {
		case is && old.Hash == t.Pin():
			changed = changed || waits
			delete(known.Waiting, name)
		case !is && !waits && trusting:
			known.Trusted[name], changed = pinOf(t), true
		case known.Waiting[name].Hash != t.Pin():
			known.Waiting[name], changed = pinOf(t), true
		}
	}
	changed = changed || p.hold && !known.Strict || time.Since(p.lastWritten()) > keepAgain
	known.First, known.Strict = false, known.Strict || p.hold
	return dropGone(known, here, p.conn.pool.options.Tools) || changed
}

func (p *pins) lastWritten() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.written
}

// dropGone forgets tools that are gone, where there are too many. Others stay known: the server may list more tools for the
// clients of another gateway.
func dropGone(known *state.Pins, here map[string]bool, most int) (changed bool) {
	before := len(known.Waiting) + len(known.Trusted)
	for _, pins := range []map[string]state.Pin{known.Trusted, known.Waiting} {
		if len(pins) > most {
			maps.DeleteFunc(pins, func(name string, _ state.Pin) bool { return !here[name] })
		}
	}
	return len(known.Waiting)+len(known.Trusted) < before
}

// What may be said of a tool that is not trusted.
const (
	pinChanged = "it has changed since it was first listed or accepted"
	pinNew     = "it is new since the server was first listed"
	pinUnknown = "the hashes of the tools cannot be kept"
)

// verdict says why a tool is not trusted, or is empty. Before the first list everything is.
func (p *pins) verdict(t *toollist.Tool) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil || p.known.First {
		return choose(p.err != nil, pinUnknown, "")
	}
	switch pin, ok := p.known.Trusted[pinName(t)]; {
	case !ok:
		return pinNew
	case pin.Hash != t.Pin():
		return pinChanged
	}
	return ""
}

// Refusal says why a tool is held back, or is empty.
func (p *pins) Refusal(t *toollist.Tool) string {
	if p == nil || !p.hold {
		return ""
	}
	p.load(false)
	if p.verdict(t) == "" {
		return ""
	}
	p.load(true) // somebody may have accepted it
	return p.verdict(t)
}

// load reads the file if it has not been read, or, with again, if it has changed since.
func (p *pins) load(again bool) {
	if p.dir == nil {
		return
	}
	p.mu.Lock()
	known, file, failed := p.known, p.file, p.err != nil
	p.mu.Unlock()
	if (known != nil || failed) && !again || known != nil && p.dir.SamePins(p.key(), file) {
		return
	}
	p.updating.Lock()
	defer p.updating.Unlock()
	all, file, err := p.dir.Pins(p.key())
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.err = err
		return
	}
	if p.known == nil || !all.First { // a file that is gone makes nothing trusted
		p.known, p.file = withoutDefinitions(all), file
	}
}

// acceptPause is how often a gateway looks whether tools have been accepted that are missing in the lists of clients.
const acceptPause = 2 * time.Second

// awaitAccept tells clients once that their lists are out of date, when the pins have changed.
func (p *pins) awaitAccept() {
	p.mu.Lock()
	file := p.file
	p.mu.Unlock()
	if p.dir == nil || !p.conn.exposes() || !p.awaiting.CompareAndSwap(false, true) {
		return
	}
	started := p.conn.pool.goroutines.start(func() {
		for same := true; same; same = p.dir.SamePins(p.key(), file) {
			if pauseFor(p.conn.life, acceptPause) != nil {
				return
			}
		}
		p.awaiting.Store(false)
		(*p.conn.pool.onTools.Load())()
	})
	if !started {
		p.awaiting.Store(false)
	}
}

// heldBack is the error of a plan or call with a tool that is held back.
func heldBack(server string, t *toollist.Tool, why string) error {
	hint := "use another tool; the operator looks at it and accepts it with " + AcceptCommand(server, t.Original)
	if why == pinUnknown {
		hint = "the operator makes the state directory readable and writable: list_all_tools says what is wrong with it"
	}
	return stages.Errorf(stages.Denied, hint, "%s is held back (--pin): %s", toolLabel(server, t.Name), why)
}

// untrusted are the tools of a list that are not trusted, without those that are refused anyway.
func (p *pins) untrusted(list *toollist.List) (changed, new []*toollist.Tool) {
	for _, t := range list.Tools {
		if t.Refused != "" {
			continue
		}
		switch p.verdict(t) {
		case "":
		case pinChanged:
			changed = append(changed, t)
		default:
			new = append(new, t)
		}
	}
	return changed, new
}

// report reports tools that are not trusted, once.
func (p *pins) report(list *toollist.List) {
	f := p.conn.pool.options.OnUntrusted
	if f == nil {
		return
	}
	p.mu.Lock()
	c := ToolsChange{Server: p.conn.server.Name, Held: p.hold, Err: p.err}
	again := c.Err == nil || c.Err.Error() == p.failed
	p.failed = ""
	if c.Err != nil {
		p.failed = c.Err.Error()
	}
	p.mu.Unlock()
	if c.Err == nil {
		changed, new := p.untrusted(list)
		c.Changed, c.New = p.unreported(changed, &c.More), p.unreported(new, &c.More)
	}
	if len(c.Changed)+len(c.New) > 0 || !again {
		f(c)
	}
}

// unreported are the names of tools that have not been reported as they are.
func (p *pins) unreported(tools []*toollist.Tool, more *int) (names []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range tools {
		if name := pinName(t); p.reported[name] == t.Pin() {
			continue
		} else if len(p.reported) >= 2*p.conn.pool.options.Tools {
			p.reported = map[string]string{} // a server with ever new names
		} else {
			p.reported[name] = t.Pin()
		}
		if len(names) < maxReported {
			names = append(names, p.conn.hide(shortName(t)))
		} else {
			*more++
		}
	}
	return names
}

func shortName(t *toollist.Tool) string { return fmt.Sprintf("%.60q", t.Original) }

// note says which tools of a list are not trusted, and what to do.
func (p *pins) note(list *toollist.List) string {
	if p == nil {
		return ""
	}
	p.load(false)
	changed, new := p.untrusted(list)
	if len(changed)+len(new) > 0 {
		p.load(true) // somebody may have accepted them
		changed, new = p.untrusted(list)
	}
	p.mu.Lock()
	err := p.err
	p.mu.Unlock()
	var parts []string
	for _, kind := range []struct {
		word  string
		tools []*toollist.Tool
	}{{"changed", changed}, {"new", new}} {
		if len(kind.tools) > 0 {
			parts = append(parts, kind.word+" "+namesOf(kind.tools))
		}
	}
	switch remedy := AcceptCommand(p.conn.server.Name, ""); {
	case err != nil:
		return fmt.Sprintf("%s%s: %v", pinUnknown, choose(p.hold, ", and without them tools are held back", ""), err)
	case parts == nil:
		return ""
	case p.hold:
		return fmt.Sprintf("held back until %s: %s", remedy, strings.Join(parts, "; "))
	default:
		return fmt.Sprintf("since the first list: %s; %s shows and accepts that", strings.Join(parts, "; "), remedy)
	}
}

// namesOf names the first of some tools.
func namesOf(tools []*toollist.Tool) string {
	var names []string
	for _, t := range tools[:min(len(tools), maxNoted)] {
		names = append(names, shortName(t))
	}
	text := strings.Join(names, ", ")
	if more := len(tools) - maxNoted; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// AcceptCommand is the command that accepts a tool, or all tools of a server.
func AcceptCommand(server, tool string) string {
	name := server
	if tool != "" && strings.Trim(tool, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") == "" {
		name += "/" + tool
	}
	return "mcsh tools accept " + texts.ShellWord(name)
}

// A Pending is a tool that is new or has changed, and that nobody has accepted.
type Pending struct {
	Server, Tool string // Tool is a hash if the name is long
	Hash         string // of what is accepted
	New          bool

	Was, Is []byte // JSON with sorted members; nil: it is too long to be kept, or was not there
}

// Pending returns the tools that wait for somebody to accept them, as the gateways have seen them last. It asks no server.
func (p *Pool) Pending(ctx context.Context, server string) ([]Pending, error) {
	sc, err := p.conn(ctx, server)
	if err != nil || sc.pins == nil || sc.pins.dir == nil {
		return nil, err
	}
	all, _, err := sc.pins.dir.Pins(sc.pins.key())
	if err != nil {
		return nil, err
	}
	var list []Pending
	for _, name := range slices.Sorted(maps.Keys(all.Waiting)) {
		old, known := all.Trusted[name]
		is := all.Waiting[name]
		list = append(list, Pending{server, name, is.Hash, !known, old.Definition, is.Definition})
	}
	return list, nil
}

// Accept trusts tools of one server. Those that have changed again meanwhile stay as they were, and are returned.
func (p *Pool) Accept(ctx context.Context, server string, tools []Pending) (missed []Pending, err error) {
	sc, err := p.conn(ctx, server)
	if err != nil || sc.pins == nil || sc.pins.dir == nil {
		return tools, err
	}
	_, err = sc.pins.dir.UpdatePins(ctx, sc.pins.key(), func(all *state.Pins) (changed bool) {
		for _, t := range tools {
			switch {
			case all.Waiting[t.Tool].Hash == t.Hash:
				all.Trusted[t.Tool] = all.Waiting[t.Tool]
				delete(all.Waiting, t.Tool)
				changed = true
			case all.Trusted[t.Tool].Hash != t.Hash:
				missed = append(missed, t)
			}
		}
		return changed
	})
	return missed, err
}
