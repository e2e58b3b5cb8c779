package history_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsh-dev/mcsh/control"
	"github.com/mcsh-dev/mcsh/gateway/history"
	"github.com/mcsh-dev/mcsh/runs"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/store"
	"github.com/mcsh-dev/mcsh/store/storetest"
)

// TestHistoryElsewhere: the finished runs of one gateway are shown by another one as by itself, with their outputs, and as long.
func TestHistoryElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := storetest.Directory(t)
		a, b := newWorld(t, runs.Options{Shared: dir, TTL: time.Hour}), newWorld(t, runs.Options{Shared: dir, TTL: time.Hour})
		a.end(a.begin("q_ann", "ann", `[{"type":"x"}]`), "ann", "the output", nil)
		time.Sleep(time.Second)
		a.end(a.begin("q_bob", "bob", `[{"type":"y"}]`), "bob", "other", errors.New("it failed"))
		time.Sleep(time.Second)
		b.end(b.begin("q_here", "ann", `[]`), "ann", "mine", nil)
		time.Sleep(5 * time.Second)
		for _, viewer := range []control.Viewer{operator, {All: true}, {Caller: "ann"}, {Caller: "eve"}} {
			if got, want := requests(b.Runs(t.Context(), viewer, control.RunFilter{})), requests(a.Runs(t.Context(), viewer, control.RunFilter{})); !cmp.Equal(got, want) {
				t.Errorf("%+v: runs %v at one gateway, %v at the other", viewer, got, want)
			}
			for _, request := range []string{"q_ann", "q_bob", "q_here"} {
				here, err := a.Run(t.Context(), viewer, request)
				there, err2 := b.Run(t.Context(), viewer, request)
				here.Cursor, there.Cursor = 0, 0
				if diff := cmp.Diff(here, there); diff != "" || (err == nil) != (err2 == nil) {
					t.Errorf("%+v, %s: %v, %v\n%s", viewer, request, err, err2, diff)
				}
				if part, err := b.Output(t.Context(), viewer, control.OutputRequest{Request: request, Stage: 1}); viewer.Results && (err != nil || len(part.Data) == 0) {
					t.Errorf("%s: output %q, %v", request, part.Data, err)
				}
			}
		}
		time.Sleep(2 * time.Hour)
		if got := requests(b.Runs(t.Context(), operator, control.RunFilter{})); len(got) > 0 {
			t.Errorf("after their time there are %v", got)
		}
	})
}

// TestHistoryElsewhereFull: where there are as many runs as are kept, newer ones of another gateway take the place of the oldest.
func TestHistoryElsewhereFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := storetest.Directory(t)
		a, b := newWorld(t, runs.Options{Shared: dir, TTL: time.Hour}), newWorld(t, runs.Options{Shared: dir, TTL: time.Hour})
		for i := range 1000 {
			b.begin(fmt.Sprint("h_", i), "ann", `[]`).End(stages.Report{}, 0, nil)
			time.Sleep(time.Millisecond)
		}
		a.end(a.begin("q_new", "ann", `[]`), "ann", "x", nil)
		a.Sync(t.Context())
		time.Sleep(5 * time.Second)
		got := requests(b.Runs(t.Context(), operator, control.RunFilter{}))
		if len(got) != 1000 || !slices.Contains(got, "q_new") || slices.Contains(got, "h_0") {
			t.Errorf("%d runs; the new one: %v, the oldest: %v", len(got), slices.Contains(got, "q_new"), slices.Contains(got, "h_0"))
		}
	})
}

// TestHistoryWithoutStore: where the store fails, or has something else, the runs of the gateway itself are shown in time.
func TestHistoryWithoutStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := t.TempDir()
		dir, err := store.OpenDirectory(path)
		if err != nil {
			t.Fatal(err)
		}
		defer dir.Close()
		if err := os.Mkdir(filepath.Join(path, "history"), 0o700); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{"history/0-a": "", "history/0-b": "no records", "history/0-c": strings.Repeat("x", 9<<20)} {
			if err := os.WriteFile(filepath.Join(path, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		w := newWorld(t, runs.Options{Shared: dir})
		w.end(w.begin("q_1", "ann", `[]`), "ann", "x", nil)
		time.Sleep(5 * time.Second)
		if got := requests(w.Runs(t.Context(), operator, control.RunFilter{})); len(got) != 1 {
			t.Errorf("got %v", got)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		time.Sleep(5 * time.Second)
		if got := requests(w.Runs(ctx, operator, control.RunFilter{})); len(got) != 1 {
			t.Errorf("got %v", got)
		}
	})
}

// flaky is a store whose writes fail so many times.
type flaky struct {
	store.Store
	failures atomic.Int64
}

func (f *flaky) Put(ctx context.Context, name string, data []byte) error {
	if f.failures.Add(-1) >= 0 {
		return errors.New("the store does not answer")
	}
	return f.Store.Put(ctx, name, data)
}

// TestHistoryElsewhereAll: runs of a burst that are more than an object holds, and those that end while the store fails, are shown by
// another gateway, too.
func TestHistoryElsewhereAll(t *testing.T) {
	for name, tt := range map[string]struct{ runs, plan, failures, huge int }{
		"more than an object": {runs: 200, plan: 64 << 10},
		"the store fails":     {runs: 3, failures: 5},
		"one has no room":     {runs: 3, huge: 6 << 20},
		"both":                {runs: 200, plan: 64 << 10, failures: 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shared := &flaky{Store: storetest.Directory(t)}
				shared.failures.Store(int64(tt.failures))
				a, b := newWorld(t, runs.Options{Shared: shared, TTL: time.Hour}), newWorld(t, runs.Options{Shared: shared, TTL: time.Hour})
				if tt.huge > 0 {
					a.begin("q_huge", strings.Repeat("u", tt.huge), `[]`).End(stages.Report{}, 0, nil)
				}
				for i := range tt.runs {
					a.begin(fmt.Sprint("q_", i), "ann", fmt.Sprintf("%*d", tt.plan, i)).End(stages.Report{}, 0, nil)
				}
				time.Sleep(time.Minute)
				if got := len(requests(b.Runs(t.Context(), operator, control.RunFilter{Limit: 1000}))); got != tt.runs {
					t.Errorf("another gateway shows %d of %d runs", got, tt.runs)
				}
			})
		})
	}
}

