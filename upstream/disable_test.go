package upstream_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
	"github.com/mcsh-dev/mcsh/upstream/logins"
)

// change disables or enables a server.
func change(t *testing.T, how func(context.Context, string) error, server string) {
	t.Helper()
	if err := how(t.Context(), server); err != nil {
		t.Fatal(err)
	}
}

// statusOf is the status of a server.
func statusOf(p *upstream.Pool, server string) string {
	list := p.Statuses()
	at := slices.IndexFunc(list, func(s upstream.ServerStatus) bool { return s.Server == server })
	if at < 0 {
		return "not there"
	}
	return list[at].Status
}

// TestDisable: over each transport, nothing of a disabled server is used or shown, its session ends, and everything is there again
// when it is enabled.
func TestDisable(t *testing.T) {
	for name, s := range liveServers(t) {
		t.Run(name, func(t *testing.T) {
			s.Name, s.Where = "s", "s.json:1"
			other := mcptest.New(mcptest.Tool{Name: "hi", Text: "hi"})
			p := mcptest.NewPool(t, upstream.Options{
				Expose: []string{"s/touch"}, Sources: []upstream.Source{upstream.Static{s, {Name: "other", Dial: other.Dial}}},
			})
			var tools, offers atomic.Int32
			p.OnTools(func() { tools.Add(1) })
			p.OnOffers(func() { offers.Add(1) })
			p.AwaitExposed(t.Context(), true)
			var r reports
			if _, _, err := p.Subscribe(t.Context(), "mcsh://servers/s/doc://1", r.of("one")); err != nil {
				t.Fatal(err)
			}
			eventually(t, "its resources are known", func() bool { return len(p.Offers(t.Context(), upstream.Resources)) == 2 })
			before := [2]int32{tools.Load(), offers.Load()}

			change(t, p.Disable, "s")
			if now := [2]int32{tools.Load(), offers.Load()}; now[0] == before[0] || now[1] == before[1] {
				t.Errorf("clients do not hear that lists have changed: %v, then %v", before, now)
			}
			const denied, hint = `server "s" is disabled by an operator`, "mcsh servers enable s"
			_, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: "subscribed"})
			wantError(t, err, stages.Denied, denied, hint)
			_, err = p.Tool(t.Context(), "s", "touch")
			wantError(t, err, stages.Denied, denied, hint)
			_, err = p.Read(t.Context(), stages.Call{Name: "mcsh://servers/s/doc://1"})
			wantError(t, err, stages.Denied, denied, hint)
			_, err = p.Prompt(t.Context(), stages.Call{Server: "s", Name: "any"})
			wantError(t, err, stages.Denied, denied, hint)
			_, _, err = p.Subscribe(t.Context(), "mcsh://servers/s/doc://2", r.of("two"))
			wantError(t, err, stages.Denied, denied, hint)
			wantError(t, p.Restart(t.Context(), "s"), stages.Denied, denied, hint)
			if names := p.Servers(t.Context()); !slices.Equal(names, []string{"other"}) {
				t.Errorf("the servers are %q", names)
			}
			for _, l := range p.Catalog(t.Context()) {
				if l.Server != "other" {
					t.Errorf("%s is in the catalog: %+v", l.Server, l)
				}
			}
			if got := append(exposedNames(p), p.Disabled(t.Context())...); !slices.Equal(got, []string{"s"}) || len(p.Offers(t.Context(), upstream.Resources)) > 0 {
				t.Errorf("exposed and disabled are %q, resources %v", got, p.Offers(t.Context(), upstream.Resources))
			}
			look := p.Looks(t.Context())[1]
			if look.Status != upstream.StatusDisabled || look.Where != "s.json:1" || !look.Started.IsZero() || statusOf(p, "s") != upstream.StatusDisabled {
				t.Errorf("it looks like %+v", look)
			}

			change(t, p.Disable, "s") // again
			change(t, p.Enable, "s")
			touch(t, p, "doc://1")
			r.await(t, "one", 0)
			eventually(t, "its tools and resources are there again", func() bool {
				return slices.Equal(exposedNames(p), []string{"s/touch"}) && len(p.Offers(t.Context(), upstream.Resources)) == 2
			})
			change(t, p.Enable, "s") // again
			if got := statusOf(p, "s"); got != upstream.StatusReady {
				t.Errorf("it is %s", got)
			}
		})
	}
}

