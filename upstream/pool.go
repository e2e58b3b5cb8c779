package upstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcsh-dev/mcsh/internal/lazy"
	"github.com/mcsh-dev/mcsh/internal/memory"
	"github.com/mcsh-dev/mcsh/internal/nearest"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/schemas"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream/pins"
	"github.com/mcsh-dev/mcsh/upstream/state"
	"github.com/mcsh-dev/mcsh/upstream/toollist"
)

// Options are the settings of a [Pool]. The zero value of a field means its default.
type Options struct {
	Sources []Source // read by Load

	// OnChange makes the pool read a [Watcher] again whenever it reports a change, and is called after each such reading,
	// never twice at the same time. It must not call the pool. Nil: sources are read once.
	OnChange func(Change)

	ClientVersion string // how we introduce ourselves: "dev"

	// Instance is the name of the gateway that owns the pool. A server that reports the same name is this gateway
	// itself.
	Instance string

	Expose []string // patterns SERVER/TOOL of tools that clients call by names of their own, beside those of [Server.Expose]

	ReadOnly bool // only tools that are annotated or declared read-only may be called

	CallTimeout  time.Duration // of one call: 60 s
	StartTimeout time.Duration // of a start, without its wait for other programs that start: 60 s
	ProbeTimeout time.Duration // of the request that tells a server's era: 3 s
	ListTimeout  time.Duration // of fetching a tool list: 30 s
	IdleStop     time.Duration // after which an unused program is ended; the next use starts it: 10 min; negative: never
	ListTTL      time.Duration // how long a tool list is current, unless the server says: 5 min
	Concurrency  int           // calls in flight per server: 64
	ResultMax    int64         // bytes of one result as pipeline data: 64 MiB
	Tools        int           // of one server that are read: 10,000
	ToolList     int64         // bytes of its tool list that are read: 16 MiB

	Schemas  *schemas.Cache // of compiled schemas: 32 MiB
	Results  *memory.Share  // memory for results; nil: unbounded
	Catalogs *memory.Share  // memory for tool lists; nil: unbounded

	// SignIns begins sign-ins of the person of this machine, whose client can show an address. It is set only where all callers
	// are that person; nil: errors name the command that signs in.
	SignIns SignIns

	// State keeps tool lists and the shapes of results over restarts; nil: they are kept in memory only. The pool closes
	// it.
	State *state.Dir

	// Shapes are shapes of results that gateways share; nil: there are none.
	Shapes *state.Shared

	// Pin holds back tools that are new or have changed since the first list of their server, until somebody accepts them. It
	// needs State; without, what was listed first is known in memory only, and a restart trusts everything again.
	Pin bool

	// OnUntrusted is called when tools of a server are found that are new or have changed, once for each change. It must not call
	// the pool. Nil: not reported.
	OnUntrusted func(pins.Change)

	// Look has the pins that tools are compared with, and nothing is written there; nil: those of State, which are changed. The
	// pool closes it.
	Look *state.Dir

	// Log is called with what servers write to the logs of their clients, and must not block; nil: it is ignored.
	Log func(LogLine)

	// Refresh ignores the tool lists of earlier processes: all servers are asked.
	Refresh bool
}

func (o Options) withDefaults() Options {
	o.ClientVersion = cmp.Or(o.ClientVersion, "dev")
	o.CallTimeout = cmp.Or(o.CallTimeout, 60*time.Second)
	o.StartTimeout = cmp.Or(o.StartTimeout, 60*time.Second)
	o.ProbeTimeout = cmp.Or(o.ProbeTimeout, 3*time.Second)
	o.ListTimeout = cmp.Or(o.ListTimeout, 30*time.Second)
	o.IdleStop = cmp.Or(o.IdleStop, 10*time.Minute)
	o.ListTTL = cmp.Or(o.ListTTL, 5*time.Minute)
	o.Concurrency = cmp.Or(o.Concurrency, 64)
	o.ResultMax = cmp.Or(o.ResultMax, 64<<20)
	o.Tools = cmp.Or(o.Tools, DefaultTools)
	o.ToolList = cmp.Or(o.ToolList, DefaultToolList)
	if o.Schemas == nil {
		o.Schemas = schemas.NewCache(32<<20, nil, schemas.Limits{})
	}
	return o
}

// A Pool keeps one session to each of its servers, started when it is first needed, and calls tools on them. A slow or
// broken server delays only callers that use it. All methods may be called concurrently.
type Pool struct {
	options    Options
	life       context.Context
	end        context.CancelFunc
	goroutines goroutines
	samples    sampler
	own        *serverConn // the server of [ResourcesServer]
	asked      askedPeople

	subscriptions *subscriptions

	onOffers atomic.Pointer[func()]
	onTools  atomic.Pointer[func()]
	follows  atomic.Pointer[func(server string) bool]
	beside   atomic.Pointer[func(ctx context.Context) []string]
	tap      atomic.Pointer[func(Message)] // of those who look at messages

	generation atomic.Uint64 // of the lists of tools
	queue      startQueue

	mu     sync.Mutex        // guards the fields below; not held while reading sources
	loaded *flight[struct{}] // of the sources, set once
	conns  map[string]*serverConn
	names  []string // of servers that are not disabled, sorted
	groups map[string]Group

	disabled map[string]bool // servers by name, whether they are there or not

	reload   *flight[Change] // that has not begun to read; nil: there is none
	conflict error           // between servers of the sources, at the last reading after load

	sourcesMu sync.Mutex     // held while sources are read again; taken before mu
	sources   []*sourceState // set by load; guarded by sourcesMu, their err by mu
}

