package upstream_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
)

var processChildren = map[string]func(){
	"environment": func() {
		mcptest.New(mcptest.Tool{Name: "environ", Do: func(map[string]any) (string, error) {
			return strings.Join(os.Environ(), "\n"), nil
		}}).ServeStdio()
	},
	// deaf answers the handshake and the list, and then reads no more.
	"deaf": func() {
		serveLines(func(method string) string {
			if method == "tools/call" {
				select {}
			}
			return legacyAnswers[method]
		})
	},
	// mute answers nothing that it does not know, as some servers do.
	"mute": func() { serveLines(func(method string) string { return legacyAnswers[method] }) },
	// touchy ends at the question for the newer protocol.
	"touchy": func() {
		serveLines(func(method string) string {
			if method == "server/discover" {
				os.Exit(1)
			}
			return legacyAnswers[method]
		})
	},
	// waiting never gets ready, and says so.
	"waiting": func() {
		fmt.Fprintln(os.Stderr, "waiting for the database")
		fmt.Println("what?")
		serveLines(func(string) string { return "" })
	},
	"crash": func() {
		fmt.Fprintln(os.Stderr, "\x1b[31mError: GITHUB_TOKEN not set\x1b[0m")
		os.Exit(7)
	},
}

// legacyAnswers are the results of a server that was written by hand.
var legacyAnswers = map[string]string{
	"initialize": `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"hand","version":"1"}}`,
	"tools/list": `{"tools":[{"name":"one","inputSchema":{"type":"object"}},{"name":5},{"name":"two","annotations":{"readOnlyHint":"yes"},"inputSchema":{"type":"object"}}]}`,
	"tools/call": `{"content":[{"type":"text","text":"hand made"}]}`,
}

// serveLines answers JSON-RPC requests by their method. An empty answer is none.
func serveLines(answer func(method string) string) {
	dec := json.NewDecoder(os.Stdin)
	for {
		var req struct {
			ID     json.RawMessage
			Method string
		}
		if dec.Decode(&req) != nil {
			return
		}
		if result := answer(req.Method); result != "" && req.ID != nil {
			fmt.Printf(`{"result":%s,"jsonrpc":"2.0","id":%s}`+"\n", result, req.ID)
		}
	}
}

func childPool(t *testing.T, child string, o upstream.Options) *upstream.Pool {
	t.Helper()
	return staticPool(t, o, upstream.Server{Name: "s", Dial: upstream.Stdio(mcptest.Child(t, child))})
}

func TestChildEnvironment(t *testing.T) {
	c := mcptest.Child(t, "environment")
	c.Env = maps.Clone(c.Env)
	c.Env["OWN"], c.Env["LANG"] = "mine", "C"
	c.Lookup = func(name string) (string, bool) { return "of " + name, name != "USER" }
	p := staticPool(t, upstream.Options{}, upstream.Server{Name: "s", Dial: upstream.Stdio(c)})
	res, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: "environ"})
	if err != nil {
		t.Fatal(err)
	}
	want := "GORACE=atexit_sleep_ms=0\nHOME=of HOME\nLANG=C\nLOGNAME=of LOGNAME\nMCPTEST_CHILD=environment\nOWN=mine\nPATH=of PATH\nSHELL=of SHELL\nTERM=of TERM"
	if string(res.Data) != want {
		t.Errorf("got %s, want %s", res.Data, want)
	}
}

func TestDeafChild(t *testing.T) {
	t.Parallel() // it waits
	p := childPool(t, "deaf", upstream.Options{})
	if _, err := p.Tool(t.Context(), "s", "one"); err != nil {
		t.Fatal(err)
	}
	args := json.RawMessage(`{"x":"` + strings.Repeat("x", 1<<20) + `"}`) // more than a pipe holds
	for range 2 {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		begin := time.Now()
		_, err := p.CallTool(ctx, stages.Call{Server: "s", Name: "one", Args: args})
		if took := time.Since(begin); err == nil || took > 30*time.Second {
			t.Errorf("got %v after %v", err, took)
		}
		cancel()
	}
}

