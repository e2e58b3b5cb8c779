package upstream

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcsh-dev/mcsh/internal/nearest"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream/state"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Options are the settings of a [Pool]. The zero value of a field means its default.
type Options struct {
	Sources []Source // read by Load

	// Follow reads a source again whenever it says that it has changed, if it is a [Watcher].
	Follow bool
	// Told is called after each such reading, never twice at the same time. It must not call the pool. Nil: nobody
	// is told.
	Told func(Change)

	ClientName, ClientVersion string // how we introduce ourselves: "mcsh", "dev"

	// Instance is the name of the gateway that the pool is of, by which a server is known that is this gateway itself.
	Instance string

	ReadOnly bool // only tools that are annotated or declared read-only may be called

	CallTimeout  time.Duration // of one call: 60 s
	StartTimeout time.Duration // of a start: 60 s
	ProbeTimeout time.Duration // of the question for the newer protocol: 3 s
	ListTimeout  time.Duration // of fetching a tool list: 30 s
	IdleStop     time.Duration // after which a program that nobody uses is ended, to be started again on use: 10 min; negative: never
	ListTTL      time.Duration // how long a tool list is taken for current where the server does not say: 5 min
	Concurrency  int           // calls in flight per server: 64
	ResultMax    int64         // bytes of one result as pipeline data: 64 MiB

	// State keeps tool lists and the shapes of results over restarts. Nil: they are kept in memory only. The pool closes
	// it.
	State *state.Dir
}

func (o Options) withDefaults() Options {
	o.ClientName = cmp.Or(o.ClientName, "mcsh")
	o.ClientVersion = cmp.Or(o.ClientVersion, "dev")
	o.CallTimeout = cmp.Or(o.CallTimeout, 60*time.Second)
	o.StartTimeout = cmp.Or(o.StartTimeout, 60*time.Second)
	o.ProbeTimeout = cmp.Or(o.ProbeTimeout, 3*time.Second)
	o.ListTimeout = cmp.Or(o.ListTimeout, 30*time.Second)
	o.IdleStop = cmp.Or(o.IdleStop, 10*time.Minute)
	o.ListTTL = cmp.Or(o.ListTTL, 5*time.Minute)
	o.Concurrency = cmp.Or(o.Concurrency, 64)
	o.ResultMax = cmp.Or(o.ResultMax, 64<<20)
	return o
}

func (o Options) implementation() *mcp.Implementation {
	return &mcp.Implementation{Name: o.ClientName, Version: o.ClientVersion}
}

// A Pool keeps one session to each of its servers, started when it is first needed, and calls tools on them. A server
// that is slow or broken delays nobody who does not use it. All methods may be called concurrently.
type Pool struct {
	options Options
	life    context.Context
	end     context.CancelFunc
	tasks   tasks
	learner *learner

	mu      sync.Mutex    // guards what follows; not held while reading sources
	loading chan struct{} // set once, closed when the sources have been read
	units   map[string]*unit
	names   []string // sorted
	err     error    // of Load

	reading sync.Mutex // held while a source is read again; taken before mu
	sources []*reading // set by load; what is in them is guarded by reading, their err by mu
}

var _ stages.Tools = (*Pool)(nil)

// NewPool makes a pool. Nothing is read or started before it is needed.
func NewPool(o Options) *Pool {
	life, end := context.WithCancel(context.Background())
	p := &Pool{options: o.withDefaults(), life: life, end: end, units: map[string]*unit{}}
	p.learner = newLearner(life, &p.tasks, o.State)
	return p
}

// Close ends all sessions and cancels the calls in flight. It returns when the programs that the pool has started are
// gone. It may be called more than once.
func (p *Pool) Close() error {
	p.end()
	p.tasks.close()
	if p.options.State == nil {
		return nil
	}
	return p.options.State.Close()
}

