package upstream_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
	"github.com/mcsh-dev/mcsh/upstream/pins"
	"github.com/mcsh-dev/mcsh/upstream/state"
	"github.com/mcsh-dev/mcsh/upstream/toollist"
)

// A pinned is a gateway that compares tools with those in a directory.
type pinned struct {
	*upstream.Pool
	mu      sync.Mutex // guards changes
	changes []pins.Change
}

// pin starts a gateway; without a directory it knows only what it has seen itself.
func pin(t *testing.T, dir string, hold bool, servers ...upstream.Server) *pinned {
	t.Helper()
	p := &pinned{}
	o := upstream.Options{Pin: hold, Sources: []upstream.Source{upstream.Static(servers)}, Refresh: true, OnUntrusted: func(c pins.Change) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.changes = append(p.changes, c)
	}}
	if dir != "" {
		var err error
		if o.State, err = state.Open(dir); err != nil {
			t.Fatal(err)
		}
	}
	p.Pool = upstream.NewPool(o)
	t.Cleanup(func() { p.Close() })
	return p
}

// offered are the names of the tools that a server offers, and the note.
func (p *pinned) offered(t *testing.T, server string) (names, note string) {
	t.Helper()
	l := p.Catalog(t.Context(), server)[0]
	if l.Err != nil {
		t.Fatal(l.Err)
	}
	var list []string
	for _, one := range l.Tools {
		list = append(list, one.Name)
	}
	return strings.Join(list, " "), l.Note
}

// accept accepts all that waits, and returns what that was.
func (p *pinned) accept(t *testing.T, server string) string {
	t.Helper()
	list, err := p.Pending(t.Context(), server)
	if err != nil {
		t.Fatal(err)
	}
	if missed, err := p.Accept(t.Context(), server, list); err != nil || len(missed) > 0 {
		t.Fatalf("missed %v, %v", missed, err)
	}
	var names []string
	for _, one := range list {
		names = append(names, fmt.Sprintf("%s(%v)", one.Tool, one.New))
	}
	return strings.Join(names, " ")
}

// TestPins: what one list after another makes of the tools, for a gateway that holds back and one that does not. Each list has a
// gateway of its own.
func TestPins(t *testing.T) {
	a, a2, b, c := mcptest.Tool{Name: "a"}, mcptest.Tool{Name: "a", Description: "other"}, mcptest.Tool{Name: "b"}, mcptest.Tool{Name: "c"}
	const denied = "what the operator does not allow"
	type step struct {
		hold    bool
		tools   []mcptest.Tool
		offered string
		note    string // "": none
		accepts string
	}
	list := func(tools ...mcptest.Tool) []mcptest.Tool { return tools }
	for name, steps := range map[string][]step{
		"first list":   {{true, list(a, b), "a b", "", ""}, {true, list(a, b), "a b", "", ""}},
		"changed":      {{true, list(a, b), "a b", "", ""}, {true, list(a2, b), "b", `held back until mcsh tools accept s: changed "a"`, "a(false)"}, {true, list(a2, b), "a2 b", "", ""}},
		"new":          {{true, list(a), "a", "", ""}, {true, list(a, c), "a", `held back until mcsh tools accept s: new "c"`, "c(true)"}, {true, list(a, c), "a c", "", ""}},
		"comes back":   {{true, list(a, b), "a b", "", ""}, {true, list(a), "a", "", ""}, {true, list(a, b), "a b", "", ""}},
		"changes back": {{true, list(a), "a", "", ""}, {true, list(a2), "", `held back until mcsh tools accept s: changed "a"`, ""}, {true, list(a), "a", "", ""}},
		"no tool yet":  {{true, list(), "", "", ""}, {true, list(a), "a", "", ""}, {true, list(a, b), "a", `held back until mcsh tools accept s: new "b"`, ""}},
		"without --pin new ones are trusted, changed ones noted": {
			{false, list(a), "a", "", ""},
			{false, list(a, b), "a b", "", ""},
			{false, list(a2, b), "a2 b", `since the first list: changed "a"; mcsh tools accept s shows and accepts that`, ""},
			{true, list(a2, b), "b", `held back until mcsh tools accept s: changed "a"`, ""},
			{true, list(a, b), "a b", "", ""},
		},
		"a gateway that does not hold back trusts nothing for one that does": {
			{true, list(a), "a", "", ""},
			{false, list(a, b), "a b", `since the first list: new "b"; mcsh tools accept s shows and accepts that`, ""},
			{true, list(a, b), "a", `held back until mcsh tools accept s: new "b"`, "b(true)"},
			{false, list(a, b), "a b", "", ""},
		},
		denied: {{true, list(a), "a", "", ""}, {true, list(a, b), "a", "", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for i, s := range steps {
				u := mcptest.New(s.tools...)
				server := upstream.Server{Name: "s", Dial: u.Dial}
				if name == denied {
					server.Allow = []string{"a"}
				}
				p := pin(t, dir, s.hold, server)
				names, note := p.offered(t, "s")
				if names != strings.ReplaceAll(s.offered, "a2", "a") || note != s.note {
					t.Errorf("list %d: offers %q with the note %q, want %q with %q", i, names, note, s.offered, s.note)
				}
				for _, tool := range s.tools {
					_, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: tool.Name})
					if offered := slices.Contains(strings.Fields(names), tool.Name); (err == nil) != offered {
						t.Errorf("list %d: calling %s: %v", i, tool.Name, err)
					}
				}
				if s.accepts != "" {
					if got := p.accept(t, "s"); got != s.accepts {
						t.Errorf("list %d: accepted %q, want %q", i, got, s.accepts)
					}
				}
			}
		})
	}
}

