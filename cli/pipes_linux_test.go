package cli

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sync/errgroup"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/servers"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
	"github.com/mcsh-dev/mcsh/workspace"
)

// pipeFiles are the files of the roots of tests.
var pipeFiles = map[string]string{
	"a.txt": "a 1\nb 2\n", "sub/c.txt": "c\n", "x y": "spaced\n", "-x": "dash\n", "script": "{print}\n",
	".mcsh/audit/x": "draft\n", ".filesystem/a.txt/00001": "old\n",
}

var pipeLinks = map[string]string{
	"inner": "sub/../a.txt", "out-link": "../secret", "absolute-link": "/etc/passwd", "out-dir": "..",
	"absolute-dir": "/etc", "loop": "loop",
	"proc-link": "/proc/self/environ", "own-link": ".mcsh/audit/x", "own-dir": ".filesystem",
}

// makeRoot makes a root with hostile entries in a directory with a file that nothing may read.
func makeRoot(t *testing.T) (base, root string) {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root = filepath.Join(base, "w")
	for name, text := range pipeFiles {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range pipeLinks {
		if err := os.Symlink(target, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(base, "secret"), []byte("secret-outside\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for parent := base; parent != os.TempDir() && parent != "/"; parent = filepath.Dir(parent) {
		if err := os.Chmod(parent, 0o755); err != nil { // workers may run as another user
			t.Fatal(err)
		}
	}
	return base, root
}

// servePipe starts mcsh with a server pipe of its own, or a gateway.
func servePipe(t *testing.T, args ...string) *mcp.ClientSession {
	t.Helper()
	p := prepare(t, oneBinary(t), args...)
	p.Env = append(p.Env, "MCSH_TEST_CANARY=secret-outside")
	p.Stdout = nil
	p.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	s, err := client.Connect(t.Context(), &mcp.CommandTransport{Command: p.Cmd, TerminateDuration: patience}, nil)
	if err != nil {
		t.Fatalf("%v: %s", err, p.stderr.String())
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// An answer is the structured result of the tool pipe.
type answer struct {
	Stdout string
	Meta   struct {
		Steps []struct {
			Command   string
			Size      int64 `json:"output_size"`
			Truncated bool
		}
		Tee *struct {
			Path, Mirror string
			Bytes        int64
			Append       bool
			Record       int64 `json:"record_id"`
		}
		Cwd string
	}
	Error struct {
		Code, Reason, Detail, Suggestion string
		Tee                              *struct{ Path string }
	}
}

func callPipe(t *testing.T, s *mcp.ClientSession, args map[string]any) (a answer) {
	t.Helper()
	res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "pipe", Arguments: args})
	if err != nil {
		t.Errorf("%v: %v", args, err)
		return a
	}
	text := res.Content[0].(*mcp.TextContent).Text
	if err := json.Unmarshal([]byte(text), &a); err != nil || res.IsError != (a.Error.Code != "") {
		t.Errorf("%v: %v, isError %v: %s", args, err, res.IsError, text)
	}
	return a
}

// tree returns what is below a directory: names with types and content.
func tree(t *testing.T, dir string) string {
	t.Helper()
	const script = `cd "$1" && find . -printf '%p %y %l\n' | sort && find . -type f -print0 | sort -z | xargs -0 cat`
	out, err := exec.Command("sh", "-c", script, "sh", dir).Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// TestHostileLines: each line is refused with its reason, or harmless. Nothing changes, and nothing outside is read.
func TestHostileLines(t *testing.T) {
	t.Parallel() // it waits
	data, err := os.ReadFile("../servers/pipe/testdata/hostile.json")
	if err != nil {
		t.Fatal(err)
	}
	var rows []struct{ Line, Reason, Out string }
	if err := json.Unmarshal(data, &rows); err != nil {
		t.Fatal(err)
	}
	for name, args := range backendsOfTests(t) {
		t.Run(name, func(t *testing.T) {
			base, root := makeRoot(t)
			before := tree(t, base)
			s := servePipe(t, append([]string{"server", "pipe", "--root", root}, args...)...)
			var group errgroup.Group
			group.SetLimit(4)
			for _, r := range rows {
				group.Go(func() error {
					a := callPipe(t, s, map[string]any{"command": r.Line})
					switch {
					case strings.Contains(a.Stdout+a.Error.Detail, "secret-outside"), strings.Contains(a.Stdout, "root:"):
						t.Errorf("%q has read what is outside: %+v", r.Line, a)
					case r.Reason != a.Error.Reason || r.Reason != "" && a.Error.Code != "GUARD_VIOLATION":
						t.Errorf("%q: got %s %s %q, %q, want %q", r.Line, a.Error.Code, a.Error.Reason, a.Error.Detail, a.Stdout, r.Reason)
					case a.Error.Code != "" && (a.Error.Detail == "" || a.Error.Suggestion == ""):
						t.Errorf("%q: the error lacks words: %+v", r.Line, a.Error)
					case r.Out != a.Stdout || r.Reason == "" && a.Error.Code != "":
						t.Errorf("%q: got %q, %+v, want %q", r.Line, a.Stdout, a.Error, r.Out)
					}
					return nil
				})
			}
			_ = group.Wait() // the functions return nil
			if after := tree(t, base); after != before {
				t.Errorf("the files have changed:\n%s\nwere\n%s", after, before)
			}
		})
	}
}

// backendsOfTests are the flags of the backends that this machine has.
func backendsOfTests(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{"local": {"--sandbox", "local"}}
	ok, err := hasImage()
	if err != nil {
		t.Error(err)
	}
	if ok && !testing.Short() {
		all["docker"] = []string{"--sandbox", "docker"}
	}
	return all
}

// TestPipeSaves: tee and write save all or nothing, ask before they save much, and append what they are given.
func TestPipeSaves(t *testing.T) {
	t.Parallel() // it waits
	_, root := makeRoot(t)
	big := strings.Repeat("0123456789abcde\n", 1<<17) // 2 MiB
	if err := os.WriteFile(filepath.Join(root, "big"), []byte(big), 0o644); err != nil {
		t.Fatal(err)
	}
	s := servePipe(t, "server", "pipe", "--root", root, "--sandbox", "local")
	for _, r := range []struct{ command, reason, file, want string }{
		{"sed '' big | tee copy", "OVERSIZE", "copy", ""},
		{"head -n 2 a.txt | tee out/new", "", "out/new", "a 1\nb 2\n"},
		{"head -c 3 a.txt | tee -a out/new", "", "out/new", "a 1\nb 2\na 1"},
		{"head -c 3 a.txt | tee -a out/new | wc -c", "", "out/new", "a 1\nb 2\na 1a 1"},
		{"head none | tee out/new", "", "out/new", "a 1\nb 2\na 1a 1"}, // it fails, so nothing is saved
		{"head a.txt | awk 'END {exit 3}' | tee out/new", "", "out/new", "a 1\nb 2\na 1a 1"},
		{"sort -r out/new | tee out/new", "", "out/new", "b 2\na 1a 1\na 1\n"}, // no shell empties the file before it is read
		{"rg nowhere a.txt | tee out/new", "", "out/new", ""},
		{"head a.txt | tee inner", "DISALLOWED_ARG", "a.txt", "a 1\nb 2\n"},
		{"head a.txt | tee sub", "DISALLOWED_ARG", "sub/c.txt", "c\n"},
		{"head a.txt | tee a.txt/x", "DISALLOWED_ARG", "a.txt", "a 1\nb 2\n"},
	} {
		a := callPipe(t, s, map[string]any{"command": r.command})
		got, err := os.ReadFile(filepath.Join(root, r.file))
		if a.Error.Reason != r.reason || string(got) != r.want || err != nil && !(os.IsNotExist(err) && r.want == "") {
			t.Errorf("%s: %+v, %s holds %q, %v, want %q", r.command, a, r.file, got, err, r.want)
		}
	}
	late := callPipe(t, s, map[string]any{"command": "head -n 1 a.txt | tee late | jq ."})
	if late.Error.Code == "" || late.Error.Tee == nil || late.Error.Tee.Path != "late" ||
		!strings.Contains(late.Error.Detail, "tee has saved") {
		t.Errorf("a command behind tee failed: %+v", late)
	}
	a := callPipe(t, s, map[string]any{"command": "sed '' big | tee copy", "confirm_oversize": true})
	got, err := os.ReadFile(filepath.Join(root, "copy"))
	if err != nil || string(got) != big || a.Meta.Tee == nil || a.Meta.Tee.Bytes != int64(len(big)) || a.Meta.Tee.Path != "copy" {
		t.Errorf("with confirm_oversize: %d bytes, %v, %+v", len(got), err, a.Meta)
	}
	last := a.Meta.Steps[1]
	if last.Size != int64(len(big)) || !last.Truncated || len(a.Stdout) != 1<<20 || !strings.HasPrefix(big, a.Stdout) {
		t.Errorf("standard output of 2 MiB: %d bytes, %+v", len(a.Stdout), last)
	}
}

// TestPipeWorkers: only lines of a process with one client share workers. The sandbox keeps none for the empty caller.
func TestPipeWorkers(t *testing.T) {
	dir, err := workspace.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dir.Close() })
	for alone, want := range map[bool]string{true: pipeServer, false: ""} {
		lines := (&program{}).newPipes(t.Context(), settings{}, alone)
		got := lines.start(dir, false).(*pipeEngine).caller
		if err := lines.close(); err != nil || got != want {
			t.Errorf("alone %v: lines run for %q, want %q; closed: %v", alone, got, want, err)
		}
	}
}

// TestPipeWords: errors of lines say nothing of stages, and quote what looks like our words as it is.
func TestPipeWords(t *testing.T) {
	t.Parallel() // it waits
	_, root := makeRoot(t)
	s := servePipe(t, "server", "pipe", "--root", root, "--sandbox", "local", "--limit", "command=1s")
	const (
		missing = " of the workspace does not exist; name files as they are called from the current directory on; " +
			"no shell expands * and ~"
		patterns = "is not available: it takes no file here; give every pattern with -e, or use -E 'one|two'"
		onlyNext = `a redirection writes to a file, and a command writes only to the next command; leave the redirection out: ` +
			`what is printed goes to the next command by itself; a comparison needs parentheses: print (a > b)`
	)
	long := strings.Repeat("d/", 1500)
	for line, want := range map[string]string{
		"grep -r x .":          "grep: -r is not available: rg and fd search directories; leave it out",
		"grep -f words a.txt":  `grep: -f "words" ` + patterns,
		"grep -f @words a.txt": "grep: there is no input @words; give the value itself: grep -e PATTERN, jq --argjson NAME JSON",
		"head @x":              "head: the input @x cannot be read here; a file of that name is called from ./ on: ./@b",
		"head stage.txt":       `head: the file "stage.txt"` + missing,
		"head " + long + "x":   `head: the file "` + long[:100] + "..." + long[1:100] + `x"` + missing,
		"tail -f a.txt":        "tail: -f is not available: it waits for a file to grow, and a command's input ends; leave it out",
		"jq --slurpfile b x . a.txt": `jq: --slurpfile "x" is not available: it takes no file here; ` +
			`give small values with --argjson NAME JSON`,
		"sort -o x a.txt": "sort: -o is not available: it writes a file, and a command writes only to the next command; " +
			"leave it out: the output goes to the next command by itself",
		"wc --files0-from=x": "wc: --files0-from is not available: it reads a file besides the command's input; " +
			"the data arrives as the command's input: put the command that produces it before this one",
		"head 'an earlier stage.txt'":                     `head: the file "an earlier stage.txt"` + missing,
		"grep -f 'a preview stage' a.txt":                 `grep: -f "a preview stage" ` + patterns,
		`awk 'BEGIN { print "to the next stage" > "x" }'`: `awk: "print \"to the next stage\" > \"x\"": ` + onlyNext,
		`jq -n '$ENV | error("add \"inputs\": x")'`: `jq exited with status 5: jq: error (at <unknown>): add "inputs": x; ` +
			"Run the commands one by one to see where it fails.",
		`awk 'BEGIN { print | "x" }'`:          "",
		`awk 'BEGIN { getline < "a" }'`:        "",
		"awk --csv 1 a.txt":                    "",
		"sed -i s/a/b/ a.txt":                  "",
		"sed 'w x' a.txt":                      "",
		"jq input_filename a.txt":              "",
		`head -n 1 script | jq -R 'test("(")'`: "",
		"head -c 8 a.txt | jq .":               "",
		`awk 'BEGIN { for (;;) endless++ }'`:   "",
	} {
		a := callPipe(t, s, map[string]any{"command": line})
		got := a.Error.Detail + "; " + a.Error.Suggestion
		if a.Error.Code == "" || len(got) > 600 || want != "" && got != want {
			t.Errorf("%.100s: got %d bytes\n%s\nwant\n%s", line, len(got), got, want)
		}
		for _, word := range []string{"stage", `"inputs"`, `"timeout"`, "workspace's directory", "for_each"} {
			if want == "" && strings.Contains(got, word) {
				t.Errorf("%s: %s is a word for pipelines: %s", line, word, got)
			}
		}
	}
}

// TestPipeEnds: the sandbox of a root is closed after the last session with its servers, and the next session gets a new one.
func TestPipeEnds(t *testing.T) {
	root := t.TempDir()
	var opened, closed atomic.Int32
	x := &pipes{roots: map[string]*pipeRoot{}, open: func(string) *lazySandbox {
		opened.Add(1)
		return &lazySandbox{
			start: func() (*activeBackend, error) { return nil, errors.New("no backend") }, end: func() { closed.Add(1) },
		}
	}}
	gateway := func() *upstream.Pool {
		dial, err := configBuiltins(servers.Host{Pipes: x.start})[pipeServer](optionsOf(map[string]any{"root": root}))
		if err != nil {
			t.Fatal(err)
		}
		source := upstream.Static{{Name: pipeServer, Dial: dial, InProcess: true}}
		p := upstream.NewPool(upstream.Options{Sources: []upstream.Source{source}})
		t.Cleanup(func() { p.Close() })
		_, err = p.CallTool(t.Context(), stages.Call{Server: pipeServer, Name: "pipe", Args: []byte(`{"command":"ls"}`)})
		if err == nil || !strings.Contains(err.Error(), "no backend") {
			t.Fatalf("got %v, want no backend", err)
		}
		return p
	}
	for i, p := range []*upstream.Pool{gateway(), gateway()} {
		if opened.Load() != 1 || closed.Load() != 0 {
			t.Errorf("before the end of gateway %d, %d sandboxes were opened and %d closed, want 1 and none",
				i, opened.Load(), closed.Load())
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	gateway()
	if opened.Load() != 2 || closed.Load() != 1 {
		t.Errorf("%d sandboxes were opened and %d closed, want 2 and 1", opened.Load(), closed.Load())
	}
	if err := errors.Join(x.close(), x.close()); err != nil || closed.Load() != 2 {
		t.Errorf("at the end of the process %d are closed, %v", closed.Load(), err)
	}
	if _, err := x.root(root, 1).sandbox.get(t.Context()); !errors.Is(err, errSandboxClosed) || opened.Load() != closed.Load() {
		t.Errorf("after the end: %v, want %v; %d sandboxes were opened and %d closed",
			err, errSandboxClosed, opened.Load(), closed.Load())
	}
	if err := x.leave(root); err != nil {
		t.Errorf("a session that ends after the process: %v", err)
	}
}

// TestPipeCancelled: a cancelled call ends its commands, and gives back the only worker.
func TestPipeCancelled(t *testing.T) {
	t.Parallel() // it waits
	_, root := makeRoot(t)
	s := servePipe(t, "server", "pipe", "--root", root, "--sandbox", "local", "--sandbox-max", "1",
		"--limit", "command=1h", "--limit", "run=1h")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		line := map[string]any{"command": "awk 'BEGIN { for (;;) cancelled++ }' | tee forever"}
		_, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "pipe", Arguments: line})
		ended <- err
	}()
	for deadline := time.Now().Add(patience); !running(t, "cancelled++"); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the command does not run")
		}
	}
	cancel()
	if err := <-ended; err == nil {
		t.Error("the call has ended without an error")
	}
	if a := callPipe(t, s, map[string]any{"command": "ls sub"}); a.Stdout != "c.txt\n" {
		t.Errorf("the next call: %+v", a)
	}
	if _, err := os.Stat(filepath.Join(root, "forever")); !os.IsNotExist(err) {
		t.Errorf("a cancelled call has saved a file: %v", err)
	}
}

