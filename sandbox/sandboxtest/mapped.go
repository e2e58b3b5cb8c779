package sandboxtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/sandbox"
	"github.com/mcsh-dev/mcsh/stages"
)

// A mapJob is an item of a MapFilter, with what became of it.
type mapJob struct {
	in     string
	refuse error // of its output
	ended  chan struct{}

	onEnd func(error) // may be nil

	out  strings.Builder
	ends int
	err  error
}

func (j *mapJob) Input() []byte { return []byte(j.in) }

func (j *mapJob) Write(p []byte) (int, error) {
	if j.refuse != nil {
		return 0, j.refuse
	}
	return j.out.Write(p)
}

func (j *mapJob) End(err error) {
	if j.ends++; j.ends == 1 {
		j.err = err
		close(j.ended)
		if j.onEnd != nil {
			j.onEnd(err)
		}
	}
}

func newJobs(items ...string) (jobs []*mapJob) {
	for _, in := range items {
		jobs = append(jobs, &mapJob{in: in, ended: make(chan struct{})})
	}
	return jobs
}

// mapper readies a command for many items.
func mapper(t *testing.T, s stages.Session, used func(int, stages.Usage), c stages.Command) stages.MapFilter {
	t.Helper()
	f, err := s.Map(each(c), used)
	if err != nil || f == nil {
		t.Fatalf("Map(%v): %v", c, err)
	}
	return f
}

// mapAll runs a command on all jobs, and finds each ended once.
func mapAll(t *testing.T, f stages.MapFilter, concurrency int, jobs ...*mapJob) {
	t.Helper()
	feed := make(chan stages.Job)
	go func() {
		defer close(feed)
		for _, j := range jobs {
			feed <- j
		}
	}()
	f(t.Context(), feed, concurrency)
	for i, j := range jobs {
		if j.ends != 1 {
			t.Errorf("item %d, %.40q, has ended %d times", i, j.in, j.ends)
		}
	}
}

// testMappedFew and testMapped compare many items in flight with a process for each: for some programs of each sort, and for
// the others.
func testMappedFew(t *testing.T, open func() sandbox.Driver) {
	compareManyMapped(t, open, [][]string{
		{"-c", "."},
		{"-e", ".a?"},
		{"-c", ". as $x | debug, (1 | stderr), halt_error"},
		{"-s", "."},
	})
}

func testMapped(t *testing.T, open func() sandbox.Driver) {
	compareManyMapped(t, open, [][]string{
		{"-c", ".a.b"},
		{"-c", ".[]?"},
		{"-n", "first(inputs)"},
		{"-n", "1"},
		{"-c", "[., input]"},
		{"empty"},
		{"halt"},
		{"-j", "."},
		{"-R", "length"},
		{"-Rs", "length"},
		{"-c", "--stream", "."},
		{"--version"},
	})
}

func compareManyMapped(t *testing.T, open func() sandbox.Driver, programs [][]string) {
	t.Helper()
	items := []string{
		`{"a":1,"b":[1,2,3]}`, ``, "{\"a\":2}\n{\"a\":3}\n", `{"a":`, `[[1],[2],["x"]]`, `{"a":"text"}`, "null", "1 2 3 4", `"é\u0000"`,
		`{"a":{"b":12345678901234567890.5}}`, "not json", "\xff\xfe\x00", strings.Repeat(`{"a":3} `, 50), "\n", `[` + strings.Repeat(`{"a":[1,2]},`, parttest.Times(6_000, 20_000)) + `1]`, `{"a":1}`,
	}
	s := newSession(t, open)
	for _, args := range programs {
		t.Run(strings.ReplaceAll(fmt.Sprint(args), "/", "_"), func(t *testing.T) {
			c := command("jq", args...)
			var want []result
			for _, item := range items {
				want = append(want, resultOf(t, s, item, c))
			}
			for _, concurrency := range []int{1, 4} {
				var mu sync.Mutex
				uses := 0
				f := mapper(t, s, func(_ int, u stages.Usage) {
					mu.Lock()
					defer mu.Unlock()
					uses++
					if u.Elapsed <= 0 || u.CPU < 0 {
						t.Errorf("got usage %+v, want some time", u)
					}
				}, c)
				jobs := newJobs(append(items, append(items, items...)...)...)
				mapAll(t, f, concurrency, jobs...)
				for i, j := range jobs {
					compareMapped(t, want[i%len(items)], j, c)
				}
				if uses != len(jobs) {
					t.Errorf("used got %d items of %d", uses, len(jobs))
				}
			}
		})
	}
}

