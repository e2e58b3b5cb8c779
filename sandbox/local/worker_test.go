//go:build linux

package local_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mcsh-dev/mcsh/sandbox/jail"
	"github.com/mcsh-dev/mcsh/sandbox/worker"
	"github.com/mcsh-dev/mcsh/stages"
)

// TestWorkerLockedIn (S19) has a worker try what it must not be able to do itself, should one of its bugs be found.
func TestWorkerLockedIn(t *testing.T) {
	abi := jail.LandlockABI()
	if abi == 0 {
		t.Skip("without Landlock a worker can open what its user can")
	}
	scratch := t.TempDir()
	workers, err := worker.NewLauncher(t.Context(), []string{probeFile, "as-worker"}, "", "")
	if err != nil {
		t.Fatal(err)
	}
	said, ours, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close()
	p, stdin, stdout, err := workers.Start(scratch, ours)
	ours.Close()
	if err != nil {
		t.Fatal(err)
	}
	stdin.Close()
	defer stdout.Close()
	out, err := io.ReadAll(io.MultiReader(stdout, said))
	if err != nil {
		t.Error(err)
	}
	if state, err := p.Wait(); err != nil || state.Status != 0 {
		t.Fatalf("%v, %v: %s", state.Status, err, out)
	}
	want := fmt.Sprintf("open %s\n", filepath.Join(scratch, "own"))
	if abi < 6 { // signals cannot be kept in
		want += "kill parent\n"
	}
	if string(out) != want {
		t.Errorf("these worked:\n%swant only:\n%s", out, want)
	}
}

// running starts a command that waits for its input, and returns its process.
func running(t *testing.T, c stages.Command) (pid int) {
	t.Helper()
	s, err := newPool(t, t.TempDir()).Open(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	f, err := s.Prepare([]stages.Command{c}, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- f(t.Context(), r, io.Discard) }()
	t.Cleanup(func() { w.Close(); <-done })
	eventually(t, c.Name+" runs", func() bool {
		for worker := range children(t, os.Getpid()) {
			for child, name := range children(t, worker) {
				if name == c.Name {
					pid = child
				}
			}
		}
		return pid != 0
	})
	return pid
}

// TestCommandYields: a command is the first to be killed when memory runs out, and the last to get the processor.
func TestCommandYields(t *testing.T) {
	pid := running(t, stages.Command{Name: "cut", Args: []string{"-c1"}, Timeout: time.Minute})
	score, err := os.ReadFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid))
	if err != nil || string(bytes.TrimSpace(score)) != "1000" {
		t.Errorf("oom_score_adj: got %q, %v, want 1000", score, err)
	}
	own, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil {
		t.Fatal(err)
	}
	its, err := unix.Getpriority(unix.PRIO_PROCESS, pid)
	if err != nil || its != max(own-5, 1) { // both count down from 40
		t.Errorf("priority: got %d, %v, want 5 below %d", its, err, own)
	}
	limits, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil || !strings.Contains(string(limits), "CapEff:\t0000000000000000") || !strings.Contains(string(limits), "Seccomp:\t2") ||
		!strings.Contains(string(limits), "Threads:\t1\n") {
		t.Errorf("%v: want no capability, a filter and one thread in:\n%s", err, limits)
	}
}
