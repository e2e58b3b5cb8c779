//go:build linux

package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// odd are the names of what is no file that can be read to its end, in a directory of the test.
func odd(t *testing.T) map[string]string {
	t.Helper()
	dir := t.TempDir()
	names := map[string]string{"pipe": filepath.Join(dir, "pipe"), "device": "/dev/zero", "directory": dir, "large": filepath.Join(dir, "large")}
	if err := syscall.Mkfifo(names["pipe"], 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(names["large"], nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(names["large"], 10<<30); err != nil { // it takes no room on the disk
		t.Fatal(err)
	}
	return names
}

// A flag or a variable may name no file: the error says so, without waiting for it or reading all of it. Where mcsh waits
// for the writer of a pipe, a signal ends that.
func TestNamedFiles(t *testing.T) {
	t.Parallel()
	names := odd(t)
	serve := []string{"serve", "--sandbox", "off", "--keep-total", "0"}
	for _, tt := range []struct {
		name string
		args []string
		env  string
		want map[string]string // by what it is: what is said
	}{
		{"--config", []string{"tools", "ls", "--config", "FILE"}, "", map[string]string{"device": "it is a device", "directory": "it is a directory", "large": "longer than 4 MiB"}},
		{"--tokens", append(serve, "--listen", "127.0.0.1:0", "--tokens", "FILE"), "", map[string]string{"pipe": "it is a pipe", "device": "it is a device", "directory": "it is a directory", "large": "larger than"}},
		{"token ls", []string{"token", "ls", "--file", "FILE"}, "", map[string]string{"pipe": "it is a pipe", "device": "it is a device", "large": "longer than"}},
		{"token new", []string{"token", "new", "alice", "--file", "FILE"}, "", map[string]string{"pipe": "it is a pipe"}},
		{"connect", []string{"connect", "cursor", "--file", "FILE"}, "", map[string]string{"pipe": "it is a pipe", "large": "longer than"}},
		{"import", []string{"import", "FILE"}, "", map[string]string{"device": "it is a device", "large": "longer than"}},
		{"import --to", []string{"import", "EMPTY", "--to", "FILE"}, "", map[string]string{"pipe": "it is a pipe", "large": "longer than"}},
		{"-f", []string{"check", "-f", "FILE"}, "", map[string]string{"pipe": "", "device": "larger than 4 MiB", "directory": "it is a directory", "large": "larger than 4 MiB"}},
		{"--input", []string{"run", "[]", "--input", "FILE"}, "", map[string]string{"pipe": "", "directory": "it is a directory"}},
		{"a certificate", append(serve, "--otel"), "OTEL_EXPORTER_OTLP_CERTIFICATE", map[string]string{"pipe": "it is a pipe", "device": "it is a device", "directory": "it is a directory", "large": "longer than"}},
		{"a key", append(serve, "--otel"), "OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY", map[string]string{"pipe": "it is a pipe"}},
	} {
		for kind, want := range tt.want {
			t.Run(tt.name+"/"+kind, func(t *testing.T) {
				home := t.TempDir()
				empty := filepath.Join(home, "empty.json")
				if err := os.WriteFile(empty, []byte(`{"mcpServers": {"demo": {"command": "mcsh", "args": ["server", "demo"]}}}`), 0o600); err != nil {
					t.Fatal(err)
				}
				var args []string
				for _, a := range tt.args {
					args = append(args, strings.NewReplacer("FILE", names[kind], "EMPTY", empty).Replace(a))
				}
				env := []string{"HOME=" + home, toolhiveVariable + "=" + toolhiveOff}
				if tt.env != "" {
					env = append(env, tt.env+"="+names[kind])
				}
				ctx, end := context.WithCancel(t.Context())
				defer end()
				if want == "" { // it waits
					end()
				}
				var stdout, stderr heard
				status := run(ctx, args, strings.NewReader(""), &stdout, &stderr, env)
				if status == exitOK || !strings.Contains(stderr.String(), want) || want != "" && !strings.Contains(stderr.String(), "hint: ") {
					t.Errorf("status %d, got %q, want %q", status, stderr.String(), want)
				}
			})
		}
	}
}

// A shell makes a pipe of <(...), which serves where a file is read once.
func TestPipesForFiles(t *testing.T) {
	const pipeline = `[{"type": "tool", "server": "shop", "name": "get_customer", "args": {"id": "c-001"}}]`
	const config = `{"mcpServers": {"shop": {"builtin": "demo"}}}`
	pipe := func(t *testing.T, text string) string {
		t.Helper()
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Close() })
		go func() {
			defer w.Close()
			_, _ = w.WriteString(text)
		}()
		return fmt.Sprintf("/dev/fd/%d", r.Fd())
	}
	for name, args := range map[string][]string{
		"--config": {"run", pipeline, "--config", pipe(t, config)},
		"-f":       {"run", "-f", pipe(t, pipeline), "--config", pipe(t, config)},
		"--input":  {"run", `[{"type": "preview"}]`, "--input", pipe(t, `{"name": "c-001"}`)},
		"import":   {"import", pipe(t, config), "--dry-run"},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr heard
			env := []string{"HOME=" + t.TempDir(), toolhiveVariable + "=" + toolhiveOff, "MCSH_SANDBOX=off"}
			status := run(t.Context(), args, strings.NewReader(""), &stdout, &stderr, env)
			if status != exitOK || name != "import" && !strings.Contains(stdout.String(), "c-001") {
				t.Errorf("status %d, got %q, %s", status, stdout.String(), stderr.String())
			}
		})
	}
}