// compareMapped compares an item with what a process of its own made of it.
func compareMapped(t *testing.T, want result, j *mapJob, c stages.Command) {
	t.Helper()
	got := result{Out: j.out.String()}
	var e *stages.Error
	if errors.As(j.err, &e) {
		got.Code, got.Place, got.Msg, got.Hint, got.Sample, got.Cut = string(e.Code), string(e.Place), e.Msg, e.Hint, string(e.Sample), e.Cut
	} else if j.err != nil {
		t.Errorf("item %.40q: %v", j.in, j.err)
	}
	want.In, want.Bytes = nil, nil // counted elsewhere
	if want.Code != "" {
		want.Out, got.Out = "", "" // how far it came is a matter of chance
	}
	if endsUnread(c) {
		want.Sample, want.Cut, got.Sample, got.Cut = "", false, "", false // likewise
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("item %.40q, a process for it (-), one for all (+):\n%.2000s", j.in, diff)
	}
}

// faulty does to an item what it says.
const faulty = `if . == "loop" then def f: f; f elif . == "memory" then reduce range(40) as $n ("xxxxxxxx"; . + .) | length ` +
	`elif . == "output" then range(300000) elif . == "noise" then range(200000) | debug | empty ` +
	`elif . == "deep" then def g: [g]; g elif . == "error" then error("no") elif . == "none" then empty ` +
	`elif . == "several" then 1, 2, 3 else . end`

// testMappedFaults has items fail in every way in the middle of many.
func testMappedFaults(t *testing.T, open func() sandbox.Driver) {
	s := newSession(t, open)
	c := command("jq", "-c", faulty)
	quick := c
	quick.Timeout = loopTime // the items around it have to be done by then
	var output strings.Builder
	for i := range 300_000 {
		fmt.Fprintln(&output, i)
	}
	large := `"` + strings.Repeat("x", 16<<20) + `"`
	for _, faults := range [][]struct {
		item, out string
		code      stages.Code
		msg       string
	}{
		{{`"error"`, "", stages.CommandFailed, "no"}, {`"none"`, "", "", ""}, {`"several"`, "1\n2\n3\n", "", ""}, {large, large + "\n", "", ""}},
		{{`"loop"`, "", stages.Timeout, loopTime.String()}},
		{{`"memory"`, "", stages.LimitExceeded, "memory"}, {`"memory"`, "", stages.LimitExceeded, "memory"}},
		{{`"deep"`, "", stages.LimitExceeded, ""}, {`"error"`, "", stages.CommandFailed, "no"}},
		{{`"output"`, output.String(), "", ""}, {`"noise"`, "", "", ""}},
	} {
		t.Run(faults[0].item, func(t *testing.T) {
			var items []string
			at := map[int]int{}
			for i, fault := range faults {
				for n := range 150 {
					items = append(items, fmt.Sprint(n))
				}
				at[len(items)] = i
				items = append(items, fault.item)
			}
			for n := range 150 {
				items = append(items, fmt.Sprint(n))
			}
			jobs := newJobs(items...)
			c := c
			if faults[0].code == stages.Timeout {
				c = quick
			}
			mapAll(t, mapper(t, s, nil, c), 2, jobs...)
			for i, j := range jobs {
				n, bad := at[i]
				switch {
				case !bad && (j.err != nil || j.out.String() != j.in+"\n"):
					t.Errorf("item %d: got %.40q, %v, want %q", i, j.out.String(), j.err, j.in)
				case bad && faults[n].code == "" && (j.err != nil || j.out.String() != faults[n].out):
					t.Errorf("item %d: got %d bytes, %v, want %d", i, j.out.Len(), j.err, len(faults[n].out))
				case bad && faults[n].code != "":
					if e := asError(t, j.err); e.Code != faults[n].code || !strings.Contains(e.Msg, faults[n].msg) || string(e.Sample) != j.in {
						t.Errorf("item %d: got %s: %s, for %q, want %s with %q", i, e.Code, e.Msg, e.Sample, faults[n].code, faults[n].msg)
					}
				}
			}
		})
	}
}

