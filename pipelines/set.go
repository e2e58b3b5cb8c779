package pipelines

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mcsh-dev/mcsh/stages"
)

// A Set is the saved pipelines of a store as tools, as far as they fit the tools that they call. All methods may be called
// concurrently.
type Set struct {
	store *Store
	deps  stages.Deps   // with which plans are checked
	tools func() uint64 // a number that changes with the tools of the servers

	mu      sync.Mutex
	checked map[string]*check // guarded by mu, by name; of versions as NAME@3
}

// NewSet returns the set of a store. deps are what all plans may use; tools returns a number that changes with the tools there
// are.
func NewSet(store *Store, deps stages.Deps, tools func() uint64) *Set {
	return &Set{store: store, deps: deps, tools: tools, checked: map[string]*check{}}
}

// Store returns the store of the set.
func (s *Set) Store() *Store { return s.store }

// Calls reports whether a saved pipeline calls tools of a server.
func (s *Set) Calls(server string) bool {
	list, _ := s.store.List(context.Background())
	return slices.ContainsFunc(list, func(p Saved) bool { return p.Definition != nil && slices.Contains(p.Definition.servers, server) })
}

// Servers returns the name of the server of the saved pipelines, if there are some for a viewer, or else nothing. It checks none.
func (s *Set) Servers(ctx context.Context, v Viewer) []string {
	list, _ := s.store.List(ctx)
	for _, p := range list {
		if p.Definition != nil && v.knows(&Tool{Saved: p}) {
			return []string{Server}
		}
	}
	return nil
}

// A Tool is a saved pipeline as a tool.
type Tool struct {
	Saved

	// Broken is why it cannot be called: an *Error of stages, whose code says whether that may pass. Nil: it can.
	Broken error

	Info    stages.Tool
	Schema  json.RawMessage // of its parameters
	Long    string          // its signature, as in lists
	Brief   string
	Effects Effects
	Servers []string // that it calls, also by the pipelines that it calls; sorted

	allServers bool // they are known
}

// Why is why the tool cannot be called, for the operator: with the whole path of its file.
func (t *Tool) Why() error { return cmp.Or(t.Err, t.Broken) }

// Effects are what all calls of a plan together may do.
type Effects struct{ ReadOnly, Idempotent, Additive bool }

// A Viewer is who asks for saved pipelines.
type Viewer struct {
	Caller string                   // sees what agents of its own have saved
	Shows  func(server string) bool // the servers that the viewer may know of; nil: all
	all    bool                     // it is the operator
}

// Operator sees everything.
func Operator() Viewer { return Viewer{all: true} }

func (v Viewer) sees(version Version) bool { return v.all || version.VisibleTo(v.Caller) }

// knows reports whether the viewer may know of a tool: of its version and of all its servers. A viewer of some servers knows no tool
// whose file cannot be read, and none whose servers are not all known yet. Only the operator knows removed tools.
func (v Viewer) knows(t *Tool) bool {
	if !v.sees(t.Version) || t.Removed && !v.all {
		return false
	}
	if v.Shows == nil {
		return true
	}
	hidden := func(server string) bool { return !v.Shows(server) }
	d := t.Definition
	return d != nil && (t.allServers || len(d.calls) == 0) && !slices.ContainsFunc(slices.Concat(t.Servers, d.servers), hidden)
}

// A check is what was found of one version, and when.
type check struct {
	done      chan struct{} // closed when tool is there
	tool      *Tool
	state     state
	transient bool      // the failure may go away by itself
	at        time.Time // of the end
}

// A state is what a check depends on besides the file.
type state struct {
	hash  string
	path  string
	files uint64
	tools uint64
}

const (
	checkTime   = 30 * time.Second // for one check, with the start of the servers
	again       = 2 * time.Second  // after which what may have passed is looked at again
	concurrency = 4                // checks
	maxChecked  = MaxPipelines + 200
)