// TestPinsOfRenamed: names of the operator are no change, for a tool that is trusted or not, and what is accepted has the
// server's name.
func TestPinsOfRenamed(t *testing.T) {
	dir := t.TempDir()
	name := func(s string) toollist.Override { return toollist.Override{Name: &s} }
	a, b, changed := mcptest.Tool{Name: "a"}, mcptest.Tool{Name: "b"}, mcptest.Tool{Name: "b", Description: "other"}
	for i, test := range []struct {
		tools         []mcptest.Tool
		overrides     map[string]toollist.Override
		offered, note string
	}{
		{[]mcptest.Tool{a, b}, nil, "a b", ""},
		{[]mcptest.Tool{a, b}, map[string]toollist.Override{"a": name("b"), "b": name("c")}, "b c", ""},
		{[]mcptest.Tool{a, changed}, map[string]toollist.Override{"b": name("c")}, "a", `held back until mcsh tools accept s: changed "b"`},
		{[]mcptest.Tool{a, changed}, nil, "a", `held back until mcsh tools accept s: changed "b"`},
	} {
		p := pin(t, dir, true, upstream.Server{Name: "s", Dial: mcptest.New(test.tools...).Dial, Overrides: test.overrides})
		if names, note := p.offered(t, "s"); names != test.offered || note != test.note {
			t.Errorf("start %d: offers %q with the note %q, want %q with %q", i, names, note, test.offered, test.note)
		}
	}
	if got := pin(t, dir, true, upstream.Server{Name: "s", Dial: mcptest.New(a, changed).Dial}).accept(t, "s"); got != "b(false)" {
		t.Errorf("accepted %q", got)
	}
}

// TestPinsOfTwoLists: the server lists more tools for the clients of one gateway than for those of another. What is new there
// waits until it is accepted, also after the shorter list.
func TestPinsOfTwoLists(t *testing.T) {
	dir := t.TempDir()
	server := func(tools ...mcptest.Tool) upstream.Server {
		return upstream.Server{Name: "s", Dial: mcptest.New(tools...).Dial}
	}
	a, b := mcptest.Tool{Name: "a"}, mcptest.Tool{Name: "b"}
	short, long := pin(t, dir, true, server(a)), pin(t, dir, true, server(a, b))
	for _, p := range []*pinned{short, long, pin(t, dir, true, server(a))} {
		if names, _ := p.offered(t, "s"); names != "a" {
			t.Errorf("offers %q", names)
		}
	}
	if got := short.accept(t, "s"); got != "b(true)" {
		t.Errorf("accepted %q", got)
	}
	if names, note := long.offered(t, "s"); names != "a b" || note != "" {
		t.Errorf("offers %q, %q", names, note)
	}
}

