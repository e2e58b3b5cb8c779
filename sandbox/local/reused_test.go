//go:build linux

package local_test

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/sandbox"
	"github.com/mcsh-dev/mcsh/sandbox/local"
	"github.com/mcsh-dev/mcsh/stages"
)

// TestReused: which commands of jq get a process that has run others, in the same run and in later ones.
func TestReused(t *testing.T) {
	pool := func(lasting bool) *sandbox.Pool {
		d := local.New(local.Options{Worker: []string{workerFile}, Scratch: t.TempDir()})
		p, err := sandbox.New(t.Context(), sandbox.Options{Driver: d, Warm: -1, Lasting: lasting})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.Close() })
		return p
	}
	has := func(before, now []int) bool {
		return slices.ContainsFunc(before, func(pid int) bool { return slices.Contains(now, pid) })
	}
	lasting, single, another := pool(true), pool(false), pool(true)
	var s stages.Session
	open := func(p *sandbox.Pool) {
		t.Helper()
		if s != nil {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
		var err error
		if s, err = p.Open(t.Context(), "somebody"); err != nil {
			t.Fatal(err)
		}
	}
	jq := func(in string, timeout time.Duration, filters ...string) {
		t.Helper()
		var chain []stages.Command
		for _, filter := range filters {
			chain = append(chain, stages.Command{Name: "jq", Args: []string{"-c", filter}, Timeout: timeout})
		}
		f, err := s.Prepare(chain, nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = f(t.Context(), strings.NewReader(in), io.Discard) // one fails
	}
	parted := func(s stages.Session, name string, args ...string) {
		t.Helper()
		chain := []stages.Command{{Name: "jq", Args: []string{".[]"}, Timeout: time.Minute}, {Name: name, Args: args, Timeout: time.Minute}}
		f, err := s.Prepare(chain, nil)
		if err == nil {
			err = f(t.Context(), strings.NewReader("[1,2,3]"), io.Discard)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	open(lasting)
	jq("1", time.Minute, ".")
	for _, test := range []struct {
		name   string
		work   func()
		reused bool
	}{
		{"another program", func() { jq("1", time.Minute, ". + 1") }, true},
		{"the same program", func() { jq("2", time.Minute, ". + 1") }, true},
		{"one that has failed", func() { jq("x", time.Minute, ".") }, true},
		{"the next run", func() { open(lasting); jq("1", time.Minute, ". + 2") }, true},
		{"one run further", func() { open(lasting); jq("1", time.Minute, ". + 2") }, true},
		{"much memory", func() { jq("["+strings.Repeat("1,", 4<<20)+"1]", time.Minute, "length") }, false},
		{"much processor time", func() { jq("1", time.Minute, "reduce range(12000000) as $i (0; . + $i)") }, false},
		{"killed in between", func() {
			for _, pid := range applets(t) {
				if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
					t.Error(err)
				}
				eventually(t, "it is dead", func() bool { return gone(pid) })
			}
			jq("1", time.Minute, ".")
		}, false},
		{"two at once", func() { jq("1", time.Minute, ". + 3", ". + 4") }, true},
		{"many turns", func() {
			for range 50 {
				jq("1", time.Minute, ".")
				jq("1", time.Minute, ". + 1")
			}
		}, false},
		{"another limit of time", func() { jq("1", 59*time.Second, ". + 2") }, true},
		{"another pool", func() { open(single); lasting.Close(); jq("1", time.Minute, ".") }, false},
		{"in which each run has a worker of its own", func() { open(single); jq("1", time.Minute, ".") }, false},
	} {
		before := applets(t)
		test.work()
		if now := applets(t); has(before, now) != test.reused {
			t.Errorf("%s: processes %v were followed by %v, want one of them again: %v", test.name, before, now, test.reused)
		}
	}
	// A reader that has enough before its output ends leaves the process a moment, which may be too short on a busy machine.
	open(another)
	reused := 0
	for range 20 {
		before := applets(t)
		parted(s, "head", "-n", "1")
		parted(s, "head", "-c", "0")
		if has(before, applets(t)) {
			reused++
		}
	}
	if reused < 10 {
		t.Errorf("%d of 20 pairs of commands had the process of those before", reused)
	}
	s.Close()
}

// cgoWorker is the worker with the threads of cgo, which nothing else in it asks for.
func cgoWorker(t *testing.T) []string {
	t.Helper()
	source, overlay := filepath.Join(t.TempDir(), "cgo.go"), filepath.Join(t.TempDir(), "overlay.json")
	replaced, err := json.Marshal(map[string]any{"Replace": map[string]string{"../../cmd/mcsh-worker/cgo.go": source}})
	if err := errors.Join(err, os.WriteFile(source, []byte("package main\n\nimport _ \"runtime/cgo\"\n"), 0o600), os.WriteFile(overlay, replaced, 0o600)); err != nil {
		t.Fatal(err)
	}
	return withCgo(t, "-overlay="+overlay, "../../cmd/mcsh-worker")
}

// withCgo builds a program with cgo.
func withCgo(t *testing.T, args ...string) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "worker")
	build := exec.Command("go", append([]string{"build", "-trimpath", "-buildvcs=false", "-o", file}, args...)...)
	build.Env = append(os.Environ(), "CGO_ENABLED=1")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return []string{file}
}

// TestReusedWithCgo: the whole mcsh is a worker too, and where there is a C compiler each of its threads has a stack that
// counts for the limit of memory. By day it is a worker with such threads: with cgo all packages are compiled once more.
func TestReusedWithCgo(t *testing.T) {
	if _, err := exec.LookPath("gcc"); err != nil {
		parttest.Missing(t, "there is no C compiler: apt-get install gcc libc6-dev")
	}
	worker := cgoWorker
	if parttest.Night() {
		worker = func(t *testing.T) []string { return append(withCgo(t, "../../cmd/mcsh"), "worker") }
	}
	d := local.New(local.Options{Worker: worker(t), Scratch: t.TempDir()})
	p, err := sandbox.New(t.Context(), sandbox.Options{Driver: d, Warm: -1, Lasting: true})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	var before []int
	for i := range 3 {
		s, err := p.Open(t.Context(), "somebody")
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "an applet waits", func() bool { return len(applets(t)) == 1 })
		f, err := s.Prepare([]stages.Command{{Name: "jq", Args: []string{"."}, Timeout: time.Minute}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := f(t.Context(), strings.NewReader("1"), io.Discard); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		now := applets(t)
		if i > 0 && !slices.Equal(now, before) {
			t.Errorf("run %d: processes %v were followed by %v", i+1, before, now)
		}
		before = now
	}
}
