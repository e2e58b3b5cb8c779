package upstream

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/memory"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
	"github.com/mcsh-dev/mcsh/upstream/sessions"
	"github.com/mcsh-dev/mcsh/upstream/state"
	"github.com/mcsh-dev/mcsh/upstream/toollist"
)

// A Kind is a kind of things that servers offer beside tools.
type Kind int

// The kinds of offers.
const (
	Resources Kind = iota
	Templates      // of the URIs of resources
	Prompts
)

// kinds says how each [Kind] is listed.
var kinds = []struct {
	method, member string
	key            string // the member of an offer that names it
	noun           string
	listed         func(*mcp.ServerCapabilities) bool // whether the server says that it has a list
	typed          func() any                         // what clients decode an offer into
}{
	Resources: {"resources/list", "resources", "uri", "resource", hasResources, func() any { return new(mcp.Resource) }},
	Templates: {"resources/templates/list", "resourceTemplates", "uriTemplate", "template", hasResources, func() any { return new(mcp.ResourceTemplate) }},
	Prompts:   {"prompts/list", "prompts", "name", "prompt", func(c *mcp.ServerCapabilities) bool { return c.Prompts != nil }, func() any { return new(mcp.Prompt) }},
}

func hasResources(c *mcp.ServerCapabilities) bool { return c.Resources != nil }

const (
	maxKey          = 4 << 10 // bytes of a URI, a template or the name of a prompt
	maxFault        = 300     // bytes of a fault in a note
	maxInstructions = 8 << 10 // bytes of the instructions that are kept
)

// An Offer is one thing that a server offers beside tools.
type Offer struct {
	Server string
	Key    string          // the URI, the template or the name, as the server has it
	Raw    json.RawMessage // as the server lists it
}

// offers are the lists of one server beside that of its tools. They are fetched on a session that exists: nothing starts
// a server for them. If there is a state directory, those of an earlier process are shown until then.
type offers struct {
	conn  *serverConn
	lease *memory.Lease
	saved func() *offerLists // of an earlier process, nil if there are none; read once

	mu      sync.Mutex           // guards the fields below; not held while fetching
	lists   *offerLists          // nil before the first fetch
	fetch   *flight[*offerLists] // the one under way, if one is
	fault   error                // of the last fetch
	stale   bool                 // the server has said that a list has changed
	tried   time.Time            // the beginning of the last fetch
	kept    time.Time            // when the lists were written to disk
	waiting bool                 // a fetch will begin in a moment
}

// offerLists are the lists of one fetch. They do not change.
type offerLists struct {
	of           [][]Offer           // by kind, in the server's order
	index        []map[string]int    // of the offers of a kind, by their keys
	refused      [][]json.RawMessage // by kind, those that the operator does not allow, for the file
	instructions string
	fetched      time.Time
	ttl          time.Duration
	size         int64
	cut          string  // why a list is incomplete, or empty
	faults       []error // by kind: why the list could not be read; it is the one before then
}

func newOffers(sc *serverConn) *offers {
	o := &offers{conn: sc, lease: sc.pool.options.Catalogs.Lease()}
	o.saved = sync.OnceValue(o.read)
	return o
}

func newOfferLists(ttl time.Duration) *offerLists {
	l := &offerLists{of: make([][]Offer, len(kinds)), faults: make([]error, len(kinds)), refused: make([][]json.RawMessage, len(kinds)), index: make([]map[string]int, len(kinds)), fetched: time.Now(), ttl: ttl}
	for kind := range kinds {
		l.index[kind] = map[string]int{}
	}
	return l
}

// invalidate marks the lists as out of date, and fetches them if there is a session.
func (o *offers) invalidate() {
	o.mu.Lock()
	o.stale = true
	if time.Since(o.tried) <= freshForMiss { // a server that reports changes all the time is not asked all the time
		o.refreshLater()
	}
	o.mu.Unlock()
	o.refresh()
}

// refreshLater fetches the lists in a moment, if they are out of date then. o.mu is held.
func (o *offers) refreshLater() {
	if o.waiting {
		return
	}
	o.waiting = true
	time.AfterFunc(freshForMiss, func() {
		o.mu.Lock()
		o.waiting = false
		o.mu.Unlock()
		o.refresh()
	})
}

