package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"path"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/runs"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/store"
	"github.com/mcsh-dev/mcsh/store/storetest"
	"github.com/mcsh-dev/mcsh/upstream"
)

// engine is an engine of durable runs for the gateways of one process.
type engine struct {
	queue chan string

	silent atomic.Bool // it does not say how far jobs are

	mu   sync.Mutex
	jobs map[string]*engineJob
}

type engineJob struct {
	done     chan struct{}
	ended    error // how it ended, after done
	stopped  bool  // nobody is to begin it
	details  []byte
	attempts int
	cancel   context.CancelFunc      // of the attempt
	lose     context.CancelCauseFunc // of the attempt
}

func newEngine() *engine {
	return &engine{queue: make(chan string, 100), jobs: map[string]*engineJob{}}
}

func (e *engine) Start(_ context.Context, name string, _ time.Duration) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.jobs[name] == nil {
		e.jobs[name] = &engineJob{done: make(chan struct{}), cancel: func() {}}
		e.queue <- name
	}
	return nil
}

func (e *engine) job(name string) (*engineJob, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if j := e.jobs[name]; j != nil {
		return j, nil
	}
	return nil, errors.New("there is no such job")
}

func (e *engine) Wait(ctx context.Context, name string) error {
	j, err := e.job(name)
	if err != nil {
		return err
	}
	select {
	case <-j.done:
		return j.ended
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (e *engine) Progress(ctx context.Context, name string) ([]byte, int, error) {
	if e.silent.Load() {
		<-ctx.Done()
		return nil, 0, ctx.Err()
	}
	j, err := e.job(name)
	if err != nil {
		return nil, 0, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	select {
	case <-j.done:
		return nil, 0, nil
	default:
		return j.details, j.attempts, nil
	}
}

func (e *engine) Cancel(_ context.Context, name string) error {
	j, err := e.job(name)
	if err == nil {
		e.mu.Lock()
		defer e.mu.Unlock()
		if j.stopped = true; j.attempts == 0 {
			j.end(errors.New("the job was cancelled"))
		}
		j.cancel()
	}
	return err
}

func (e *engine) Work(ctx context.Context, slots int, do func(context.Context, string, func([]byte)) error) error {
	var working sync.WaitGroup
	defer working.Wait()
	for range slots {
		working.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case name := <-e.queue:
					e.attempt(ctx, name, do)
				}
			}
		})
	}
	return nil
}

// end ends a job once. The caller has the lock of the engine.
func (j *engineJob) end(how error) {
	select {
	case <-j.done:
	default:
		j.ended = how
		close(j.done)
	}
}

func (e *engine) attempt(ctx context.Context, name string, do func(context.Context, string, func([]byte)) error) {
	ctx, lose := context.WithCancelCause(ctx)
	defer lose(nil)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	e.mu.Lock()
	j := e.jobs[name]
	if j.stopped {
		j.end(errors.New("the job was cancelled"))
		e.mu.Unlock()
		return
	}
	j.attempts++
	j.cancel, j.lose = cancel, lose
	e.mu.Unlock()
	err := do(ctx, name, func(details []byte) {
		e.mu.Lock()
		defer e.mu.Unlock()
		j.details = details
	})
	if err == nil {
		e.mu.Lock()
		defer e.mu.Unlock()
		j.end(nil)
		return
	}
	time.AfterFunc(10*time.Millisecond, func() { e.queue <- name })
}

// durableWorld is a store with an engine, for gateways.
type durableWorld struct {
	t      *testing.T
	store  store.Store
	engine *engine
	shards *engine
	shop   *mcptest.Upstream
	keeps  runs.Options // of gateways
}

func newDurableWorld(t *testing.T, tools ...mcptest.Tool) *durableWorld {
	return &durableWorld{t: t, store: storetest.Directory(t), engine: newEngine(), shards: newEngine(), shop: mcptest.New(append(shopTools(), tools...)...)}
}

