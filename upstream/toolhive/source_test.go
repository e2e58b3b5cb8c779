package toolhive_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
	"github.com/mcsh-dev/mcsh/upstream/toolhive"
	"github.com/mcsh-dev/mcsh/upstream/toolhive/toolhivetest"
)

// patience is how long a test waits for what should be there at once.
const patience = 30 * time.Second

// world is a ToolHive with a gateway's pool that follows it.
type world struct {
	t      *testing.T
	api    *toolhivetest.API
	source *toolhive.Source
	pool   *upstream.Pool

	mu      sync.Mutex
	logged  []string
	changes []upstream.Change
}

func newWorld(t *testing.T, api *toolhivetest.API, o toolhive.Options) *world {
	t.Helper()
	w := &world{t: t, api: api}
	o.Log = func(text string) { w.locked(func() { w.logged = append(w.logged, text) }) }
	if o.URL == "" && o.Discovery == "" {
		o.URL, o.URLFrom = api.URL, "the test"
	}
	o.Interval = 5 * time.Millisecond
	var err error
	if w.source, err = toolhive.New(o); err != nil {
		t.Fatal(err)
	}
	w.pool = mcptest.NewPool(t, upstream.Options{
		Sources:  []upstream.Source{w.source},
		OnChange: func(c upstream.Change) { w.locked(func() { w.changes = append(w.changes, c) }) },
	})
	return w
}

func (w *world) locked(do func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	do()
}

// servers lists the servers with their status and, where one cannot be used, why.
func (w *world) servers() string {
	var list []string
	for _, l := range w.pool.Catalog(w.t.Context()) {
		text := l.Server + " " + l.Status
		if l.Err != nil {
			text += ": " + l.Err.Error()
		}
		list = append(list, text)
	}
	return strings.Join(list, "\n")
}

// until waits for a condition.
func (w *world) until(what string, is func() bool) {
	w.t.Helper()
	for end := time.Now().Add(patience); !is(); {
		if time.Now().After(end) {
			w.t.Fatalf("not within %v: %s; servers:\n%s\nlogged: %q", patience, what, w.servers(), w.logged)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func (w *world) untilServers(want string) {
	w.t.Helper()
	w.until("servers "+want, func() bool { return w.servers() == want })
}

func (w *world) call(server, want string) {
	w.t.Helper()
	res, err := w.pool.CallTool(w.t.Context(), stages.Call{Server: server, Name: "hi"})
	if err != nil || string(res.Data) != want {
		w.t.Errorf("calling %s: got %q, %v", server, res.Data, err)
	}
}

func hi(t *testing.T, text string) string {
	return mcptest.New(mcptest.Tool{Name: "hi", Text: text}).HTTP(t, nil).URL + "/mcp"
}

// TestWorkloadsComeAndGo follows ToolHive through a day.
func TestWorkloadsComeAndGo(t *testing.T) {
	api := toolhivetest.New(t)
	w := newWorld(t, api, toolhive.Options{})
	w.untilServers("")

	alpha, beta := hi(t, "alpha"), hi(t, "beta")
	api.Set(toolhivetest.Running("alpha", alpha), toolhivetest.Stuck("sick", "error", "no image"))
	w.untilServers("alpha ready\nsick failed: " + `server "sick": ToolHive could not start it: no image`)
	w.call("alpha", "alpha")

	api.Set(toolhivetest.Running("beta", beta+"#beta"), toolhivetest.Running("alpha", alpha))
	w.untilServers("alpha ready\nbeta ready")
	w.call("beta", "beta")

	api.Set(toolhivetest.Running("alpha", beta), toolhivetest.Running("beta", beta+"#beta"))
	w.until("alpha is another", func() bool {
		res, err := w.pool.CallTool(t.Context(), stages.Call{Server: "alpha", Name: "hi"})
		return err == nil && string(res.Data) == "beta"
	})

	api.Set()
	w.untilServers("")
	w.locked(func() {
		restarted := 0
		for _, c := range w.changes {
			restarted += len(c.Restarted)
			if slices.Contains(c.Restarted, "beta") {
				t.Errorf("beta has not changed: %+v", w.changes)
			}
		}
		if restarted != 1 {
			t.Errorf("want one server restarted: %+v", w.changes)
		}
	})
}

// TestReloadBesideWatch: users ask for the servers while the source follows ToolHive.
func TestReloadBesideWatch(t *testing.T) {
	api := toolhivetest.New(t)
	w := newWorld(t, api, toolhive.Options{})
	w.untilServers("")
	stop, reloaded := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				reloaded <- nil
				return
			default:
			}
			if c, err := w.pool.Reload(context.WithoutCancel(t.Context())); err != nil || c.Err != nil {
				reloaded <- fmt.Errorf("%w, %w", err, c.Err)
				return
			}
		}
	}()
	for _, name := range []string{"alpha", "beta", "gamma"} {
		api.Set(toolhivetest.Running(name, hi(t, name)))
		w.untilServers(name + " ready")
	}
	close(stop)
	if err := <-reloaded; err != nil {
		t.Error(err)
	}
}

