package pins

import (
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

	"github.com/mcsh-dev/mcsh/internal/pausing"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream/state"
	"github.com/mcsh-dev/mcsh/upstream/toollist"
)

const (
	maxDefinition  = 16 << 10       // bytes of one tool that are kept to show what has changed
	maxDefinitions = 4 << 20        // of all tools of a server, trusted or waiting
	writeAgain     = 24 * time.Hour // after which a file is written again, to mark it as used
	maxPinName     = 128            // bytes of a name that stands in the file; a longer one is a hash there
	maxNoted       = 3              // names in a note, of either kind
	maxReported    = 10             // names in a [Change], of either kind
)

// A Change says that tools of a server are not those that are trusted. At most ten of each kind are named.
type Change struct {
	Server       string
	Changed, New []string
	More         int   // tools that are not named
	Held         bool  // they are neither offered nor called until somebody accepts them
	Err          error // why the pins of the server cannot be read or written; nil: they can
}

// Pins compare the tools of one server with those that are trusted: what the first list had, and what somebody has accepted
// since.
type Pins struct {
	Options

	awaiting atomic.Bool // AwaitAccept waits
	updating sync.Mutex  // held while the file is read or written; taken before mu

	mu       sync.Mutex // guards the fields below
	known    *state.Pins
	file     *state.PinsFile
	written  time.Time         // the file, or read
	reported map[string]string // hashes of tools that are not trusted, by name
	err      error             // why the file could not be read or written
	failed   string            // err as it was reported
}

// Options say whose pins they are, and what they are for.
type Options struct {
	Server string
	Key    state.Key           // names the server over restarts and sign-ins: another sign-in makes no tool trusted
	Dir    *state.Dir          // nil: in memory only
	Hold   bool                // tools that are not trusted are neither offered nor called
	Look   bool                // nothing is written
	Most   int                 // tools that are kept, at least
	Life   context.Context     // of the server
	Hide   func(string) string // removes secrets
	Report func(Change)        // nil: not reported
}

// New makes the pins of a server. Nothing has been read yet. Nil pins trust every tool.
func New(o Options) *Pins { return &Pins{Options: o, reported: map[string]string{}} }

// Take makes the pins those of the former connection to the same server, as they are known.
func (p *Pins) Take(former *Pins) {
	if p == nil || former == nil {
		return
	}
	former.mu.Lock()
	defer former.mu.Unlock()
	p.known, p.file, p.written = former.known, former.file, former.written
}

// nameOf is the name of a tool in the file. It comes from the server's own: another name in the configuration is no change.
func nameOf(t *toollist.Tool) string {
	if len(t.Original) <= maxPinName {
		return t.Original
	}
	sum := sha256.Sum256([]byte(t.Original))
	return "#" + hex.EncodeToString(sum[:])
}

// Check compares a list that the server has sent, and trusts what may be trusted at first sight.
func (p *Pins) Check(list *toollist.List) {
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
func (p *Pins) upToDate(list *toollist.List) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.known != nil && p.err == nil && len(p.known.Waiting) == 0 && time.Since(p.written) < writeAgain && (p.known.Strict || !p.Hold) &&
		!slices.ContainsFunc(list.Tools, func(t *toollist.Tool) bool { return p.known.Trusted[nameOf(t)].Hash != t.Pin() })
}

// update changes the pins where they are kept, and returns them without the definitions.
func (p *Pins) update(change func(*state.Pins) bool) (known *state.Pins, file *state.PinsFile, err error) {
	keep := func(pins *state.Pins) bool {
		changed := change(pins)
		known = withoutDefinitions(pins)
		return changed
	}
	switch {
	case p.Dir == nil:
		all, _ := p.last()
		if all == nil {
			all = &state.Pins{First: true, Trusted: map[string]state.Pin{}, Waiting: map[string]state.Pin{}}
		}
		keep(withoutDefinitions(all))
	case p.Look:
		var all *state.Pins
		if all, file, err = p.Dir.Pins(p.Key); err == nil {
			keep(all)
		}
	default:
		file, err = p.Dir.UpdatePins(p.Life, p.Key, keep)
	}
	return known, file, err
}