// gateway starts a gateway that does so many jobs at once, and returns an agent of it. stop ends it in order.
func (w *durableWorld) gateway(slots int, change ...func(*gateway.Options)) (agent *mcp.ClientSession, stop func()) {
	w.t.Helper()
	g, stop := w.start(slots, change...)
	return connect(w.t, g, newClient()), stop
}

func (w *durableWorld) start(slots int, change ...func(*gateway.Options)) (g *gateway.Gateway, stop func()) {
	w.t.Helper()
	keeps := w.keeps
	keeps.Dir, keeps.Shared = w.t.TempDir(), w.store
	kept := runs.New(keeps)
	o := gateway.Options{
		Upstream: mcptest.Pool(w.t, map[string]*mcptest.Upstream{"shop": w.shop}), Sandbox: ready{sharedSandbox(w.t)}, Kept: kept,
		Durable: gateway.Durable{Engine: w.engine, Shards: w.shards, SpreadFrom: 20, Slots: slots},
	}
	for _, do := range change {
		do(&o)
	}
	g = gateway.New(o)
	ctx, cancel := context.WithCancel(w.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- g.Work(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Error(err)
		}
		grace, end := context.WithTimeout(context.Background(), 10*time.Second)
		defer end()
		g.Close(grace)
		if err := kept.Sync(grace); err != nil {
			w.t.Error(err)
		}
		kept.Close()
	})
	w.t.Cleanup(stop)
	return g, stop
}

// call calls execute_pipeline and returns the text of the reply.
func (w *durableWorld) call(agent *mcp.ClientSession, pipeline string, more map[string]any) (string, bool) {
	w.t.Helper()
	args := map[string]any{"pipeline": json.RawMessage(pipeline)}
	for name, value := range more {
		args[name] = value
	}
	result, err := agent.CallTool(w.t.Context(), &mcp.CallToolParams{Name: "execute_pipeline", Arguments: args})
	if err != nil {
		w.t.Fatal(err)
	}
	var texts []string
	for _, c := range result.Content {
		switch c := c.(type) {
		case *mcp.TextContent:
			texts = append(texts, c.Text)
		default:
			texts = append(texts, fmt.Sprintf("%T", c))
		}
	}
	return strings.Join(texts, "\n"), result.IsError
}

var randomNames = regexp.MustCompile(`r_[a-z2-7]{26}|q_[a-z2-7]{12}`)

// status is what a reply says of a durable run that has not ended.
type status struct {
	Run, Status string
	Progress    struct{ Items, Calls, Failed int64 }
	Attempt     int
}

func (w *durableWorld) status(text string) (s status) {
	w.t.Helper()
	if err := json.Unmarshal([]byte(text), &s); err != nil || s.Run == "" {
		w.t.Fatalf("no status of a durable run: %v: %s", err, text)
	}
	return s
}

// TestDurableReply: the reply to a durable run is that of the same run in the process of the gateway, but for names.
func TestDurableReply(t *testing.T) {
	w := newDurableWorld(t)
	front, _ := w.gateway(0)
	w.gateway(2)
	for name, pipeline := range map[string]string{
		"output":    `[{"type":"tool","server":"shop","name":"list_orders"},{"type":"command","command":"jq","args":["map(.id)"]}]`,
		"for_each":  `[{"type":"command","command":"jq","args":["-n","[range(1;20)|{id:.}]"]},{"type":"tool","server":"shop","name":"get_item","for_each":true,"on_error":"collect"}]`,
		"a picture": `[{"type":"tool","server":"shop","name":"picture"}]`,
		"a preview": `[{"type":"tool","server":"shop","name":"list_orders"},{"type":"preview"},{"type":"command","command":"jq","args":["length"]}]`,
		"a failure": `[{"type":"tool","server":"shop","name":"get_item","args":{"id":13}}]`,
		"an effect": `[{"type":"tool","server":"shop","name":"delete_item","args":{"id":3}}]`,
		"a limit":   `[{"type":"command","command":"jq","args":["-n","range(100)"],"timeout":9},{"type":"command","command":"head","args":["-n","3"]}]`,
	} {
		here, failedHere := w.call(front, pipeline, nil)
		there, failedThere := w.call(front, pipeline, map[string]any{"durable": true})
		if randomNames.ReplaceAllString(here, "ID") != randomNames.ReplaceAllString(there, "ID") || failedHere != failedThere {
			t.Errorf("%s:\n%s\nwhere it is durable:\n%s", name, here, there)
		}
	}
}