func TestEras(t *testing.T) {
	for child, probe := range map[string]time.Duration{"mute": 300 * time.Millisecond, "touchy": time.Minute} {
		t.Run(child, func(t *testing.T) {
			p := childPool(t, child, upstream.Options{ProbeTimeout: probe})
			for range 2 {
				res, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: "two"})
				if err != nil || string(res.Data) != "hand made" {
					t.Errorf("got %q, %v", res.Data, err)
				}
			}
			l := p.Catalog(t.Context())[0]
			if len(l.Tools) != 2 || !contains(l.Note, "tool 2: ") {
				t.Errorf("got %d tools, note %q; want 2 and a note of the malformed one", len(l.Tools), l.Note)
			}
		})
	}
}

// TestProtocol: the operator says in which era a server is spoken to, and in which order they are tried.
func TestProtocol(t *testing.T) {
	const discover, initialize = "server/discover", "initialize"
	for _, c := range []struct {
		name     string
		protocol upstream.Protocol
		refuses  string // one of the two, with an error
		want     []string
	}{
		{"any, older server", upstream.AnyProtocol, discover, []string{discover, initialize}},
		{"older first", upstream.OlderFirst, "", []string{initialize}},
		{"older first, newer server", upstream.OlderFirst, initialize, []string{initialize, discover, initialize}},
		{"only older", upstream.OnlyOlder, initialize, []string{initialize}},
		{"newer first", upstream.NewerFirst, discover, []string{discover, initialize}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var mu sync.Mutex
			var got []string
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var req struct {
					ID     json.RawMessage
					Method string
				}
				_ = json.NewDecoder(r.Body).Decode(&req) // a GET has none
				if req.Method == discover || req.Method == initialize {
					mu.Lock()
					got = append(got, req.Method)
					mu.Unlock()
				}
				if answer := legacyAnswers[req.Method]; answer != "" && req.Method != c.refuses {
					respond(w, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, req.ID, answer))
				} else if req.ID != nil {
					respond(w, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`, req.ID))
				}
			}))
			defer s.Close()
			p := staticPool(t, upstream.Options{}, upstream.Server{Name: "s", Protocol: c.protocol, Dial: upstream.HTTP(upstream.Endpoint{URL: s.URL})})
			_, err := p.Tool(t.Context(), "s", "one")
			if works := c.refuses != initialize; works != (err == nil) {
				t.Errorf("got %v", err)
			}
			mu.Lock()
			defer mu.Unlock()
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
		})
	}
}

// TestStartTimeout: each server has its own time to start, and the error names the key.
func TestStartTimeout(t *testing.T) {
	t.Parallel() // it waits
	p := staticPool(t, upstream.Options{},
		upstream.Server{Name: "s", Protocol: upstream.OnlyOlder, StartTimeout: 15 * time.Second, Dial: upstream.Stdio(mcptest.Child(t, "waiting"))})
	_, err := p.Tool(t.Context(), "s", "one")
	wantError(t, err, stages.ServerUnavailable, "last on standard error: waiting for the database", "set startTimeout for it (15s now)")
	p = staticPool(t, upstream.Options{}, upstream.Server{Name: "s", StartTimeout: 300 * time.Millisecond, Dial: func(ctx context.Context) (mcp.Transport, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}})
	_, err = p.Tool(t.Context(), "s", "one")
	wantError(t, err, stages.ServerUnavailable, "no answer within the time allowed for a start", "set startTimeout for it (0.3s now)")
}

func TestCrash(t *testing.T) {
	c := mcptest.Child(t, "crash")
	c.Where = "mcp.json:3"
	good := mcptest.New(mcptest.Tool{Name: "hi", Text: "hi"})
	p := staticPool(t, upstream.Options{},
		upstream.Server{Name: "gh", Dial: upstream.Stdio(c)}, upstream.Server{Name: "good", Dial: good.Dial})
	_, err := p.Tool(t.Context(), "gh", "x")
	wantError(t, err, stages.ServerUnavailable, "(exit status 7); last on standard error: Error: GITHUB_TOKEN not set", "mcp.json:3")
	l := p.Catalog(t.Context())
	if l[0].Status != upstream.StatusFailed || l[0].Err == nil || l[1].Status != upstream.StatusReady || len(l[1].Tools) != 1 {
		t.Errorf("got %+v", l)
	}
}

// TestStillStarting tells who is out of patience what the server has said so far.
func TestStillStarting(t *testing.T) {
	p := childPool(t, "waiting", upstream.Options{})
	const want = `that are not MCP messages (ignored), the first: "what?"; last on standard error: waiting for the database`
	for end := time.Now().Add(time.Minute); ; {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		_, err := p.Tool(ctx, "s", "x")
		cancel()
		wantError(t, err, stages.ServerUnavailable, "is still starting", "a pipeline waits for the server by itself, up to 60s (startTimeout)")
		if contains(err.Error(), want) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%q does not say %q", err, want)
		}
	}
}

func TestNoSuchCommand(t *testing.T) {
	bin, err := filepath.Abs("testdata/bin")
	if err != nil {
		t.Fatal(err)
	}
	lookup := func(name string) (string, bool) { return bin, name == "PATH" }
	other := filepath.Join(t.TempDir(), "other") // of another machine, so to speak
	if err := os.WriteFile(other, []byte("\x7fELF"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ command, dir, msg, hint string }{
		{"npxx", "", `server "s": command "npxx" not found in PATH (` + bin + ")", `did you mean "npx"?`},
		{"/nowhere/x", "", `command "/nowhere/x": no such file or directory`, "give the path"},
		{bin, "", "is a directory", "give the path"},
		{"./process_test.go", "", "is not executable", "give the path"},
		{"npx", "/nowhere/at/all", `server "s": cwd "/nowhere/at/all": no such file or directory`, "fix cwd"},
		{"npx", other, "is not a directory", "fix cwd"},
		{other, "", "exec format error", "program for this machine"},
	} {
		p := staticPool(t, upstream.Options{}, upstream.Server{Name: "s", Dial: upstream.Stdio(upstream.Command{Name: c.command, Dir: c.dir, Lookup: lookup})})
		_, err := p.Tool(t.Context(), "s", "x")
		wantError(t, err, stages.ServerUnavailable, c.msg, c.hint)
	}
}

// TestNoOrphans runs a server behind a shell that starts another child, and wants all of them gone with the pool.
func TestNoOrphans(t *testing.T) {
	t.Parallel() // it waits
	sh, err := os.Stat("/bin/sh")
	if err != nil || sh.IsDir() {
		t.Skip("there is no /bin/sh")
	}
	pids := filepath.Join(t.TempDir(), "pids")
	c := mcptest.Child(t, "suite")
	c.Args = []string{"-c", `trap "" TERM; sleep 600 & echo $! $$ > "$1"; "$0"; sleep 600`, c.Name, pids}
	c.Name = "/bin/sh"
	p := staticPool(t, upstream.Options{}, upstream.Server{Name: "s", Dial: upstream.Stdio(c)})
	if res, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: "echo", Args: json.RawMessage(`{"value":1}`)}); err != nil || string(res.Data) != "1" {
		t.Fatalf("got %q, %v", res.Data, err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(pids)
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range strings.Fields(string(b)) {
		pid, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "process "+field+" is gone", func() bool { return gone(pid) })
	}
}

// gone reports whether a process has ended. Its parent may not have taken note yet.
func gone(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(stat), ") Z ")
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Errorf("not within a minute: %s", what)
}

// TestNoLeaks opens and closes many sessions of each kind.
func TestNoLeaks(t *testing.T) {
	s := mcptest.New(mcptest.Tool{Name: "hi", Text: "hi"})
	web := s.HTTP(t, nil)
	before := runtime.NumGoroutine()
	descriptors := openFiles()
	for i := range 50 {
		p := upstream.NewPool(upstream.Options{Sources: []upstream.Source{upstream.Static{
			{Name: "memory", Dial: s.Dial},
			{Name: "http", Dial: upstream.HTTP(upstream.Endpoint{URL: web.URL})},
			{Name: "stdio", Dial: upstream.Stdio(mcptest.Child(t, "mute"))},
		}, upstream.Static{}}, ProbeTimeout: 50 * time.Millisecond})
		names := []string{"memory", "http"}
		if i%10 == 0 {
			names = append(names, "stdio")
		}
		for _, l := range p.Catalog(t.Context(), names...) {
			if l.Status != upstream.StatusReady {
				t.Errorf("%s: %v", l.Server, l.Err)
			}
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	eventually(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= before+2 })
	eventually(t, "no file is left open", func() bool { return openFiles() <= descriptors+2 })
}

func openFiles() int {
	entries, _ := os.ReadDir("/proc/self/fd")
	return len(entries)
}
