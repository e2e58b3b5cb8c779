package stages_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcsh-dev/mcsh/runs"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/store"
	"github.com/mcsh-dev/mcsh/store/storetest"
)

// A cutStore is the way of one gateway to a store, which can be cut, and is cut after some writes.
type cutStore struct {
	store.Store
	down atomic.Bool
	puts atomic.Int64 // that are left; 0: any number
}

func (c *cutStore) Put(ctx context.Context, name string, data []byte) error {
	if c.down.Load() {
		return errors.New("the network is down")
	}
	c.down.Store(c.puts.Add(-1) == 0)
	return c.Store.Put(ctx, name, data)
}

// beginning tells the id of each run that begins.
type beginning struct {
	stages.Runs
	ids chan string
}

func (b beginning) Begin() (string, func()) {
	id, end := b.Runs.Begin()
	b.ids <- id
	return id, end
}

// posts counts the calls of a tool with effects by its argument, at all gateways.
type posts struct {
	mu    sync.Mutex
	calls map[string]int
}

func (p *posts) count(args map[string]any) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	x := fmt.Sprint(args["x"])
	p.calls[x]++
	return x
}

func (p *posts) all() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.calls)
}

// TestDeadGateway: another gateway continues a for_each whose gateway is cut off from the store in the middle, which ends the run with
// any on_error. No item is called twice: neither those that the first one has called nor those whose calls were under way.
func TestDeadGateway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := storetest.Directory(t)
		called := &posts{calls: map[string]int{}}
		link := &cutStore{Store: dir}
		a, b := newKept(t, runs.Options{Shared: link}), newKept(t, runs.Options{Shared: dir})
		post := func(_ context.Context, args map[string]any) (string, error) {
			x := called.count(args)
			time.Sleep(time.Second / 2)
			if x == "30" {
				link.down.Store(true) // when those beside it are called, too: else one could be noted, and not called any more
			}
			time.Sleep(time.Second / 2)
			return fmt.Sprintf(`{"done":%s}`, x), nil
		}
		a.add("post", writes, "x", post)
		b.add("post", writes, "x", post)
		ids := make(chan string, 1)
		a.deps.Runs = beginning{a.deps.Runs, ids}
		ended := make(chan error)
		go func() {
			_, _, err := a.run(t, "["+numbers100+","+cat+`,{"type":"tool","server":"demo","name":"post","for_each":true,"concurrency":4,"on_error":"collect"}]`)
			ended <- err
		}()
		id := <-ids
		if _, errs := b.compile(t, resume(id)); len(errs) != 1 || !strings.Contains(errs[0].Msg, "is still running") {
			t.Errorf("continuing a run under way: %v", errs)
		}
		if err := <-ended; err == nil || !strings.Contains(err.Error(), "it cannot be noted") {
			t.Errorf("the run that was cut off: %v", err)
		}
		before := called.all()
		out, report, err := b.run(t, resume(id, `"on_error":"skip"`))
		if err != nil {
			t.Fatalf("continuing: %v", err)
		}
		last := report.Stages[len(report.Stages)-1]
		if last.Resumed < 20 || last.Resumed > int64(len(before)) {
			t.Errorf("%d items were known of %d that were called", last.Resumed, len(before))
		}
		after := called.all()
		for x, n := range after {
			if n != 1 {
				t.Errorf("item %s was called %d times", x, n)
			}
		}
		if len(after) != 100 || strings.Count(out, "done") < 92 {
			t.Errorf("%d of 100 items were called, %d have results", len(after), strings.Count(out, "done"))
		}
		link.down.Store(false)
		if e := a.failed(t, resume(id)); !strings.Contains(e.Msg, "is continued by run") || e.Run != "" || e.Continue != 0 {
			t.Errorf("continuing it at the first gateway: %+v", e)
		}
	})
}