// TestDurableWait: a call returns when its wait is over, and later ones wait for the reply, also at another gateway.
func TestDurableWait(t *testing.T) {
	hold := make(chan struct{})
	w := newDurableWorld(t, mcptest.Tool{Name: "wait", ReadOnly: true, Do: func(map[string]any) (string, error) {
		<-hold
		return `{"done":true}`, nil
	}})
	front, _ := w.gateway(0)
	const pipeline = `[{"type":"tool","server":"shop","name":"wait"},{"type":"command","command":"jq","args":["-c","."]}]`
	text, _ := w.call(front, pipeline, map[string]any{"durable": true, "wait": 0})
	s := w.status(text)
	if s.Status != "waiting for a worker" {
		t.Errorf("without a worker: %s", text)
	}
	waits := fmt.Sprintf(`[{"type":"from","run":%q}]`, s.Run)
	back, _ := w.gateway(1)
	for s.Status != "working" {
		text, _ = w.call(back, waits, map[string]any{"wait": 0.01})
		s = w.status(text)
	}
	text, failed := w.call(back, `[{"type":"from","run":"`+s.Run+`","resume":true}]`, nil)
	if !failed || !strings.Contains(text, "is still running") {
		t.Errorf("continued while it is under way: %s", text)
	}
	close(hold)
	if text, failed = w.call(front, waits, nil); failed || !strings.Contains(text, `{"done":true}`) {
		t.Errorf("the reply: %s", text)
	}
	if again, _ := w.call(back, waits, nil); again != text {
		t.Errorf("the reply at another gateway: %s, not %s", again, text)
	}
	text, _ = w.call(front, strings.Replace(waits, "}]", `},{"type":"command","command":"jq","args":[".done|not"]}]`, 1), nil)
	if !strings.HasSuffix(strings.TrimSpace(text), "false") {
		t.Errorf("stages behind from: %s", text)
	}
}

// TestDurableCallCancelled: a call whose gateway ends while it waits says that its run goes on, and how to get the reply.
func TestDurableCallCancelled(t *testing.T) {
	begun, hold := make(chan struct{}), make(chan struct{})
	w := newDurableWorld(t, mcptest.Tool{Name: "wait", ReadOnly: true, Do: func(map[string]any) (string, error) {
		close(begun)
		<-hold
		return `{"done":true}`, nil
	}})
	g, _ := w.start(0, func(o *gateway.Options) { o.Durable.Always = true })
	back, _ := w.start(1)
	release := sync.OnceFunc(func() { close(hold) })
	t.Cleanup(release)
	ended := make(chan error, 1)
	go func() {
		<-begun
		now, end := context.WithCancel(context.Background())
		end()
		ended <- g.Close(now)
	}()
	text := newStateless(g, "").call(t, `[{"type":"tool","server":"shop","name":"wait"}]`, "").text()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	waits := fmt.Sprintf(`[{"type":"from","run":%q}]`, randomNames.FindString(text))
	if !strings.Contains(text, "CANCELLED") || !strings.Contains(text, "goes on") || !strings.Contains(text, waits) {
		t.Errorf("the call: %s", text)
	}
	release()
	if text := newStateless(back, "").call(t, waits, "").text(); !strings.Contains(text, `{"done":true}`) {
		t.Errorf("the reply at another gateway: %s", text)
	}
}

