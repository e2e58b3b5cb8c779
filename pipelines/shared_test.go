package pipelines_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcsh-dev/mcsh/pipelines"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/store"
	"github.com/mcsh-dev/mcsh/store/storetest"
)

// troubled is a store that counts what it is asked, and fails as fail says.
type troubled struct {
	store.Store
	lists, gets atomic.Int64
	fail        func(ctx context.Context, does, name string) error // before it is asked; nil: never
	after       func(does, name string) error                      // when it has done so; nil: never
}

func (s *troubled) trouble(ctx context.Context, does, name string) error {
	if s.fail == nil {
		return nil
	}
	return s.fail(ctx, does, name)
}

func (s *troubled) Put(ctx context.Context, name string, data []byte) error {
	if err := s.trouble(ctx, "put", name); err != nil {
		return err
	}
	err := s.Store.Put(ctx, name, data)
	if err == nil && s.after != nil {
		err = s.after("put", name)
	}
	return err
}

func (s *troubled) Get(ctx context.Context, name string) ([]byte, error) {
	s.gets.Add(1)
	if err := s.trouble(ctx, "get", name); err != nil {
		return nil, err
	}
	return s.Store.Get(ctx, name)
}

func (s *troubled) List(ctx context.Context, prefix string) iter.Seq2[store.Object, error] {
	s.lists.Add(1)
	if err := s.trouble(ctx, "list", prefix); err != nil {
		return func(yield func(store.Object, error) bool) { yield(store.Object{}, err) }
	}
	return s.Store.List(ctx, prefix)
}

func (s *troubled) Delete(ctx context.Context, name string) error {
	if err := s.trouble(ctx, "delete", name); err != nil {
		return err
	}
	return s.Store.Delete(ctx, name)
}

func directoryStore(t *testing.T) *store.Directory {
	t.Helper()
	d := storetest.Directory(t)
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// put writes an object past the stores of pipelines.
func put(t *testing.T, s store.Store, name, text string) {
	t.Helper()
	if err := s.Put(t.Context(), name, []byte(text)); err != nil {
		t.Fatal(err)
	}
}

// state describes all that a store knows.
func state(t *testing.T, s *pipelines.Store) string {
	t.Helper()
	list, _ := s.List(t.Context())
	var rows []string
	for _, p := range list {
		row := fmt.Sprintf("%s@%d", p.Name, p.Version.Number)
		if p.Version.Private() {
			row += " of " + p.Version.Author.Caller
		}
		if p.Definition != nil {
			row += " " + p.Definition.Description
		}
		rows = append(rows, row)
	}
	return strings.Join(rows, ", ")
}

// TestSharedChanges: each change of one replica is on the other within about two seconds, and a new name at once.
func TestSharedChanges(t *testing.T) {
	objects := directoryStore(t)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		a, b := pipelines.NewSharedStore(objects, t.TempDir()), pipelines.NewSharedStore(objects, t.TempDir())
		var following sync.WaitGroup
		defer following.Wait()
		defer cancel()
		var added atomic.Int64
		following.Go(func() {
			pipelines.NewSet(b, stages.Deps{}, func() uint64 { return 0 }).Follow(ctx, func(c pipelines.Change) { added.Add(int64(len(c.Names["added"]))) })
		})
		save := func(text string, base int, author pipelines.Author) func() error {
			return func() error {
				_, err := a.Save(ctx, "a", saying(text), base, author)
				return err
			}
		}
		for i, step := range []struct {
			change func() error
			want   string
		}{
			{save("one", 0, ann), "a@1 of user ann one"},
			{save("two", 1, ann), "a@2 of user ann two"},
			{func() error { _, err := a.Adopt(ctx, "a", 2); return err }, "a@3 two"},
			{save("three", 3, person), "a@4 three"},
			{func() error { return a.Remove(ctx, "a", 4) }, ""},
			{save("four", 0, bob), "a@6 of user bob four"},
		} {
			if err := step.change(); err != nil {
				t.Fatalf("step %d: %v", i, err)
			}
			if got := state(t, a); got != step.want {
				t.Errorf("step %d: the replica has %q, want %q", i, got, step.want)
			}
			time.Sleep(2*time.Second + time.Millisecond)
			synctest.Wait()
			if got := state(t, b); got != step.want {
				t.Errorf("step %d: the other replica has %q, want %q", i, got, step.want)
			}
		}
		time.Sleep(time.Second) // the tools are looked at twice in a second
		if n := added.Load(); n != 2 {
			t.Errorf("the other replica was told %d times of a new pipeline", n)
		}
		if list, err := b.Versions(ctx, "a"); err != nil || len(list) != 5 || list[0].Number != 6 || list[4].Number != 1 {
			t.Errorf("the other replica has the versions %+v, %v", list, err)
		}
		for asked, want := range map[string]string{"a@1": "one", "a@2": "two", "a@4": "three", "a@5": "", "a@9": ""} {
			if p, err := b.Get(ctx, asked, pipelines.Everybody); want == "" && !errors.Is(err, pipelines.ErrNotFound) || want != "" && (err != nil || p.Definition.Description != want) {
				t.Errorf("%s: %+v, %v", asked, p.Definition, err)
			}
		}
		onlyBob := func(v pipelines.Version) bool { return v.VisibleTo("user bob") }
		if p, err := b.Get(ctx, "a@2", onlyBob); err == nil {
			t.Errorf("bob sees %q, which was private", p.Definition.Description)
		}
	})
}

