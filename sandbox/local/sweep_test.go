//go:build linux

package local_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/sandbox"
	"github.com/mcsh-dev/mcsh/sandbox/local"
	"github.com/mcsh-dev/mcsh/stages"
)

// sweepDir tells a process of this test binary that it is a gateway to be killed, and where its workers' files go.
const sweepDir = "MCSH_TEST_SWEEP"

// gateway opens a worker and waits for its end.
func gateway(dir string) {
	d := local.New(local.Options{Worker: []string{os.Getenv(sweepDir + "_WORKER")}, Scratch: dir})
	if _, err := d.Open(context.Background()); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("ready")
	select {}
}

// sortingGateway runs a sort that does not end.
func sortingGateway(dir string) {
	ctx := context.Background()
	d := local.New(local.Options{Worker: []string{os.Getenv(sweepDir + "_WORKER")}, Scratch: dir})
	p, err := sandbox.New(ctx, sandbox.Options{Driver: d, Warm: -1})
	if err != nil {
		fmt.Println(err)
		return
	}
	s, err := p.Open(ctx, "")
	if err != nil {
		fmt.Println(err)
		return
	}
	f, err := s.Prepare([]stages.Command{{Name: "sort", Timeout: time.Hour}}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("ready")
	fmt.Println(f(ctx, lines{}, io.Discard))
}

// TestKilledGateway (S01) kills a gateway in the middle of a sort: its worker ends the sort and removes its files. Only
// the empty directory of the worker is left to the next gateway's sweep.
func TestKilledGateway(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(sweepDir+"_SORT", "yes")
	g := startGateway(t, dir)
	files := func() int {
		found, err := filepath.Glob(filepath.Join(dir, "*", "*", "*"))
		if err != nil {
			t.Fatal(err)
		}
		return len(found)
	}
	eventually(t, "sort has files", func() bool { return files() > 0 })
	worker := 0
	for pid := range children(t, g.Process.Pid) {
		worker = pid
	}
	if err := g.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = g.Wait() // it was killed
	eventually(t, "the worker is dead", func() bool { return gone(worker) })
	if n := files(); n != 0 {
		t.Errorf("%d files are left", n)
	}
	newPool(t, dir)
	if left := directories(t, dir); len(left) != 0 {
		t.Errorf("got %q, want none", left)
	}
}

// TestSweep (S01) kills a gateway: the next one removes what it has left, and nothing of one that lives.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"mcsh-worker-file", "other"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	dead, alive := startGateway(t, dir), startGateway(t, dir)
	scratch := directories(t, dir)
	if len(scratch) != 2 {
		t.Fatalf("two gateways have the directories %q", scratch)
	}
	for _, s := range scratch { // what sort leaves
		if err := os.MkdirAll(filepath.Join(s, "1"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(s, "1", "sortXXXX"), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	worker := 0
	for pid := range children(t, dead.Process.Pid) {
		worker = pid
	}
	if err := dead.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = dead.Wait() // it was killed
	eventually(t, "the worker of the killed gateway is dead", func() bool { return gone(worker) })
	if left := directories(t, dir); len(left) != 2 {
		t.Fatalf("a killed gateway has removed its directory itself: %q are left; the test shows nothing", left)
	}
	newPool(t, dir)
	left := directories(t, dir)
	if len(left) != 1 {
		t.Errorf("got %q, want only the directory of the gateway that lives", left)
	}
	if err := alive.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = alive.Wait() // likewise
	newPool(t, dir)
	if left := directories(t, dir); len(left) != 0 {
		t.Errorf("got %q, want none", left)
	}
	for _, name := range []string{"mcsh-worker-file", "other"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Errorf("what no gateway has made was removed: %v", err)
		}
	}
}

func directories(t *testing.T, dir string) (found []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() {
			found = append(found, filepath.Join(dir, e.Name()))
		}
	}
	return found
}

func startGateway(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), sweepDir+"="+dir, sweepDir+"_WORKER="+workerFile)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }) // it may be dead already
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || strings.TrimSpace(line) != "ready" {
		t.Fatalf("got %q, %v, want a gateway", line, err)
	}
	return cmd
}
