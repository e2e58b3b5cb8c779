//go:build linux

package local_test

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/sandbox"
	"github.com/mcsh-dev/mcsh/sandbox/local"
	"github.com/mcsh-dev/mcsh/stages"
)

// applets returns the processes that the only worker of this process has.
func applets(t *testing.T) []int {
	t.Helper()
	var pids []int
	for worker := range children(t, os.Getpid()) {
		pids = append(pids, slices.Collect(maps.Keys(children(t, worker)))...)
	}
	return pids
}

// TestKeptAlone: where a run may have one process, the jq of a for_each is one for all items, and makes way for another program.
func TestKeptAlone(t *testing.T) {
	d := local.New(local.Options{Worker: []string{workerFile}, Scratch: t.TempDir()})
	p, err := sandbox.New(t.Context(), sandbox.Options{Driver: d, Warm: -1, Budget: sandbox.Budget{Processes: 1}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	s, err := p.Open(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	item := func(c stages.Command) []int {
		t.Helper()
		f, err := s.Prepare([]stages.Command{c}, nil)
		if err == nil {
			err = f(t.Context(), strings.NewReader("1"), io.Discard)
		}
		if err != nil {
			t.Fatal(err)
		}
		return applets(t)
	}
	jq := stages.Command{Name: "jq", Args: []string{"-c", ". + 1"}, Timeout: time.Minute, Each: true}
	first := item(jq)
	for range 10 {
		if again := item(jq); len(first) != 1 || !slices.Equal(again, first) {
			t.Fatalf("processes %v were followed by %v, want one for all", first, again)
		}
	}
	if left := item(stages.Command{Name: "wc", Timeout: time.Minute}); len(left) > 0 {
		t.Errorf("beside wc there were the processes %v", left)
	}
}

// TestKept: a jq that runs once per item is one process for many of them, until it has taken much; another one takes
// its place when it is killed, and none outlives the session.
func TestKept(t *testing.T) {
	s, err := newPool(t, t.TempDir()).Open(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	f, err := s.Prepare([]stages.Command{{Name: "jq", Args: []string{"-c", ". + 1"}, Timeout: time.Minute, Each: true}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	item := func(in string) {
		t.Helper()
		var out strings.Builder
		if err := f(t.Context(), strings.NewReader(in), &out); err != nil {
			t.Fatal(err)
		}
	}
	one := func() int {
		t.Helper()
		pids := applets(t)
		if len(pids) != 1 {
			t.Fatalf("the worker has the processes %v, want one", pids)
		}
		return pids[0]
	}
	item("1")
	first := one()
	for i := range 50 {
		item(fmt.Sprint(i))
	}
	if again := one(); again != first {
		t.Errorf("process %d followed process %d, want one for all", again, first)
	}
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "all of its threads are dead", func() bool {
		_, err := os.Stat(fmt.Sprintf("/proc/%d", first))
		return os.IsNotExist(err)
	})
	item("2")
	second := one()
	if err := f(t.Context(), strings.NewReader("["+strings.Repeat("1,", 4<<20)+"1] | 3"), io.Discard); err == nil {
		t.Error("an array plus a number, and no JSON: no error")
	}
	if slices.Contains(applets(t), second) {
		t.Error("a process that has taken much was kept")
	}
	item("3")
	last := one()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	eventually(t, "the last one is dead", func() bool { return gone(last) })
}