// TestPinsGrow: a server with other tools in each list does not fill its file.
func TestPinsGrow(t *testing.T) {
	dir, err := state.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	u := mcptest.New(mcptest.Tool{Name: "first"})
	p := mcptest.NewPool(t, upstream.Options{State: dir, Pin: true, Tools: 10, Refresh: true, ListTTL: time.Nanosecond, Sources: []upstream.Source{upstream.Static{{Name: "s", Dial: u.Dial}}}})
	for i := range 30 {
		p.Catalog(t.Context(), "s")
		name := fmt.Sprint("t", i)
		u.Add(mcptest.Tool{Name: name})
		eventually(t, name+" to wait", func() bool {
			p.Catalog(t.Context(), "s")
			waiting, err := p.Pending(t.Context(), "s")
			if err != nil || len(waiting) > 11 {
				t.Fatalf("%d wait, %v", len(waiting), err)
			}
			return slices.ContainsFunc(waiting, func(w pins.Pending) bool { return w.Tool == name })
		})
		u.MCP().RemoveTools(name)
	}
}

// TestPinnedServer: another server behind a name is a new one, and its first list is trusted.
func TestPinnedServer(t *testing.T) {
	dir := t.TempDir()
	for identity, tool := range map[string]string{"one": "a", "two": "b"} {
		p := pin(t, dir, true, upstream.Server{Name: "s", Identity: identity, Dial: mcptest.New(mcptest.Tool{Name: tool}).Dial})
		if names, note := p.offered(t, "s"); names != tool || note != "" {
			t.Errorf("%s: %q, %q", identity, names, note)
		}
	}
}

// TestAcceptedWhileRunning: two gateways that run take what a third process accepts, without a restart. Each reports a change
// once.
func TestAcceptedWhileRunning(t *testing.T) {
	dir, u := t.TempDir(), mcptest.New(mcptest.Tool{Name: "a"})
	server := upstream.Server{Name: "s", Dial: u.Dial}
	gateways := []*pinned{pin(t, dir, true, server), pin(t, dir, true, server)}
	for _, p := range gateways {
		p.offered(t, "s")
	}
	u.Add(mcptest.Tool{Name: "a", Description: "other"})
	for _, p := range gateways {
		eventually(t, "the change", func() bool { names, _ := p.offered(t, "s"); return names == "" })
		p.offered(t, "s")
		_, err := p.Tool(t.Context(), "s", "a")
		if e, ok := err.(*stages.Error); !ok || e.Code != stages.Denied || !strings.Contains(e.Hint, "mcsh tools accept s/a") {
			t.Errorf("a tool that has changed: %v", err)
		}
	}
	if got := pin(t, dir, false, server).accept(t, "s"); got != "a(false)" {
		t.Errorf("accepted %q", got)
	}
	for _, p := range gateways {
		if _, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: "a"}); err != nil {
			t.Error(err)
		}
		if names, note := p.offered(t, "s"); names != "a" || note != "" {
			t.Errorf("offers %q, %q", names, note)
		}
		p.mu.Lock()
		if diff := cmp.Diff([]pins.Change{{Server: "s", Changed: []string{`"a"`}, Held: true}}, p.changes); diff != "" {
			t.Errorf("reported (-want +got):\n%s", diff)
		}
		p.mu.Unlock()
	}
}