// last are the pins as they were last read or written, or nil, and when that was.
func (p *Pins) last() (*state.Pins, time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.known, p.written
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
func (p *Pins) compare(known *state.Pins, list *toollist.List) (changed bool) {
	last, written := p.last()
	if known.First && last != nil && !last.First { // the file is gone: that makes nothing trusted
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
		if d := t.Definition(); p.Dir != nil && len(d) <= min(maxDefinition, room) {
			pin.Definition = d
			room -= len(d)
		}
		return pin
	}
	// Where some gateway holds tools back, none trusts new ones, nor any after the pins were damaged: these trust no tool.
	trusting := known.First || !p.Hold && !known.Strict && len(known.Trusted) > 0
	here := map[string]bool{}
	for _, t := range list.Tools {
		name := nameOf(t)
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
	changed = changed || p.Hold && !known.Strict || time.Since(written) > writeAgain
	known.First, known.Strict = false, known.Strict || p.Hold
	return dropGone(known, here, p.Most) || changed
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

// The states of a tool that is not trusted.
const (
	whyChanged = "it has changed since it was first listed or accepted"
	whyNew     = "it is new since the server was first listed"
	whyUnknown = "the hashes of the tools cannot be kept"
)

// verdict says why a tool is not trusted, or is empty. Before the first list everything is.
func (p *Pins) verdict(t *toollist.Tool) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil || p.known.First {
		if p.err != nil {
			return whyUnknown
		}
		return ""
	}
	switch pin, ok := p.known.Trusted[nameOf(t)]; {
	case !ok:
		return whyNew
	case pin.Hash != t.Pin():
		return whyChanged
	}
	return ""
}

// Refusal says why a tool is held back, or is empty.
func (p *Pins) Refusal(t *toollist.Tool) string {
	if p == nil || !p.Hold {
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
func (p *Pins) load(again bool) {
	if p.Dir == nil {
		return
	}
	p.mu.Lock()
	known, file, failed := p.known, p.file, p.err != nil
	p.mu.Unlock()
	if (known != nil || failed) && !again || known != nil && p.Dir.SamePins(p.Key, file) {
		return
	}
	p.updating.Lock()
	defer p.updating.Unlock()
	all, file, err := p.Dir.Pins(p.Key)
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

// AwaitAccept calls accepted once, when the pins have changed. start runs the wait, and reports whether it does.
func (p *Pins) AwaitAccept(start func(wait func()) bool, accepted func()) {
	p.mu.Lock()
	file := p.file
	p.mu.Unlock()
	if p.Dir == nil || !p.awaiting.CompareAndSwap(false, true) {
		return
	}
	if !start(func() {
		for same := true; same; same = p.Dir.SamePins(p.Key, file) {
			if pausing.For(p.Life, acceptPause) != nil {
				return
			}
		}
		p.awaiting.Store(false)
		accepted()
	}) {
		p.awaiting.Store(false)
	}
}

// HeldBack is the error of a plan or call with a tool that is held back.
func (p *Pins) HeldBack(t *toollist.Tool, why string) error {
	hint := "use another tool; the operator looks at it and accepts it with " + AcceptCommand(p.Server, t.Original)
	if why == whyUnknown {
		hint = "the operator makes the state directory readable and writable: list_all_tools says what is wrong with it"
	}
	return stages.Errorf(stages.Denied, hint, "tool %q of server %q is held back (--pin): %s", t.Name, p.Server, why)
}

// Untrusted are the tools of a list that are not trusted, without those that are refused anyway.
func (p *Pins) Untrusted(list *toollist.List) (changed, new []*toollist.Tool) {
	for _, t := range list.Tools {
		if t.Refused != "" {
			continue
		}
		switch p.verdict(t) {
		case "":
		case whyChanged:
			changed = append(changed, t)
		default:
			new = append(new, t)
		}
	}
	return changed, new
}

// report reports tools that are not trusted, once.
func (p *Pins) report(list *toollist.List) {
	if p.Report == nil {
		return
	}
	p.mu.Lock()
	c := Change{Server: p.Server, Held: p.Hold, Err: p.err}
	again := c.Err == nil || c.Err.Error() == p.failed
	p.failed = ""
	if c.Err != nil {
		p.failed = c.Err.Error()
	}
	p.mu.Unlock()
	if c.Err == nil {
		changed, new := p.Untrusted(list)
		c.Changed, c.New = p.unreported(changed, &c.More), p.unreported(new, &c.More)
	}
	if len(c.Changed)+len(c.New) > 0 || !again {
		p.Report(c)
	}
}

// unreported are the names of tools that have not been reported as they are.
func (p *Pins) unreported(tools []*toollist.Tool, more *int) (names []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range tools {
		if name := nameOf(t); p.reported[name] == t.Pin() {
			continue
		} else if len(p.reported) >= 2*p.Most {
			p.reported = map[string]string{} // a server with ever new names
		} else {
			p.reported[name] = t.Pin()
		}
		if len(names) < maxReported {
			names = append(names, p.Hide(shortName(t)))
		} else {
			*more++
		}
	}
	return names
}

func shortName(t *toollist.Tool) string { return fmt.Sprintf("%.60q", t.Original) }

// Note says which tools of a list are not trusted, and what to do.
func (p *Pins) Note(list *toollist.List) string {
	if p == nil {
		return ""
	}
	p.load(false)
	changed, new := p.Untrusted(list)
	if len(changed)+len(new) > 0 {
		p.load(true) // somebody may have accepted them
		changed, new = p.Untrusted(list)
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
	switch remedy := AcceptCommand(p.Server, ""); {
	case err != nil && p.Hold:
		return fmt.Sprintf("%s, and without them tools are held back: %v", whyUnknown, err)
	case err != nil:
		return fmt.Sprintf("%s: %v", whyUnknown, err)
	case parts == nil:
		return ""
	case p.Hold:
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

// Pending returns the tools that wait for somebody to accept them.
func (p *Pins) Pending() ([]Pending, error) {
	all, _, err := p.Dir.Pins(p.Key)
	if err != nil {
		return nil, err
	}
	var list []Pending
	for _, name := range slices.Sorted(maps.Keys(all.Waiting)) {
		old, known := all.Trusted[name]
		is := all.Waiting[name]
		list = append(list, Pending{p.Server, name, is.Hash, !known, old.Definition, is.Definition})
	}
	return list, nil
}

// Accept trusts tools. Those that have changed again meanwhile stay as they were, and are returned.
func (p *Pins) Accept(ctx context.Context, tools []Pending) (missed []Pending, err error) {
	_, err = p.Dir.UpdatePins(ctx, p.Key, func(all *state.Pins) (changed bool) {
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
