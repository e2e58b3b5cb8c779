package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
)

// A changingSource is a source whose servers a test changes.
type changingSource struct {
	mu      sync.Mutex
	servers []upstream.Server
	err     error
	changed chan struct{}
	changes chan upstream.Change
}

func newChangingSource(servers ...upstream.Server) *changingSource {
	return &changingSource{servers: servers, changed: make(chan struct{}), changes: make(chan upstream.Change, 1)}
}

func (s *changingSource) Servers(context.Context) ([]upstream.Server, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.servers, s.err
}

func (s *changingSource) Watch(ctx context.Context, changed func()) error {
	for {
		select {
		case <-s.changed:
			changed()
		case <-ctx.Done():
			return nil
		}
	}
}

// change makes the source say something else, and returns what the pool made of it.
func (s *changingSource) change(t *testing.T, err error, servers ...upstream.Server) upstream.Change {
	t.Helper()
	s.mu.Lock()
	s.servers, s.err = servers, err
	s.mu.Unlock()
	s.changed <- struct{}{}
	select {
	case c := <-s.changes:
		return c
	case <-time.After(time.Minute):
		t.Fatal("the pool did not tell of the change")
		return upstream.Change{}
	}
}

func (s *changingSource) pool(t *testing.T, more ...upstream.Source) *upstream.Pool {
	return mcptest.NewPool(t, upstream.Options{
		Sources: append([]upstream.Source{s}, more...), OnChange: func(c upstream.Change) { s.changes <- c },
	})
}

// A gatedServer has a tool that waits until the test releases it.
type gatedServer struct {
	*mcptest.Upstream
	entered, open chan struct{}
	mu            sync.Mutex
	dials         int
}

func newGatedServer(text string) *gatedServer {
	g := &gatedServer{entered: make(chan struct{}, 10), open: make(chan struct{})}
	g.Upstream = mcptest.New(
		mcptest.Tool{Name: "wait", Do: func(map[string]any) (string, error) {
			g.entered <- struct{}{}
			<-g.open
			return text, nil
		}},
		mcptest.Tool{Name: "hi", Text: text},
	)
	return g
}

func (g *gatedServer) server(name, version string) upstream.Server {
	return upstream.Server{Name: name, Version: version, Where: name + ".json:1", Dial: func(ctx context.Context) (mcp.Transport, error) {
		g.mu.Lock()
		g.dials++
		g.mu.Unlock()
		return g.Dial(ctx)
	}}
}

func (g *gatedServer) dialled() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.dials
}

