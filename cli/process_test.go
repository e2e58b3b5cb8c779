//go:build linux

package cli

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/sandbox"
	"github.com/mcsh-dev/mcsh/sandbox/docker"
	"github.com/mcsh-dev/mcsh/sandbox/local"
)

// patience is how long a test waits for what happens at once.
const patience = 30 * time.Second

// oneBinary is mcsh where only that was installed: the sandbox worker is the same binary. It is built once, and goes with
// the directory of TestMain.
func oneBinary(t *testing.T) string {
	t.Helper()
	path, err := buildOne()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

var buildOne = sync.OnceValues(func() (string, error) {
	beside, err := exec.LookPath("mcsh")
	if err != nil {
		return "", err
	}
	dir := filepath.Join(filepath.Dir(beside), "one")
	return filepath.Join(dir, "mcsh"), parttest.Build(dir, "cmd/mcsh")
})

// A started is a running mcsh. A variable of the environment marks every process that it starts, and its
// files lie in a directory of its own.
type started struct {
	*exec.Cmd
	tmp            string
	stdout, stderr bytes.Buffer
}

func prepare(t *testing.T, binary string, args ...string) *started {
	t.Helper()
	s := &started{Cmd: exec.CommandContext(t.Context(), binary, args...), tmp: t.TempDir()}
	s.Env = append(os.Environ(), "TMPDIR="+s.tmp, toolhiveVariable+"="+toolhiveOff)
	s.Dir = t.TempDir()
	s.Stdout, s.Stderr = &s.stdout, &s.stderr
	return s
}

// leftNothing checks that nothing of the process is left: no file in its directory for temporary files or in those
// given, and no process that knows one of them.
func (s *started) leftNothing(t *testing.T, dirs ...string) {
	t.Helper()
	processes, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range append(dirs, s.tmp) {
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("temporary files are left: %v, %v", left, err)
		}
		for _, process := range processes {
			for _, file := range []string{"cmdline", "environ"} { // what is no process has neither
				name := filepath.Join("/proc", process.Name(), file)
				if text, err := os.ReadFile(name); err == nil && bytes.Contains(text, []byte(dir)) {
					t.Errorf("a process is left: %s: %q", name, text)
				}
			}
		}
	}
}

// Processes run as where only the one binary was installed: the worker falls back to it, as with go run.
func TestProcess(t *testing.T) {
	t.Parallel() // it waits
	binary := oneBinary(t)
	for name, test := range map[string]func(*testing.T, string){
		"run": testRun, "interrupt": testInterrupt, "closed pipe": testClosedPipe, "HTTP": testServeHTTP,
		"interrupt of a call": testInterruptCall, "first backend": testFirstBackend, "statuses": testStatuses,
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); test(t, binary) })
	}
}

func testRun(t *testing.T, binary string) {
	s := prepare(t, binary, "run", `[
		{"type": "tool", "server": "demo", "name": "list_orders"},
		{"type": "command", "command": "jq", "args": ["-c", ".orders[] | .status"]},
		{"type": "command", "command": "sort"},
		{"type": "command", "command": "uniq"}]`)
	if err := s.Run(); err != nil {
		t.Fatalf("%v: %s", err, &s.stderr)
	}
	if got, want := s.stdout.String(), "\"cancelled\"\n\"open\"\n\"paid\"\n\"shipped\"\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	s.leftNothing(t)
}