// TestDisableWhileCalled: a call in flight ends well, one that waits for it is refused, and the session ends after both.
func TestDisableWhileCalled(t *testing.T) {
	g := newGatedServer("done")
	s := g.server("s", "1")
	s.Concurrency = 1
	sessions := func() int { return len(slices.Collect(g.MCP().Sessions())) }
	p := staticPool(t, upstream.Options{}, s)
	first, second := make(chan string, 1), make(chan error, 1)
	go func() {
		res, err := p.CallTool(context.WithoutCancel(t.Context()), stages.Call{Server: "s", Name: "wait"})
		first <- string(res.Data) + errorText(err)
	}()
	<-g.entered
	waits := make(chan struct{})
	go func() {
		_, err := p.CallTool(context.WithoutCancel(t.Context()), stages.Call{Server: "s", Name: "hi", Waits: func(string) func() {
			close(waits)
			return func() {}
		}})
		second <- err
	}()
	<-waits
	change(t, p.Disable, "s")
	wantError(t, <-second, stages.Denied, "is disabled by an operator", "")
	if n := sessions(); n != 1 {
		t.Errorf("there are %d sessions during the call", n)
	}
	close(g.open)
	if got := <-first; got != "done" {
		t.Errorf("the call in flight: got %q", got)
	}
	eventually(t, "the session has ended", func() bool { return sessions() == 0 })
	if n := g.dialled(); n != 1 {
		t.Errorf("it was started %d times", n)
	}
}

// TestDisableWhileStarting: who waits for a start is refused at once, and the start ends.
func TestDisableWhileStarting(t *testing.T) {
	begun, ended := make(chan struct{}), make(chan struct{})
	p := staticPool(t, upstream.Options{}, upstream.Server{Name: "s", Dial: func(ctx context.Context) (mcp.Transport, error) {
		close(begun)
		<-ctx.Done()
		close(ended)
		return nil, ctx.Err()
	}})
	result := make(chan error, 1)
	go func() {
		_, err := p.CallTool(context.WithoutCancel(t.Context()), stages.Call{Server: "s", Name: "hi"})
		result <- err
	}()
	<-begun
	change(t, p.Disable, "s")
	wantError(t, <-result, stages.Denied, "is disabled by an operator", "")
	<-ended
}

// TestDisabledStaysOff: neither a reload, nor a changed server, nor one that was gone for a while is enabled by that. Names that
// nobody has, and a server that the view does not show, are refused.
func TestDisabledStaysOff(t *testing.T) {
	g := newGatedServer("x")
	source := newChangingSource(g.server("a", "1"), g.server("b", "1"))
	p := source.pool(t)
	change(t, p.Disable, "a")
	for _, servers := range [][]upstream.Server{
		{g.server("a", "1"), g.server("b", "2")},
		{g.server("a", "2"), g.server("b", "1")},
		{g.server("b", "2")},
		{g.server("a", "3"), g.server("b", "3")},
	} {
		if c := source.change(t, nil, servers...); len(c.Added)+len(c.Removed) > 0 || !slices.Equal(c.Restarted, []string{"b"}) {
			t.Errorf("the change is %+v", c)
		}
		_, err := p.CallTool(t.Context(), stages.Call{Server: "a", Name: "hi"})
		if len(servers) == 1 {
			wantError(t, err, stages.UnknownServer, `no server "a"`, "")
		} else {
			wantError(t, err, stages.Denied, "is disabled by an operator", "")
		}
	}
	change(t, p.Enable, "a")
	if res, err := p.CallTool(t.Context(), stages.Call{Server: "a", Name: "hi"}); err != nil || string(res.Data) != "x" {
		t.Errorf("enabled: got %q, %v", res.Data, err)
	}
	for _, how := range []func(context.Context, string) error{p.Disable, p.Enable} {
		wantError(t, how(t.Context(), "c"), stages.UnknownServer, `no server "c"`, "")
		wantError(t, how(t.Context(), upstream.ResourcesServer), stages.Denied, "a part of the gateway", "")
		wantError(t, how(upstream.WithView(t.Context(), p.View("none")), "a"), stages.UnknownServer, `no server "a"`, "")
	}
	change(t, p.Disable, "a")
	if hidden := p.Disabled(upstream.WithView(t.Context(), p.View("none"))); len(hidden) > 0 {
		t.Errorf("a view that shows no server has the disabled ones %q", hidden)
	}
}

