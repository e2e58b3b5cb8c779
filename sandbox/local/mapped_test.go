//go:build linux

package local_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/stages"
)

// A mapJob is an item of a MapFilter.
type mapJob struct {
	in   string
	out  strings.Builder
	ends int
	err  error
}

func (j *mapJob) Input() []byte               { return []byte(j.in) }
func (j *mapJob) Write(p []byte) (int, error) { return j.out.Write(p) }
func (j *mapJob) End(err error)               { j.ends, j.err = j.ends+1, err }

// spinning returns the applets that use the processor.
func spinning(t *testing.T) (pids []int) {
	t.Helper()
	for _, p := range applets(t) {
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p))
		fields := strings.Fields(string(stat)[max(0, strings.LastIndex(string(stat), ")")):])
		if len(fields) < 13 {
			continue
		}
		if ticks, _ := strconv.Atoi(fields[12]); ticks > 30 {
			pids = append(pids, p)
		}
	}
	return pids
}

// TestMappedKilled: when processes are killed that have many items under way, none of them is lost or answered twice; the
// one that is alone when it is killed again has failed.
func TestMappedKilled(t *testing.T) {
	s, err := newPool(t, t.TempDir()).Open(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c := stages.Command{Name: "jq", Args: []string{`if . == "loop" then def f: f; f else . + 1 end`}, Timeout: time.Minute, Each: true}
	f, err := s.Map(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	const many = 200
	var all []*mapJob
	jobs, returned := make(chan stages.Job), make(chan struct{})
	go func() {
		f(t.Context(), jobs, 1)
		close(returned)
	}()
	go func() {
		defer close(jobs)
		for i := range 2 * many {
			j := &mapJob{in: fmt.Sprint(i)}
			if i == many {
				j.in = `"loop"`
			}
			all = append(all, j)
			jobs <- j
		}
	}()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for ended := false; !ended; {
		select {
		case <-returned:
			ended = true
		case <-look.C:
			for _, pid := range spinning(t) {
				_ = syscall.Kill(pid, syscall.SIGKILL) // it may have just ended
			}
		}
	}
	for i, j := range all {
		switch {
		case j.ends != 1:
			t.Errorf("item %d has ended %d times", i, j.ends)
		case i == many && (j.err == nil || !strings.Contains(j.err.Error(), "ended by a signal")):
			t.Errorf("the item that was killed: got %v", j.err)
		case i != many && (j.err != nil || j.out.String() != fmt.Sprintln(i+1)):
			t.Errorf("item %d: got %q, %v", i, j.out.String(), j.err)
		}
	}
}

// TestMappedSideBySide: items that take long run in several processes, however large they are, and in one if that is asked
// for.
func TestMappedSideBySide(t *testing.T) {
	for _, test := range []struct {
		name, program string
		size, items   int
		concurrency   int
		least, most   int // processes
	}{
		{"long", `[limit(100000; repeat(1))] | length`, 10, 20, 4, 2, 4},
		{"long and large", `[limit(100000; repeat(1))] | length`, 70 << 10, 20, 4, 2, 4},
		{"one by one", `[limit(100000; repeat(1))] | length`, 70 << 10, 5, 1, 1, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, err := newPool(t, t.TempDir()).Open(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			c := stages.Command{Name: "jq", Args: []string{test.program}, Timeout: time.Minute, Each: true}
			f, err := s.Map(c, nil)
			if err != nil {
				t.Fatal(err)
			}
			jobs := make(chan stages.Job, test.items)
			for range cap(jobs) {
				jobs <- &mapJob{in: `"` + strings.Repeat("x", test.size) + `"`}
			}
			close(jobs)
			f(t.Context(), jobs, test.concurrency)
			// Those that were used wait for further items.
			if n := len(applets(t)); n < test.least || n > test.most {
				t.Errorf("%d processes, want %d to %d", n, test.least, test.most)
			}
		})
	}
}
