package toolhive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcsh-dev/mcsh/internal/pausing"
	"github.com/mcsh-dev/mcsh/upstream"
)

// Options say where ToolHive is and which of its workloads become servers. The zero value looks on this machine and
// takes all.
type Options struct {
	// URL is where the API is: http://, https:// or unix:// with the path of a socket. It is trusted, and nothing else
	// is tried. Empty: the API is looked for.
	URL     string
	URLFrom string // where the URL is given, for messages, such as "--toolhive"

	Discovery string // the path of ToolHive's discovery file; empty: it is not read

	// Container says that this is the inside of a container: the API is looked for at the machine's names too, and may
	// belong to another user.
	Container bool

	Proxy func(*http.Request) (*url.URL, error) // for what is not on this machine; nil: none

	APIHeaders http.Header // sent to the API, once its owner is certain
	Headers    []Headers   // sent to workloads
	Filter     Filter      // which workloads become servers

	Interval time.Duration // between two requests for the list: 5 s
	Wait     time.Duration // how long the first list may delay a start: 3 s

	// Log is called when ToolHive does not answer, when it answers again, and when something is wrong with its list,
	// from one goroutine at a time. May be nil.
	Log func(text string)

	hosts []string // instead of the guesses, for tests
}

// Headers are sent with every request to some workloads. Of several for one workload the later ones count.
type Headers struct {
	Workload string // a glob of names
	Header   http.Header
}

// Bounds of polling.
const (
	defaultInterval = 5 * time.Second
	defaultWait     = 3 * time.Second
	maxInterval     = time.Minute
)

// A Source gives the servers that ToolHive runs. See [New].
type Source struct {
	o Options

	// Used by the first call of Servers, and after it by Watch.
	api     *api   // nil while ToolHive is not found
	flaws   string // of the last list
	watched bool   // a ToolHive that comes later is still found
	missed  bool   // it was logged that ToolHive does not answer

	first sync.Once // call of Servers

	mu    sync.Mutex // guards the fields below
	list  []entry    // sorted by name; its entries do not change
	state State
}

var _ upstream.Watcher = (*Source)(nil)

// New makes a source. It looks for nothing yet. The error is a mistake in the options.
func New(o Options) (*Source, error) {
	o.Interval = cmp.Or(o.Interval, defaultInterval)
	o.Wait = cmp.Or(o.Wait, defaultWait)
	if o.URL != "" {
		if _, err := parseAddress(o.URL); err != nil {
			return nil, fmt.Errorf("ToolHive (%s): %w", cmp.Or(o.URLFrom, "the settings"), err)
		}
	}
	if o.Log == nil {
		o.Log = func(string) {}
	}
	if err := o.Filter.check(); err != nil {
		return nil, fmt.Errorf("picking workloads of ToolHive: %w", err)
	}
	for _, h := range o.Headers {
		if err := (Filter{Names: []string{h.Workload}}).check(); err != nil {
			return nil, fmt.Errorf("headers for workloads of ToolHive: %w", err)
		}
	}
	return &Source{o: o}, nil
}

// A State is what is known of ToolHive.
type State struct {
	Address string // of its API, empty if it was not found
	From    string // where the address is given
	Version string
	Listed  int // workloads, also those that do not run
	Err     error
	Absent  bool // nothing answered anywhere: there is no ToolHive
}

// State returns the result of the last request.
func (s *Source) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

func (s *Source) update(do func(*State)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do(&s.state)
}

