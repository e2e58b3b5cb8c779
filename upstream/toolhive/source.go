package toolhive

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/mcsh-dev/mcsh/upstream"
)

// Options say where ToolHive is and which of its workloads become servers. The zero value looks on this machine and
// takes all.
type Options struct {
	// URL is where the API is: http://, https:// or unix:// with the path of a socket. It is believed, and nothing else
	// is tried. Empty: it is looked for.
	URL     string
	URLFrom string // who says so, for messages, such as "--toolhive"

	Discovery string // the path of ToolHive's discovery file; empty: it is not read
	Host      string // the host where the API is guessed to be, instead of those that are usual

	// Container says that this is the inside of a container: the API is guessed at more hosts and ports, and may
	// belong to a user that is not ours.
	Container bool

	Proxy func(*http.Request) (*url.URL, error) // to what is not on this machine; nil: none

	APIHeaders http.Header // sent to the API, once it is certain who has it
	Headers    []Headers   // sent to workloads
	Filter     Filter      // which workloads become servers

	Interval time.Duration // between two looks at the list: 5 s
	Wait     time.Duration // how long the first list may keep a start waiting: 3 s

	MaxMessage int // bytes of one message of a server, 0: 64 MiB

	// Told is called when ToolHive is found, lost and found again, and when something is wrong with its list. It is
	// called from one goroutine at a time. Nil: nobody is told.
	Told func(text string)

	usualPort int   // instead of the usual one, for tests
	scanPorts ports // instead of the usual ones, for tests
}

// Headers are sent with every request to some workloads. Where several are for one, the later count.
type Headers struct {
	Workload string // a glob of names
	Header   http.Header
}

// Bounds of polling.
const (
	defaultInterval = 5 * time.Second
	defaultWait     = 3 * time.Second
	maxInterval     = time.Minute
	secondLook      = time.Second // after something has vanished
)

// A Source gives the servers that ToolHive runs. See [New].
type Source struct {
	o Options

	mu    sync.Mutex // guards what follows; not held while asking
	api   *api       // nil while ToolHive is not found
	state State
	list  watchlist
	flaws []string // of the last list

	// Used by Servers and Watch, of which the second calls the first.
	looked  bool // at least once
	watched bool // somebody waits for a ToolHive that comes later
	advised bool // what to do was told
}

var _ upstream.Watcher = (*Source)(nil)

// New makes a source. Nothing is looked for before it is asked. The error is a mistake in the options.
func New(o Options) (*Source, error) {
	o.Interval = cmp.Or(o.Interval, defaultInterval)
	o.Wait = cmp.Or(o.Wait, defaultWait)
	if o.URL != "" {
		if err := ParseURL(o.URL); err != nil {
			return nil, fmt.Errorf("ToolHive (%s): %w", cmp.Or(o.URLFrom, "the settings"), err)
		}
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
	Place   string // where its API is, empty if it was not found
	How     string // who said so
	Version string
	Listed  int // workloads, those that do not run too
	Picked  int // of them, what the filter leaves and nobody has stopped
	Err     error
	Absent  bool // nothing answered anywhere: there is no ToolHive
}

// State returns what the last look has found.
func (s *Source) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// Servers returns the servers of the last look at ToolHive, sorted by name. The first call looks, for a short time:
// what comes later is for Watch. It has no error: where there is no ToolHive there are no servers.
func (s *Source) Servers(ctx context.Context) ([]upstream.Server, error) {
	if !s.looked {
		ctx, cancel := context.WithTimeout(ctx, s.o.Wait)
		defer cancel()
		_, _ = s.look(ctx) // what it finds and what is wrong is in the state, and told
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var servers []upstream.Server
	for _, w := range s.list.now {
		servers = append(servers, s.o.server(w, s.list.from))
	}
	return servers, nil
}

// look asks for the list, and for ToolHive first if it is not known where it is. It reports whether servers have
// changed, and how soon to look again if that is sooner than usual.
func (s *Source) look(ctx context.Context) (changed bool, soon time.Duration) {
	s.looked = true
	a, list, flaws, err := s.workloads(ctx)
	if err != nil {
		s.lost(err)
		return false, 0
	}
	s.found(len(list), flaws)
	picked := slices.DeleteFunc(list, func(w Workload) bool {
		return !s.o.Filter.match(w) || w.TransportType == inspector || standingOf(w).part == absent
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.Picked = len(picked)
	changed, doubt := s.list.take(picked, teller{a.place.host(), a.shows()})
	if doubt {
		soon = min(secondLook, s.o.Interval)
	}
	return changed, soon
}

// workloads asks for the list. Where an API that was there does not answer as before, it is looked for once more: it
// may have been started again elsewhere.
func (s *Source) workloads(ctx context.Context) (*api, []Workload, []string, error) {
	for {
		a, fresh, err := s.connected(ctx)
		if err != nil {
			return nil, nil, nil, err
		}
		list, flaws, err := a.workloads(ctx)
		if err == nil {
			return a, list, flaws, nil
		}
		s.disconnect()
		if fresh || ctx.Err() != nil {
			return nil, nil, nil, err
		}
	}
}

// connected returns the API, which is looked for if it is not known. Then it is fresh.
func (s *Source) connected(ctx context.Context) (a *api, fresh bool, err error) {
	s.mu.Lock()
	a = s.api
	s.mu.Unlock()
	if a != nil {
		return a, false, nil
	}
	a, version, err := s.o.find(ctx)
	if err != nil {
		return nil, false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.api = a
	s.state.Place, s.state.How, s.state.Version = a.place.String(), a.place.how, version
	return a, true, nil
}

// Watch looks at the list again and again, and calls changed when servers have come, gone or changed. Where ToolHive
// does not answer, it waits longer each time, and looks for it anew; the servers stay what they were, because their
// proxies need no API.
func (s *Source) Watch(ctx context.Context, changed func()) error {
	failures := 0
	s.watched = true
	defer s.disconnect()
	for wait := s.o.Interval; ; {
		if !pause(ctx, spread(wait)) {
			return nil
		}
		news, soon := s.look(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if news {
			changed()
		}
		if s.State().Err != nil {
			failures++
		} else {
			failures = 0
		}
		wait = cmp.Or(soon, min(max(maxInterval, s.o.Interval), s.o.Interval<<min(failures, 10)))
	}
}