// note says why a list is incomplete or missing, if one is.
func (o *offers) note() string {
	lists := o.current()
	o.mu.Lock()
	fault := o.fault
	o.mu.Unlock()
	switch {
	case fault != nil:
		return o.conn.hide("the lists of its resources and prompts cannot be read: " + texts.Cut(fault.Error(), maxFault))
	case lists != nil:
		return lists.cut
	}
	return ""
}

// current returns the lists as far as they are known, nil if they are not. It never waits.
func (o *offers) current() *offerLists {
	o.refresh()
	o.mu.Lock()
	lists := o.lists
	o.mu.Unlock()
	if lists == nil {
		return o.saved()
	}
	return lists
}

// get returns the lists. It starts the server if they are not known.
func (o *offers) get(ctx context.Context) (*offerLists, error) {
	if lists := o.current(); lists != nil {
		return lists, nil
	}
	s, err := o.conn.session(ctx)
	if err != nil {
		return nil, err
	}
	if f := o.begin(s); f.over(ctx) {
		return f.value, f.err
	}
	return nil, fmt.Errorf("waiting for the lists of server %q: %w", o.conn.server.Name, ctx.Err())
}

// refresh fetches the lists in the background if they are out of date and there is a session.
func (o *offers) refresh() {
	s := o.conn.running()
	if s == nil {
		return
	}
	o.mu.Lock()
	due := o.outdated()
	o.mu.Unlock()
	if due {
		o.begin(s)
	}
}

// outdated reports whether the lists need a fetch. o.mu is held.
func (o *offers) outdated() bool {
	switch since := time.Since(o.tried); {
	case o.lists == nil, o.stale:
		return o.tried.IsZero() || since > freshForMiss
	default:
		return since > o.lists.ttl
	}
}

// started fetches the lists on a session that has begun. One for other callers than those of the first connection may list
// something else: it counts only as long as nothing is known.
func (o *offers) started(s *sessions.Session, first bool) {
	o.mu.Lock()
	known := o.lists != nil
	o.mu.Unlock()
	if !known || first {
		o.begin(s)
	}
}

// begin fetches the lists on a session, unless that is under way.
func (o *offers) begin(s *sessions.Session) *flight[*offerLists] {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.fetch == nil {
		o.stale, o.tried = false, time.Now()
		o.fetch = launch(&o.conn.pool.goroutines, o.conn.closedError(), func() (*offerLists, error) { return o.load(s) }, &o.mu, o.replace)
	}
	return o.fetch
}

// replace makes the lists that were fetched the current ones. o.mu is held.
func (o *offers) replace(lists *offerLists, err error) {
	o.fetch, o.fault = nil, err
	if o.stale { // a list has changed during the fetch, perhaps after its answer
		o.refreshLater()
	}
	if err != nil {
		return
	}
	if o.lists != nil {
		_ = o.lease.Grow(-o.lists.size)
	}
	old := cmp.Or(o.lists, o.saved(), newOfferLists(0))
	if o.lists = lists; !old.same(lists) {
		o.conn.pool.offersChanged()
	}
}

// load reads all lists on one session. A list that cannot be read stays as it was, and does not lose the others.
func (o *offers) load(s *sessions.Session) (*offerLists, error) {
	if err := o.conn.refuseGateway(s.SDK); err != nil {
		return nil, err
	}
	lists := newOfferLists(o.conn.pool.options.ListTTL)
	said := s.SDK.InitializeResult()
	lists.instructions = o.conn.instructions(s)
	read := 0
	for kind := range kinds {
		if said.Capabilities == nil || !kinds[kind].listed(said.Capabilities) {
			continue
		}
		if err := o.loadKind(lists, Kind(kind), s); err != nil {
			lists.faults[kind] = unavailable(o.conn.server.Name, s.Transport, err)
			continue
		}
		read++
	}
	if fault := cmp.Or(lists.faults...); fault != nil {
		if read == 0 {
			return nil, fault
		}
		lists.ttl = toollist.TTLOf(0)
		o.keepOld(lists)
	}
	if err := o.lease.Grow(lists.size); err != nil {
		return nil, err
	}
	o.keep(lists)
	return lists, nil
}

// loadKind reads the list of one kind.
func (o *offers) loadKind(lists *offerLists, kind Kind, s *sessions.Session) error {
	ctx, cancel := context.WithTimeout(o.conn.life, o.conn.pool.options.ListTimeout)
	defer cancel()
	cut, err := pages(o.conn.pool.options.Tools, func(cursor string) (string, error) {
		raw, err := s.List(ctx, kinds[kind].method, cursor)
		if err != nil {
			return "", err
		}
		return lists.addPage(kind, raw, o.conn)
	})
	switch {
	case err != nil && rpc.IsAnswer(err): // some servers declare a list that they do not have
	case err != nil:
		return err
	case cut != "":
		lists.cutAt(kind, cut)
	}
	return nil
}