// TestSharedAtOnce: a name, and a version, that a replica does not know is looked for in the store, but not again and again.
func TestSharedAtOnce(t *testing.T) {
	ctx, objects := t.Context(), &troubled{Store: directoryStore(t)}
	a, b := pipelines.NewSharedStore(objects), pipelines.NewSharedStore(objects)
	set := pipelines.NewSet(b, stages.Deps{}, func() uint64 { return 0 })
	if list, err := b.List(ctx); err != nil || len(list) != 0 {
		t.Fatal(list, err)
	}
	if _, err := a.Save(ctx, "new", saying("one"), 0, ann); err != nil {
		t.Fatal(err)
	}
	if _, err := set.Find(ctx, "new", pipelines.Viewer{Caller: "user bob"}); err == nil {
		t.Error("another caller has it")
	}
	if found, err := set.Find(ctx, "new", pipelines.Viewer{Caller: "user ann"}); err != nil || found.Definition.Description != "one" {
		t.Errorf("got %+v, %v", found, err)
	}
	before, begun := objects.lists.Load(), time.Now()
	for i := range 1000 {
		if _, err := set.Find(ctx, fmt.Sprintf("unknown%d@7", i), pipelines.Operator()); err == nil {
			t.Error("it was found")
		}
	}
	if n, most := objects.lists.Load()-before, int64(2+time.Since(begun)/(200*time.Millisecond)); n > most {
		t.Errorf("the store was asked %d times in %v, want at most %d", n, time.Since(begun), most)
	}
}

// TestSharedConflict: of many writers on one version, in several replicas, one wins each time and the others are told; with any
// version all win.
func TestSharedConflict(t *testing.T) {
	objects := directoryStore(t)
	const rounds = 10
	var wg sync.WaitGroup
	won := make([]int, rounds+1)
	var mu sync.Mutex
	for i := range 3 {
		s := pipelines.NewSharedStore(objects)
		wg.Go(func() {
			for base := 0; base < rounds; {
				v, err := s.Save(t.Context(), "a", saying(fmt.Sprint(i, base)), base, person)
				switch {
				case err == nil && v.Number > rounds:
					t.Errorf("writer %d has saved version %d", i, v.Number)
				case err == nil:
					mu.Lock()
					won[v.Number]++
					mu.Unlock()
				case !errors.Is(err, pipelines.ErrConflict):
					t.Errorf("writer %d: %v", i, err)
					return
				}
				p, err := s.Get(t.Context(), "a", pipelines.Everybody)
				if err != nil {
					t.Error(err)
					return
				}
				base = p.Version.Number
			}
		})
	}
	wg.Wait()
	for n := 1; n <= rounds; n++ {
		if won[n] != 1 {
			t.Errorf("version %d was saved %d times", n, won[n])
		}
	}
	a, b := pipelines.NewSharedStore(objects), pipelines.NewSharedStore(objects)
	for i, s := range []*pipelines.Store{a, b, a} {
		if v, err := s.Save(t.Context(), "a", saying(fmt.Sprint("any", i)), pipelines.Any, person); err != nil || v.Number != rounds+1+i {
			t.Errorf("%d: saved as %d, %v", i, v.Number, err)
		}
	}
	if err := b.Remove(t.Context(), "a", rounds+2); !errors.Is(err, pipelines.ErrConflict) {
		t.Errorf("removing a version that is not the current one: %v", err)
	}
}