// aging is a store whose objects get older by the clock of the test.
type aging struct {
	store.Store
	written sync.Map
}

func (a *aging) Put(ctx context.Context, name string, data []byte) error {
	a.written.Store(name, time.Now())
	return a.Store.Put(ctx, name, data)
}

func (a *aging) List(ctx context.Context, prefix string) iter.Seq2[store.Object, error] {
	return func(yield func(store.Object, error) bool) {
		for o, err := range a.Store.List(ctx, prefix) {
			if at, ok := a.written.Load(o.Name); ok {
				o.Modified = at.(time.Time)
			}
			if !yield(o, err) {
				return
			}
		}
	}
}

// TestHistorySwept: the objects of runs go with the runs.
func TestHistorySwept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := &aging{Store: storetest.Directory(t)}
		objects := func() (n int) {
			for _, err := range shared.List(t.Context(), history.Prefix) {
				if err != nil {
					t.Error(err)
				}
				n++
			}
			return n
		}
		w := newWorld(t, runs.Options{Shared: shared, TTL: time.Hour})
		for i := range 3 {
			w.end(w.begin(fmt.Sprint("q_", i), "ann", `[]`), "ann", "x", nil)
			time.Sleep(20 * time.Minute)
		}
		if n := objects(); n != 3 {
			t.Errorf("there are %d objects, want 3", n)
		}
		time.Sleep(85 * time.Minute) // the first is 145 minutes old
		if n := objects(); n != 1 && n != 2 {
			t.Errorf("the oldest is past its time, and there are %d objects", n)
		}
		time.Sleep(2 * time.Hour)
		if n := objects(); n != 0 {
			t.Errorf("all are past their time, and there are %d objects", n)
		}
		w.kept.Close()
	})
}

// TestHistoryElsewhereEnded: the next holder of a name does not see the runs of the one before at another gateway, whether they are
// written before that one loses access or after; the own runs, yes.
func TestHistoryElsewhereEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := storetest.Directory(t)
		a, b := newWorld(t, runs.Options{Shared: dir, TTL: time.Hour}), newWorld(t, runs.Options{Shared: dir, TTL: time.Hour})
		ann := control.Viewer{Caller: "ann"}
		a.end(a.begin("q_written", "ann", `[]`), "ann", "x", nil)
		time.Sleep(5 * time.Second)
		a.end(a.begin("q_unwritten", "ann", `[]`), "ann", "x", nil)
		b.EndUser("ann")
		a.end(a.begin("q_before_a_knows", "ann", `[]`), "ann", "x", nil)
		time.Sleep(time.Second)
		a.EndUser("ann")
		time.Sleep(5 * time.Minute)
		c := newWorld(t, runs.Options{Shared: dir, TTL: time.Hour}) // it has not been there
		for name, w := range map[string]world{"the same gateway": a, "another gateway": b} {
			if got := requests(w.Runs(t.Context(), ann, control.RunFilter{})); len(got) > 0 {
				t.Errorf("%s shows the next holder of the name %v", name, got)
			}
		}
		if got := requests(c.Runs(t.Context(), ann, control.RunFilter{})); !slices.Equal(got, []string{"q_written"}) {
			t.Errorf("a gateway that starts later shows %v, want what had been written before", got)
		}
		a.end(a.begin("q_next", "ann", `[]`), "ann", "x", nil)
		time.Sleep(5 * time.Second)
		if got := requests(b.Runs(t.Context(), ann, control.RunFilter{})); !slices.Equal(got, []string{"q_next"}) {
			t.Errorf("the next holder of the name sees %v of the own runs", got)
		}
	})
}
