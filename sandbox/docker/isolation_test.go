package docker_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/sandbox"
	"github.com/mcsh-dev/mcsh/stages"
)

// TestCallersApart: runs at the same time, of one caller or of several, are in containers of their own, with workers, scratch
// directories and data of their own.
func TestCallersApart(t *testing.T) {
	needLocalEngine(t)
	p := newPoolOf(t, options(), cold)
	a1, a2, b := open(t, p, "a"), open(t, p, "a"), open(t, p, "b")
	runs := []*sorting{sort(t, a1, "one"), sort(t, a2, "two"), sort(t, b, "three")}
	var found []sorter
	eventually(t, "three sorts run", func() bool {
		found = sorters(t)
		return len(found) == 3
	})
	containers, workers, scratch := map[string]int{}, map[int]bool{}, map[string]bool{}
	for _, s := range found {
		containers[s.container]++
		workers[s.parent] = true
		scratch[s.container+s.cwd] = true
	}
	if len(containers) != 3 || len(workers) != 3 || len(scratch) != 3 {
		t.Errorf("got %d containers, %d workers, %d scratch directories; want 3 each: %+v", len(containers), len(workers), len(scratch), found)
	}
	for _, r := range runs {
		r.in.Close()
		if err := <-r.err; err != nil {
			t.Error(err)
		}
		if lines := strings.Fields(r.out.String()); len(lines) == 0 || lines[0] != r.word || lines[len(lines)-1] != r.word {
			t.Errorf("%s: got %d lines of which the first is %q", r.word, len(lines), lines[:min(len(lines), 1)])
		}
	}
	// The next run would see files of the first one in its directory.
	if dirs := scratchOf(t, found[0].pidInit); len(dirs) > 0 {
		eventually(t, "the scratch directories of ended runs are gone", func() bool { return len(scratchOf(t, found[0].pidInit)) <= 1 })
	}
}

// A sorting is a sort that has been given more than it keeps in memory, all the same word, and waits for more.
type sorting struct {
	*running
	word string
	out  *bytes.Buffer
}

func sort(t *testing.T, s stages.Session, word string) *sorting {
	t.Helper()
	f := filter(t, s, "sort")
	r, w := io.Pipe()
	t.Cleanup(func() { w.Close() })
	g := &sorting{&running{w, make(chan error, 1)}, word, &bytes.Buffer{}}
	go func() { g.err <- f(t.Context(), r, g.out) }()
	if _, err := io.WriteString(w, strings.Repeat(word+"\n", 100_000)); err != nil {
		t.Fatal(err)
	}
	return g
}

// A sorter is a process "sort" of a container, as this machine sees it.
type sorter struct {
	container   string
	pid, parent int
	pidInit     int
	cwd         string
}

func sorters(t *testing.T) []sorter {
	t.Helper()
	var found []sorter
	for _, c := range ours(t) {
		top, err := api.ContainerTop(t.Context(), c.ID, []string{"-eo", "pid,ppid,comm"})
		if err != nil {
			continue // it has ended
		}
		for _, p := range top.Processes {
			if p[2] != "sort" {
				continue
			}
			pid, _ := strconv.Atoi(p[0])
			parent, _ := strconv.Atoi(p[1])
			cwd, _ := os.Readlink(filepath.Join("/proc", p[0], "cwd"))
			found = append(found, sorter{c.ID, pid, parent, parentOf(t, parent), cwd})
		}
	}
	return found
}

// scratchOf lists the scratch directories of the container whose first process is pid.
func scratchOf(t *testing.T, pid int) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(pid), "root/var/tmp"))
	if err != nil {
		return nil // the container has ended
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// TestHungryNeighbour: what one run takes of memory, disk, processor or processes is no other run's failure, whether it
// is of the same caller or not. At night jq is hungry, too.
func TestHungryNeighbour(t *testing.T) {
	for _, hungry := range []struct {
		name string
		cmd  stages.Command
		feed bool
		code stages.Code // what becomes of it
	}{
		{"memory", stages.Command{Name: "awk", Args: []string{`BEGIN{for(;;) x = x "0123456789012345678901234567890123456789" x}`}}, false, stages.LimitExceeded},
		{"memory of jq", stages.Command{Name: "jq", Args: []string{"-n", `[range(1e12)]`}}, false, stages.LimitExceeded},
		{"processor", stages.Command{Name: "awk", Args: []string{"BEGIN{for(;;);}"}}, false, stages.Timeout},
		{"runaway jq", stages.Command{Name: "jq", Args: []string{"-n", "def f: f; f"}}, false, stages.Timeout},
		{"disk", stages.Command{Name: "tac"}, true, stages.LimitExceeded},
	} {
		if strings.HasSuffix(hungry.name, "jq") && !parttest.Night() {
			continue
		}
		t.Run(hungry.name, func(t *testing.T) {
			if hungry.feed && testing.Short() {
				t.Skip("it writes 1 GiB")
			}
			p := newPoolOf(t, options(), sandbox.Options{Lasting: true, Budget: sandbox.Budget{Disk: int64(parttest.Times(128<<20, sandbox.Disk))}})
			ctx := t.Context()
			eater := open(t, p, "a")
			hungry.cmd.Timeout = 2 * time.Minute
			if hungry.code == stages.Timeout {
				hungry.cmd.Timeout = time.Duration(parttest.Times(1, 3)) * time.Second
			}
			f, err := eater.Prepare([]stages.Command{hungry.cmd}, nil)
			if err != nil {
				t.Fatal(err)
			}
			var in io.Reader = strings.NewReader("")
			if hungry.feed {
				in = lines{}
			}
			failed := make(chan error, 1)
			go func() { failed <- f(ctx, in, io.Discard) }()
			served := 0
			var e *stages.Error
			for e == nil {
				works(t, p, "a")
				works(t, p, "b")
				served++
				select {
				case err := <-failed:
					if !errors.As(err, &e) || e.Code != hungry.code {
						t.Fatalf("got %v, want %s", err, hungry.code)
					}
				default:
				}
			}
			t.Logf("%d runs of each caller meanwhile; it ended with: %s", served, e.Msg)
		})
	}
}

// lines is endless text.
type lines struct{}

var manyLines = strings.Repeat("some line of text\n", 2000)

func (lines) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		n += copy(p[n:], manyLines)
	}
	return n, nil
}