// TestAcceptRaces: many processes accept and list at once, and nothing is lost. One that has seen an older version accepts
// nothing.
func TestAcceptRaces(t *testing.T) {
	dir := t.TempDir()
	pin(t, dir, true, upstream.Server{Name: "s", Dial: mcptest.New(mcptest.Tool{Name: "t"}).Dial}).offered(t, "s")
	var tools []mcptest.Tool
	for i := range 8 {
		tools = append(tools, mcptest.Tool{Name: fmt.Sprint("t", i)})
	}
	server := upstream.Server{Name: "s", Dial: mcptest.New(append(tools, mcptest.Tool{Name: "t"})...).Dial}
	viewer := pin(t, dir, true, server)
	viewer.offered(t, "s")
	waiting, err := viewer.Pending(t.Context(), "s")
	if err != nil || len(waiting) != 8 {
		t.Fatalf("%d wait, %v", len(waiting), err)
	}
	var wg sync.WaitGroup
	for _, one := range waiting {
		accepting, listing := pin(t, dir, false, server), pin(t, dir, true, server)
		wg.Go(func() {
			if missed, err := accepting.Accept(t.Context(), "s", []pins.Pending{one}); err != nil || len(missed) > 0 {
				t.Errorf("%s: missed %v, %v", one.Tool, missed, err)
			}
		})
		wg.Go(func() { listing.Catalog(t.Context(), "s") })
	}
	wg.Wait()
	if names, note := viewer.offered(t, "s"); len(strings.Fields(names)) != 9 || note != "" {
		t.Errorf("offers %q, %q", names, note)
	}
	old := waiting[0]
	old.Hash = "older"
	if missed, err := viewer.Accept(t.Context(), "s", []pins.Pending{old}); err != nil || len(missed) != 1 {
		t.Errorf("an older version: missed %v, %v", missed, err)
	}
}

// TestPinsFail: hashes that cannot be read or written hold everything back where tools are held back; damaged ones trust nothing.
func TestPinsFail(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, dir, file string){
		"damaged": func(t *testing.T, _, file string) { overwrite(t, file, "{") },
		"empty":   func(t *testing.T, _, file string) { overwrite(t, file, "") },
		"null":    func(t *testing.T, _, file string) { overwrite(t, file, "null") },
		"no data": func(t *testing.T, _, file string) { overwrite(t, file, `{"version":1,"data":null}`) },
		"other key": func(t *testing.T, _, file string) {
			overwrite(t, file, `{"version":1,"key":"0","data":{"trusted":{}}}`)
		},
		"a folder": func(t *testing.T, _, file string) {
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
			if err := os.MkdirAll(filepath.Join(file, "x"), 0o700); err != nil {
				t.Fatal(err)
			}
		},
		"no lock": func(t *testing.T, dir, file string) {
			for _, path := range []string{file, filepath.Join(dir, "pins.lock")} {
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Mkdir(filepath.Join(dir, "pins.lock"), 0o700); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			server := upstream.Server{Name: "s", Dial: mcptest.New(mcptest.Tool{Name: "a"}).Dial}
			pin(t, dir, false, server).offered(t, "s")
			files, _ := filepath.Glob(filepath.Join(dir, "pins-*.json"))
			if len(files) != 1 {
				t.Fatalf("the files are %v", files)
			}
			damage(t, dir, files[0])
			for _, hold := range []bool{false, true, true} {
				names, note := pin(t, dir, hold, server).offered(t, "s")
				if hold == (names == "a") || note == "" {
					t.Errorf("holding back %v: offers %q, with the note %q", hold, names, note)
				}
			}
		})
	}
}

// TestPinsRemoved: while a gateway runs, a file that is removed makes nothing trusted, and comes back.
func TestPinsRemoved(t *testing.T) {
	dir, u := t.TempDir(), mcptest.New(mcptest.Tool{Name: "a"}, mcptest.Tool{Name: "b"})
	server := upstream.Server{Name: "s", Dial: u.Dial}
	p := pin(t, dir, true, server)
	p.offered(t, "s")
	files, _ := filepath.Glob(filepath.Join(dir, "pins-*.json"))
	if len(files) != 1 {
		t.Fatalf("the files are %v", files)
	}
	if err := os.Remove(files[0]); err != nil {
		t.Fatal(err)
	}
	u.Add(mcptest.Tool{Name: "a", Description: "other"})
	eventually(t, "the change", func() bool { names, _ := p.offered(t, "s"); return names == "b" })
	if names, _ := pin(t, dir, true, server).offered(t, "s"); names != "b" {
		t.Errorf("after it, another gateway offers %q", names)
	}
}