// TestSharedPaused: a replica that pauses between its look and its write finds its number free again. Its version does not count.
func TestSharedPaused(t *testing.T) {
	saves := func(t *testing.T, s *pipelines.Store, from, to int) {
		t.Helper()
		for i := from; i < to; i++ {
			if _, err := s.Save(t.Context(), "a", saying(fmt.Sprint(i)), i, person); err != nil {
				t.Fatal(err)
			}
		}
	}
	const many = pipelines.MaxVersions + 5
	saveMany := func(t *testing.T, inner store.Store, s *pipelines.Store) { // of which the last save deletes the first ones
		t.Helper()
		for n := 4; n < many; n++ {
			put(t, inner, fmt.Sprint("pipelines/a/", n), fmt.Sprintf(`{"version": %d, "removed": true}`, n))
		}
		if _, err := s.Save(t.Context(), "a", saying("last"), pipelines.Any, person); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		before    int                                                       // versions that it knows
		meanwhile func(t *testing.T, inner store.Store, s *pipelines.Store) // what others do
		next      int                                                       // the version that is saved after any
		rest      string                                                    // what there is when the change was refused
	}{
		"a new pipeline": {0, func(t *testing.T, inner store.Store, s *pipelines.Store) {
			saves(t, s, 0, 3)
			saveMany(t, inner, s)
		}, many + 1, fmt.Sprintf("a@%d last", many)},
		"another version": {3, saveMany, many + 1, fmt.Sprintf("a@%d last", many)},
		"a purged pipeline": {3, func(t *testing.T, inner store.Store, _ *pipelines.Store) {
			for n := 1; n <= 3; n++ {
				if err := inner.Delete(t.Context(), fmt.Sprint("pipelines/a/", n)); err != nil {
					t.Fatal(err)
				}
			}
		}, 1, ""},
	} {
		for _, base := range []int{c.before, pipelines.Any} {
			t.Run(fmt.Sprint(name, base), func(t *testing.T) {
				inner := directoryStore(t)
				saves(t, pipelines.NewSharedStore(inner), 0, c.before)
				var once sync.Once
				s := pipelines.NewSharedStore(&troubled{Store: inner, fail: func(_ context.Context, does, name string) error {
					if does == "put" && strings.HasPrefix(name, "pipelines/a/") {
						once.Do(func() { c.meanwhile(t, inner, pipelines.NewSharedStore(inner)) })
					}
					return nil
				}})
				want := c.rest
				v, err := s.Save(t.Context(), "a", saying("late"), base, person)
				if base == pipelines.Any {
					want = fmt.Sprintf("a@%d late", c.next)
				}
				if (err == nil) != (base == pipelines.Any) || err == nil && v.Number != c.next || err != nil && !errors.Is(err, pipelines.ErrConflict) {
					t.Errorf("saved version %d, %v", v.Number, err)
				}
				if got := state(t, pipelines.NewSharedStore(inner)); got != want {
					t.Errorf("there is %q, want %q", got, want)
				}
			})
		}
	}
}

// TestSharedReused: the numbers of a pipeline whose versions were deleted come back with other texts.
func TestSharedReused(t *testing.T) {
	dir := t.TempDir()
	objects, err := store.OpenDirectory(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { objects.Close() })
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		a, b := pipelines.NewSharedStore(objects), pipelines.NewSharedStore(objects)
		var following sync.WaitGroup
		following.Go(func() {
			pipelines.NewSet(b, stages.Deps{}, func() uint64 { return 0 }).Follow(ctx, func(pipelines.Change) {})
		})
		for _, text := range []string{"old", "new"} {
			for i := range 2 {
				if _, err := a.Save(ctx, "a", saying(fmt.Sprint(text, i+1)), i, person); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(2 * time.Minute)
			for asked, want := range map[string]string{"a": text + "2", "a@1": text + "1", "a@2": text + "2"} {
				if p, err := b.Get(ctx, asked, pipelines.Everybody); err != nil || p.Definition.Description != want {
					t.Errorf("%s is %+v, %v, want %q", asked, p.Definition, err, want)
				}
			}
			for n := 1; n <= 2 && text == "old"; n++ {
				// Files that follow in the same tick of the clock could have one time.
				then := time.Now().Add(-time.Hour)
				if err := os.Chtimes(filepath.Join(dir, "pipelines", "a", fmt.Sprint(n)), then, then); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(2 * time.Minute)
			for n := 1; n <= 2 && text == "old"; n++ {
				if err := objects.Delete(ctx, fmt.Sprint("pipelines/a/", n)); err != nil {
					t.Fatal(err)
				}
			}
		}
		cancel()
		following.Wait()
	})
}