// Tools returns all tools that a viewer may know of, sorted by name, also broken ones. It waits for their checks until ctx is
// done; what is not checked by then is broken for that reason.
func (s *Set) Tools(ctx context.Context, v Viewer) []Tool {
	list, _ := s.store.List(ctx) // its error is for the operator
	tools := make([]*Tool, len(list))
	var all errgroup.Group
	all.SetLimit(concurrency)
	for i, p := range list {
		if v.sees(p.Version) {
			all.Go(func() error {
				tools[i] = s.check(ctx, p, p.Name)
				return nil
			})
		}
	}
	_ = all.Wait()
	var shown []Tool
	for _, t := range tools {
		if t != nil && v.knows(t) {
			shown = append(shown, *t)
		}
	}
	return shown
}

// Find returns a tool by NAME or NAME@3. The error is an *Error: UNKNOWN_TOOL.
func (s *Set) Find(ctx context.Context, name string, v Viewer) (*Tool, error) {
	p, err := s.store.Get(ctx, name, v.sees)
	if err == nil {
		t := s.check(ctx, p, name)
		if v.knows(t) {
			return t, nil
		}
		err = notFound(name, nil)
	}
	if errors.Is(err, ErrStore) {
		return nil, stages.Errorf(stages.ServerUnavailable, "try again in a minute, or call the current version", "%w", err)
	}
	if v.Shows != nil && errors.Is(err, ErrNotFound) { // the error would name pipelines, also of hidden servers
		var known []Saved
		for _, t := range s.Tools(ctx, v) {
			known = append(known, t.Saved)
		}
		err = notFound(name, known)
	}
	return nil, stages.Errorf(stages.UnknownTool, "list_all_tools with server "+Server+" shows them", "%w", err)
}

// check returns what is known of a saved pipeline, and checks it if that is out of date. One check serves all who wait for it.
// Nothing begins once ctx is done.
func (s *Set) check(ctx context.Context, p Saved, key string) *Tool {
	now := state{p.Version.Hash, p.Path, s.store.Revision(), s.tools()}
	s.mu.Lock()
	c := s.checked[key]
	if c == nil || !c.fits(now) {
		before := c.callable(now.hash)
		c = &check{done: make(chan struct{}), state: now}
		if ctx.Err() == nil {
			if len(s.checked) >= maxChecked {
				clear(s.checked)
			}
			s.checked[key] = c
			go s.run(c, p, before)
		}
	}
	s.mu.Unlock()
	select {
	case <-c.done:
	case <-ctx.Done():
	}
	select {
	case <-c.done: // even when both are
		t := *c.tool
		t.Saved = p // who may see it can have changed
		return &t
	default:
		return &Tool{Saved: p, Broken: stages.Errorf(stages.Timeout, "try again", "the check of %s has not ended yet", p.Name)}
	}
}

// fits reports whether a check still counts. One that is under way serves for what it has begun with.
func (c *check) fits(now state) bool {
	select {
	case <-c.done:
		return c.state == now && !(c.transient && time.Since(c.at) > again)
	default:
		return c.state.hash == now.hash && c.state.path == now.path
	}
}

// callable returns the tool of a check that has found no mistake in the content with a hash; nil: there is none.
func (c *check) callable(hash string) *Tool {
	if c == nil || c.state.hash != hash {
		return nil
	}
	select {
	case <-c.done:
		if c.tool.Broken == nil {
			return c.tool
		}
	default:
	}
	return nil
}

// run checks a pipeline. before is its tool of an earlier check; nil: there is none.
func (s *Set) run(c *check, p Saved, before *Tool) {
	ctx, cancel := context.WithTimeout(context.Background(), checkTime) // not that of the first caller, who may give up first and sees less
	defer cancel()
	c.tool = s.inspect(ctx, p)
	withRemedy(c.tool)
	c.transient = transient(c.tool.Broken)
	if c.transient && before != nil {
		c.tool = before // a server that is away for a while breaks nothing: its call says so
	}
	c.at = time.Now()
	close(c.done)
}

// transient reports whether what breaks a pipeline is no mistake of the plan.
func transient(err error) bool {
	e, ok := errors.AsType[*stages.Error](err)
	return ok && slices.Contains([]stages.Code{stages.ServerUnavailable, stages.SandboxUnavailable, stages.Timeout, stages.Cancelled, stages.Internal}, e.Code)
}
