package docker_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/google/go-cmp/cmp"

	"github.com/mcsh-dev/mcsh/sandbox"
	"github.com/mcsh-dev/mcsh/sandbox/docker"
)

// openCommands returns commands over a new directory, which belongs to another user than root.
func openCommands(t *testing.T) (*docker.Commands, string) {
	t.Helper()
	needEngine(t)
	return openCommandsOf(t, options())
}

func openCommandsOf(t *testing.T, o docker.Options) (*docker.Commands, string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 {
		if err := os.Chown(dir, 12345, 12345); err != nil {
			t.Fatal(err)
		}
	}
	o.Workspace = "/nonexistent" // of workers only
	c, err := docker.OpenCommands(t.Context(), o, dir)
	if err != nil {
		t.Fatal(err)
	}
	return c, dir
}

// commandContainers returns the containers that have dir.
func commandContainers(t *testing.T, dir string) []container.Summary {
	t.Helper()
	list, err := api.ContainerList(context.WithoutCancel(t.Context()), container.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("label", "mcsh.role=command"))})
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(list, func(c container.Summary) bool {
		return !slices.ContainsFunc(c.Mounts, func(m container.MountPoint) bool { return m.Source == dir })
	})
}

// TestCommands: a command sees its directory, its variables and its own user, and neither a network nor a writable root.
func TestCommands(t *testing.T) {
	t.Parallel()
	c, dir := openCommands(t)
	uid := os.Getuid()
	if uid == 0 {
		uid = 12345
	}
	for _, tt := range []struct {
		line, stdout, stderr string
		code                 int
	}{
		{"echo out; echo err >&2; exit 3", "out\n", "err\n", 3},
		{"pwd; echo $GREETING $HOME $TMPDIR", "/workspace\nhi /var/tmp /var/tmp\n", "", 0},
		{"cat; echo x > made; cat made", "x\n", "", 0},
		{"cat made; echo y > /var/tmp/z && cat /var/tmp/z", "x\ny\n", "", 0},
		{"{ echo x > /usr/x; } 2>/dev/null || echo no", "no\n", "", 0},
		{`while read -r name rest; do case $name in *:) echo "$name";; esac; done < /proc/net/dev`, "lo:\n", "", 0},
		{
			`while read -r name rest; do case $name in Uid:|CapEff:|NoNewPrivs:) echo "$name" $rest;; esac; done < /proc/self/status`,
			fmt.Sprintf("Uid: %d %[1]d %[1]d %[1]d\nCapEff: 0000000000000000\nNoNewPrivs: 1\n", uid), "", 0,
		},
		{"kill -9 $$", "", "", 137},
		{"sleep 1000 & echo x", "x\n", "", 0},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		var stdout, stderr bytes.Buffer
		code, err := c.Run(ctx, []string{"/usr/bin/dash", "-c", tt.line}, []string{"GREETING=hi", "TMPDIR=/nonexistent"}, &stdout, &stderr)
		cancel()
		if diff := cmp.Diff([]any{tt.stdout, tt.stderr, tt.code}, []any{stdout.String(), stderr.String(), code}); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got)\n%s", tt.line, err, diff)
		}
	}
	if data, err := os.ReadFile(filepath.Join(dir, "made")); err != nil || string(data) != "x\n" {
		t.Errorf("the directory has %q, %v", data, err)
	}
	eventually(t, "no container is left", func() bool { return len(commandContainers(t, dir)) == 0 })
}

// TestCommandsLack: a program that the image lacks is an error with its name; a line's own missing command is an exit code.
func TestCommandsLack(t *testing.T) {
	t.Parallel()
	c, _ := openCommands(t)
	for _, tt := range []struct {
		program string
		lacks   bool
	}{{"/usr/bin/dash", false}, {"dash", false}, {"/nonexistent/zsh", true}, {"no-such-shell", true}} {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		code, err := c.Run(ctx, []string{tt.program, "-c", "no-such-command"}, nil, &bytes.Buffer{}, nil)
		cancel()
		if lacks := err != nil && strings.Contains(err.Error(), fmt.Sprintf("has no program %q", tt.program)); lacks != tt.lacks || !lacks && (code != 127 || err != nil) {
			t.Errorf("%s: got %d, %v, want that it is missing: %v", tt.program, code, err, tt.lacks)
		}
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// TestCommandsLackUnknown: a failure of the engine says nothing of the image, and the next run asks again.
func TestCommandsLackUnknown(t *testing.T) {
	t.Parallel()
	needLocalEngine(t)
	engine := engineProxy(t)
	var failed atomic.Bool
	o := options()
	o.Host = serveEngine(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead && strings.HasSuffix(r.URL.Path, "/archive") && failed.CompareAndSwap(false, true) {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		engine.ServeHTTP(w, r)
	}))
	c, _ := openCommandsOf(t, o)
	for i, want := range []string{"", "has no program"} {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		code, err := c.Run(ctx, []string{"/nonexistent/zsh"}, nil, &bytes.Buffer{}, nil)
		cancel()
		if (err == nil) != (want == "") || want != "" && !strings.Contains(err.Error(), want) {
			t.Errorf("run %d: got %d, %v, want an error with %q", i+1, code, err, want)
		}
	}
	if !failed.Load() {
		t.Error("the engine was not asked")
	}
}

// TestCommandsLimits: a container has the limits of workers, ends by itself, and is gone when its call is cancelled.
func TestCommandsLimits(t *testing.T) {
	t.Parallel()
	c, dir := openCommands(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	done := make(chan error, 1)
	go func() {
		_, err := c.Run(ctx, []string{"/usr/bin/dash", "-c", "echo x > made; while :; do :; done"}, nil, &bytes.Buffer{}, nil)
		done <- err
	}()
	eventually(t, "the command runs", func() bool { _, err := os.Stat(filepath.Join(dir, "made")); return err == nil })
	all := commandContainers(t, dir)
	if len(all) != 1 {
		t.Fatalf("got %d containers, want 1", len(all))
	}
	info, err := api.ContainerInspect(t.Context(), all[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	h := info.HostConfig
	if h.Memory != 2*sandbox.Memory || h.MemorySwap != h.Memory || *h.PidsLimit != 512 || h.NanoCPUs == 0 || h.NetworkMode != "none" || !h.ReadonlyRootfs {
		t.Errorf("got the limits %+v", h)
	}
	if e := info.Config.Entrypoint; len(e) != 4 || !slices.Equal(e[:3], []string{"timeout", "-s", "KILL"}) || len(e[3]) != 3 {
		t.Errorf("the container starts with %q, want a limit of some ten minutes", e)
	}
	reason := errors.New("enough")
	stop(reason)
	if err := <-done; !errors.Is(err, reason) {
		t.Errorf("got %v, want the reason of the end", err)
	}
	eventually(t, "no container is left", func() bool { return len(commandContainers(t, dir)) == 0 })
}

// TestCommandsRefused: without an engine or an image nothing opens.
func TestCommandsRefused(t *testing.T) {
	t.Parallel()
	if _, err := docker.OpenCommands(t.Context(), docker.Options{Host: "unix:///nonexistent/engine.sock"}, t.TempDir()); !errors.Is(err, docker.ErrNoEngine) {
		t.Errorf("got %v, want no engine", err)
	}
	needEngine(t)
	o := options()
	o.Image = "mcsh-test/none:" + strings.TrimPrefix(probeImage, "mcsh-test/probe:")
	if _, err := docker.OpenCommands(t.Context(), o, t.TempDir()); !errors.Is(err, docker.ErrNoImage) {
		t.Errorf("got %v, want no image", err)
	}
}