// TestClaimThenDeath: a gateway that continues a run is cut off as soon as its claim is written. Another one continues that run, and
// knows the calls of the first.
func TestClaimThenDeath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := storetest.Directory(t)
		link := &cutStore{Store: dir}
		called := &posts{calls: map[string]int{}}
		a, b, c := newKept(t, runs.Options{Shared: dir}), newKept(t, runs.Options{Shared: link}), newKept(t, runs.Options{Shared: dir})
		for _, k := range []*kept{a, b, c} {
			k.add("post", writes, "x", func(_ context.Context, args map[string]any) (string, error) {
				if x := called.count(args); x != "3" {
					return x, nil
				}
				return "", errors.New("out of order")
			})
		}
		_, first, err := a.run(t, "["+numbers5+`,{"type":"tool","server":"demo","name":"post","for_each":true,"concurrency":1}]`)
		if err == nil {
			t.Fatal("the first run did not fail")
		}
		time.Sleep(5 * time.Second)
		link.puts.Store(2) // what the run inherits, and its claim
		_, second, err := b.run(t, resume(first.Run, `"on_error":"skip"`))
		if !link.down.Load() || second.Run == "" {
			t.Fatalf("the second run: %v", err)
		}
		if _, _, err := c.run(t, resume(second.Run, `"on_error":"skip"`)); err != nil {
			t.Errorf("the third run: %v", err)
		}
		if all := called.all(); !maps.Equal(all, map[string]int{"1": 1, "2": 1, "3": 2, "4": 1, "5": 1}) {
			t.Errorf("the calls, of which that with 3 has failed: %v", all)
		}
	})
}

// lastFile cuts a gateway off from the store as soon as it has saved a file.
type lastFile struct {
	stages.Files
	link *cutStore
}

func (f lastFile) SaveFile(ctx context.Context, file stages.SavedFile, in io.Reader) (io.ReadCloser, error) {
	saved, err := f.Files.SaveFile(ctx, file, in)
	f.link.down.Store(true)
	return saved, err
}

// TestAppendThenDeath: a gateway is cut off between appending to a file of a shared workspace and the note of it. Another one that
// continues the run does not append again.
func TestAppendThenDeath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := storetest.Directory(t)
		link := &cutStore{Store: dir}
		a, b := newKept(t, runs.Options{Shared: link}), newKept(t, runs.Options{Shared: dir})
		a.withFiles(t, "")
		a.deps.Files, b.deps.Files = lastFile{a.files, link}, a.files
		slow := func(context.Context, map[string]any) (string, error) {
			time.Sleep(30 * time.Second)
			return "data\n", nil
		}
		a.add("slow", reads, "x", slow)
		b.add("slow", reads, "x", slow)
		ids := make(chan string, 1)
		a.deps.Runs = beginning{a.deps.Runs, ids}
		if _, _, err := a.run(t, `[{"type":"tool","server":"demo","name":"slow","args":{"x":1}},{"type":"tee","path":"log","append":true}]`); err != nil {
			t.Fatal(err)
		}
		_, _, err := b.run(t, resume(<-ids))
		if err == nil || !strings.Contains(err.Error(), "it may have taken effect") {
			t.Errorf("continuing: %v", err)
		}
		if saved := a.saved(t); strings.Count(saved, "data") != 1 {
			t.Errorf("the file: %s", saved)
		}
	})
}

// cutList is a store of runs that has lost the end of each list of effects.
type cutList struct{ stages.Runs }

func (c cutList) Open(run, name string) (data *io.SectionReader, incomplete string, release func()) {
	data, incomplete, release = c.Runs.Open(run, name)
	if name == "effects" && data != nil {
		data = io.NewSectionReader(data, 0, data.Size()-2)
	}
	return data, incomplete, release
}

// TestCutEffects: where the end of the list of effects is lost with its gateway, a call that had begun is not made again.
func TestCutEffects(t *testing.T) {
	k := newKept(t, runs.Options{Shared: storetest.Directory(t)})
	called := &posts{calls: map[string]int{}}
	k.add("post", writes, "x", func(_ context.Context, args map[string]any) (string, error) {
		if x := called.count(args); x != "3" {
			return x, nil
		}
		return "", errors.New("out of order")
	})
	_, report, err := k.run(t, "["+numbers5+`,{"type":"tool","server":"demo","name":"post","for_each":true,"concurrency":1}]`)
	if err == nil {
		t.Fatal("the run did not fail")
	}
	k.deps.Runs = cutList{k.deps.Runs}
	if e := k.failed(t, resume(report.Run)); e.Code != stages.Denied || !e.Resume || e.Run == "" {
		t.Errorf("without on_error: %+v", e)
	}
	out, _, err := k.run(t, resume(report.Run, `"on_error":"skip"`))
	if err != nil || out != "[\"1\",\n\"2\",\n\"4\",\n\"5\"]\n" {
		t.Errorf("got %q, %v", out, err)
	}
	for x, n := range called.all() {
		if n != 1 {
			t.Errorf("item %s was called %d times", x, n)
		}
	}
}