// Load reads the sources, once; all calls return the outcome of that, or the error of ctx where it ends before. The
// reading itself belongs to the pool: no caller's impatience ends it. The servers of good sources and the good servers
// of any are there even when the error is not nil. All other methods call Load where nobody has.
func (p *Pool) Load(ctx context.Context) error {
	p.mu.Lock()
	if p.loading == nil {
		p.loading = make(chan struct{})
		if !p.tasks.start(p.load) {
			p.err = stages.Errorf(stages.Cancelled, "", "the gateway is closing")
			close(p.loading)
		}
	}
	p.mu.Unlock()
	select {
	case <-p.loading:
	case <-ctx.Done():
		select {
		case <-p.loading: // it was there already
		default:
			return fmt.Errorf("the configuration of servers is still being read: %w", ctx.Err())
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// unit finds a server by its name.
func (p *Pool) unit(ctx context.Context, server string) (*unit, error) {
	loadErr := p.Load(ctx)
	if ctx.Err() != nil && errors.Is(loadErr, ctx.Err()) {
		return nil, loadErr
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if u := p.units[server]; u != nil {
		return u, nil
	}
	switch near := nearest.List(server, p.names, 3); {
	case len(p.names) == 0 && loadErr != nil:
		return nil, stages.Errorf(stages.UnknownServer, "mend the configuration", "there is no server %q: %w", shorten(server, 80), loadErr)
	case len(p.names) == 0:
		return nil, stages.Errorf(stages.UnknownServer, "add a server to the configuration", "there is no server %q, nor any other", shorten(server, 80))
	case len(near) > 0:
		return nil, stages.Errorf(stages.UnknownServer, "did you mean "+quoted(near)+"?", "there is no server %q", shorten(server, 80))
	default:
		return nil, stages.Errorf(stages.UnknownServer, "call list_all_tools; there are "+quoted(p.names[:min(len(p.names), 10)]), "there is no server %q", shorten(server, 80))
	}
}

func quoted(names []string) string {
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = fmt.Sprintf("%q", name)
	}
	return strings.Join(list, ", ")
}

// Tool implements [stages.Tools].
func (p *Pool) Tool(ctx context.Context, server, name string) (*stages.Tool, error) {
	u, t, err := p.find(ctx, server, name)
	if err != nil {
		return nil, err
	}
	info := t.details().Tool
	info.Timeout = u.server.Timeout
	return &info, nil
}

// find returns a tool that may be called.
func (p *Pool) find(ctx context.Context, server, name string) (*unit, *tool, error) {
	u, list, err := p.toolList(ctx, server)
	if err != nil {
		return nil, nil, err
	}
	t := list.byName[name]
	if t == nil { // it may be new
		if newer, err := u.tools.renew(ctx); err == nil {
			list, t = newer, newer.byName[name]
		}
	}
	switch {
	case t == nil:
		return nil, nil, p.unknownTool(u, list, name)
	case t.refused != "":
		return nil, nil, stages.Errorf(stages.Denied, "use another tool, or ask the operator", "%s may not be called: %s", describe(server, name), t.refused)
	}
	if denied := t.details().Denied; denied != "" {
		return nil, nil, stages.Errorf(stages.Denied, "use another tool, or ask the operator", "%s cannot be called: %s", describe(server, name), denied)
	}
	return u, t, nil
}

// toolList returns the tools of a server. One that is replaced meanwhile is asked for again.
func (p *Pool) toolList(ctx context.Context, server string) (*unit, *toolList, error) {
	for {
		u, err := p.unit(ctx, server)
		if err != nil {
			return nil, nil, err
		}
		list, err := u.tools.get(ctx)
		if err == nil {
			return u, list, nil
		}
		if !u.isRetired() {
			return nil, nil, u.hush(asError(err))
		}
	}
}

// asError gives a caller an error of its own, with a code: one start or one list may fail many callers, and each adds
// to its error where it happened.
func asError(err error) error {
	var e *stages.Error
	if !errors.As(err, &e) {
		return stages.Errorf(stages.ServerUnavailable, "try again", "%w", err)
	}
	own := *e
	return &own
}

// unknownTool names the tools that may be meant, here and, if none is close, on other servers that are known already.
func (p *Pool) unknownTool(u *unit, list *toolList, name string) error {
	hint := ""
	if others := p.serversWith(name, u); len(others) > 0 {
		hint = fmt.Sprintf("server %s has a tool of that name", quoted(others))
	} else if near := nearest.List(name, list.names(), 3); len(near) > 0 {
		hint = "did you mean " + quoted(near) + "?"
	} else if names := list.names(); len(names) > 0 {
		hint = "it has " + quoted(names[:min(len(names), 10)])
		if len(names) > 10 {
			hint += fmt.Sprintf(" and %d more: see list_all_tools", len(names)-10)
		}
	} else {
		hint = "the server offers no tools"
	}
	if list.cut != "" {
		hint += "; " + list.cut
	}
	return stages.Errorf(stages.UnknownTool, hint, "server %q has no tool %q", u.server.Name, shorten(name, 80))
}

// serversWith returns the other servers whose list, as far as it is known, has a tool.
func (p *Pool) serversWith(name string, not *unit) []string {
	p.mu.Lock()
	units := maps.Clone(p.units)
	p.mu.Unlock()
	var found []string
	for _, server := range slices.Sorted(maps.Keys(units)) {
		u := units[server]
		if u == not {
			continue
		}
		if t := u.tools.known(name); t != nil && t.refused == "" { // may read the disk
			found = append(found, server)
		}
	}
	return found
}

// CallTool implements [stages.Tools]. A timeout of zero is that of the server, or else that of the pool's options.
func (p *Pool) CallTool(ctx context.Context, call stages.Call) (stages.Result, error) {
	server, name := call.Server, call.Name
	if len(call.Args) == 0 {
		call.Args = json.RawMessage("{}")
	}
	if !json.Valid(call.Args) {
		return stages.Result{}, stages.Errorf(stages.InvalidArguments, "give a JSON object", "the arguments of %s are not valid JSON", describe(server, name))
	}
	for {
		u, t, err := p.find(ctx, server, name)
		if err != nil {
			if ctx.Err() != nil {
				return stages.Result{}, fmt.Errorf("calling %s: %w", describe(server, name), ctx.Err())
			}
			return stages.Result{}, err
		}
		res, err := u.callTool(ctx, t, call)
		if !errors.Is(err, errRetired) {
			return res, u.hush(err)
		}
	}
}

// callTool calls a tool of the unit.
func (u *unit) callTool(ctx context.Context, t *tool, call stages.Call) (stages.Result, error) {
	if call.Reading && !t.readOnly {
		return stages.Result{}, stages.Errorf(stages.Denied, "check the pipeline again: the plan is out of date",
			"%s was planned as a tool that only reads, and now the server says that it may change something", describe(u.server.Name, t.name))
	}
	args, wrong := t.fixed.into(call.Args)
	if wrong != nil {
		return stages.Result{}, wrong
	}
	call.Args = args
	raw, err := u.call(ctx, call, t)
	if err != nil {
		return stages.Result{}, withSignature(err, t)
	}
	res, err := resultOf(raw, t.wrapped)
	if err != nil {
		return stages.Result{}, withSignature(err, t)
	}
	if size := int64(len(res.Data)); size > u.limits.ResultMax {
		return stages.Result{}, stages.OverLimit("result", "ask the tool for less: a page, a filter, fewer fields",
			"%s returned %d bytes, more than the limit of %d", describe(u.server.Name, t.name), size, u.limits.ResultMax)
	}
	u.learner.offer(u, t, res.Data)
	return res, nil
}

// aboutArguments matches the words of tools that were called wrongly.
var aboutArguments = regexp.MustCompile(`(?i)-32602|invalid (?:arguments?|params?|input)|validat|required propert|missing propert`)

// withSignature adds the tool's signature as a hint to an error that is about the arguments.
func withSignature(err error, t *tool) error {
	var e *stages.Error
	if errors.As(err, &e) && e.Code == stages.ToolError && aboutArguments.MatchString(e.Msg) {
		e.Hint = "compare the arguments with " + t.details().Tool.Signature
	}
	return err
}