// TestDisableTogether: operators who act at the same time, between callers, leave one state behind, and no second session.
func TestDisableTogether(t *testing.T) {
	g := newGatedServer("x")
	p := staticPool(t, upstream.Options{}, g.server("s", "1"), g.server("t", "1"))
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 20 {
				switch i % 4 {
				case 0:
					_ = p.Disable(t.Context(), "s")
				case 1:
					_ = p.Enable(t.Context(), "s")
				case 2:
					if _, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: "hi"}); err != nil {
						wantError(t, err, stages.Denied, "is disabled by an operator", "")
					}
				case 3:
					p.Looks(t.Context())
					if _, err := p.CallTool(t.Context(), stages.Call{Server: "t", Name: "hi"}); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	all.Wait()
	change(t, p.Disable, "s")
	if _, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: "hi"}); err == nil || statusOf(p, "s") != upstream.StatusDisabled {
		t.Errorf("disabled: got %v, %s", err, statusOf(p, "s"))
	}
	change(t, p.Enable, "s")
	if res, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: "hi"}); err != nil || string(res.Data) != "x" {
		t.Errorf("enabled: got %q, %v", res.Data, err)
	}
}

// TestEnableFails: a program that cannot start is shown with its last words, as one that was never disabled, and can be disabled
// again.
func TestEnableFails(t *testing.T) {
	p := staticPool(t, upstream.Options{}, upstream.Server{Name: "s", Dial: upstream.Stdio(mcptest.Child(t, "crash"))})
	for range 2 {
		change(t, p.Disable, "s")
		change(t, p.Enable, "s")
		eventually(t, "it has failed", func() bool { return statusOf(p, "s") == upstream.StatusFailed })
		if l := p.Looks(t.Context())[0]; l.Failure == nil || !strings.Contains(l.Failure.Error(), "GITHUB_TOKEN not set") {
			t.Errorf("it looks like %+v", l)
		}
	}
}

// TestDisabledKeepsPins: to be disabled for a while makes no changed tool trusted, and its changes can be accepted meanwhile.
func TestDisabledKeepsPins(t *testing.T) {
	for name, dir := range map[string]string{"in memory": "", "on disk": t.TempDir()} {
		t.Run(name, func(t *testing.T) {
			u := mcptest.New(mcptest.Tool{Name: "a"}, mcptest.Tool{Name: "b"})
			p := pin(t, dir, true, upstream.Server{Name: "s", Dial: u.Dial})
			if names, _ := p.offered(t, "s"); names != "a b" {
				t.Fatalf("at first %q", names)
			}
			change(t, p.Disable, "s")
			u.Add(mcptest.Tool{Name: "a", Description: "other"})
			change(t, p.Enable, "s")
			if names, note := p.offered(t, "s"); names != "b" || !strings.Contains(note, "held back") {
				t.Errorf("enabled: %q, %s", names, note)
			}
			if dir == "" {
				return
			}
			change(t, p.Disable, "s")
			if got := p.accept(t, "s"); got != "a(false)" {
				t.Errorf("accepted %s", got)
			}
			change(t, p.Enable, "s")
			if names, _ := p.offered(t, "s"); names != "a b" {
				t.Errorf("accepted: %q", names)
			}
		})
	}
}