// TestSharedFiles: the files of a replica count before the store, and do not change; what is new goes to the store.
func TestSharedFiles(t *testing.T) {
	ctx, objects, dir := t.Context(), directoryStore(t), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.json"), saying("file"), 0o644); err != nil {
		t.Fatal(err)
	}
	other, s := pipelines.NewSharedStore(objects), pipelines.NewSharedStore(objects, dir)
	for _, name := range []string{"a", "b"} {
		if _, err := other.Save(ctx, name, saying("store"), 0, person); err != nil {
			t.Fatal(err)
		}
	}
	list, err := s.List(ctx)
	if err != nil || len(list) != 2 || list[0].Definition.Description != "file" || strings.Join(list[0].Shadows, " ") != "store:pipelines/a" {
		t.Errorf("got %+v, %v", list, err)
	}
	_, saving := s.Save(ctx, "a", saying("again"), pipelines.Any, person)
	_, adopting := s.Adopt(ctx, "a", pipelines.Any)
	for what, err := range map[string]error{"saving": saving, "adopting": adopting, "removing": s.Remove(ctx, "a", pipelines.Any)} {
		if !errors.Is(err, pipelines.ErrFile) {
			t.Errorf("%s a file: %v", what, err)
		}
	}
	if _, err := s.Save(ctx, "c", saying("new"), 0, person); err != nil {
		t.Error(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) != 1 {
		t.Errorf("the directory has %q, %v", files, err)
	}
	if got := fmt.Sprint(s.Places()); got != "[the shared store "+dir+"]" {
		t.Error(got)
	}
}

// TestSharedBounds: the bounds hold for what all replicas have saved, and old versions go.
func TestSharedBounds(t *testing.T) {
	ctx, objects := t.Context(), directoryStore(t)
	a := pipelines.NewSharedStore(objects)
	for i := range pipelines.MaxVersions + 5 {
		if _, err := a.Save(ctx, "a", saying(fmt.Sprint(i)), i, person); err != nil {
			t.Fatal(err)
		}
	}
	for i := range pipelines.MaxPrivate {
		if _, err := a.Save(ctx, fmt.Sprintf("p%d", i), saying("p"), 0, ann); err != nil {
			t.Fatal(err)
		}
	}
	b := pipelines.NewSharedStore(objects)
	if _, err := b.Save(ctx, "more", saying("p"), 0, ann); !errors.Is(err, pipelines.ErrFull) {
		t.Errorf("one more of an agent: %v", err)
	}
	if list, err := b.Versions(ctx, "a"); err != nil || len(list) != pipelines.MaxVersions || list[0].Number != pipelines.MaxVersions+5 {
		t.Errorf("there are %d versions, %v", len(list), err)
	}
	marks := 0
	for _, err := range objects.List(ctx, "pipelines/.changed/") {
		if marks++; err != nil {
			t.Fatal(err)
		}
	}
	if marks != 1 {
		t.Errorf("there are %d marks", marks)
	}
}