// keepOld gives new lists the old ones of the kinds that could not be read, and notes the fault.
func (o *offers) keepOld(lists *offerLists) {
	o.mu.Lock()
	old := o.lists
	o.mu.Unlock()
	if old == nil {
		old = cmp.Or(o.saved(), newOfferLists(0))
	}
	for kind, fault := range lists.faults {
		if fault == nil {
			continue
		}
		lists.cut = o.conn.hide(fmt.Sprintf("the list of its %ss cannot be read: %s", kinds[kind].noun, texts.Cut(fault.Error(), maxFault)))
		if len(old.of[kind]) == 0 { // the pages before the fault are better than nothing
			continue
		}
		lists.of[kind], lists.index[kind], lists.refused[kind] = old.of[kind], old.index[kind], old.refused[kind]
		for _, offer := range lists.of[kind] {
			lists.size += int64(len(offer.Raw))
		}
	}
}

func (l *offerLists) cutAt(kind Kind, why string) {
	l.cut = fmt.Sprintf("the list of its %ss was cut after %d: %s", kinds[kind].noun, len(l.of[kind]), why)
}

// addPage reads one page, offer by offer: a malformed one does not lose the others.
func (l *offerLists) addPage(kind Kind, raw json.RawMessage, sc *serverConn) (string, error) {
	limits := &sc.pool.options
	next, ttl, err := toollist.ReadPage(raw, kinds[kind].member, func(one []byte) bool {
		switch {
		case len(l.of[kind])+len(l.refused[kind]) >= limits.Tools:
			l.cutAt(kind, "there are more ("+toollist.MoreTools(limits.Tools)+")")
		case l.size+int64(len(one)) > limits.ToolList:
			l.cutAt(kind, "the lists are "+toollist.TooLong(limits.ToolList))
		default:
			l.add(kind, one, sc)
			return true
		}
		return false
	})
	l.ttl = cmp.Or(ttl, l.ttl)
	return next, err
}

// add adds an offer that the operator allows, if it is not too long. Of two with the same key the first counts.
func (l *offerLists) add(kind Kind, raw json.RawMessage, sc *serverConn) {
	l.size += int64(len(raw))
	if len(raw) > toollist.MaxListed {
		return
	}
	raw = bytes.ToValidUTF8(raw, []byte("\uFFFD"))
	key, named := "", false
	rpc.Members(raw, func(name, value []byte) {
		if string(name) == kinds[kind].key {
			key = rpc.Text(value)
		}
		named = named || string(name) == "name"
	})
	if !named { // clients refuse a whole list for that
		raw = rpc.Prepend(raw, `"name":`+texts.JSON(key))
	}
	if _, twice := l.index[kind][key]; twice || !validKey(key) || json.Unmarshal(raw, kinds[kind].typed()) != nil {
		return
	}
	if sc.filters.refusal(kind, key) != "" {
		l.refused[kind] = append(l.refused[kind], rpc.Compact(raw))
		return
	}
	l.index[kind][key] = len(l.of[kind])
	l.of[kind] = append(l.of[kind], Offer{sc.server.Name, key, rpc.Compact(raw)})
}

// validKey reports whether a key may be passed on: it is text of one line, and not too long.
func validKey(key string) bool {
	return key != "" && len(key) <= maxKey && !strings.ContainsFunc(key, func(c rune) bool { return c < ' ' || c >= 0x7f && c < 0xa0 || c == '\u2028' || c == '\u2029' })
}

// empty reports whether the server offers nothing beside tools.
func (l *offerLists) empty() bool {
	allowed := func(list []Offer) bool { return len(list) > 0 }
	refused := func(list []json.RawMessage) bool { return len(list) > 0 }
	return l.instructions == "" && !slices.ContainsFunc(l.of, allowed) && !slices.ContainsFunc(l.refused, refused)
}

// same reports whether two lists offer the same.
func (l *offerLists) same(other *offerLists) bool {
	return slices.EqualFunc(l.of, other.of, func(a, b []Offer) bool {
		return slices.EqualFunc(a, b, func(a, b Offer) bool { return string(a.Raw) == string(b.Raw) })
	})
}