// attempts counts attempts at jobs by how they ended.
type attempts struct {
	reached
	ended tallies
}

// Job implements [gateway.Watch].
func (a *attempts) Job(part bool) func(bool, error) {
	return func(left bool, err error) {
		a.ended.add(fmt.Sprintf("part %v, left %v, failed %v", part, left, err != nil))
	}
}

// TestDurableStopped: when a worker stops, another one goes on with its run, and repeats no call that has returned.
func TestDurableStopped(t *testing.T) {
	called, half := &tallies{}, make(chan struct{}, 1)
	w := newDurableWorld(t, mcptest.Tool{
		Name: "post", Schema: itemSchema, Do: func(args map[string]any) (string, error) {
			id := fmt.Sprint(args["id"])
			if called.add(id); id == "30" {
				half <- struct{}{}
				<-t.Context().Done() // it does not answer
			}
			return id, nil
		},
	})
	front, _ := w.gateway(0)
	watch := &attempts{}
	_, stop := w.gateway(1, func(o *gateway.Options) { o.Grace, o.Watch = time.Millisecond, watch })
	text, _ := w.call(front, `[{"type":"command","command":"jq","args":["-n","[range(1;61)|{id:.}]"]},
		{"type":"tool","server":"shop","name":"post","for_each":true}]`, map[string]any{"durable": true, "wait": 0})
	s := w.status(text)
	<-half
	stop()
	if n := watch.ended.of("part false, left true, failed true"); n != 1 {
		t.Errorf("got %v", watch.ended.n)
	}
	w.gateway(1)
	text, failed := w.call(front, fmt.Sprintf(`[{"type":"from","run":%q}]`, s.Run), nil)
	if !failed || !strings.Contains(text, "may have taken effect") || !strings.Contains(text, "item 30") {
		t.Fatalf("item 30 was under way: %s", text)
	}
	run := regexp.MustCompile(`"run": ?"(r_[a-z2-7]{26})"`).FindStringSubmatch(text)
	if run == nil {
		t.Fatalf("no run to go on with: %s", text)
	}
	text, failed = w.call(front, fmt.Sprintf(`[{"type":"from","run":%q,"resume":true,"on_error":"skip"}]`, run[1]), map[string]any{"durable": true})
	if failed || strings.Count(text, "\n") < 58 {
		t.Errorf("the rest: %s", text)
	}
	for id := 1; id <= 60; id++ {
		if n := called.of(fmt.Sprint(id)); n != 1 {
			t.Errorf("item %d was called %d times", id, n)
		}
	}
}

// TestDurableLate: a run whose time ends while no worker has it fails with a timeout, and says how it is continued.
func TestDurableLate(t *testing.T) {
	half := make(chan struct{}, 1)
	w := newDurableWorld(t, mcptest.Tool{Name: "post", Schema: itemSchema, Do: func(map[string]any) (string, error) {
		half <- struct{}{}
		<-t.Context().Done() // it does not answer
		return "", nil
	}})
	front, _ := w.gateway(0)
	_, stop := w.gateway(1, func(o *gateway.Options) { o.Grace = time.Millisecond })
	begun := time.Now()
	text, _ := w.call(front, `[{"type":"tool","server":"shop","name":"post","args":{"id":1}}]`, map[string]any{"durable": true, "wait": 0, "timeout": 2})
	s := w.status(text)
	<-half
	if text, failed := w.call(front, fmt.Sprintf(`[{"type":"from","run":%q}]`, s.Run), map[string]any{"mode": "check"}); !failed {
		t.Errorf("a check waits for the run: %s", text)
	}
	stop()
	time.Sleep(time.Until(begun.Add(2*time.Second + 100*time.Millisecond)))
	w.gateway(1)
	text, failed := w.call(front, fmt.Sprintf(`[{"type":"from","run":%q}]`, s.Run), nil)
	if !failed || !strings.Contains(text, "TIMEOUT") || strings.Contains(text, "Nothing was called") || !strings.Contains(text, `"resume": true`) {
		t.Errorf("got %s", text)
	}
}