// TestSharedHostile: objects that are no versions change nothing but themselves, and the operator is told.
func TestSharedHostile(t *testing.T) {
	const brokenSeal = "what the store cannot open"
	long := bytes.Repeat([]byte("x"), pipelines.MaxFile+1)
	for name, c := range map[string]struct {
		object, text string
		want         string // that is known
		says         string // to the operator
	}{
		"a cut version":         {"pipelines/a/2", `{"version": 2, "hash": "sha25`, "a@2 of ", "the object pipelines/a/2 of the store: it holds no version"},
		"a large version":       {"pipelines/a/2", `{"file": "` + strings.Repeat("x", 3<<20) + `"}`, "a@2 of ", "pipelines/a/2"},
		"a long text":           {"pipelines/a/2", `{"version": 2, "hash": "sha256:` + fmt.Sprintf("%x", sha256.Sum256(long)) + `", "file": "` + string(long) + `"}`, "a@2 of ", "pipelines/a/2"},
		"another number":        {"pipelines/a/2", `{"version": 1}`, "a@2 of ", "pipelines/a/2"},
		"another text":          {"pipelines/a/2", `{"version": 2, "hash": "sha256:00", "file": "{}"}`, "a@2 of ", "pipelines/a/2"},
		"an empty version":      {"pipelines/a/2", ``, "a@2 of ", "pipelines/a/2"},
		"a number with a zero":  {"pipelines/a/02", `{}`, "a@1 one", "such as pipelines/a/02: remove them"},
		"no number":             {"pipelines/a/x", `{}`, "a@1 one", "such as pipelines/a/x"},
		"a large number":        {"pipelines/a/9999999999", `{}`, "a@1 one", "such as pipelines/a/9999999999"},
		"another name":          {"pipelines/execute_pipeline/1", `{}`, "a@1 one", "such as pipelines/execute_pipeline/1"},
		"no name":               {"pipelines/1", `{}`, "a@1 one", "such as pipelines/1"},
		"a broken seal":         {"pipelines/a/2", brokenSeal, "a@2 of ", "pipelines/a/2"},
		"a removal with a text": {"pipelines/b/1", `{"version": 1, "removed": true, "file": "x"}`, "a@1 one", ""},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, objects := t.Context(), directoryStore(t)
			if _, err := pipelines.NewSharedStore(objects).Save(ctx, "a", saying("one"), 0, person); err != nil {
				t.Fatal(err)
			}
			put(t, objects, c.object, c.text)
			s := pipelines.NewSharedStore(&troubled{Store: objects, fail: func(_ context.Context, does, name string) error {
				if does == "get" && name == c.object && c.text == brokenSeal {
					return store.ErrDamaged
				}
				return nil
			}})
			list, err := s.List(ctx)
			if got := state(t, s); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if len(list) == 1 {
				err = errors.Join(err, list[0].Err)
			}
			if got := fmt.Sprint(err); !strings.Contains(got, c.says) || c.says == "" && err != nil {
				t.Errorf("the operator is told %q, want %q", got, c.says)
			}
			if p := list[0]; p.Err != nil && (p.Version.VisibleTo("user ann") || p.Version.VisibleTo("")) {
				t.Error("callers see it")
			}
			if _, err := s.Save(ctx, "a", saying("again"), pipelines.Any, person); err != nil || !strings.HasSuffix(state(t, s), " again") {
				t.Errorf("saving it again: %s, %v", state(t, s), err)
			}
		})
	}
}