var _ stages.Tools = (*Pool)(nil)

// NewPool makes a pool. It reads and starts nothing yet.
func NewPool(o Options) *Pool {
	life, end := context.WithCancel(context.Background())
	p := &Pool{
		options: o.withDefaults(), life: life, end: end, conns: map[string]*serverConn{}, disabled: map[string]bool{},
		queue: startQueue{free: runtime.GOMAXPROCS(0)}, samples: newSampler(),
	}
	p.subscriptions = newSubscriptions(p)
	p.own = newServerConn(p.resourcesServer(), p)
	return p
}

// Close ends all sessions and cancels the calls in flight. It returns when the programs that the pool has started are
// gone. It may be called more than once.
func (p *Pool) Close() error {
	p.end()
	p.goroutines.close()
	var errs []error
	for _, dir := range []*state.Dir{p.options.State, p.options.Look} {
		if dir != nil {
			errs = append(errs, dir.Close())
		}
	}
	return errors.Join(errs...)
}

// Load reads the sources once; every call returns the result, or the error of ctx if that ends first. The reading
// belongs to the pool, so no caller's timeout ends it. Even with an error, the servers of the good sources and the good
// servers of the others are available. All other methods call Load if nobody has.
func (p *Pool) Load(ctx context.Context) error {
	p.mu.Lock()
	if p.loaded == nil {
		p.loaded = launch(&p.goroutines, errPoolClosed(), p.load, &p.mu, func(struct{}, error) {})
	}
	f := p.loaded
	p.mu.Unlock()
	if f.over(ctx) {
		return f.err
	}
	return fmt.Errorf("the configuration of servers is still being read: %w", ctx.Err())
}

// OnOffers makes the pool call f when what a server offers beside tools has changed. f must not block.
func (p *Pool) OnOffers(f func()) { p.onOffers.Store(&f) }

// offersChanged reports that what a server offers has changed.
func (p *Pool) offersChanged() {
	if f := p.onOffers.Load(); f != nil {
		(*f)()
	}
}

// conn returns the connection to a server for the caller of ctx, if its view shows the server.
func (p *Pool) conn(ctx context.Context, server string) (*serverConn, error) {
	sc, err := p.firstConn(ctx, server)
	if err != nil {
		return nil, err
	}
	return sc.variant(ctx), nil
}

// firstConn returns the first connection to a server.
func (p *Pool) firstConn(ctx context.Context, server string) (*serverConn, error) {
	if server == ResourcesServer {
		return p.own, nil
	}
	sc, err := p.named(ctx, server)
	if err != nil {
		return nil, err
	}
	if sc = p.latest(sc); sc.disabled {
		return nil, sc.disabledError()
	}
	return sc, nil
}

// named returns the first connection to a server of the sources, which may be disabled.
func (p *Pool) named(ctx context.Context, server string) (*serverConn, error) {
	loadErr := p.Load(ctx)
	if ctx.Err() != nil && errors.Is(loadErr, ctx.Err()) {
		return nil, loadErr
	}
	p.mu.Lock()
	sc := p.conns[server]
	p.mu.Unlock()
	v := ViewOf(ctx)
	if sc != nil && v.Sees(server) {
		return sc, nil
	}
	var names []string
	if beside := p.beside.Load(); beside != nil {
		names = (*beside)(ctx)
	}
	if server == ResourcesServer || slices.Contains(names, server) {
		return nil, stages.Errorf(stages.Denied, "name a server of the configuration", "server %q is a part of the gateway", server)
	}
	for _, sc := range p.all(ctx) {
		names = append(names, sc.server.Name)
	}
	return nil, unknownServer(server, slices.Sorted(slices.Values(names)), v, loadErr)
}

// Beside makes the pool's errors name servers of others, as the caller of ctx may know of them. It may be called again.
func (p *Pool) Beside(names func(ctx context.Context) []string) { p.beside.Store(&names) }

func quoted(names []string) string {
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = fmt.Sprintf("%q", name)
	}
	return strings.Join(list, ", ")
}

// Tool implements [stages.Tools].
func (p *Pool) Tool(ctx context.Context, server, name string) (*stages.Tool, error) {
	sc, t, err := p.find(ctx, server, name)
	if err != nil {
		return nil, err
	}
	info := t.Details(ctx).Tool
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	info.Timeout = sc.server.Timeout
	return &info, nil
}