// TestDurableOtherStore: a worker with another store leaves the run to others.
func TestDurableOtherStore(t *testing.T) {
	w := newDurableWorld(t)
	front, _ := w.gateway(0)
	text, _ := w.call(front, `[{"type":"tool","server":"shop","name":"list_orders"}]`, map[string]any{"durable": true, "wait": 0})
	s := w.status(text)
	elsewhere, watch := *w, &attempts{}
	elsewhere.store = storetest.Directory(t)
	_, stop := elsewhere.gateway(1, func(o *gateway.Options) { o.Watch = watch })
	for watch.ended.of("part false, left false, failed true") == 0 {
		time.Sleep(time.Millisecond) // between looks
	}
	stop()
	w.gateway(1)
	if text, failed := w.call(front, fmt.Sprintf(`[{"type":"from","run":%q}]`, s.Run), nil); failed {
		t.Errorf("got %s", text)
	}
}

// older is a store whose objects are ten minutes older than they are, which is what the sweep allows for clocks.
type older struct{ store.Store }

// List implements [store.Store].
func (s older) List(ctx context.Context, prefix string) iter.Seq2[store.Object, error] {
	return func(yield func(store.Object, error) bool) {
		for o, err := range s.Store.List(ctx, prefix) {
			o.Modified = o.Modified.Add(-10 * time.Minute)
			if !yield(o, err) {
				return
			}
		}
	}
}

// TestDurableWaitsLong: a run that waits for a worker outlives unused runs.
func TestDurableWaitsLong(t *testing.T) {
	w := newDurableWorld(t)
	w.keeps, w.store = runs.Options{TTL: time.Second, Held: time.Hour, Beside: map[string]time.Duration{gateway.DurablePrefix: time.Hour}}, older{w.store}
	front, _ := w.gateway(0)
	text, _ := w.call(front, `[{"type":"tool","server":"shop","name":"list_orders"}]`, map[string]any{"durable": true, "wait": 0})
	s := w.status(text)
	w.call(front, `[{"type":"tool","server":"shop","name":"list_orders"}]`, nil)
	journals := func() int {
		all := map[string]bool{}
		for o, err := range w.store.List(t.Context(), "runs/") {
			if err != nil {
				t.Fatal(err)
			}
			all[path.Dir(o.Name)] = true
		}
		return len(all)
	}
	for journals() < 2 {
		time.Sleep(time.Millisecond) // between looks
	}
	for journals() > 1 {
		time.Sleep(10 * time.Millisecond) // between looks
	}
	w.gateway(1)
	if text, failed := w.call(front, fmt.Sprintf(`[{"type":"from","run":%q}]`, s.Run), nil); failed {
		t.Errorf("got %s", text)
	}
}

// TestDurableShards: workers run the items of a large for_each, whether its run is durable or not. When one of them stops, another one
// goes on; at most the calls under way are made again, since the tool only reads.
func TestDurableShards(t *testing.T) {
	called, half := &tallies{}, make(chan struct{}, 1000)
	w := newDurableWorld(t, mcptest.Tool{
		Name: "get", ReadOnly: true, Schema: itemSchema, Do: func(args map[string]any) (string, error) {
			id := fmt.Sprint(args["id"])
			called.add(id)
			select {
			case half <- struct{}{}:
			default:
			}
			return id, nil
		},
	})
	front, _ := w.gateway(0)
	_, stop := w.gateway(1)
	w.gateway(1)
	const pipeline = `[{"type":"command","command":"jq","args":["-n","[range(1;501)|{id:.}]"]},{"type":"tool","server":"shop","name":"get","for_each":true},
		{"type":"command","command":"jq","args":["-c","length,(map(tonumber)|add)"]}]`
	for _, durable := range []bool{false, true} {
		go func() {
			for range 100 {
				<-half
			}
			stop()
		}()
		called.clear()
		text, failed := w.call(front, pipeline, map[string]any{"durable": durable})
		if failed || !strings.Contains(text, "500\n125250") {
			t.Errorf("durable: %v: %s", durable, text)
		}
		for id := 1; id <= 500; id++ {
			if n := called.of(fmt.Sprint(id)); n < 1 || n > 2 {
				t.Errorf("durable: %v: item %d was called %d times", durable, id, n)
			}
		}
	}
}

