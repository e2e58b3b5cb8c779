package toolhive_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/upstream"
	"github.com/mcsh-dev/mcsh/upstream/toolhive"
)

// realVariable names a thv binary for the test that uses it.
const realVariable = "MCSH_TEST_THV"

// thv is a real ToolHive with a home of its own.
type thv struct {
	t      *testing.T
	binary string
	home   string
	output bytes.Buffer // of thv serve, once it has ended
}

func (v *thv) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, v.binary, args...)
	cmd.Env = []string{
		"HOME=" + v.home, "PATH=" + os.Getenv("PATH"), "TOOLHIVE_SKIP_UPDATE_CHECK=true", "TOOLHIVE_USAGE_METRICS_ENABLED=false",
		"TOOLHIVE_SKIP_DESKTOP_CHECK=1", "TOOLHIVE_SECRETS_PROVIDER=environment",
	}
	return cmd
}

func (v *thv) run(args ...string) {
	v.t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(v.t.Context()), 3*time.Minute)
	defer cancel()
	if out, err := v.command(ctx, args...).CombinedOutput(); err != nil {
		v.t.Fatalf("thv %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func (v *thv) discovery() string {
	return filepath.Join(v.home, ".local", "state", "toolhive", "server", "server.json")
}

// serve starts the API and waits for its discovery file.
func (v *thv) serve() {
	v.t.Helper()
	cmd := v.command(context.WithoutCancel(v.t.Context()), "serve", "--host", "127.0.0.1", "--port", "0")
	cmd.Stdout, cmd.Stderr = &v.output, &v.output
	if err := cmd.Start(); err != nil {
		v.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	v.t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		select {
		case <-ended:
		case <-time.After(patience):
			_ = cmd.Process.Kill()
			<-ended
		}
	})
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(v.discovery()); err == nil {
			return
		}
		select {
		case err := <-ended:
			ended <- err
			v.t.Skipf("thv serve ended: %v\n%s", err, v.output.String())
		default:
		}
		if time.Now().After(end) {
			v.t.Fatal("thv serve wrote no discovery file")
		}
	}
}

// TestRealToolHive follows a workload of a real ToolHive from its start to its end.
func TestRealToolHive(t *testing.T) {
	binary := os.Getenv(realVariable)
	if binary == "" {
		t.Skip("no ToolHive: name a thv binary in " + realVariable + "; it needs docker or podman")
	}
	v := &thv{t: t, binary: binary, home: t.TempDir()}
	v.serve()
	group := fmt.Sprintf("mcsh-test-%d", os.Getpid())
	v.run("group", "create", group)
	source, err := toolhive.New(toolhive.Options{
		Discovery: v.discovery(), Filter: toolhive.Filter{Groups: []string{group}}, Interval: 200 * time.Millisecond, Wait: patience,
	})
	if err != nil {
		t.Fatal(err)
	}
	pool := mcptest.NewPool(t, upstream.Options{Sources: []upstream.Source{source}, OnChange: func(upstream.Change) {}}) // it follows
	w := &world{t: t, source: source, pool: pool}
	w.untilServers("")
	if s := source.State(); s.Err != nil || s.Version == "" || !strings.Contains(s.From, "discovery file") {
		t.Fatalf("state %+v", s)
	}
	t.Logf("ToolHive %s at %s", source.State().Version, source.State().Address)

	server := mcptest.New(mcptest.Tool{Name: "hi", Text: "through ToolHive"}).HTTP(t, nil)
	v.run("run", server.URL+"/mcp", "--name", group, "--transport", "streamable-http", "--group", group)
	t.Cleanup(func() { v.run("rm", group) })
	w.untilServers(group + " ready")
	w.call(group, "through ToolHive")

	v.run("stop", group)
	w.untilServers("")
}