// running reports whether a process has this text in its arguments.
func running(t *testing.T, text string) bool {
	t.Helper()
	names, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(names, func(name string) bool {
		args, err := os.ReadFile(name)
		return err == nil && strings.Contains(string(args), text)
	})
}

// TestPipeSessions: over HTTP each session has its directory; without one cd sets nothing.
func TestPipeSessions(t *testing.T) {
	all := servers.Builtins()
	b := all[slices.IndexFunc(all, func(b servers.Builtin) bool { return b.Commands })]
	_, root := makeRoot(t)
	server, err := b.Open(optionsOf(map[string]any{"root": root}), servers.Host{})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(gateway.NewEndpoint(server.Server, gateway.HTTPOptions{}).Handler())
	t.Cleanup(web.Close)
	var sessions []*mcp.ClientSession
	for range 2 {
		c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
		transport := &mcp.StreamableClientTransport{Endpoint: web.URL + "/mcp"}
		s, err := c.Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: "2025-06-18"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		sessions = append(sessions, s)
	}
	callPipe(t, sessions[0], map[string]any{"command": "cd sub"})
	for i, want := range []string{"sub\n", ".\n"} {
		if a := callPipe(t, sessions[i], map[string]any{"command": "pwd"}); a.Stdout != want {
			t.Errorf("session %d is in %q, want %q", i, a.Stdout, want)
		}
	}
}

// TestPipeVersions: each program says its version, alone and in a pipe.
func TestPipeVersions(t *testing.T) {
	t.Parallel() // it waits
	_, root := makeRoot(t)
	s := servePipe(t, "server", "pipe", "--root", root, "--sandbox", "local")
	for _, name := range strings.Fields("awk cut fd grep head jq ls rg sed sort tail tr uniq wc") {
		for _, line := range []string{name + " --version", "ls | " + name + " --version | head -1"} {
			if a := callPipe(t, s, map[string]any{"command": line}); a.Stdout == "" || a.Error.Code != "" {
				t.Errorf("%s: %+v", line, a)
			}
		}
	}
}