// A name of a pipe that gets its writer later is waited for.
func TestPipeWaits(t *testing.T) {
	name := filepath.Join(t.TempDir(), "input")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	written := make(chan error, 1)
	go func() {
		written <- os.WriteFile(name, []byte(`{"name": "c-001"}`), 0o600) // opening it waits for the reader
	}()
	var stdout, stderr heard
	env := []string{"HOME=" + t.TempDir(), toolhiveVariable + "=" + toolhiveOff, "MCSH_SANDBOX=off"}
	if status := run(t.Context(), []string{"run", `[{"type": "preview"}]`, "--input", name}, strings.NewReader(""), &stdout, &stderr, env); status != exitOK || !strings.Contains(stdout.String(), "c-001") {
		t.Errorf("status %d, got %q, %s", status, stdout.String(), stderr.String())
	}
	if err := <-written; err != nil {
		t.Error(err)
	}
}

// The time of a run covers what is read before it begins, also where that does not end by itself.
func TestTimeoutWhileReading(t *testing.T) {
	const config = `{"mcpServers": {"demo": {"builtin": "demo"}}}`
	names := odd(t)
	good := filepath.Join(t.TempDir(), "mcp.json")
	if err := os.WriteFile(good, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	stuck, held, err := os.Pipe() // its holder writes nothing
	if err != nil {
		t.Fatal(err)
	}
	defer stuck.Close()
	defer held.Close()
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"-f", names["pipe"], "--config", good}, names["pipe"] + " is still being opened"},
		{[]string{"-", "--config", good}, "the pipeline is still being read from standard input"},
		{[]string{"-f", fmt.Sprintf("/dev/fd/%d", stuck.Fd()), "--config", good}, "the pipeline is still being read from /dev/fd/"},
		{[]string{"[]", "--input", names["pipe"], "--config", good}, names["pipe"] + " is still being opened"},
		{[]string{"[]", "--config", names["pipe"]}, "the configuration of servers is still being read"},
		{[]string{"[]", "--config", fmt.Sprintf("/dev/fd/%d", stuck.Fd())}, "the configuration of servers is still being read"},
	} {
		for _, form := range [][]string{nil, {"--json"}} {
			t.Run(fmt.Sprint(tt.args, form), func(t *testing.T) {
				stdin, typing := io.Pipe()
				defer typing.Close()
				var stdout, stderr heard
				env := []string{"HOME=" + t.TempDir(), toolhiveVariable + "=" + toolhiveOff, "MCSH_SANDBOX=off"}
				args := slices.Concat([]string{"run", "--timeout", "100ms"}, tt.args, form)
				status := run(t.Context(), args, stdin, &stdout, &stderr, env)
				for _, want := range []string{"TIMEOUT", "the run took longer than 100ms", "nothing was called; " + tt.want} {
					if got := stderr.String() + stdout.String(); status != exitTimeout || !strings.Contains(got, want) {
						t.Errorf("status %d, got %q, want %q", status, got, want)
					}
				}
			})
		}
	}
}

// An interrupt ends the reading of a pipeline from standard input, which cannot be closed.
func TestReadingInterrupted(t *testing.T) {
	for _, command := range []string{"run", "check"} {
		stdin, typing := io.Pipe()
		defer typing.Close()
		ctx, interrupt := context.WithCancel(t.Context())
		go func() {
			_, _ = typing.Write([]byte("[")) // it returns when that was read
			interrupt()
		}()
		var stdout, stderr heard
		env := []string{"HOME=" + t.TempDir(), toolhiveVariable + "=" + toolhiveOff, "MCSH_SANDBOX=off"}
		if status := run(ctx, []string{command, "-"}, stdin, &stdout, &stderr, env); status != exitInterrupted || stderr.String() != "error: interrupted\n" {
			t.Errorf("%s: status %d, got %q", command, status, stderr.String())
		}
	}
}

// An interrupt while a pipe is awaited is not reported as a mistake of the configuration.
func TestPipeInterrupted(t *testing.T) {
	name := filepath.Join(t.TempDir(), "config")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	var stdout, stderr heard
	env := []string{"HOME=" + t.TempDir(), toolhiveVariable + "=" + toolhiveOff, "MCSH_SANDBOX=off"}
	if status := run(ctx, []string{"run", "[]", "--config", name}, strings.NewReader(""), &stdout, &stderr, env); status != exitInterrupted || strings.Contains(stderr.String(), "fix") {
		t.Errorf("status %d, want %d, got %s", status, exitInterrupted, stderr.String())
	}
}