// testMappedEnds has items whose output is refused, that wait behind one that does not end, and that are cancelled.
func testMappedEnds(t *testing.T, open func() sandbox.Driver) {
	s := newSession(t, open)
	f := mapper(t, s, nil, command("jq", "-c", faulty))
	quick := make([]string, 100)
	for i := range quick {
		quick[i] = fmt.Sprint(i)
	}
	t.Run("refused", func(t *testing.T) {
		jobs := newJobs(append(append(quick, `"output"`), quick...)...)
		full := errors.New("no room")
		refuses := jobs[len(quick)]
		refuses.refuse = full
		mapAll(t, f, 1, jobs...)
		if !errors.Is(refuses.err, full) {
			t.Errorf("got %v, want %v", refuses.err, full)
		}
		unharmed(t, append(jobs[:len(quick)], jobs[len(quick)+1:]...))
	})
	t.Run("stopped", func(t *testing.T) { stopMapped(t, f) })
	t.Run("cancelled", func(t *testing.T) { cancelMapped(t, f, quick) })
	t.Run("afterwards", func(t *testing.T) {
		jobs := newJobs(quick...)
		mapAll(t, f, 4, jobs...)
		unharmed(t, jobs)
	})
}

// unharmed finds that jobs have given what they were given.
func unharmed(t *testing.T, jobs []*mapJob) {
	t.Helper()
	for _, j := range jobs {
		if j.err != nil || j.out.String() != j.in+"\n" {
			t.Errorf("item %.40q: got %.40q, %v", j.in, j.out.String(), j.err)
		}
	}
}

// stopMapped has one item end all of them: those before it have succeeded, those behind it were not tried.
func stopMapped(t *testing.T, f stages.MapFilter) {
	const fails, all = 59, 1000
	for _, fault := range []string{`"error"`, `"output"`, `"deep"`} {
		ctx, cancel := context.WithCancel(t.Context())
		items := make([]string, all)
		for i := range items {
			items[i] = fmt.Sprint(i)
		}
		items[fails] = fault
		jobs := newJobs(items...)
		jobs[fails].refuse = errors.New("no room")
		jobs[fails].onEnd = func(error) { cancel() }
		feed := make(chan stages.Job, 128)
		go func() {
			defer close(feed)
			for _, j := range jobs {
				feed <- j
			}
		}()
		f(ctx, feed, 1)
		unharmed(t, jobs[:fails])
		if err := jobs[fails].err; err == nil || errors.Is(err, stages.ErrUntried) {
			t.Errorf("%s: the item that fails has ended with %v", fault, err)
		}
		for i, j := range jobs[fails+1:] {
			if j.err != stages.ErrUntried || j.ends != 1 {
				t.Errorf("%s: item %d behind it has ended %d times, with %v, want %v", fault, i+1, j.ends, j.err, stages.ErrUntried)
			}
		}
	}
}

// cancelMapped runs items of which those before one that does not end are answered while it runs, and cancels the rest.
func cancelMapped(t *testing.T, f stages.MapFilter, quick []string) {
	ctx, cancel := context.WithCancel(t.Context())
	jobs := newJobs(slices.Concat(quick, []string{`"loop"`}, slices.Repeat(quick, 7))...) // more than are under way at a time
	feed := make(chan stages.Job)
	returned := make(chan struct{})
	go func() {
		f(ctx, feed, 1)
		close(returned)
	}()
	sent := 0
	deadline := time.NewTimer(2 * time.Minute)
	for done := 0; done < len(quick); {
		select {
		case feed <- jobs[min(sent, len(jobs)-1)]:
			sent++
		case <-jobs[done].ended:
			done++
		case <-deadline.C:
			t.Fatalf("%d items were answered, want %d", done, len(quick))
		}
	}
	cancel()
	close(feed)
	<-returned
	unharmed(t, jobs[:len(quick)])
	for i, j := range jobs[len(quick):max(sent, len(quick))] {
		switch {
		case j.ends != 1:
			t.Errorf("item %d has ended %d times", i, j.ends)
		case j.err != stages.ErrUntried && (i > 0 || asError(t, j.err).Code != stages.Cancelled):
			t.Errorf("item %d: got %v, want that only the first was cancelled, and the others were not tried", i, j.err)
		}
	}
}