// TestSharedRotated: entries whose key has left the key file are no trouble of the store. Each is one of a pipeline that can be saved or
// removed, also if it was a removal.
func TestSharedRotated(t *testing.T) {
	inner := directoryStore(t)
	gateway := func(ids ...string) (*pipelines.Store, *troubled) {
		objects := &troubled{Store: store.Seal(inner, storetest.Keys(t, ids...))}
		return pipelines.NewSharedStore(objects), objects
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		old, _ := gateway("old")
		for i := range 3 {
			for _, name := range []string{"changed", "kept", "removed"} {
				if _, err := old.Save(ctx, name, saying(fmt.Sprint(i)), i, person); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := old.Remove(ctx, "removed", 3); err != nil {
			t.Fatal(err)
		}
		both, _ := gateway("new", "old")
		if _, err := both.Save(ctx, "changed", saying("3"), 3, person); err != nil {
			t.Fatal(err)
		}
		s, objects := gateway("new")
		var following sync.WaitGroup
		following.Go(func() {
			pipelines.NewSet(s, stages.Deps{}, func() uint64 { return 0 }).Follow(ctx, func(pipelines.Change) {})
		})
		time.Sleep(time.Hour)
		list, err := s.List(ctx)
		if got := state(t, s); got != "changed@4 3, kept@3 of , removed@4 of " || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
		for _, p := range list[1:] {
			if got := fmt.Sprint(p.Err); !strings.Contains(got, `add the key "old" to the key file`) || p.Version.VisibleTo("user ann") {
				t.Errorf("%s: %s", p.Name, got)
			}
		}
		if n := objects.gets.Load(); n != 3 {
			t.Errorf("in an hour %d objects were read", n)
		}
		if list, err := s.Versions(ctx, "changed"); len(list) != 1 || !errors.Is(err, store.ErrKey) || strings.Count(err.Error(), "add the key") != 1 {
			t.Errorf("its versions are %+v, %v", list, err)
		}
		if _, err := s.Get(ctx, "changed@1", pipelines.Everybody); !errors.Is(err, pipelines.ErrNotFound) {
			t.Errorf("an earlier version: %v", err)
		}
		if v, err := s.Save(ctx, "kept", saying("2"), 3, person); err != nil || v.Number != 4 {
			t.Errorf("saving the same text again: %+v, %v", v, err)
		}
		if err := s.Remove(ctx, "removed", 4); err != nil {
			t.Error(err)
		}
		if got := state(t, s); got != "changed@4 3, kept@4 2" {
			t.Errorf("at the end there is %q", got)
		}
		cancel()
		following.Wait()
	})
}

var errDown = errors.New("connection refused")

// TestSharedDown: while the store is down, what is known goes on, and a change says what has become of it.
func TestSharedDown(t *testing.T) {
	inner := directoryStore(t)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var down atomic.Bool
		objects := &troubled{Store: inner, fail: func(ctx context.Context, does, _ string) error {
			switch {
			case !down.Load():
				return nil
			case does == "list": // hangs
				<-ctx.Done()
				return context.Cause(ctx)
			}
			return errDown
		}}
		s := pipelines.NewSharedStore(objects)
		set := pipelines.NewSet(s, stages.Deps{}, func() uint64 { return 0 })
		for i := range 2 {
			if _, err := s.Save(ctx, "a", saying(fmt.Sprint(i)), i, person); err != nil {
				t.Fatal(err)
			}
		}
		var following sync.WaitGroup
		defer following.Wait()
		defer cancel()
		var told atomic.Int64
		following.Go(func() {
			set.Follow(ctx, func(c pipelines.Change) {
				if c.Err != nil {
					told.Add(1)
				}
			})
		})
		down.Store(true)
		time.Sleep(time.Minute)
		if found, err := set.Find(ctx, "a", pipelines.Operator()); err != nil || found.Definition.Description != "1" {
			t.Errorf("got %+v, %v", found, err)
		}
		if _, err := set.Find(ctx, "a@1", pipelines.Operator()); !errors.Is(err, pipelines.ErrStore) || strings.Contains(err.Error(), errDown.Error()) {
			t.Errorf("an earlier version: %v", err)
		}
		if list, err := s.Versions(ctx, "a"); !errors.Is(err, pipelines.ErrStore) || len(list) != 1 || list[0].Number != 2 {
			t.Errorf("its versions: %+v, %v", list, err)
		}
		if _, err := s.Save(ctx, "a", saying("x"), 2, person); !errors.Is(err, pipelines.ErrStore) || !strings.Contains(err.Error(), "nothing was changed") {
			t.Errorf("saving: %v", err)
		}
		if _, err := s.List(ctx); err == nil || !strings.Contains(err.Error(), "those known before stay") {
			t.Errorf("listing: %v", err)
		}
		if told.Load() != 1 {
			t.Errorf("the operator was told %d times", told.Load())
		}
		down.Store(false)
		time.Sleep(20 * time.Second)
		if _, err := s.List(ctx); err != nil {
			t.Errorf("when it is back: %v", err)
		}
		if v, err := s.Save(ctx, "a", saying("x"), 2, person); err != nil || v.Number != 3 {
			t.Errorf("when it is back: %+v, %v", v, err)
		}
	})
}

// TestSharedUnsettled: a store that fails while it writes is asked what has become of the object.
func TestSharedUnsettled(t *testing.T) {
	isVersion := func(does, name string) bool { return does == "put" && strings.HasPrefix(name, "pipelines/a/") }
	for name, c := range map[string]struct {
		objects *troubled
		want    error
		state   string
	}{
		"it was written": {&troubled{after: func(does, name string) error {
			if isVersion(does, name) {
				return errDown
			}
			return nil
		}}, nil, "a@1 one"},
		"it was written, and a repeated request found it": {&troubled{after: func(does, name string) error {
			if isVersion(does, name) {
				return store.ErrExists
			}
			return nil
		}}, nil, "a@1 one"},
		"it was not written": {&troubled{fail: func(_ context.Context, does, name string) error {
			if isVersion(does, name) {
				return errDown
			}
			return nil
		}}, pipelines.ErrUnsettled, ""},
		"nothing can be read": {&troubled{fail: func(_ context.Context, does, name string) error {
			if does == "get" || isVersion(does, name) {
				return errDown
			}
			return nil
		}}, pipelines.ErrUnsettled, ""},
		"no mark can be left": {&troubled{fail: func(_ context.Context, does, name string) error {
			if does == "put" && !isVersion(does, name) {
				return errDown
			}
			return nil
		}}, nil, "a@1 one"},
	} {
		t.Run(name, func(t *testing.T) {
			inner := directoryStore(t)
			c.objects.Store = inner
			s := pipelines.NewSharedStore(c.objects)
			if _, err := s.Save(t.Context(), "a", saying("one"), 0, person); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			for _, s := range []*pipelines.Store{s, pipelines.NewSharedStore(inner)} {
				if got := state(t, s); got != c.state {
					t.Errorf("got %q, want %q", got, c.state)
				}
			}
		})
	}
}