// find returns a tool, if it may be called.
func (p *Pool) find(ctx context.Context, server, name string) (*serverConn, *toollist.Tool, error) {
	sc, list, err := p.toolList(ctx, server)
	if err != nil {
		return nil, nil, err
	}
	t := list.ByName[name]
	if t == nil { // it may be new
		if newer, err := sc.tools.refresh(ctx); err == nil {
			list, t = newer, newer.ByName[name]
		}
	}
	switch {
	case t == nil:
		return nil, nil, p.unknownTool(ctx, sc, list, name)
	case t.Refused != "":
		return nil, nil, stages.Errorf(stages.Denied, "use another tool, or ask the operator", "%s may not be called: %s", toolLabel(server, name), t.Refused)
	}
	if why := sc.pins.Refusal(t); why != "" {
		return nil, nil, sc.pins.HeldBack(t, why)
	}
	if denied := t.Details(ctx).Denied; denied != "" {
		return nil, nil, stages.Errorf(stages.Denied, "use another tool, or ask the operator", "%s cannot be called: %s", toolLabel(server, name), denied)
	}
	return sc, t, nil
}

// toolList returns the tools of a server. If the server is replaced meanwhile, the new one is asked.
func (p *Pool) toolList(ctx context.Context, server string) (*serverConn, *toollist.List, error) {
	for {
		sc, err := p.conn(ctx, server)
		if err != nil {
			return nil, nil, err
		}
		sc.needed.Store(true)
		list, err := sc.tools.get(ctx)
		if err == nil {
			return sc, list, nil
		}
		if !sc.isReplaced() {
			return nil, nil, sc.hideError(asError(err))
		}
	}
}

// asError copies an error for one caller and gives it a code: one start or one list may fail many callers, and each adds
// the place where it happened.
func asError(err error) *stages.Error {
	e, ok := errors.AsType[*stages.Error](err)
	if !ok {
		return stages.Errorf(stages.ServerUnavailable, "try again", "%w", err)
	}
	own := *e
	return &own
}

// unknownTool names the tools that may be meant, on this server or, if none is close, on other servers with known lists.
func (p *Pool) unknownTool(ctx context.Context, sc *serverConn, list *toollist.List, name string) error {
	hint := ""
	if others := p.serversWith(ctx, name, sc); len(others) > 0 {
		hint = fmt.Sprintf("server %s has a tool of that name", quoted(others))
	} else if near := nearest.List(name, list.Names(), 3); len(near) > 0 {
		hint = "did you mean " + quoted(near) + "?"
	} else if names := list.Names(); len(names) > 0 {
		hint = "it has " + quoted(names[:min(len(names), 10)])
		if len(names) > 10 {
			hint += fmt.Sprintf(" and %d more: see list_all_tools", len(names)-10)
		}
	} else {
		hint = "the server offers no tools"
	}
	if list.Cut != "" {
		hint += "; " + list.Cut
	}
	return stages.Errorf(stages.UnknownTool, hint, "server %q has no tool %q", sc.server.Name, texts.Cut(name, 80))
}

// serversWith returns the other servers whose known list has a tool.
func (p *Pool) serversWith(ctx context.Context, name string, not *serverConn) []string {
	var found []string
	for _, sc := range p.shown(ctx) {
		if t := sc.tools.known(name); sc != not && t != nil && t.Refusal() == "" {
			found = append(found, sc.server.Name)
		}
	}
	return found
}

// all are the connections to all servers that the view of ctx shows, disabled ones too, sorted by name.
func (p *Pool) all(ctx context.Context) (list []*serverConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, name := range ViewOf(ctx).of(slices.Sorted(maps.Keys(p.conns))) {
		list = append(list, p.conns[name])
	}
	return list
}

// connections are the connections to all servers that are not disabled, sorted by name. Using one may take long, so the pool is not
// locked.
func (p *Pool) connections() []*serverConn {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := make([]*serverConn, len(p.names))
	for i, name := range p.names {
		list[i] = p.conns[name]
	}
	return list
}

// shown are the connections to the servers that the view of ctx shows, sorted by name.
func (p *Pool) shown(ctx context.Context) []*serverConn {
	list, v := p.latestAll(), ViewOf(ctx)
	if v == nil {
		return list
	}
	return slices.DeleteFunc(list, func(sc *serverConn) bool { return !v.Sees(sc.server.Name) })
}

// messageMax bounds a message with a result of so many bytes. In the message the result is text, whose quotes and line
// ends take two bytes each, and often the same again as structured content.
func messageMax(result int64) int {
	const besides = 1 << 20
	return int(3*min(result, (math.MaxInt-besides)/3) + besides)
}

// aboutArguments matches the errors of tools that got wrong arguments.
var aboutArguments = lazy.Regexp(`(?i)-32602|invalid (?:arguments?|params?|input)|validat|required propert|missing propert`)

// withSignature adds the tool's signature as a hint to an error that is about the arguments.
func withSignature(ctx context.Context, err error, t *toollist.Tool) error {
	if e, ok := errors.AsType[*stages.Error](err); ok && e.Code == stages.ToolError && aboutArguments().MatchString(e.Msg) {
		e.Hint = "compare the arguments with " + t.Details(ctx).Tool.Signature
	}
	return err
}