func overwrite(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestPinsOfSignIns: a new sign-in, of any account, makes no changed tool trusted: neither in a gateway that runs nor in a later
// one. Accepted tools stay accepted.
func TestPinsOfSignIns(t *testing.T) {
	t.Parallel()
	other := mcptest.Tool{Name: "a", Description: "other"}
	address := accountServers(t, map[string]*mcp.Server{
		"alice": mcptest.New(mcptest.Tool{Name: "a"}).MCP(), "again": mcptest.New(other).MCP(), "bob": mcptest.New(other).MCP(),
	})
	for name, dir := range map[string]string{"directory": t.TempDir(), "memory": ""} {
		t.Run(name, func(t *testing.T) {
			kept, now := newLogins(t), time.Now()
			e := upstream.Endpoint{URL: address + "/mcp", Name: "s", Logins: kept}
			server := upstream.Server{Name: "s", Dial: upstream.HTTP(e), Endpoint: &e}
			p := pin(t, dir, true, server)
			for i, login := range []struct{ account, offered string }{{"alice", "a"}, {"again", ""}, {"again", ""}, {"bob", ""}} {
				kept.put(t, loginAt(address, "/mcp", "token-of-"+login.account, now.Add(time.Duration(i)*time.Minute)))
				if names, note := p.offered(t, "s"); names != login.offered {
					t.Errorf("sign-in %d: offers %q with the note %q", i, names, note)
				}
				if _, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: "a"}); (err == nil) != (login.offered != "") {
					t.Errorf("sign-in %d: calling a tool: %v", i, err)
				}
			}
			if dir == "" {
				return
			}
			if names, _ := pin(t, dir, true, server).offered(t, "s"); names != "" {
				t.Errorf("a later gateway offers %q", names)
			}
			if got := pin(t, dir, false, upstream.Server{Name: "s", Dial: mcptest.New().Dial}).accept(t, "s"); got != "a(false)" {
				t.Errorf("accepted %q", got)
			}
			kept.put(t, loginAt(address, "/mcp", "token-of-again", now.Add(time.Hour)))
			if names, note := p.offered(t, "s"); names != "a" || note != "" {
				t.Errorf("what is accepted: offers %q, %q", names, note)
			}
		})
	}
}

// TestPinsInMemory: without a directory a gateway compares with what it has listed first itself.
func TestPinsInMemory(t *testing.T) {
	u := mcptest.New(mcptest.Tool{Name: "a"})
	p := pin(t, "", true, upstream.Server{Name: "s", Dial: u.Dial})
	p.offered(t, "s")
	u.Add(mcptest.Tool{Name: "a", Description: "other"})
	eventually(t, "the change", func() bool { names, _ := p.offered(t, "s"); return names == "" })
}

// TestManyPins: the longest list that is read (at night) can be pinned and compared.
func TestManyPins(t *testing.T) {
	dir, n := t.TempDir(), parttest.Times(1_000, upstream.DefaultTools)
	list := func(text string) (tools []mcptest.Tool) {
		for i := range n {
			tools = append(tools, mcptest.Tool{Name: fmt.Sprintf("%s-%05d", strings.Repeat("\u0001", 100), i), Description: text + strings.Repeat("x", 500)})
		}
		return tools
	}
	for i, text := range []string{"a", "b"} {
		p := pin(t, dir, true, upstream.Server{Name: "s", Dial: mcptest.New(list(text)...).Dial})
		l := p.Catalog(t.Context(), "s")[0]
		if want := []int{n, 0}[i]; l.Err != nil || len(l.Tools) != want {
			t.Errorf("list %d: %d tools, want %d: %v, %.300s", i, len(l.Tools), want, l.Err, l.Note)
		}
		if waiting, err := p.Pending(t.Context(), "s"); err != nil || len(waiting) != i*n {
			t.Errorf("list %d: %d wait: %v", i, len(waiting), err)
		}
	}
}