// TestSharedUnlisted: a change after which the store cannot be listed may count, and others are told to look.
func TestSharedUnlisted(t *testing.T) {
	inner := directoryStore(t)
	var written atomic.Bool
	s := pipelines.NewSharedStore(&troubled{Store: inner, fail: func(_ context.Context, does, name string) error {
		if does == "list" && written.Load() {
			return errDown
		}
		written.Store(written.Load() || does == "put")
		return nil
	}})
	if _, err := s.Save(t.Context(), "a", saying("one"), 0, person); !errors.Is(err, pipelines.ErrUnsettled) {
		t.Errorf("got %v", err)
	}
	if got := state(t, pipelines.NewSharedStore(inner)); got != "a@1 one" {
		t.Errorf("there is %q", got)
	}
	marks := 0
	for _, err := range inner.List(t.Context(), "pipelines/.changed/") {
		if marks++; err != nil {
			t.Fatal(err)
		}
	}
	if marks != 1 {
		t.Errorf("there are %d marks", marks)
	}
}

// TestSharedCancelled: a change whose caller ends while the store hangs ends, too, and so does a list.
func TestSharedCancelled(t *testing.T) {
	inner := directoryStore(t)
	for _, hangs := range []string{"list", "put", "get"} {
		t.Run(hangs, func(t *testing.T) {
			begun, now := context.WithCancel(t.Context())
			ctx, cancel := context.WithCancel(t.Context())
			objects := &troubled{Store: inner, fail: func(ctx context.Context, does, _ string) error {
				if does != hangs {
					return nil
				}
				now()
				select {
				case <-ctx.Done():
				case <-t.Context().Done():
				}
				return context.Cause(ctx)
			}}
			s := pipelines.NewSharedStore(objects)
			put(t, inner, "pipelines/"+hangs+"x/1", "{}") // an object to get
			go func() {
				<-begun.Done()
				cancel()
			}()
			_, err := s.Save(ctx, hangs+"x", saying("one"), pipelines.Any, person)
			if !errors.Is(err, context.Canceled) || !errors.Is(err, pipelines.ErrStore) && !errors.Is(err, pipelines.ErrUnsettled) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestSharedCost: a replica where nothing happens asks once in two seconds, however many pipelines there are, and reads no object
// twice.
func TestSharedCost(t *testing.T) {
	inner := directoryStore(t)
	writer := pipelines.NewSharedStore(inner)
	const many = 30
	for i := range many {
		for n := range 3 {
			if _, err := writer.Save(t.Context(), fmt.Sprintf("p%d", i), saying(fmt.Sprint(n)), n, person); err != nil {
				t.Fatal(err)
			}
		}
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		objects := &troubled{Store: inner}
		s := pipelines.NewSharedStore(objects)
		var following sync.WaitGroup
		following.Go(func() {
			pipelines.NewSet(s, stages.Deps{}, func() uint64 { return 0 }).Follow(ctx, func(pipelines.Change) {})
		})
		time.Sleep(10 * time.Minute)
		if lists, gets := objects.lists.Load(), objects.gets.Load(); lists > 315 || gets != many {
			t.Errorf("in ten minutes the store was listed %d times, and %d objects were read", lists, gets)
		}
		cancel()
		following.Wait()
	})
}

// TestSharedRemoved: the versions of pipelines that were removed stay, but not of any number of them, and none comes back.
func TestSharedRemoved(t *testing.T) {
	ctx, objects := t.Context(), directoryStore(t)
	s := pipelines.NewSharedStore(objects)
	for i := range 249 {
		put(t, objects, fmt.Sprintf("pipelines/p%d/2", i), fmt.Sprintf(`{"version": 2, "removed": true, "saved": "2026-01-01T00:%02d:%02dZ"}`, i/60, i%60))
	}
	for _, name := range []string{"p257", "p258", "p259"} {
		if _, err := s.Save(ctx, name, saying("x"), 0, person); err != nil {
			t.Fatal(err)
		}
		if err := s.Remove(ctx, name, 1); err != nil {
			t.Fatal(err)
		}
	}
	names := map[string]bool{}
	for o, err := range objects.List(ctx, "pipelines/p") {
		if err != nil {
			t.Fatal(err)
		}
		names[strings.Split(o.Name, "/")[1]] = true
	}
	if len(names) != 250 || names["p0"] || names["p1"] || !names["p2"] || !names["p259"] {
		t.Errorf("%d are left", len(names))
	}
	other := pipelines.NewSharedStore(objects)
	if got := state(t, other); got != "" {
		t.Errorf("they are back: %q", got)
	}
	if p, err := other.Get(ctx, "p259@1", pipelines.Everybody); err != nil || !p.Removed {
		t.Errorf("got %+v, %v", p, err)
	}
}

// TestSharedDeletedByHand: what an operator deletes from the store is gone everywhere.
func TestSharedDeletedByHand(t *testing.T) {
	objects := directoryStore(t)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := pipelines.NewSharedStore(objects)
		for i := range 2 {
			if _, err := s.Save(ctx, "a", saying(fmt.Sprint(i)), i, person); err != nil {
				t.Fatal(err)
			}
		}
		var following sync.WaitGroup
		following.Go(func() {
			pipelines.NewSet(s, stages.Deps{}, func() uint64 { return 0 }).Follow(ctx, func(pipelines.Change) {})
		})
		for _, step := range []struct{ deleted, want string }{{"pipelines/a/2", "a@1 0"}, {"pipelines/a/1", ""}} {
			if err := objects.Delete(ctx, step.deleted); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Minute)
			if got := state(t, s); got != step.want {
				t.Errorf("without %s: got %q, want %q", step.deleted, got, step.want)
			}
		}
		cancel()
		following.Wait()
	})
}