// A signal ends the calls and the commands, and leaves nothing behind.
func testInterrupt(t *testing.T, binary string) {
	for _, sig := range endSignals() {
		config, tmp := filepath.Join(t.TempDir(), "mcp.json"), t.TempDir()
		servers := fmt.Sprintf(`{"mcpServers": {"shop": {"command": %q, "args": ["server", "demo"], "env": {"TMPDIR": %q}}}}`, binary, tmp)
		if err := os.WriteFile(config, []byte(servers), 0o600); err != nil {
			t.Fatal(err)
		}
		s := prepare(t, binary, "run", "--config", config, `[
			{"type": "command", "command": "jq", "args": ["-n", "-c", "{ms: 1}, {ms: 60000}"]},
			{"type": "tool", "server": "shop", "name": "slow", "for_each": true, "collect": "lines"},
			{"type": "command", "command": "sed", "args": ["-u", "s/waited/WAITED/"]}]`)
		s.Stdout = nil
		out, err := s.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Start(); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(out).ReadString('\n'); !strings.Contains(line, "WAITED") {
			t.Fatalf("the run has not begun: %q, %v", line, err)
		}
		if err := s.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		_ = s.Wait() // its status is looked at
		if got := s.ProcessState.ExitCode(); got != exitInterrupted {
			t.Errorf("%v: exit status %d, want %d: %s", sig, got, exitInterrupted, &s.stderr)
		}
		s.leftNothing(t, tmp)
	}
}

// A signal ends a server on standard input and output whose call would take long, and whose input stays open.
func testInterruptCall(t *testing.T, binary string) {
	const slow = `{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": %q, "arguments": %s}}`
	for _, c := range []struct {
		args []string
		call string
	}{
		{[]string{"server", "demo"}, fmt.Sprintf(slow, "slow", `{"ms": 60000}`)},
		{[]string{"serve"}, fmt.Sprintf(slow, "execute_pipeline", `{"pipeline": [{"type": "tool", "server": "demo", "name": "slow", "args": {"ms": 60000}}]}`)},
	} {
		t.Run(c.args[0], func(t *testing.T) {
			t.Parallel()
			s := prepare(t, binary, c.args...)
			s.Stdout = nil
			out, err := s.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			in, err := s.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Start(); err != nil {
				t.Fatal(err)
			}
			// Requests begin in their order: when this one is answered, the call is under way.
			if _, err := fmt.Fprintf(in, "%s\n%s\n", c.call, `{"jsonrpc": "2.0", "id": 2, "method": "ping"}`); err != nil {
				t.Fatal(err)
			}
			if line, err := bufio.NewReader(out).ReadString('\n'); !strings.Contains(line, `"id":2`) {
				t.Fatalf("got %q, %v", line, err)
			}
			if err := s.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			begun := time.Now()
			if err := s.Wait(); err != nil {
				t.Errorf("it ended with %v: %s", err, &s.stderr)
			}
			if d := time.Since(begun); d > patience {
				t.Errorf("it took %v to end", d)
			}
			s.leftNothing(t)
		})
	}
}

// A reader that has enough is no failure, and everything is closed.
func testClosedPipe(t *testing.T, binary string) {
	s := prepare(t, binary, "run", `[{"type": "command", "command": "jq", "args": ["-n", "range(1000000)"]}]`)
	s.Stdout = nil
	out, err := s.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "0\n" {
		t.Errorf("got %q, %v", line, err)
	}
	out.Close()
	if err := s.Wait(); err != nil {
		t.Errorf("%v: %s", err, &s.stderr)
	}
	s.leftNothing(t)
}

// The first backend whose audit passes is used, and none after it is asked.
func testFirstBackend(t *testing.T, binary string) {
	row := func(driver sandbox.Driver, err error) backend {
		return backend{driver: func(context.Context, *program, sandboxSettings) (sandbox.Driver, error) {
			if driver == nil && err == nil {
				t.Error("a backend after the one that passed was asked")
			}
			return driver, err
		}}
	}
	noWorker := local.New(local.Options{Worker: []string{filepath.Join(t.TempDir(), "none")}})
	works := local.New(local.Options{Worker: []string{binary, workerCommand}})
	table := []backend{row(nil, &docker.Fault{Kind: docker.ErrNoEngine}), row(noWorker, nil), row(works, nil), row(nil, nil)}
	open, err := openFirst(t.Context(), &program{}, sandboxSettings{}, table)
	if err != nil {
		t.Fatal(err)
	}
	if notes := open.report().Notes; len(notes) != 1 || !strings.Contains(notes[0], "none") {
		t.Errorf("got the notes %q, want one on the backend that is there and does not work", notes)
	}
	if err := open.pool.Close(); err != nil {
		t.Error(err)
	}
}