// tallies count by name.
type tallies struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *tallies) add(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[string]int{}
	}
	c.n[name]++
}

func (c *tallies) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.n)
}

func (c *tallies) of(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n[name]
}

// TestDurableRefused: calls that cannot be durable are refused at once.
func TestDurableRefused(t *testing.T) {
	w := newDurableWorld(t)
	front, _ := w.gateway(0)
	plain, _ := w.gateway(0, func(o *gateway.Options) { o.Durable = gateway.Durable{} })
	const order = `[{"type":"tool","server":"shop","name":"list_orders"}]`
	for name, c := range map[string]struct {
		agent    *mcp.ClientSession
		pipeline string
		args     map[string]any
		want     string
	}{
		"no engine":         {plain, order, map[string]any{"durable": true}, `unknown argument "durable"`},
		"a dry run":         {front, order, map[string]any{"durable": true, "mode": "dry_run"}, "a dry run is not durable"},
		"too long a wait":   {front, order, map[string]any{"durable": true, "wait": 601}, "not between 0 and 600 s"},
		"too long":          {front, order, map[string]any{"durable": true, "timeout": 86401}, "more than the operator allows: 86400 s"},
		"too short":         {front, order, map[string]any{"durable": true, "timeout": 0}, "(limit durable-run)"},
		"long, not durable": {front, order, map[string]any{"timeout": 301}, "more than the operator allows: 300 s"},
		"a mistake":         {front, `[{"type":"tool","server":"shop","name":"list_order"}]`, map[string]any{"durable": true}, "list_orders"},
		"a run of nobody":   {front, `[{"type":"from","run":"r_aaaaaaaaaaaaaaaaaaaaaaaaaa"}]`, nil, "there is no run"},
	} {
		if text, failed := w.call(c.agent, c.pipeline, c.args); !failed || !strings.Contains(text, c.want) {
			t.Errorf("%s: %s, want %q", name, text, c.want)
		}
	}
}

// TestDurableLimits: a durable run has limits of its own, and names them.
func TestDurableLimits(t *testing.T) {
	const list, get = `[{"type":"tool","server":"shop","name":"list_orders"},`, `{"type":"tool","server":"shop","name":"get_item","for_each":true}]`
	for limit, c := range map[string]struct {
		limits   gateway.Durable
		pipeline string
	}{
		"durable-items": {gateway.Durable{Items: 1}, list + get},
		"durable-calls": {gateway.Durable{Calls: 2}, list + get},
		"durable-run":   {gateway.Durable{Run: 100 * time.Millisecond}, `[{"type":"tool","server":"shop","name":"slow"}]`},
	} {
		w := newDurableWorld(t)
		front, _ := w.gateway(1, func(o *gateway.Options) {
			o.Durable.Items, o.Durable.Calls, o.Durable.Run = c.limits.Items, c.limits.Calls, c.limits.Run
			o.Limits = stages.Limits{Items: 1000, Calls: 1000}
		})
		text, failed := w.call(front, c.pipeline, map[string]any{"durable": true})
		if !failed || !strings.Contains(text, "limit "+limit) {
			t.Errorf("%s: %s", limit, text)
		}
		if text, failed = w.call(front, strings.ReplaceAll(c.pipeline, "slow", "list_orders"), nil); failed && strings.Contains(text, "limit") {
			t.Errorf("%s holds for a run that is not durable: %s", limit, text)
		}
	}
}