// read reads the lists of an earlier process. They are parsed as if the server had sent them, so the current policy holds.
func (o *offers) read() *offerLists {
	options := o.conn.pool.options
	if options.State == nil || options.Refresh || o.conn.server.InProcess {
		return nil
	}
	saved, ok := options.State.Offers(o.conn.key())
	if !ok {
		return nil
	}
	lists := newOfferLists(options.ListTTL)
	lists.fetched, lists.cut = saved.Fetched, saved.Cut
	lists.instructions = saved.Instructions[:min(len(saved.Instructions), maxInstructions)]
	for kind, list := range saved.Lists[:min(len(saved.Lists), len(kinds))] {
		for _, raw := range list[:min(len(list), options.Tools)] {
			lists.add(Kind(kind), raw, o.conn)
		}
	}
	if o.lease.Grow(lists.size) != nil {
		return nil // without memory for them they are fetched from the server
	}
	return lists
}

// keep writes the lists for later processes, unless they are there already.
func (o *offers) keep(lists *offerLists) {
	dir := o.conn.pool.options.State
	if dir == nil || o.conn.server.InProcess {
		return
	}
	o.mu.Lock()
	same := o.lists != nil && o.lists.same(lists) && time.Since(o.kept) < keepAgain
	o.mu.Unlock()
	if same || lists.empty() && o.saved() == nil {
		return
	}
	saved := state.Offers{Fetched: lists.fetched, Cut: lists.cut, Instructions: lists.instructions, Lists: make([][]json.RawMessage, len(kinds))}
	for kind, list := range lists.of {
		for _, offer := range list {
			saved.Lists[kind] = append(saved.Lists[kind], offer.Raw)
		}
		saved.Lists[kind] = append(saved.Lists[kind], lists.refused[kind]...) // the next process may allow them
	}
	if dir.SaveOffers(o.conn.key(), saved) == nil { // without them the next process asks again
		o.mu.Lock()
		o.kept = time.Now()
		o.mu.Unlock()
	}
}

// known returns an offer, and reports whether it is known.
func (l *offerLists) known(kind Kind, key string) (Offer, bool) {
	if l == nil {
		return Offer{}, false
	}
	i, ok := l.index[kind][key]
	if !ok {
		return Offer{}, false
	}
	return l.of[kind][i], true
}

// Offers lists what all servers offer of a kind, sorted by server, as far as it is known. It asks no server and starts none.
func (p *Pool) Offers(ctx context.Context, kind Kind) []Offer {
	_ = p.Load(ctx) // the caller of Load reports its error
	var all []Offer
	for _, sc := range p.shown(ctx) {
		if lists := sc.offers.current(); lists != nil {
			all = append(all, lists.of[kind]...)
		}
	}
	return all
}

// OffersOf lists what one server offers of a kind. It starts the server if that is not known.
func (p *Pool) OffersOf(ctx context.Context, server string, kind Kind) ([]Offer, error) {
	sc, err := p.conn(ctx, server)
	if err != nil {
		return nil, err
	}
	lists, err := sc.offers.get(ctx)
	if err != nil {
		return nil, sc.hideError(asError(err))
	}
	if fault := lists.faults[kind]; fault != nil && len(lists.of[kind]) == 0 {
		return nil, sc.hideError(asError(fault))
	}
	return lists.of[kind], nil
}

// instructions are what the server says about its use, in a session or else in an earlier one.
func (sc *serverConn) instructions(s *sessions.Session) string {
	if s != nil {
		text := s.SDK.InitializeResult().Instructions
		return sc.hide(strings.ToValidUTF8(text[:min(len(text), maxInstructions)], ""))
	}
	if lists := sc.offers.current(); lists != nil {
		return lists.instructions
	}
	return ""
}

// note handles news of the server.
func (sc *serverConn) note(n rpc.News) {
	switch n.Method {
	case rpc.ToolsChanged:
		sc.tools.invalidate()
		sc.tools.follow()
		if first := sc.shared.first; first != sc {
			first.tools.invalidate()
			first.tools.follow()
		}
	case rpc.ResourcesChanged, rpc.PromptsChanged:
		sc.offers.invalidate()
		if n.Method == rpc.ResourcesChanged {
			sc.pool.subscriptions.retry(sc.server.Name)
		}
	case rpc.ResourceUpdated:
		sc.pool.subscriptions.updated(sc, n.URI)
	}
}