// TestFollow: only servers that changed are replaced, and calls in flight end well wherever they are.
func TestFollow(t *testing.T) {
	same, before, after := newGatedServer("same"), newGatedServer("before"), newGatedServer("after")
	source := newChangingSource(same.server("same", "1"), before.server("other", "1"), before.server("gone", "1"))
	p := source.pool(t)
	results := make(chan string, 2)
	for _, server := range []string{"same", "other"} {
		go func() {
			res, err := p.CallTool(context.WithoutCancel(t.Context()), stages.Call{Server: server, Name: "wait"})
			results <- server + ": " + string(res.Data) + errorText(err)
		}()
	}
	<-same.entered
	<-before.entered

	got := source.change(t, nil, same.server("same", "1"), after.server("other", "2"), after.server("new", "1"))
	want := upstream.Change{Added: []string{"new"}, Removed: []string{"gone"}, Restarted: []string{"other"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for server, text := range map[string]string{"same": "same", "other": "after", "new": "after"} {
		if res, err := p.CallTool(t.Context(), stages.Call{Server: server, Name: "hi"}); err != nil || string(res.Data) != text {
			t.Errorf("%s: got %q, %v", server, res.Data, err)
		}
	}
	_, err := p.CallTool(t.Context(), stages.Call{Server: "gone", Name: "hi"})
	wantError(t, err, stages.UnknownServer, `no server "gone"`, "")
	close(same.open)
	close(before.open)
	if a, b := <-results, <-results; a+b != "same: sameother: before" && a+b != "other: beforesame: same" {
		t.Errorf("calls in flight: got %q and %q", a, b)
	}
	if n := same.dialled(); n != 1 {
		t.Errorf("the server that did not change was started %d times", n)
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestFollowBroken: a source that breaks is used as it was, and says so until it works again.
func TestFollowBroken(t *testing.T) {
	s := newGatedServer("x")
	source := newChangingSource(s.server("a", "1"))
	p := source.pool(t, upstream.Static{s.server("fixed", "")})
	if err := p.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	call := func(server string) {
		t.Helper()
		if res, err := p.CallTool(t.Context(), stages.Call{Server: server, Name: "hi"}); err != nil || string(res.Data) != "x" {
			t.Errorf("%s: got %q, %v", server, res.Data, err)
		}
	}
	call("a")
	call("fixed")
	c := source.change(t, errors.New("a.json:3: it is broken"))
	if c.Err == nil || c.Removed != nil || p.SourceError() == nil || p.SourceError().Error() != "a.json:3: it is broken" {
		t.Errorf("got %+v, %v", c, p.SourceError())
	}
	call("a")
	c = source.change(t, nil, s.server("a", "1"), s.server("b", "1"))
	if diff := cmp.Diff(upstream.Change{Added: []string{"b"}}, c); diff != "" || p.SourceError() != nil {
		t.Errorf("%v, (-want +got):\n%s", p.SourceError(), diff)
	}
	call("b")
	call("fixed")
	if n := s.dialled(); n != 3 {
		t.Errorf("started %d times, want once for each name", n)
	}
	c = source.change(t, nil, s.server("a", "1"), s.server("fixed", "1"))
	if c.Err == nil || !contains(c.Err.Error(), `server "fixed" is defined twice: at fixed.json:1 and at fixed.json:1`) {
		t.Errorf("two servers of one name: got %+v", c)
	}
}

// TestSecretsOfServers: words that a server's source calls secret are in no message about it.
func TestSecretsOfServers(t *testing.T) {
	s := mcptest.New(mcptest.Tool{Name: "leak", Do: func(map[string]any) (string, error) { return "", errors.New("key plant3d is wrong") }})
	p := staticPool(t, upstream.Options{},
		upstream.Server{Name: "a", Dial: s.Dial, Secrets: []string{"plant3d"}},
		upstream.Server{Name: "b", Secrets: []string{"plant3d"}, Dial: func(context.Context) (mcp.Transport, error) {
			return nil, errors.New("dialling with plant3d failed")
		}})
	_, err := p.CallTool(t.Context(), stages.Call{Server: "a", Name: "leak", Args: json.RawMessage(`{}`)})
	wantError(t, err, stages.ToolError, "key *** is wrong", "")
	_, err = p.CallTool(t.Context(), stages.Call{Server: "b", Name: "leak"})
	wantError(t, err, stages.ServerUnavailable, "dialling with *** failed", "")
	if l := p.Catalog(t.Context(), "b")[0]; l.Err == nil || contains(l.Err.Error(), "plant3d") {
		t.Errorf("got %v", l.Err)
	}
}

// An unwatchedSource reports no changes.
type unwatchedSource struct{ *changingSource }

func (unwatchedSource) Watch(ctx context.Context, _ func()) error { <-ctx.Done(); return nil }

// TestReload: the pool reads its sources when it is asked, keeps what has not changed, and calls in flight end well. A fixed
// list is not read again.
func TestReload(t *testing.T) {
	before, after, fixed := newGatedServer("before"), newGatedServer("after"), newGatedServer("fixed")
	source := newChangingSource(before.server("other", "1"), before.server("gone", "1"))
	p := mcptest.NewPool(t, upstream.Options{Sources: []upstream.Source{unwatchedSource{source}, upstream.Static{fixed.server("fixed", "")}}})
	result := make(chan string, 1)
	go func() {
		res, err := p.CallTool(context.WithoutCancel(t.Context()), stages.Call{Server: "other", Name: "wait"})
		result <- string(res.Data) + errorText(err)
	}()
	<-before.entered
	reload := func(err error, servers ...upstream.Server) upstream.Change {
		t.Helper()
		source.mu.Lock()
		source.servers, source.err = servers, err
		source.mu.Unlock()
		c, err := p.Reload(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	var news atomic.Int64
	p.OnOffers(func() { news.Add(1) })
	got := reload(nil, after.server("other", "2"), after.server("new", "1"))
	if news.Load() == 0 {
		t.Error("nobody is notified that the lists of offers may have changed")
	}
	want := upstream.Change{Added: []string{"new"}, Removed: []string{"gone"}, Restarted: []string{"other"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if c := reload(nil, after.server("other", "2"), after.server("new", "1")); !c.IsZero() {
		t.Errorf("without a change: %+v", c)
	}
	if c := reload(errors.New("it is wrong")); c.Err == nil || len(c.Removed) > 0 || len(p.Servers(t.Context())) != 3 {
		t.Errorf("a wrong source: %+v", c)
	}
	close(before.open)
	if text := <-result; text != "before" {
		t.Errorf("the call in flight got %q", text)
	}
	if res, err := p.CallTool(t.Context(), stages.Call{Server: "other", Name: "hi"}); err != nil || string(res.Data) != "after" {
		t.Errorf("got %q, %v", res.Data, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Reload(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("after its caller has gone: %v", err)
	}
	p.Close()
	if _, err := p.Reload(t.Context()); err == nil {
		t.Error("a closed pool reads its sources")
	}
}

// TestReloadTogether: a reload reads all sources before it compares them, so that a server may move from one to another.
func TestReloadTogether(t *testing.T) {
	s := newGatedServer("x")
	a, b := newChangingSource(s.server("one", "1")), newChangingSource(s.server("two", "1"), s.server("three", "1"))
	var reports []upstream.Change
	p := mcptest.NewPool(t, upstream.Options{
		Sources:  []upstream.Source{unwatchedSource{a}, unwatchedSource{b}},
		OnChange: func(c upstream.Change) { reports = append(reports, c) }, // before Reload returns
	})
	for _, test := range []struct {
		name string
		a, b []upstream.Server
		want upstream.Change
		err  string
	}{
		{"moved", []upstream.Server{s.server("one", "1"), s.server("two", "1")}, []upstream.Server{s.server("three", "1")}, upstream.Change{}, ""},
		{
			"moved and changed",
			[]upstream.Server{s.server("one", "1")},
			[]upstream.Server{s.server("three", "1"), s.server("two", "2")},
			upstream.Change{Restarted: []string{"two"}},
			"",
		},
		{
			"in both",
			[]upstream.Server{s.server("one", "1"), s.server("two", "2")},
			[]upstream.Server{s.server("two", "2")},
			upstream.Change{Removed: []string{"three"}},
			`server "two" is defined twice: at two.json:1 and at two.json:1; rename one of them`,
		},
		{"in one again", []upstream.Server{s.server("one", "1")}, []upstream.Server{s.server("two", "2")}, upstream.Change{}, ""},
	} {
		reports = nil
		a.servers, b.servers = test.a, test.b
		got, err := p.Reload(t.Context())
		if err != nil || errorText(got.Err) != test.err || errorText(p.SourceError()) != test.err {
			t.Errorf("%s: got the errors %v, %v and %v, want %s", test.name, err, got.Err, p.SourceError(), test.err)
		}
		if len(reports) > 1 {
			t.Errorf("%s: reported as %+v", test.name, reports)
		}
		got.Err = nil
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

// A stuckSource waits in its second reading until the test releases it.
type stuckSource struct {
	read          atomic.Int32
	entered, open chan struct{}
}

func (s *stuckSource) Servers(context.Context) ([]upstream.Server, error) {
	if s.read.Add(1) == 2 {
		close(s.entered)
		<-s.open
	}
	return nil, nil
}

func (s *stuckSource) Watch(ctx context.Context, _ func()) error { <-ctx.Done(); return nil }

// TestReloadMany: callers who ask while a source is read share the next reading, even if they do not wait for it.
func TestReloadMany(t *testing.T) {
	s := &stuckSource{entered: make(chan struct{}), open: make(chan struct{})}
	p := mcptest.NewPool(t, upstream.Options{Sources: []upstream.Source{s}})
	results := make(chan error, 10)
	reload := func() {
		_, err := p.Reload(context.WithoutCancel(t.Context()))
		results <- err
	}
	go reload()
	<-s.entered
	for range 100 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		if _, err := p.Reload(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a source that is being read: %v", err)
		}
		cancel()
	}
	for range cap(results) - 1 {
		go reload()
	}
	close(s.open)
	for range cap(results) {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	p.Close() // ends what still reads
	// Once at the start, once for the first caller, once for the hundred, and for the last ones at most once each.
	if got, most := int(s.read.Load()), 3+cap(results)-1; got > most {
		t.Errorf("it was read %d times, want at most %d", got, most)
	}
}