// TestDurableOtherTools: a worker whose tool has other effects than that of the gateway runs nothing.
func TestDurableOtherTools(t *testing.T) {
	w := newDurableWorld(t)
	front, _ := w.gateway(0)
	w.gateway(1, func(o *gateway.Options) {
		other := mcptest.New(mcptest.Tool{Name: "list_orders", Text: "changed"})
		o.Upstream = mcptest.Pool(t, map[string]*mcptest.Upstream{"shop": other})
	})
	text, failed := w.call(front, `[{"type":"tool","server":"shop","name":"list_orders"}]`, map[string]any{"durable": true})
	if !failed || !strings.Contains(text, "other parameters or effects here") {
		t.Errorf("got %s", text)
	}
}

// TestDurableCancelled: a run that is cancelled ends with a reply that says so.
func TestDurableCancelled(t *testing.T) {
	w := newDurableWorld(t)
	front, _ := w.gateway(1)
	text, _ := w.call(front, `[{"type":"tool","server":"shop","name":"slow"}]`, map[string]any{"durable": true, "wait": 0})
	s := w.status(text)
	waits := fmt.Sprintf(`[{"type":"from","run":%q}]`, s.Run)
	for s.Progress.Calls == 0 {
		text, _ = w.call(front, waits, map[string]any{"wait": 0.01})
		s = w.status(text)
	}
	w.engine.mu.Lock()
	for _, j := range w.engine.jobs {
		j.cancel()
	}
	w.engine.mu.Unlock()
	if text, failed := w.call(front, waits, nil); !failed || !strings.Contains(text, "CANCELLED") {
		t.Errorf("got %s", text)
	}
}

// TestDurableLost: an attempt that the engine has given up ends without a reply, and the next one has it.
func TestDurableLost(t *testing.T) {
	begun, again := make(chan struct{}, 2), make(chan struct{})
	w := newDurableWorld(t, mcptest.Tool{Name: "wait", ReadOnly: true, Do: func(map[string]any) (string, error) {
		begun <- struct{}{}
		<-again
		return "at last", nil
	}})
	front, _ := w.gateway(1)
	text, _ := w.call(front, `[{"type":"tool","server":"shop","name":"wait"}]`, map[string]any{"durable": true, "wait": 0})
	s := w.status(text)
	<-begun
	w.engine.mu.Lock()
	for _, j := range w.engine.jobs {
		j.lose(errors.New("another attempt may have begun"))
	}
	w.engine.mu.Unlock()
	<-begun
	close(again)
	if text, failed := w.call(front, fmt.Sprintf(`[{"type":"from","run":%q}]`, s.Run), nil); failed || !strings.Contains(text, "at last") {
		t.Errorf("got %s", text)
	}
}

// TestDurableGivenUp: a run that no worker can read is given up after some attempts.
func TestDurableGivenUp(t *testing.T) {
	w := newDurableWorld(t)
	front, _ := w.gateway(0)
	text, _ := w.call(front, `[{"type":"tool","server":"shop","name":"list_orders"}]`, map[string]any{"durable": true, "wait": 0})
	s := w.status(text)
	for o, err := range w.store.List(t.Context(), "runs/") {
		if err != nil {
			t.Fatal(err)
		}
		data, err := w.store.Get(t.Context(), o.Name)
		newer := bytes.Replace(data, []byte(`{"format":1,`), []byte(`{"format":9,`), 1)
		if err := errors.Join(err, w.store.Delete(t.Context(), o.Name), w.store.Put(t.Context(), o.Name, newer)); err != nil {
			t.Fatal(err)
		}
	}
	watch := &attempts{}
	back, stop := w.gateway(1, func(o *gateway.Options) { o.Watch = watch })
	text, failed := w.call(back, fmt.Sprintf(`[{"type":"from","run":%q}]`, s.Run), nil)
	if !failed || !strings.Contains(text, "another version of mcsh has written it") {
		t.Errorf("got %s", text)
	}
	stop()
	want := map[string]int{"part false, left false, failed true": 4, "part false, left false, failed false": 1}
	if !maps.Equal(watch.ended.n, want) {
		t.Errorf("the attempts are %v, want %v", watch.ended.n, want)
	}
	w.engine.mu.Lock()
	defer w.engine.mu.Unlock()
	for _, j := range w.engine.jobs {
		if j.attempts != 5 {
			t.Errorf("there were %d attempts", j.attempts)
		}
	}
}