// TestSharedS3: it works on a server, too, and sealed.
func TestSharedS3(t *testing.T) {
	s3, err := store.OpenS3(t.Context(), storetest.S3(t))
	if err != nil {
		t.Fatal(err)
	}
	ctx, objects := t.Context(), store.Seal(s3, storetest.Keys(t, "one"))
	a, b := pipelines.NewSharedStore(objects), pipelines.NewSharedStore(objects)
	if got := state(t, b); got != "" {
		t.Errorf("at first there is %q", got)
	}
	if _, err := a.Save(ctx, "a", saying("one"), 0, ann); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Get(ctx, "a", pipelines.Everybody); err != nil {
		t.Error(err)
	}
	if v, err := b.Adopt(ctx, "a", 1); err != nil || v.Private() {
		t.Errorf("adopted %+v, %v", v, err)
	}
	if _, err := a.Save(ctx, "a", saying("two"), 1, ann); !errors.Is(err, pipelines.ErrTaken) {
		t.Errorf("an agent saves behind the adoption: %v", err)
	}
	if err := a.Remove(ctx, "a", 2); err != nil {
		t.Error(err)
	}
	if got := state(t, pipelines.NewSharedStore(objects)); got != "" {
		t.Errorf("at the end there is %q", got)
	}
}

// FuzzSharedObject: whatever an object holds, nothing breaks, and only what a gateway has written becomes a pipeline.
func FuzzSharedObject(f *testing.F) {
	f.Add([]byte(`{"version": 1, "hash": "sha256:00", "author": {}, "file": "{}"}`))
	f.Add([]byte(`{"version": 1, "removed": true}`))
	dir, err := store.OpenDirectory(f.TempDir())
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := dir.Put(t.Context(), "pipelines/a/1", data); err != nil {
			t.Fatal(err)
		}
		s := pipelines.NewSharedStore(dir)
		list, err := s.List(t.Context())
		if err != nil || len(list) == 1 && (list[0].Definition == nil) == (list[0].Err == nil) {
			t.Errorf("got %+v, %v", list, err)
		}
		if _, err := s.Save(t.Context(), "a", saying("again"), pipelines.Any, person); err != nil {
			t.Error(err)
		}
		for n := 1; n <= 2; n++ {
			if err := dir.Delete(t.Context(), fmt.Sprintf("pipelines/a/%d", n)); err != nil {
				t.Fatal(err)
			}
		}
	})
}