// TestOneListDoesNotDrop answers the request for the list wrongly, once each, and fails for a while: nothing is lost.
func TestOneListDoesNotDrop(t *testing.T) {
	api := toolhivetest.New(t)
	alpha := toolhivetest.Running("alpha", hi(t, "alpha"))
	api.Set(alpha)
	w := newWorld(t, api, toolhive.Options{})
	w.untilServers("alpha ready")
	steps := []struct {
		name     string
		do, undo func()
	}{
		{"refused", func() { api.Fail(http.StatusInternalServerError) }, func() { api.Fail(0) }},
		{"no JSON", func() { api.SetRaw("<html>") }, func() { api.SetRaw("") }},
		{"no list", func() { api.SetRaw("{}") }, func() { api.SetRaw("") }},
	}
	for _, s := range steps {
		s.do()
		w.until(s.name, func() bool { return w.source.State().Err != nil })
		w.call("alpha", "alpha")
		s.undo()
		w.until(s.name+": back", func() bool { return w.source.State().Err == nil })
	}
	w.locked(func() {
		if len(w.changes) > 0 {
			t.Errorf("changes: %+v", w.changes)
		}
		if got := strings.Join(w.logged, "\n"); strings.Count(got, "no longer answers") != len(steps) || strings.Count(got, "ToolHive answers at") != len(steps) {
			t.Errorf("logged %q", w.logged)
		}
	})
}

// TestNewStart gives ToolHive another nonce: the discovery file leads to it again.
func TestNewStart(t *testing.T) {
	api := toolhivetest.NewSocket(t)
	api.Set(toolhivetest.Running("alpha", hi(t, "alpha")))
	file := api.Discovery(t)
	w := newWorld(t, api, toolhive.Options{Discovery: file})
	w.untilServers("alpha ready")
	api.SetNonce("another")
	w.until("the old file is not believed", func() bool {
		err := w.source.State().Err
		return err != nil && strings.Contains(err.Error(), "its nonce is not that of")
	})
	w.call("alpha", "alpha")
	api.SetNonce("5c1f0a77be5542f0b6e7a1e2d3c4b5a7")
	api.Rewrite(t, file)
	api.Set(toolhivetest.Running("beta", hi(t, "beta")))
	w.untilServers("beta ready")
}

// TestPicked: filters, headers and the notice of each workload.
func TestPicked(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	server := mcp.NewServer(&mcp.Implementation{Name: "x", Version: "1"}, nil)
	handler := mcp.NewStreamableHTTPHandler(func(r *http.Request) *mcp.Server {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, r.Header.Get("Authorization")+" "+r.Header.Get("X-Team"))
		return server
	}, nil)
	url := serve(t, handler)
	api := toolhivetest.New(t)
	api.Set(
		toolhivetest.Running("github", url, `"group":"tools"`, `"labels":{"team":"blue"}`),
		toolhivetest.Running("gitlab", url, `"group":"tools"`, `"labels":{"team":"red"}`),
		toolhivetest.Running("gateway", url, `"group":"gateway"`, `"labels":{"team":"blue"}`),
		toolhivetest.Stuck("gone", "stopped", "", `"group":"tools"`),
	)
	w := newWorld(t, api, toolhive.Options{
		Filter: toolhive.Filter{Groups: []string{"tools"}, Names: []string{"git*"}, Labels: []string{"!team=red"}},
		Headers: []toolhive.Headers{
			{Workload: "*", Header: http.Header{"X-Team": {"all"}, "Authorization": {"none"}}},
			{Workload: "github", Header: http.Header{"Authorization": {"Bearer t0k3n"}}},
			{Workload: "gitlab", Header: http.Header{"Authorization": {"Bearer other"}}},
		},
	})
	w.untilServers("github ready")
	mu.Lock()
	defer mu.Unlock()
	if len(seen) == 0 || slices.ContainsFunc(seen, func(s string) bool { return s != "Bearer t0k3n all" }) {
		t.Errorf("the server saw %q", seen)
	}
	if s := w.source.State(); s.Listed != 4 || s.Version != "v0.44.0" {
		t.Errorf("state %+v", s)
	}
}

// TestConfiguredServerWins: a workload that has the name of a server that was configured is left out.
func TestConfiguredServerWins(t *testing.T) {
	api := toolhivetest.New(t)
	api.Set(toolhivetest.Running("alpha", hi(t, "found")))
	source, err := toolhive.New(toolhive.Options{URL: api.URL})
	if err != nil {
		t.Fatal(err)
	}
	configured := upstream.Static{{Name: "alpha", Dial: mcptest.New(mcptest.Tool{Name: "hi", Text: "configured"}).Dial}}
	for _, sources := range [][]upstream.Source{{source, configured}, {configured, source}} {
		p := mcptest.NewPool(t, upstream.Options{Sources: sources})
		res, err := p.CallTool(t.Context(), stages.Call{Server: "alpha", Name: "hi"})
		if err != nil || string(res.Data) != "configured" {
			t.Errorf("got %q, %v", res.Data, err)
		}
	}
}

// TestSlowStart: an API that says nothing does not keep a start waiting.
func TestSlowStart(t *testing.T) {
	release := make(chan struct{})
	url := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	defer close(release)
	source, err := toolhive.New(toolhive.Options{URL: strings.TrimSuffix(url, "/mcp"), Wait: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	servers, err := source.Servers(ctx)
	if len(servers) > 0 || err != nil || source.State().Err == nil || ctx.Err() != nil {
		t.Errorf("got %v, %v, %v, %v", servers, err, source.State().Err, ctx.Err())
	}
	if got := fmt.Sprint(source.State().Err); !strings.Contains(got, "deadline") {
		t.Errorf("got %s", got)
	}
}

// serve serves HTTP until the end of the test, and returns the address of an MCP endpoint.
func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL + "/mcp"
}