// TestShardsCancelledBefore: a shard whose job ended before a worker had begun it is run when its run is continued, and choices for the
// rest hold for shards that have failed.
func TestShardsCancelledBefore(t *testing.T) {
	called := &tallies{}
	w := newDurableWorld(t, mcptest.Tool{Name: "post", Schema: itemSchema, Do: func(args map[string]any) (string, error) {
		id := fmt.Sprint(args["id"])
		if id == "60" {
			return "", errors.New("it is refused")
		}
		called.add(id)
		return id, nil
	}})
	front, _ := w.gateway(0)
	text, failed := w.call(front, `[{"type":"command","command":"jq","args":["-n","[range(1;121)|{id:.}]"]},
		{"type":"tool","server":"shop","name":"post","for_each":true,"concurrency":16}]`, map[string]any{"timeout": 2})
	if !failed || !strings.Contains(text, "TIMEOUT") {
		t.Fatalf("without workers: %s", text)
	}
	w.gateway(2)
	for _, c := range []struct{ more, want string }{{"", "item 60"}, {`,"on_error":"skip"`, "119"}} {
		run := regexp.MustCompile(`"run": ?"(r_[a-z2-7]{26})"`).FindStringSubmatch(text)
		if run == nil {
			t.Fatalf("no run to go on with: %s", text)
		}
		text, _ = w.call(front, fmt.Sprintf(`[{"type":"from","run":%q,"resume":true%s}]`, run[1], c.more), nil)
		if !strings.Contains(text, c.want) {
			t.Errorf("want %s: %s", c.want, text)
		}
	}
	for id := 1; id <= 120; id++ {
		if n := called.of(fmt.Sprint(id)); n != 1 && id != 60 {
			t.Errorf("item %d was called %d times", id, n)
		}
	}
}

// TestDurableCancelledWhileChecked: a run that is cancelled before a worker has checked it was cancelled, and can be continued.
func TestDurableCancelledWhileChecked(t *testing.T) {
	w := newDurableWorld(t)
	front, _ := w.gateway(0)
	text, _ := w.call(front, `[{"type":"tool","server":"shop","name":"list_orders"}]`, map[string]any{"durable": true, "wait": 0})
	s := w.status(text)
	checking := make(chan struct{})
	begun := sync.OnceFunc(func() { close(checking) })
	_, stop := w.gateway(1, func(o *gateway.Options) {
		o.Upstream = mcptest.NewPool(t, upstream.Options{Sources: []upstream.Source{upstream.Static{{
			Name: "shop", Dial: func(ctx context.Context) (mcp.Transport, error) {
				begun()
				<-ctx.Done()
				return nil, ctx.Err()
			},
		}}}})
	})
	<-checking
	w.engine.mu.Lock()
	for _, j := range w.engine.jobs {
		j.cancel()
	}
	w.engine.mu.Unlock()
	text, failed := w.call(front, fmt.Sprintf(`[{"type":"from","run":%q}]`, s.Run), nil)
	resume := fmt.Sprintf(`{"type": "from", "run": %q, "resume": true}`, s.Run)
	if !failed || !strings.Contains(text, "CANCELLED") || !strings.Contains(text, resume) || strings.Contains(text, "mistake") {
		t.Errorf("got %s", text)
	}
	stop()
	w.gateway(1)
	if text, failed := w.call(front, "["+resume+"]", map[string]any{"durable": true}); failed {
		t.Errorf("got %s", text)
	}
}