// The gateway over HTTP: it says where it listens, answers a client, and ends in order.
func testServeHTTP(t *testing.T, binary string) {
	for name, c := range map[string]struct{ args, env []string }{
		"serve":     {[]string{"serve", "--listen", "127.0.0.1:0", "--allow-host", "mcp.example.com"}, nil},
		"server":    {[]string{"server", "demo", "--listen", "127.0.0.1:0"}, []string{"MCSH_ALLOW_HOST=a,mcp.example.com"}},
		"a runtime": {[]string{"serve"}, []string{"MCP_TRANSPORT=streamable-http", "MCP_PORT=0", "MCP_HOST=127.0.0.1", "MCSH_ALLOW_HOST=mcp.example.com"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := prepare(t, binary, c.args...)
			s.Env = append(s.Env, c.env...)
			s.Stderr = nil
			said, err := s.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Start(); err != nil {
				t.Fatal(err)
			}
			words := bufio.NewReader(said)
			first, err := words.ReadString('\n')
			_, url, ok := strings.Cut(strings.TrimSpace(first), " listens on ")
			if err != nil || !ok {
				t.Fatalf("got %q, %v", first, err)
			}
			second, err := words.ReadString('\n')
			if err != nil || strings.Contains(second, "thv list") != (name == "a runtime") {
				t.Errorf("got %q, %v", second, err)
			}
			go io.Copy(io.Discard, words)
			for _, version := range []string{"2025-11-25", "2026-07-28"} {
				callOverHTTP(t, url, version, c.args[0] == "serve")
			}
			wantHosts(t, url)
			wantBusy(t, binary, url, s.Process.Pid)
			if err := s.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if err := s.Wait(); err != nil {
				t.Errorf("it ended with %v", err)
			}
			s.leftNothing(t)
		})
	}
}

// wantBusy starts another one on the same port, which says who has it.
func wantBusy(t *testing.T, binary, url string, pid int) {
	t.Helper()
	address := strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/mcp")
	s := prepare(t, binary, "serve", "--listen", address)
	_ = s.Run() // its status is looked at
	want := fmt.Sprintf("error: %s: the port is used by mcsh (pid %d)\n", address, pid)
	if got := s.ProcessState.ExitCode(); got != exitConfig || !strings.HasPrefix(s.stderr.String(), want) {
		t.Errorf("exit status %d, %q; want %q", got, &s.stderr, want)
	}
}

// wantHosts asks under names that are the server's, and under another.
func wantHosts(t *testing.T, url string) {
	t.Helper()
	for host, want := range map[string]bool{"": true, "localhost": true, "mcp.example.com": true, "evil.example": false, "mcsh": false} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if resp.Body.Close(); (resp.StatusCode != http.StatusForbidden) != want {
			t.Errorf("under the name %q: %s", host, resp.Status)
		}
	}
}

// callOverHTTP calls a tool in one version of the protocol.
func callOverHTTP(t *testing.T, url, version string, gateway bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{}}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	if got := session.InitializeResult().ProtocolVersion; got != version {
		t.Errorf("the protocol is %s, want %s", got, version)
	}
	call := &mcp.CallToolParams{Name: "get_customer", Arguments: map[string]any{"id": "c-001"}}
	if gateway {
		stage := map[string]any{"type": "tool", "server": "demo", "name": "get_customer", "args": map[string]any{"id": "c-001"}}
		call = &mcp.CallToolParams{Name: "execute_pipeline", Arguments: map[string]any{"pipeline": []any{stage}}}
	}
	result, err := session.CallTool(ctx, call)
	if err != nil || result.IsError {
		t.Fatalf("%+v, %v", result, err)
	}
	if text := result.Content[len(result.Content)-1].(*mcp.TextContent).Text; !strings.Contains(text, `"id":"c-001"`) {
		t.Errorf("got %q", text)
	}
}