// TestDisabledSecrets: words that are secrets of a disabled server stay out of messages, and its sign-in is known.
func TestDisabledSecrets(t *testing.T) {
	s := mcptest.New(mcptest.Tool{Name: "a"})
	p := staticPool(t, upstream.Options{}, upstream.Server{Name: "s", Dial: s.Dial, Secrets: []string{"plant3d"}})
	change(t, p.Disable, "s")
	if got := p.Hide("the key plant3d"); got != "the key ***" {
		t.Errorf("got %q", got)
	}
	if list := p.Configured(t.Context()); len(list) != 1 || list[0].Name != "s" {
		t.Errorf("configured are %v", list)
	}
	p.Wake("s")
	if n := s.Calls(); n != 0 || statusOf(p, "s") != upstream.StatusDisabled {
		t.Errorf("%d calls, %s", n, statusOf(p, "s"))
	}
}

// TestNamesInErrors: the error of a wrong name knows disabled servers, and never advises the name that it refuses.
func TestNamesInErrors(t *testing.T) {
	s := mcptest.New(mcptest.Tool{Name: "a"})
	p := staticPool(t, upstream.Options{}, upstream.Server{Name: "github", Dial: s.Dial})
	p.Beside(func(context.Context) []string { return []string{"pipelines"} })
	change(t, p.Disable, "github")
	for _, test := range []struct {
		server    string
		code      stages.Code
		msg, hint string
	}{
		{"gthub", stages.UnknownServer, `no server "gthub"`, `did you mean "github"?`},
		{"pipeline", stages.UnknownServer, `no server "pipeline"`, `did you mean "pipelines"?`},
		{"pipelines", stages.Denied, "is a part of the gateway", "name a server of the configuration"},
		{upstream.ResourcesServer, stages.Denied, "is a part of the gateway", "name a server of the configuration"},
	} {
		wantError(t, p.Enable(t.Context(), test.server), test.code, test.msg, test.hint)
		_, err := p.Pending(t.Context(), test.server)
		wantError(t, err, test.code, test.msg, test.hint)
	}
}

// lateLogins are the logins of nobody. While blocked is set, those who look at them wait for it, and find somebody then.
type lateLogins struct {
	upstream.Logins
	looked  chan struct{}
	blocked atomic.Pointer[chan struct{}]
	login   logins.Login
}

func (l *lateLogins) Of(string, string) ([]logins.Login, error) {
	wait := l.blocked.Load()
	if wait == nil {
		return nil, nil
	}
	close(l.looked)
	<-*wait
	return []logins.Login{l.login}, nil
}

// TestDisableWhileSigningIn: a call that notices a sign-in uses no server that was disabled meanwhile.
func TestDisableWhileSigningIn(t *testing.T) {
	const address = "http://127.0.0.1:1"
	l := &lateLogins{looked: make(chan struct{}), login: loginAt(address, "/mcp", "token", time.Now())}
	e := upstream.Endpoint{URL: address + "/mcp", Name: "s", Logins: l}
	dials := 0
	p := staticPool(t, upstream.Options{}, upstream.Server{Name: "s", Endpoint: &e, Dial: func(context.Context) (mcp.Transport, error) {
		dials++
		return nil, errors.New("nobody is there")
	}})
	p.Looks(t.Context()) // which notes that nobody has signed in
	wait := make(chan struct{})
	l.blocked.Store(&wait)
	result := make(chan error, 1)
	go func() {
		_, err := p.CallTool(context.WithoutCancel(t.Context()), stages.Call{Server: "s", Name: "hi"})
		result <- err
	}()
	<-l.looked
	l.blocked.Store(nil)
	change(t, p.Disable, "s")
	close(wait)
	wantError(t, <-result, stages.Denied, "is disabled by an operator", "")
	if dials > 0 {
		t.Errorf("it was started %d times", dials)
	}
}