// Servers returns the servers of the last list, sorted by name. The first call asks for the list, and waits a short
// time; Watch finds a ToolHive that is slower. There is no error: without ToolHive there are no servers.
func (s *Source) Servers(ctx context.Context) ([]upstream.Server, error) {
	s.first.Do(func() {
		ctx, cancel := context.WithTimeout(ctx, s.o.Wait)
		defer cancel()
		_, _ = s.look(ctx) // the error is in the state, and logged
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	var servers []upstream.Server
	for _, e := range s.list {
		servers = append(servers, e.Server)
	}
	return servers, nil
}

// Watch asks for the list at every interval, and calls changed when servers have come, gone or changed. While ToolHive
// does not answer, it waits longer each time and looks for it anew; the servers stay what they were, because their
// proxies need no API.
func (s *Source) Watch(ctx context.Context, changed func()) error {
	s.watched = true
	defer s.disconnect()
	wait := s.o.Interval
	for pausing.For(ctx, wait) == nil {
		news, err := s.look(ctx)
		if ctx.Err() != nil {
			return nil
		}
		wait = min(2*wait, maxInterval)
		if err == nil {
			wait = s.o.Interval
		}
		if news {
			changed()
		}
	}
	return nil
}

// look asks for the list and reports whether servers have changed.
func (s *Source) look(ctx context.Context) (changed bool, err error) {
	list, flaws, err := s.workloads(ctx)
	if err != nil {
		s.logLoss(err)
		return false, err
	}
	var next []entry
	for _, w := range list {
		if s.o.Filter.match(w) && !statusOf(w).absent {
			next = append(next, s.o.entry(w, s.api.address))
		}
	}
	s.update(func(now *State) {
		now.Listed, now.Err, now.Absent = len(list), nil, false
	})
	if s.missed {
		s.missed = false
		s.o.Log("ToolHive answers at " + s.api.address.String())
	}
	old := s.flaws
	if s.flaws = strings.Join(flaws, "; "); s.flaws != old && s.flaws != "" {
		s.o.Log("workloads of ToolHive that cannot be read are left out: " + s.flaws)
	}
	return s.take(next), nil
}

// workloads asks for the list. If an API that was found fails, it is looked for again: it may have been started again
// elsewhere.
func (s *Source) workloads(ctx context.Context) (list []Workload, flaws []string, err error) {
	if s.api != nil {
		if list, flaws, err = s.api.workloads(ctx); err == nil || ctx.Err() != nil {
			return list, flaws, err
		}
		s.disconnect()
	}
	a, err := s.o.find(ctx)
	if err != nil {
		return nil, nil, err
	}
	s.api = a
	s.update(func(now *State) { now.Address, now.From, now.Version = a.address.String(), a.address.from, a.version })
	return a.workloads(ctx)
}

// take makes a new list the current one and reports whether servers have changed. A server that was up has to be gone
// or down in two lists that follow each other: one list may be wrong.
func (s *Source) take(list []entry) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, old := range s.list {
		i, listed := slices.BinarySearchFunc(list, old, byName)
		switch {
		case !old.up || old.missed || listed && list[i].up:
			continue
		case !listed:
			list = slices.Insert(list, i, old)
		}
		list[i] = old
		list[i].missed = true
	}
	changed = !slices.EqualFunc(s.list, list, func(a, b entry) bool { return a.Name == b.Name && a.Version == b.Version })
	s.list = list
	return changed
}

// advice is for a gateway in a container that sees no ToolHive.
const advice = "no ToolHive answers here. If its servers are wanted: run thv serve on the machine, and the gateway's " +
	"container on the machine's network (--network host); or let ToolHive listen where the container reaches it and give the " +
	"API's address with TOOLHIVE_API_URL or --toolhive. --toolhive off ends the search"

// logLoss logs once that ToolHive does not answer, unless there is none.
func (s *Source) logLoss(err error) {
	miss, looked := errors.AsType[*notFound](err)
	absent := looked && !miss.broken
	old := s.State()
	s.update(func(now *State) { now.Err, now.Absent = err, absent })
	if s.missed || errors.Is(err, context.Canceled) {
		return
	}
	switch {
	case old.Version != "":
		s.o.Log(fmt.Sprintf("ToolHive no longer answers at %s: %v. Its servers stay; it is looked for", old.Address, err))
	case s.o.URL != "":
		s.o.Log(fmt.Sprintf("ToolHive does not answer at %s (%s): %v. It is asked again", s.o.URL, s.o.URLFrom, err))
	case !absent:
		s.o.Log(err.Error())
	case s.o.Container && s.watched:
		s.o.Log(advice)
	default:
		return
	}
	s.missed = true
}

func (s *Source) disconnect() {
	if s.api != nil {
		s.api.close()
		s.api = nil
	}
}
