//go:build linux

package local_test

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/sandbox"
	"github.com/mcsh-dev/mcsh/sandbox/local"
	"github.com/mcsh-dev/mcsh/stages"
)

// TestLease: what a worker that serves several runs of its caller has between them is what it had after the first: its
// descriptors, an applet that waits without a program, the empty directory of a sort, and no file.
func TestLease(t *testing.T) {
	scratch := t.TempDir()
	d := local.New(local.Options{Worker: []string{workerFile}, Scratch: scratch})
	p, err := sandbox.New(t.Context(), sandbox.Options{Driver: d, Warm: -1, Lasting: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	var worker int
	var had has
	for i := range 20 {
		s, err := p.Open(t.Context(), "somebody")
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Keep(t.Context(), 1, "secret", strings.NewReader("hush\n")); err != nil {
			t.Fatal(err)
		}
		sorted := strings.Repeat("many lines that are spilled to the disk\n", 10_000)
		for _, c := range []stages.Command{
			{Name: "sort", Args: []string{"-S", "32K"}},
			{Name: "grep", Args: []string{"-f", "@secret"}, Inputs: []string{"secret"}, Set: 1},
			{Name: "jq", Args: []string{"-R", "."}},
			{Name: "jq", Args: []string{"-R", "."}, Each: true},
			{Name: "jq", Args: []string{"-R", "--slurpfile", "s", "@secret", "."}, Inputs: []string{"secret"}, Set: 1},
		} {
			c.Timeout = time.Minute
			f, err := s.Prepare([]stages.Command{c}, nil)
			if err != nil {
				t.Fatal(err)
			}
			_ = f(t.Context(), strings.NewReader(sorted), io.Discard) // two of them fail
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		workers := slices.Collect(maps.Keys(children(t, os.Getpid())))
		if len(workers) != 1 || worker != 0 && workers[0] != worker {
			t.Fatalf("run %d: workers %v, want the one of the runs before, %d", i, workers, worker)
		}
		worker = workers[0]
		if load := p.Load(); load.InUse != 0 || load.Warm != 1 {
			t.Fatalf("run %d: the load is %+v, want one worker that waits", i, load)
		}
		eventually(t, fmt.Sprintf("after run %d the worker has no more than after the second", i), func() bool {
			has := belongings(t, worker, scratch)
			if i == 1 && has.processes == 1 {
				had = has // the jail of a program is built for its first run
			}
			return has.files == 0 && has.directories <= 1 && has.processes == 1 && (i < 2 || has.descriptors <= had.descriptors)
		})
	}
}

// has is how much a worker has.
type has struct{ files, directories, processes, descriptors int }

func belongings(t *testing.T, worker int, scratch string) has {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(scratch, "*", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	rooms, err := filepath.Glob(filepath.Join(scratch, "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", worker))
	if err != nil {
		t.Fatal(err)
	}
	return has{len(left), len(rooms), len(children(t, worker)), len(open)}
}
